/// A schema that is put together at run time. ``GenerationSchema/init(root:dependencies:)`` makes it usable.
public struct DynamicGenerationSchema: Sendable {
    let node: SchemaNode

    private init(_ node: SchemaNode) { self.node = node }

    /// Null and nothing else.
    public static var null: DynamicGenerationSchema { DynamicGenerationSchema(.null) }

    /// An object, its properties generated in this order.
    public init(name: String, description: String? = nil, properties: [Property]) {
        self.init(
            name: name, description: description, representNilExplicitlyInGeneratedContent: false, properties: properties)
    }

    /// An object, its properties generated in this order.
    ///
    /// - Parameter explicitNil: Whether values write null for a missing property. What is generated leaves it out either way.
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

    /// A value of one of these schemas.
    public init(name: String, description: String? = nil, anyOf choices: [DynamicGenerationSchema]) {
        self.init(.choice(name: name, description: description, choices.map(\.node)))
    }

    /// One of these texts.
    public init(name: String, description: String? = nil, anyOf choices: [String]) {
        self.init(.string(.init(name: name, description: description, choices: choices)))
    }

    /// A list.
    public init(arrayOf itemSchema: DynamicGenerationSchema, minimumElements: Int? = nil, maximumElements: Int? = nil) {
        self.init(.array(.init(item: itemSchema.node, minimumCount: minimumElements, maximumCount: maximumElements)))
    }

    /// A value of a type.
    public init<Value>(type: Value.Type, guides: [GenerationGuide<Value>] = []) where Value: Generable {
        self.init(guides.flatMap(\.rules).reduce(SchemaNode(type: type)) { $0.applying($1) })
    }

    /// The schema of that name, which may also be one that contains the reference.
    public init(referenceTo name: String) { self.init(.reference(name)) }

    /// A property of an object.
    public struct Property: Sendable {
        let name: String
        let description: String?
        let schema: DynamicGenerationSchema
        let isOptional: Bool

        /// A property whose value a schema describes.
        ///
        /// - Parameter isOptional: Whether the model may leave it out.
        public init(name: String, description: String? = nil, schema: DynamicGenerationSchema, isOptional: Bool = false) {
            self.name = name
            self.description = description
            self.schema = schema
            self.isOptional = isOptional
        }
    }
}

/// Checks names and references of schemas that were built at run time.
struct DynamicSchemaResolver {
    private var names: Set<String> = []
    private var references: [String] = []
    /// Types that were met, which may be met again.
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
                    debugDescription: "No schema has the name \(missing.joined(separator: ", ")), which is referred to."))
        }
        // What is declared in place can be referred to by name as well.
        resolver.gather(root.node, into: &definitions)
        for dependency in dependencies { resolver.gather(dependency.node, into: &definitions) }
        // Its own name means the root itself.
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
                        context: .init(debugDescription: "“\(object.name)” has two properties “\(property.name)”."))
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
        .emptyTypeChoices(schema: name, context: .init(debugDescription: "“\(name)” has nothing to choose from."))
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
    /// The same with named schemas inside it replaced by references, so that each is written once; choices of texts stand
    /// where they are used.
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
