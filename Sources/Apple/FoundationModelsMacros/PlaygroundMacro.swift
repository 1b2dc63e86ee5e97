import SwiftSyntax
import SwiftSyntaxMacros

/// `#Playground { … }` adds nothing to the program. The compiler checks the code of the block because it is an argument.
struct PlaygroundMacro: DeclarationMacro {
    static func expansion(
        of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] { [] }
}
