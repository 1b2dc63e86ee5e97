import SwiftSyntax
import SwiftSyntaxBuilder

struct StructExpansion: GenerableExpansion {
    let type: GenerableType
    let properties: [StoredProperty]

    func members() throws -> [DeclSyntax] {
        let schema = try type.generationSchema(type.schema(properties: properties.compactMap(\.field)))
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
        let id: ExprSyntax? = properties.first { $0.field == nil }.map { "self.\($0.name)" }
        return try type.generatedContent(id: id ?? "nil") {
            for property in properties {
                if let field = property.field {
                    field.write("self.\(property.name)", writesNil: type.writesNil)
                }
            }
        }
    }

    /// A property `id` of the struct replaces the generated one.
    private func partiallyGenerated() throws -> StructDeclSyntax {
        let ownID = properties.first { $0.name.plainName == "id" }
        let id = ownID ?? StoredProperty(idWithAccess: type.access)
        let properties = (ownID == nil ? [id] : []) + properties
        let protocols = type.partialProtocols(isIdentifiable: identifies(id))
        return try StructDeclSyntax("\(type.modifiers)struct PartiallyGenerated: \(protocols)") {
            for property in properties {
                property.partial
            }
            try InitializerDeclSyntax(type.initializerHead) {
                for property in properties {
                    property.assignment
                }
            }
            if type.isEquatable {
                try type.equality {
                    for property in properties {
                        CodeBlockItemSyntax.comparison("first.\(property.name)", "second.\(property.name)")
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
        return isVisible && id.field?.type.isHashable != false
    }
}
