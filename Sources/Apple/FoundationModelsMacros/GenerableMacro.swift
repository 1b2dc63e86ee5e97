import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Generable`: the schema of a type, its partially generated form, and the conversions from and to content.
struct GenerableMacro {
    private static func expansion(
        of attribute: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax, in context: some MacroExpansionContext
    ) throws -> any GenerableExpansion {
        let type = try GenerableType(declaration, attribute: attribute, in: context)
        if let structure = declaration.as(StructDeclSyntax.self) {
            return StructExpansion(type: type, properties: try StoredProperty.all(in: structure, context.compilation))
        }
        guard let enumeration = declaration.as(EnumDeclSyntax.self) else {
            throw DiagnosticsError.notStructOrEnum(attribute, declaration)
        }
        let cases = try EnumCase.all(in: enumeration, context.compilation)
        return cases.contains { !$0.payloads.isEmpty }
            ? PayloadEnumExpansion(type: type, cases: cases, modifiers: enumeration.modifiers.first(of: [.indirect]))
            : PlainEnumExpansion(type: type, cases: cases)
    }
}

extension GenerableMacro: MemberMacro {
    static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        try expansion(of: node, attachedTo: declaration, in: context).members()
    }
}

extension GenerableMacro: ExtensionMacro {
    /// The initializer is in an extension so that a struct keeps its memberwise one.
    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        // The member role reports errors in the declaration.
        guard let expansion = try? expansion(of: node, attachedTo: declaration, in: context) else { return [] }
        // `protocols` is empty if the declaration already states the conformance.
        let head: SyntaxNodeString =
            protocols.isEmpty
            ? "extension \(type.trimmed)" : "extension \(type.trimmed): nonisolated FoundationModels.Generable"
        return [try ExtensionDeclSyntax(head) { try expansion.initializer() }]
    }
}

/// The code that `@Generable` generates for one kind of type.
protocol GenerableExpansion {
    func members() throws -> [DeclSyntax]

    /// `init(_ content:)`
    func initializer() throws -> InitializerDeclSyntax
}

extension DiagnosticsError {
    fileprivate static func notStructOrEnum(
        _ attribute: AttributeSyntax, _ declaration: some DeclGroupSyntax
    ) -> DiagnosticsError {
        let fixIt = declaration.as(ClassDeclSyntax.self).map { type in
            let final = type.modifiers.first { $0.name.tokenKind == .keyword(.final) }
            let keyword = FixIt.Change.replacing(type.classKeyword, with: TokenSyntax.keyword(.struct))
            return FixIt(
                message: MacroExpansionFixItMessage("Change 'class' to 'struct'"),
                changes: (final.map { [.removing($0)] } ?? []) + [keyword])
        }
        return DiagnosticsError("'@Generable' can only be used on structs and enums.", at: attribute, fixIt: fixIt)
    }
}
