public import FoundationModels

/// A condition on an argument of a tool call.
public enum ArgumentMatcher: Sendable, Codable {
    /// The argument equals a value. Numbers are compared as numbers.
    case exact(argumentName: String, value: ArgumentValue)
    /// The argument exists.
    case keyOnly(argumentName: String)
    /// The argument equals one of several values.
    case oneOf(argumentName: String, allowedValues: [ArgumentValue])
    /// The argument is a number within bounds, which are included.
    case range(argumentName: String, minimum: Double?, maximum: Double?)
    /// The argument contains a match of a regular expression.
    case pattern(argumentName: String, regex: String)
    /// The argument contains a text.
    case contains(argumentName: String, substring: String)
    /// The argument begins with a text.
    case hasPrefix(argumentName: String, prefix: String)
    /// The argument ends with a text.
    case hasSuffix(argumentName: String, suffix: String)
    /// A language model decides whether the argument meets a description.
    case naturalLanguage(argumentName: String, criteria: String)

    var argumentName: String {
        switch self {
        case .exact(let name, _), .keyOnly(let name), .oneOf(let name, _), .range(let name, _, _), .pattern(let name, _),
            .contains(let name, _), .hasPrefix(let name, _), .hasSuffix(let name, _), .naturalLanguage(let name, _):
            name
        }
    }
}

/// An object with the kind of the condition and its values.
extension ArgumentMatcher: nonisolated Generable {
    public static var generationSchema: GenerationSchema {
        GenerationSchema(
            type: ArgumentMatcher.self,
            properties: [
                .init(
                    name: "type", type: String.self,
                    guides: [
                        .anyOf([
                            "exact", "keyOnly", "oneOf", "range", "pattern", "contains", "hasPrefix", "hasSuffix",
                            "naturalLanguage",
                        ])
                    ]),
                .init(name: "argumentName", type: String.self), .init(name: "value", type: ArgumentValue?.self),
                .init(name: "allowedValues", type: [ArgumentValue]?.self), .init(name: "minimum", type: Double?.self),
                .init(name: "maximum", type: Double?.self),
                .init(
                    name: "text", description: "The regular expression, the text, or the criteria.", type: String?.self),
            ])
    }

    public var generatedContent: GeneratedContent {
        switch self {
        case .exact(let name, let value):
            GeneratedContent(properties: ["type": "exact", "argumentName": name, "value": value])
        case .keyOnly(let name): GeneratedContent(properties: ["type": "keyOnly", "argumentName": name])
        case .oneOf(let name, let values):
            GeneratedContent(properties: ["type": "oneOf", "argumentName": name, "allowedValues": values])
        case .range(let name, let minimum, let maximum):
            GeneratedContent(properties: ["type": "range", "argumentName": name, "minimum": minimum, "maximum": maximum])
        case .pattern(let name, let text): Self.content("pattern", name, text)
        case .contains(let name, let text): Self.content("contains", name, text)
        case .hasPrefix(let name, let text): Self.content("hasPrefix", name, text)
        case .hasSuffix(let name, let text): Self.content("hasSuffix", name, text)
        case .naturalLanguage(let name, let text): Self.content("naturalLanguage", name, text)
        }
    }

    private static func content(_ type: String, _ name: String, _ text: String) -> GeneratedContent {
        GeneratedContent(properties: ["type": type, "argumentName": name, "text": text])
    }

    public init(_ content: GeneratedContent) throws {
        let name = try content.value(String.self, forProperty: "argumentName")
        func text() throws -> String { try content.value(String.self, forProperty: "text") }
        switch try content.value(String.self, forProperty: "type") {
        case "exact": self = .exact(argumentName: name, value: try content.value(forProperty: "value"))
        case "keyOnly": self = .keyOnly(argumentName: name)
        case "oneOf": self = .oneOf(argumentName: name, allowedValues: try content.value(forProperty: "allowedValues"))
        case "range":
            self = .range(
                argumentName: name, minimum: try content.value(Double?.self, forProperty: "minimum"),
                maximum: try content.value(Double?.self, forProperty: "maximum"))
        case "pattern": self = .pattern(argumentName: name, regex: try text())
        case "contains": self = .contains(argumentName: name, substring: try text())
        case "hasPrefix": self = .hasPrefix(argumentName: name, prefix: try text())
        case "hasSuffix": self = .hasSuffix(argumentName: name, suffix: try text())
        case "naturalLanguage": self = .naturalLanguage(argumentName: name, criteria: try text())
        case let type:
            throw GeneratedContent.ParsingError(
                rawContent: content.jsonString, debugDescription: "There is no argument matcher named \(type).")
        }
    }

