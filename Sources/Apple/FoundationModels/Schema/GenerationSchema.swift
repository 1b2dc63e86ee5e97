internal import JSON
public import Foundation
internal import Grammar

/// The format of a response. It constrains the model token by token.
///
/// A schema is encoded as JSON Schema with `title`, `x-order` (the order of generation) and `$defs`. Any other JSON Schema can be
/// decoded as well: it is kept and enforced as it is.
public struct GenerationSchema: Sendable, Codable, CustomDebugStringConvertible {
    let root: SchemaNode
    /// The type that the root belongs to, which may contain itself.
    let rootType: (any Generable.Type)?
    /// The schemas that references refer to, by name.
    let definitions: [String: SchemaNode]

    init(node: SchemaNode, type: (any Generable.Type)? = nil, definitions: [String: SchemaNode] = [:]) {
        root = node
        rootType = type
        self.definitions = definitions
    }

    /// Creates an object schema; its properties are generated in this order.
    public init(type: any Generable.Type, description: String? = nil, properties: [Property]) {
        self.init(_name: Self.name(of: type), type: type, description: description, properties: properties)
    }

    /// Creates an object schema; its properties are generated in this order.
    ///
    /// - Parameter explicitNil: Whether values contain null for a missing property. Generated content omits it in
    ///   either case.
    public init(
        type: any Generable.Type, description: String? = nil, representNilExplicitlyInGeneratedContent explicitNil: Bool,
        properties: [Property]
    ) {
        self.init(
            _name: Self.name(of: type), type: type, description: description,
            representNilExplicitlyInGeneratedContent: explicitNil, properties: properties)
    }

    /// Creates a schema of these strings.
    public init(type: any Generable.Type, description: String? = nil, anyOf choices: [String]) {
        self.init(_name: Self.name(of: type), type: type, description: description, anyOf: choices)
    }

    /// Creates a schema of values of one of these types.
    public init(type: any Generable.Type, description: String? = nil, anyOf types: [any Generable.Type]) {
        self.init(_name: Self.name(of: type), type: type, description: description, anyOf: types)
    }

    /// Creates a schema from schemas built at run time.
    ///
    /// - Throws: ``SchemaError`` if names are missing or used twice, or a choice has no alternatives.
    public init(root: DynamicGenerationSchema, dependencies: [DynamicGenerationSchema]) throws {
        self = try DynamicSchemaResolver.schema(root: root, dependencies: dependencies)
    }

    /// The title of the schema; for a schema without a title, its type: `String`, `Array<Person>`.
    public var name: String { Self.name(of: root) }

    /// The schema as JSON.
    public var debugDescription: String { json.text }

    /// - Parameter types: The types that contain the node, which may be recursive.
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

// Used by the macros in addition to the above: initializers with a name that differs from the type's.
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

        /// Creates a required property.
        public init<Value>(
            name: String, description: String? = nil, type: Value.Type, guides: [GenerationGuide<Value>] = []
        ) where Value: Generable {
            self.init(name, description, type, guides.flatMap(\.rules), isOptional: false)
        }

        /// Creates a property that the model may omit.
        public init<Value>(
            name: String, description: String? = nil, type: Value?.Type, guides: [GenerationGuide<Value>] = []
        ) where Value: Generable {
            self.init(name, description, Value.self, guides.flatMap(\.rules), isOptional: true)
        }

        /// Creates a required string property; each expression must match the whole string.
        public init<RegexOutput>(
            name: String, description: String? = nil, type: String.Type, guides: [Regex<RegexOutput>] = []
        ) {
            let rules = guides.map { GuideRule.pattern(SchemaPattern.text(of: $0)) }
            self.init(name, description, type, rules, isOptional: false)
        }

        /// Creates a string property that the model may omit; each expression must match the whole string.
        public init<RegexOutput>(
            name: String, description: String? = nil, type: String?.Type, guides: [Regex<RegexOutput>] = []
        ) {
            let rules = guides.map { GuideRule.pattern(SchemaPattern.text(of: $0)) }
            self.init(name, description, String.self, rules, isOptional: true)
        }
    }

    /// An error in schemas that are built at run time.
    public enum SchemaError: Error, LocalizedError {
        /// Two schemas have the same name.
        case duplicateType(schema: String?, type: String, context: Context)
        /// Two properties of an object have the same name.
        case duplicateProperty(schema: String, property: String, context: Context)
        /// A choice has no alternatives.
        case emptyTypeChoices(schema: String, context: Context)
        /// References refer to schemas that do not exist.
        case undefinedReferences(schema: String?, references: [String], context: Context)

        /// Details of the error.
        public struct Context: Sendable {
            /// A description of the error for developers.
            public let debugDescription: String
            /// Creates details for an error that a program constructs itself, for example in tests.
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
            case .duplicateType: "Give each schema a unique name."
            case .duplicateProperty: "Give each property a unique name."
            case .emptyTypeChoices: "Add at least one alternative."
            case .undefinedReferences: "Pass the referenced schemas as dependencies."
            }
        }
    }
}
