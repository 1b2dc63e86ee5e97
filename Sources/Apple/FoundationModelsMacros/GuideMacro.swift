import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// `@Guide` is evaluated by `@Generable`. This macro only reports uses of `@Guide` that have no effect. In types that conform
/// to `Generable` by hand, among them classes, it documents the property.
struct GuideMacro: PeerMacro {
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let variable = declaration.as(VariableDeclSyntax.self), !variable.storedBindings.isEmpty,
            context.lexicalContext.first?.asProtocol((any DeclGroupSyntax).self) != nil
        else {
            let fixIt = FixIt("Remove '@Guide'", .removing(node))
            throw DiagnosticsError("'@Guide' can only be used on stored properties of a type.", at: node, fixIt: fixIt)
        }
        if variable.isConstant, variable.bindings.contains(where: { $0.initializer != nil }) {
            let keyword = FixIt.Change.replacing(variable.bindingSpecifier, with: TokenSyntax.keyword(.var))
            let message = MacroExpansionWarningMessage("'@Guide' has no effect on a constant that has a value already.")
            context.diagnose(Diagnostic(node: node, message: message, fixIt: FixIt("Change 'let' to 'var'", keyword)))
        }
        return []
    }
}