    /// A matcher that is being generated: its name, if that is known.
    public enum PartiallyGenerated: nonisolated ConvertibleFromGeneratedContent, Sendable {
        case exact(argumentName: String.PartiallyGenerated?, value: ArgumentValue.PartiallyGenerated?)
        case keyOnly(argumentName: String.PartiallyGenerated?)
        case oneOf(argumentName: String.PartiallyGenerated?, allowedValues: [ArgumentValue].PartiallyGenerated?)
        case range(
            argumentName: String.PartiallyGenerated?, minimum: Double?.PartiallyGenerated?, maximum: Double?.PartiallyGenerated?)
        case pattern(argumentName: String.PartiallyGenerated?, regex: String.PartiallyGenerated?)
        case contains(argumentName: String.PartiallyGenerated?, substring: String.PartiallyGenerated?)
        case hasPrefix(argumentName: String.PartiallyGenerated?, prefix: String.PartiallyGenerated?)
        case hasSuffix(argumentName: String.PartiallyGenerated?, suffix: String.PartiallyGenerated?)
        case naturalLanguage(argumentName: String.PartiallyGenerated?, criteria: String.PartiallyGenerated?)

        public init(_ content: GeneratedContent) throws {
            let name = try content.value(String?.self, forProperty: "argumentName")
            func text() throws -> String? { try content.value(String?.self, forProperty: "text") }
            switch try content.value(String?.self, forProperty: "type") {
            case "exact": self = .exact(argumentName: name, value: try content.value(ArgumentValue?.self, forProperty: "value"))
            case "oneOf":
                self = .oneOf(
                    argumentName: name, allowedValues: try content.value([ArgumentValue]?.self, forProperty: "allowedValues"))
            case "range":
                self = .range(
                    argumentName: name, minimum: try content.value(Double?.self, forProperty: "minimum"),
                    maximum: try content.value(Double?.self, forProperty: "maximum"))
            case "pattern": self = .pattern(argumentName: name, regex: try text())
            case "contains": self = .contains(argumentName: name, substring: try text())
            case "hasPrefix": self = .hasPrefix(argumentName: name, prefix: try text())
            case "hasSuffix": self = .hasSuffix(argumentName: name, suffix: try text())
            case "naturalLanguage": self = .naturalLanguage(argumentName: name, criteria: try text())
            default: self = .keyOnly(argumentName: name)
            }
        }
    }
}

/// An expected tool call, or several whose order does not matter.
public struct ToolExpectation: Sendable, Codable {
    /// The name of the tool; empty for a group.
    public let name: String
    /// Conditions on the arguments. Others may have any value.
    public let arguments: [ArgumentMatcher]
    /// Whether this is a group of calls in any order.
    public var isAnyOrderGroup: Bool { group != nil }
    private let group: [ToolExpectation]?
    /// The single calls: of a group, also of groups in it, or the call itself.
    var members: [ToolExpectation] { group.map { $0.flatMap(\.members) } ?? [self] }

    /// Expects a call of a tool.
    public init(_ name: String, arguments: [ArgumentMatcher] = []) {
        self.init(name: name, arguments: arguments, group: nil)
    }

    private init(name: String, arguments: [ArgumentMatcher], group: [ToolExpectation]?) {
        self.name = name
        self.arguments = arguments
        self.group = group
    }

    /// Expects several calls in any order.
    public static func anyOrder(_ expectations: [ToolExpectation]) -> ToolExpectation {
        ToolExpectation(name: "", arguments: [], group: expectations)
    }

    private enum CodingKeys: CodingKey { case name, arguments, anyOrder }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let group = try container.decodeIfPresent([ToolExpectation].self, forKey: .anyOrder)
        self.init(
            name: group == nil ? try container.decode(String.self, forKey: .name) : "",
            arguments: try container.decodeIfPresent([ArgumentMatcher].self, forKey: .arguments) ?? [], group: group)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        if let group {
            try container.encode(group, forKey: .anyOrder)
        } else {
            try container.encode(name, forKey: .name)
            if !arguments.isEmpty { try container.encode(arguments, forKey: .arguments) }
        }
    }
}

extension ToolExpectation: nonisolated Generable {
    // A model generates single calls; a group of groups would make the schema recursive.
    public static var generationSchema: GenerationSchema {
        GenerationSchema(
            type: ToolExpectation.self,
            properties: [.init(name: "name", type: String.self), .init(name: "arguments", type: [ArgumentMatcher]?.self)])
    }

