import Foundation
import FoundationModels

/// Content created in code: the data of a form, and the response of a server.
enum OrderContent {
    static func order(number: Int, lines: [(String, Double)], isGift: Bool, note: String?) -> GeneratedContent {
        let rows = lines.map { name, price in
            GeneratedContent(properties: ["name": name, "price": price])
        }
        return GeneratedContent(properties: [
            "number": number,
            "lines": GeneratedContent(elements: rows),
            "isGift": isGift,
            "note": note,
            "total": Decimal(lines.reduce(0) { $0 + $1.1 }),
        ])
    }

    static func named(_ id: GenerationID) -> GeneratedContent {
        GeneratedContent(properties: ["name": "Lamp"], id: id)
    }

    static let scalars: [GeneratedContent] = [
        GeneratedContent("text"), GeneratedContent(3), GeneratedContent(2.5), GeneratedContent(true),
        GeneratedContent(Optional<String>.none), GeneratedContent([1, 2, 3]), GeneratedContent(kind: .null),
    ]

    static let mixed = GeneratedContent(elements: ["a", 1, false] as [any ConvertibleToGeneratedContent])

    /// Merges two sources of the same form; later values replace earlier ones.
    static func merged(_ pairs: [(String, any ConvertibleToGeneratedContent)]) -> GeneratedContent {
        GeneratedContent(properties: pairs, uniquingKeysWith: { _, new in new })
    }

    static func tree() -> GeneratedContent {
        GeneratedContent(
            kind: .structure(
                properties: [
                    "ok": GeneratedContent(kind: .bool(true)),
                    "items": GeneratedContent(kind: .array([GeneratedContent(kind: .number(1.5))])),
                ],
                orderedKeys: ["ok", "items"]))
    }
}

/// Traverses content whose structure is known only at run time.
enum ContentInspector {
    static func describe(_ content: GeneratedContent) -> String {
        switch content.kind {
        case .null:
            return "nothing"
        case .bool(let value):
            return value ? "yes" : "no"
        case .number(let value):
            return value.formatted(.number.locale(Locale(identifier: "en_US")).grouping(.never))
        case .string(let text):
            return "“\(text)”"
        case .array(let elements):
            return "[" + elements.map(describe).joined(separator: ", ") + "]"
        case .structure(let properties, let orderedKeys):
            let lines = orderedKeys.compactMap { key in properties[key].map { "\(key): \(describe($0))" } }
            return "(" + lines.joined(separator: ", ") + ")"
        @unknown default:
            return "?"
        }
    }

    /// The keys in their original order.
    static func keys(of content: GeneratedContent) -> [String] {
        guard case .structure(_, let orderedKeys) = content.kind else { return [] }
        return orderedKeys
    }

    static func depth(of content: GeneratedContent) -> Int {
        switch content.kind {
        case .array(let elements): 1 + (elements.map(depth).max() ?? 0)
        case .structure(let properties, _): 1 + (properties.values.map(depth).max() ?? 0)
        default: 0
        }
    }

    /// Parses the data from a server, even if it is incomplete because the connection failed.
    static func read(_ json: String) throws -> (content: GeneratedContent, isWhole: Bool) {
        let content = try GeneratedContent(json: json)
        return (content, content.isComplete)
    }

    static func total(of order: GeneratedContent) throws -> Double {
        try order.value([GeneratedContent].self, forProperty: "lines")
            .map { try $0.value(Double.self, forProperty: "price") }
            .reduce(0, +)
    }

    static func note(of order: GeneratedContent) throws -> String? {
        try order.value(forProperty: "note")
    }

    static func number(of order: GeneratedContent) throws -> Int {
        let number: Int = try order.value(forProperty: "number")
        return number
    }

    static func strings(in content: GeneratedContent) throws -> [String] {
        try content.value([String].self)
    }

    /// Converts a value to another type through its content.
    static func convert<Source, Target>(_ value: Source, to type: Target.Type = Target.self) throws -> Target
    where Source: ConvertibleToGeneratedContent, Target: ConvertibleFromGeneratedContent {
        try Target(value.generatedContent)
    }
}
