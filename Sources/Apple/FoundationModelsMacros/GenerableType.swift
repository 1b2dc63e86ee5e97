import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// A type with `@Generable`: its modifiers and the arguments of the attribute.
struct GenerableType {
    /// The argument `name`, which replaces the name of the type in the schema.
    let schemaName: ExprSyntax?
    let description: ExprSyntax?
    /// Whether nil is written as null.
    let writesNil: Bool
    /// `public`, `package` or empty.
    let access: DeclModifierListSyntax
    /// Whether the partially generated form is `Equatable`.
    let isEquatable: Bool
    /// Whether the declaration contains its own partially generated form.
    let hasPartialForm: Bool

    init(
        _ declaration: some DeclGroupSyntax, attribute: AttributeSyntax, in context: some MacroExpansionContext
    ) throws {
        let hiding = declaration.modifiers.first { $0.name.tokenKind == .keyword(.private) }
        if let hiding, !context.lexicalContext.isEmpty { throw DiagnosticsError.hidden(by: hiding) }

        schemaName = attribute.arguments(labeled: "name").first?.trimmed
        description = attribute.arguments(labeled: "description").first?.trimmed
        writesNil = try attribute.arguments(labeled: "representNilExplicitlyInGeneratedContent").first?.booleanValue ?? false

        // A type without an access modifier has the access level of the enclosing extension.
        var access = declaration.modifiers.accessLevel
        if access.isEmpty, let outer = context.lexicalContext.first?.as(ExtensionDeclSyntax.self) {
            access = outer.modifiers.accessLevel
        }
        self.access = access.first(of: [.public, .package])

        // A macro cannot determine the conformances of the partial form of a type parameter.
        let isGeneric = ([Syntax(declaration)] + context.lexicalContext).contains { $0.hasTypeParameters }
        let inherited = declaration.inheritanceClause?.inheritedTypes.flatMap(\.type.components) ?? []
        let equatable = ["Equatable", "Hashable", "Comparable"]
        isEquatable = !isGeneric && inherited.contains { type in equatable.contains { type.isNamed($0) } }
        let partialForms = try declaration.memberBlock.members.active(in: context.compilation) { member in
            member.typeName == "PartiallyGenerated" ? member : nil
        }
        hasPartialForm = !partialForms.isEmpty
    }

    /// The modifiers of every generated member.
    var modifiers: DeclModifierListSyntax {
        access + [DeclModifierSyntax(name: .keyword(.nonisolated, trailingTrivia: .space))]
    }
}

extension SyntaxProtocol {
    fileprivate var hasTypeParameters: Bool {
        asProtocol((any WithGenericParametersSyntax).self)?.genericParameterClause != nil
    }
}

extension DeclSyntax {
    /// The name of a type or a type alias; nil for other declarations.
    fileprivate var typeName: String? {
        switch self.as(DeclSyntaxEnum.self) {
        case .actorDecl(let type): type.name.plainName
        case .classDecl(let type): type.name.plainName
        case .enumDecl(let type): type.name.plainName
        case .structDecl(let type): type.name.plainName
        case .typeAliasDecl(let type): type.name.plainName
        default: nil
        }
    }
}

extension ExprSyntax {
    fileprivate var booleanValue: Bool {
        get throws {
            guard let literal = self.as(BooleanLiteralExprSyntax.self)?.literal else {
                throw DiagnosticsError("'@Generable' requires the literal 'true' or 'false' here.", at: self)
            }
            return literal.tokenKind == .keyword(.true)
        }
    }
}

extension DiagnosticsError {
    /// The generated extension with the conformance is outside the enclosing type and cannot access a private type.
    fileprivate static func hidden(by modifier: DeclModifierSyntax) -> DiagnosticsError {
        let change = FixIt.Change.replacing(modifier, with: TokenSyntax.keyword(.fileprivate))
        return DiagnosticsError(
            "A nested '@Generable' type cannot be 'private'.", at: modifier,
            fixIt: FixIt("Change 'private' to 'fileprivate'", change))
    }
}
