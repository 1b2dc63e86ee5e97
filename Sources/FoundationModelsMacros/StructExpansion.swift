import SwiftSyntax
import SwiftSyntaxBuilder

struct StructExpansion: GenerableExpansion {
    let type: GenerableType
    let properties: [StoredProperty]

    func members() throws -> [DeclSyntax] {
        let schema = try type.generationSchema(type.schema(properties: properties.map(\.field)))
        let partial = type.hasPartialForm ? [] : [DeclSyntax(try partiallyGenerated())]
        return [DeclSyntax(schema), DeclSyntax(try generatedContent())] + partial
    }

    func initializer() throws -> InitializerDeclSyntax {
        try InitializerDeclSyntax(type.initializerHead) {
            for property in properties {
                property.assignment
            }
        }
    }

    private func generatedContent() throws -> VariableDeclSyntax {
        try type.generatedContent {
            for property in properties {
                property.field.write("self.\(property.name)", writesNil: type.writesNil)
            }
        }
    }

    /// A property `id` of the struct replaces the generated one.
    private func partiallyGenerated() throws -> StructDeclSyntax {
        let id = properties.first { $0.name.plainName == "id" }
        let protocols = type.partialProtocols(isIdentifiable: id.map(identifies) ?? true)
        return try StructDeclSyntax("\(type.modifiers)struct PartiallyGenerated: \(protocols)") {
            if id == nil {
                "\(type.access)var id: FoundationModels.GenerationID" as DeclSyntax
            }
            for property in properties {
                property.partial
            }
            try InitializerDeclSyntax(type.initializerHead) {
                if id == nil {
                    "self.id = content.id ?? FoundationModels.GenerationID()"
                }
                for property in properties {
                    property.assignment
                }
            }
            if type.isEquatable {
                let id: [TokenSyntax] = id == nil ? ["id"] : []
                try type.equality {
                    for name in id + properties.map(\.name) {
                        CodeBlockItemSyntax.comparison("first.\(name)", "second.\(name)")
                    }
                    "return true"
                }
            }
        }
    }

    /// Whether an `id` meets the requirements of `Identifiable`: it is hashable and as visible as the type.
    private func identifies(_ id: StoredProperty) -> Bool {
        let isVisible =
            type.access.isEmpty
            ? !id.access.contains(.private, .fileprivate)
            : id.access.contains(.public) || id.access.description == type.access.description
        return isVisible && id.field.type.isHashable
    }
}