    public var generatedContent: GeneratedContent {
        group.map { GeneratedContent(properties: ["anyOrder": $0]) }
            ?? GeneratedContent(properties: ["name": name, "arguments": arguments])
    }

    public init(_ content: GeneratedContent) throws {
        if let group = try content.value([ToolExpectation]?.self, forProperty: "anyOrder") {
            self = .anyOrder(group)
        } else {
            self.init(
                try content.value(String.self, forProperty: "name"),
                arguments: try content.value([ArgumentMatcher]?.self, forProperty: "arguments") ?? [])
        }
    }

    /// An expectation that is being generated.
    public enum PartiallyGenerated: nonisolated ConvertibleFromGeneratedContent, Sendable {
        case expectation(name: String.PartiallyGenerated?, arguments: [ArgumentMatcher].PartiallyGenerated?)
        case anyOrder(expectations: [ToolExpectation].PartiallyGenerated?)

        public init(_ content: GeneratedContent) throws {
            if let group = try content.value([ToolExpectation.PartiallyGenerated]?.self, forProperty: "anyOrder") {
                self = .anyOrder(expectations: group)
            } else {
                self = .expectation(
                    name: try content.value(String?.self, forProperty: "name"),
                    arguments: try content.value([ArgumentMatcher.PartiallyGenerated]?.self, forProperty: "arguments"))
            }
        }
    }
}

/// The tool calls that are expected of a response.
public struct TrajectoryExpectation: Sendable, Codable {
    /// Calls that must occur in this order, possibly with others between them.
    public var ordered: [ToolExpectation]
    /// Calls that must occur anywhere.
    public var unordered: [ToolExpectation]
    /// Calls that must not occur.
    public var disallowed: [ToolExpectation]
    /// Whether calls that are not expected may occur.
    public var allowsAdditionalCalls: Bool

    private init(
        _ ordered: [ToolExpectation], _ unordered: [ToolExpectation], _ disallowed: [ToolExpectation], _ allowsAdditional: Bool
    ) {
        self.ordered = ordered
        self.unordered = unordered
        self.disallowed = disallowed
        allowsAdditionalCalls = allowsAdditional
    }

    /// Expects calls.
    public init(ordered: [ToolExpectation] = [], unordered: [ToolExpectation] = [], allowsAdditionalToolCalls: Bool = true) {
        self.init(ordered, unordered, [], allowsAdditionalToolCalls)
    }

    /// Expects calls, and that others do not occur.
    public init(ordered: [ToolExpectation] = [], unordered: [ToolExpectation] = [], disallowed: [ToolExpectation]) {
        self.init(ordered, unordered, disallowed, true)
    }

    /// Expects calls in any order.
    public init(unordered: [ToolExpectation]) { self.init([], unordered, [], true) }

    /// Expects a call of one tool.
    public init(expected toolName: String, arguments: [ArgumentMatcher] = []) {
        self.init([ToolExpectation(toolName, arguments: arguments)], [], [], true)
    }

    private enum CodingKeys: CodingKey { case ordered, unordered, disallowed, allowsAdditionalCalls }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func list(_ key: CodingKeys) throws -> [ToolExpectation] {
            try container.decodeIfPresent([ToolExpectation].self, forKey: key) ?? []
        }
        self.init(
            try list(.ordered), try list(.unordered), try list(.disallowed),
            try container.decodeIfPresent(Bool.self, forKey: .allowsAdditionalCalls) ?? true)
    }
}

extension TrajectoryExpectation: nonisolated Generable {
    public static var generationSchema: GenerationSchema {
        GenerationSchema(
            type: TrajectoryExpectation.self,
            properties: [
                .init(name: "ordered", type: [ToolExpectation].self), .init(name: "unordered", type: [ToolExpectation].self),
                .init(name: "disallowed", type: [ToolExpectation].self), .init(name: "allowsAdditionalCalls", type: Bool.self),
            ])
    }

    public var generatedContent: GeneratedContent {
        GeneratedContent(properties: [
            "ordered": ordered, "unordered": unordered, "disallowed": disallowed, "allowsAdditionalCalls": allowsAdditionalCalls,
        ])
    }

    public init(_ content: GeneratedContent) throws {
        self.init(
            try content.value([ToolExpectation]?.self, forProperty: "ordered") ?? [],
            try content.value([ToolExpectation]?.self, forProperty: "unordered") ?? [],
            try content.value([ToolExpectation]?.self, forProperty: "disallowed") ?? [],
            try content.value(Bool?.self, forProperty: "allowsAdditionalCalls") ?? true)
    }
}
