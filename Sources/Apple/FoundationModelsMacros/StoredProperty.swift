import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

/// A stored property of a `@Generable` struct that is set from content.
struct StoredProperty {
    let name: TokenSyntax
    let access: DeclModifierListSyntax
    /// The value that the model generates; nil for a `GenerationID`, which is the id of the content.
    let field: Field?

    /// The properties in the order of their declaration.
    static func all(
        in structure: StructDeclSyntax, _ compilation: Compilation?
    ) throws -> [StoredProperty] {
        let variables = try structure.memberBlock.members.active(in: compilation) { declaration in
            declaration.as(VariableDeclSyntax.self).flatMap { $0.generatedBindings.isEmpty ? nil : $0 }
        }
        let bindings = variables.flatMap { variable in variable.generatedBindings.map { (variable, $0.binding, $0.type) } }
        return try bindings.mapReportingAll { variable, binding, type in
            try StoredProperty(binding, type: type, of: variable, in: structure.name)
        }
    }

    /// The property `id` that the partially generated form has if the struct has no property of this name.
    init(idWithAccess access: DeclModifierListSyntax) {
        name = "id"
        self.access = access
        field = nil
    }

    private init(
        _ binding: PatternBindingSyntax, type: TypeSyntax?, of variable: VariableDeclSyntax, in enclosing: TokenSyntax
    ) throws {
        guard let pattern = binding.pattern.as(IdentifierPatternSyntax.self) else {
            throw DiagnosticsError("Declare each property of a '@Generable' type separately.", at: binding.pattern)
        }
        guard let type else {
            throw DiagnosticsError.missingType(of: pattern)
        }
        name = pattern.identifier.trimmed
        guard name.plainName != "generatedContent" else {
            throw DiagnosticsError.reserved(name: pattern.identifier)
        }
        access = variable.modifiers.accessLevel
        let isID = type.isNamed("GenerationID")
        let fieldType = try FieldType(type, in: enclosing.trimmed)
        field = isID ? nil : Field(key: name.plainName, type: fieldType, guide: Guide(variable.attributes))
    }

    /// The property in the partially generated form.
    var partial: DeclSyntax { "\(access)var \(name): \(field?.type.partial ?? "FoundationModels.GenerationID")" }

    /// Sets the property, in the struct and in its partially generated form.
    var assignment: CodeBlockItemSyntax {
        "self.\(name) = \(field?.read ?? "content.id ?? FoundationModels.GenerationID()")"
    }
}

extension VariableDeclSyntax {
    /// A constant with a value cannot be assigned and is therefore not generated. The type of a variable without an annotation
    /// is unknown; it keeps its initial value.
    fileprivate var generatedBindings: [(binding: PatternBindingSyntax, type: TypeSyntax?)] {
        storedBindings.filter { binding, type in
            binding.initializer == nil || !isConstant && (type != nil || hasGuide)
        }
    }

    private var hasGuide: Bool {
        attributes.contains { $0.as(AttributeSyntax.self)?.attributeName.isNamed("Guide") == true }
    }
}

extension DiagnosticsError {
    fileprivate static func missingType(of pattern: IdentifierPatternSyntax) -> DiagnosticsError {
        let annotation = TypeAnnotationSyntax(colon: .colonToken(trailingTrivia: .space), type: "<#Type#>" as TypeSyntax)
        return DiagnosticsError(
            "The property '\(pattern.identifier.plainName)' of a '@Generable' type needs a type annotation.", at: pattern,
            fixIt: FixIt("Add a type annotation", .inserting(annotation, after: pattern)))
    }
}
