public import Foundation
internal import Grammar

/// What a response must look like. The model is held to it token by token.
///
/// Encoded, it is a JSON Schema with `title`, `x-order` (the order of generation) and `$defs`.
public struct GenerationSchema: Sendable, Codable, CustomDebugStringConvertible {
    let root: SchemaNode
    /// The type that the root belongs to; it may appear in itself.
    let rootType: (any Generable.Type)?
    /// Schemas that references name.
    let definitions: [String: SchemaNode]

    init(node: SchemaNode, type: (any Generable.Type)? = nil, definitions: [String: SchemaNode] = [:]) {
        root = node
        rootType = type
        self.definitions = definitions
    }

    /// An object with these properties, generated in this order.
    public init(type: any Generable.Type, description: String? = nil, properties: [Property]) {
        self.init(_name: Self.name(of: type), type: type, description: description, properties: properties)
    }

    /// An object with these properties, generated in this order.
    ///
    /// - Parameter explicitNil: Whether values write null for a missing property. What is generated leaves it out either way.
    public init(
        type: any Generable.Type, description: String? = nil, representNilExplicitlyInGeneratedContent explicitNil: Bool,
        properties: [Property]
    ) {
        self.init(
            _name: Self.name(of: type), type: type, description: description,
            representNilExplicitlyInGeneratedContent: explicitNil, properties: properties)
    }

    /// One of these texts.
    public init(type: any Generable.Type, description: String? = nil, anyOf choices: [String]) {
        self.init(_name: Self.name(of: type), type: type, description: description, anyOf: choices)
    }

    /// A value of one of these types.
    public init(type: any Generable.Type, description: String? = nil, anyOf types: [any Generable.Type]) {
        self.init(_name: Self.name(of: type), type: type, description: description, anyOf: types)
    }

    /// A schema built at run time.
    ///
    /// - Throws: ``SchemaError`` if names are missing or used twice, or a choice has no alternatives.
    public init(root: DynamicGenerationSchema, dependencies: [DynamicGenerationSchema]) throws {
        self = try DynamicSchemaResolver.schema(root: root, dependencies: dependencies)
    }

    /// The name in the schema's title; of schemas without one, what it is: `String`, `Array<Person>`.
    public var name: String { Self.name(of: root) }

    /// The schema as JSON.
    public var debugDescription: String { json.text }

    /// - Parameter types: Types on the way here, which may contain themselves.
    static func name(of node: SchemaNode, within types: [any Generable.Type] = []) -> String {
        if let name = node.name { return name }
        return switch node {
        case .string(let text): text.constant ?? "String"
        case .number(let number): number.isInteger ? "Int" : "Double"
        case .boolean: "Bool"
        case .null: "Null"
        case .array(let list): "Array<\(name(of: list.item, within: types))>"
        case .type(let type) where types.contains { $0 == type }: name(of: type)
        case .type(let type): name(of: type.generationSchema.root, within: types + [type])
        case .reference(let name): name
        default: "GeneratedContent"
        }
    }

    private static func name(of type: any Generable.Type) -> String { String(describing: type) }
}

// What the macros use, besides the above: a name that is not the type's.
extension GenerationSchema {
    public init(
        _name: String, type: any Generable.Type, description: String? = nil,
        representNilExplicitlyInGeneratedContent explicitNil: Bool = false, properties: [Property]
    ) {
        self.init(
            node: .object(.init(name: _name, description: description, properties: properties.map(\.node))), type: type)
    }

    public init(_name: String, type: any Generable.Type, description: String? = nil, anyOf choices: [String]) {
        self.init(node: .string(.init(name: _name, description: description, choices: choices)), type: type)
    }

    public init(
        _name: String, type: any Generable.Type, description: String? = nil, anyOf types: [any Generable.Type]
    ) {
        self.init(
            node: .choice(name: _name, description: description, types.map { SchemaNode(type: $0) }), type: type)
    }
}

extension GenerationSchema {
    /// A property of an object.
    public struct Property: Sendable {
        let node: SchemaNode.Property

        private init(
            _ name: String, _ description: String?, _ type: any Generable.Type, _ rules: [GuideRule], isOptional: Bool
        ) {
            let guided = rules.reduce(SchemaNode(type: type)) { $0.applying($1) }
            node = SchemaNode.Property(name: name, description: description, node: guided, isOptional: isOptional)
        }

        /// A property that is always there.
        public init<Value>(
            name: String, description: String? = nil, type: Value.Type, guides: [GenerationGuide<Value>] = []
        ) where Value: Generable {
            self.init(name, description, type, guides.flatMap(\.rules), isOptional: false)
        }

        /// A property that the model may leave out.
        public init<Value>(
            name: String, description: String? = nil, type: Value?.Type, guides: [GenerationGuide<Value>] = []
        ) where Value: Generable {
            self.init(name, description, Value.self, guides.flatMap(\.rules), isOptional: true)
        }

        /// A text that the whole of each expression matches.
        public init<RegexOutput>(
            name: String, description: String? = nil, type: String.Type, guides: [Regex<RegexOutput>] = []
        ) {
            let rules = guides.map { GuideRule.pattern(SchemaPattern.text(of: $0)) }
            self.init(name, description, type, rules, isOptional: false)
        }

        /// A text that the whole of each expression matches, or that the model leaves out.
        public init<RegexOutput>(
            name: String, description: String? = nil, type: String?.Type, guides: [Regex<RegexOutput>] = []
        ) {
            let rules = guides.map { GuideRule.pattern(SchemaPattern.text(of: $0)) }
            self.init(name, description, String.self, rules, isOptional: true)
        }
    }

    /// Why schemas built at run time do not make one.
    public enum SchemaError: Error, LocalizedError {
        /// Two schemas have one name.
        case duplicateType(schema: String?, type: String, context: Context)
        /// Two properties of an object have one name.
        case duplicateProperty(schema: String, property: String, context: Context)
        /// A choice has no alternatives.
        case emptyTypeChoices(schema: String, context: Context)
        /// References name schemas that are not there.
        case undefinedReferences(schema: String?, references: [String], context: Context)

        /// What went wrong, for developers.
        public struct Context: Sendable {
            /// What went wrong, in a sentence for developers.
            public let debugDescription: String
            /// For errors that a program makes itself, as in tests.
            public init(debugDescription: String) { self.debugDescription = debugDescription }
        }

        public var errorDescription: String? {
            switch self {
            case .duplicateType(_, _, let context), .duplicateProperty(_, _, let context), .emptyTypeChoices(_, let context),
                .undefinedReferences(_, _, let context):
                context.debugDescription
            }
        }

        public var recoverySuggestion: String? {
            switch self {
            case .duplicateType: "Give each schema a name of its own."
            case .duplicateProperty: "Give each property a name of its own."
            case .emptyTypeChoices: "Add at least one alternative."
            case .undefinedReferences: "Pass the schemas that are referred to as dependencies."
            }
        }
    }
}
