/// A schema that is built at run time. ``GenerationSchema/init(root:dependencies:)`` converts it to a usable schema.
public struct DynamicGenerationSchema: Sendable {
    let node: SchemaNode

    private init(_ node: SchemaNode) { self.node = node }

    /// A schema that only null satisfies.
    public static var null: DynamicGenerationSchema { DynamicGenerationSchema(.null) }

    /// Creates an object schema; its properties are generated in this order.
    public init(name: String, description: String? = nil, properties: [Property]) {
        self.init(
            name: name, description: description, representNilExplicitlyInGeneratedContent: false, properties: properties)
    }

    /// Creates an object schema; its properties are generated in this order.
    ///
    /// - Parameter explicitNil: Whether values contain null for a missing property. Generated content omits it in
    ///   either case.
    public init(
        name: String, description: String? = nil, representNilExplicitlyInGeneratedContent explicitNil: Bool,
        properties: [Property]
    ) {
        let nodes = properties.map { property in
            SchemaNode.Property(
                name: property.name, description: property.description, node: property.schema.node,
                isOptional: property.isOptional)
        }
        self.init(.object(.init(name: name, description: description, properties: nodes)))
    }

    /// Creates a schema of values that satisfy one of these schemas.
    public init(name: String, description: String? = nil, anyOf choices: [DynamicGenerationSchema]) {
        self.init(.choice(name: name, description: description, choices.map(\.node)))
    }

    /// Creates a schema of these strings.
    public init(name: String, description: String? = nil, anyOf choices: [String]) {
        self.init(.string(.init(name: name, description: description, choices: choices)))
    }

    /// Creates an array schema.
    public init(arrayOf itemSchema: DynamicGenerationSchema, minimumElements: Int? = nil, maximumElements: Int? = nil) {
        self.init(.array(.init(item: itemSchema.node, minimumCount: minimumElements, maximumCount: maximumElements)))
    }

    /// Creates the schema of a type.
    public init<Value>(type: Value.Type, guides: [GenerationGuide<Value>] = []) where Value: Generable {
        self.init(guides.flatMap(\.rules).reduce(SchemaNode(type: type)) { $0.applying($1) })
    }

    /// Creates a reference to the schema with this name, which may contain the reference itself.
    public init(referenceTo name: String) { self.init(.reference(name)) }

    /// A property of an object.
    public struct Property: Sendable {
        let name: String
        let description: String?
        let schema: DynamicGenerationSchema
        let isOptional: Bool

        /// Creates a property with a schema for its value.
        ///
        /// - Parameter isOptional: Whether the model may omit the property.
        public init(name: String, description: String? = nil, schema: DynamicGenerationSchema, isOptional: Bool = false) {
            self.name = name
            self.description = description
            self.schema = schema
            self.isOptional = isOptional
        }
    }
}

/// Validates the names and references of schemas that are built at run time.
struct DynamicSchemaResolver {
    private var names: Set<String> = []
    private var references: [String] = []
    /// The types found so far; a type may occur several times.
    private var types: Set<ObjectIdentifier> = []

    static func schema(
        root: DynamicGenerationSchema, dependencies: [DynamicGenerationSchema]
    ) throws -> GenerationSchema {
        var resolver = DynamicSchemaResolver()
        let rootName = root.node.name
        try resolver.collect(root.node, in: rootName)
        var definitions: [String: SchemaNode] = [:]
        for dependency in dependencies {
            try resolver.collect(dependency.node, in: rootName)
            if let name = dependency.node.name { definitions[name] = dependency.node }
        }
        let missing = resolver.references.filter { !resolver.names.contains($0) }.withoutRepetitions
        guard missing.isEmpty else {
            throw GenerationSchema.SchemaError.undefinedReferences(
                schema: rootName, references: missing,
                context: .init(
                    debugDescription: "There is no schema with the referenced name \(missing.joined(separator: ", "))."))
        }
        // Schemas that are declared in place can also be referenced by name.
        resolver.gather(root.node, into: &definitions)
        for dependency in dependencies { resolver.gather(dependency.node, into: &definitions) }
        // The root's own name refers to the root itself.
        if let rootName { definitions[rootName] = nil }
        return GenerationSchema(
            node: root.node.withReferences(to: definitions),
            definitions: definitions.mapValues { $0.withReferences(to: definitions) })
    }

    private mutating func collect(_ node: SchemaNode, in schema: String?) throws {
        if let name = node.name, !names.insert(name).inserted {
            throw duplicate(name, in: schema)
        }
        switch node {
        case .object(let object):
            var known: Set<String> = []
            for property in object.properties {
                guard known.insert(property.name).inserted else {
                    throw GenerationSchema.SchemaError.duplicateProperty(
                        schema: object.name, property: property.name,
                        context: .init(debugDescription: "“\(object.name)” has two properties named “\(property.name)”."))
                }
                try collect(property.node, in: object.name)
            }
        case .choice(let name, _, let alternatives):
            if alternatives.isEmpty { throw Self.emptyChoice(name ?? schema ?? "") }
            for alternative in alternatives { try collect(alternative, in: name ?? schema) }
        case .string(let text):
            if text.name != nil, text.choices?.isEmpty == true { throw Self.emptyChoice(text.name ?? "") }
        case .array(let list): try collect(list.item, in: schema)
        case .type(let type):
            guard types.insert(ObjectIdentifier(type)).inserted else { return }
            guard names.insert(type.generationSchema.name).inserted else {
                throw duplicate(type.generationSchema.name, in: schema)
            }
        case .reference(let name): references.append(name)
        default: break
        }
    }

    private func duplicate(_ name: String, in schema: String?) -> GenerationSchema.SchemaError {
        .duplicateType(
            schema: schema, type: name, context: .init(debugDescription: "Two schemas have the name “\(name)”."))
    }

    private static func emptyChoice(_ name: String) -> GenerationSchema.SchemaError {
        .emptyTypeChoices(schema: name, context: .init(debugDescription: "“\(name)” has no choices."))
    }

    private func gather(_ node: SchemaNode, into definitions: inout [String: SchemaNode]) {
        if let name = node.name { definitions[name] = node }
        switch node {
        case .type(let type): definitions[type.generationSchema.name] = node
        case .object(let object): for property in object.properties { gather(property.node, into: &definitions) }
        case .choice(_, _, let alternatives): for alternative in alternatives { gather(alternative, into: &definitions) }
        case .array(let list): gather(list.item, into: &definitions)
        default: break
        }
    }
}

extension SchemaNode {
    /// Replaces named schemas inside the node by references, so that each is written once. References to string
    /// choices are replaced by the choices themselves.
    fileprivate func withReferences(to definitions: [String: SchemaNode]) -> SchemaNode {
        func inner(_ node: SchemaNode) -> SchemaNode {
            switch node {
            case .object(let object): .reference(object.name)
            case .choice(let name?, _, _): .reference(name)
            default: node.withReferences(to: definitions)
            }
        }
        switch self {
        case .object(var object):
            for index in object.properties.indices { object.properties[index].node = inner(object.properties[index].node) }
            return .object(object)
        case .choice(let name, let description, let alternatives):
            return .choice(name: name, description: description, alternatives.map(inner))
        case .array(var list):
            list.item = inner(list.item)
            return .array(list)
        case .reference(let name):
            guard let target = definitions[name], case .string = target else { return self }
            return target
        default: return self
        }
    }
}
