import SwiftSyntax
import SwiftSyntaxBuilder

/// An enum without payloads. Its content is the text of a case.
struct PlainEnumExpansion: GenerableExpansion {
    let type: GenerableType
    let cases: [EnumCase]

    func members() throws -> [DeclSyntax] {
        [DeclSyntax(try type.generationSchema(type.schema(anyOf: cases.map(\.text)))), DeclSyntax(try generatedContent())]
    }

    func initializer() throws -> InitializerDeclSyntax {
        try InitializerDeclSyntax(type.initializerHead) {
            try SwitchExprSyntax("switch try content._caseName()") {
                for item in cases {
                    SwitchCaseSyntax("case \(item.text):") { "self = .\(item.name)" }
                }
                SwitchCaseSyntax.unknown(expected: cases.map(\.text))
            }
        }
    }

    private func generatedContent() throws -> VariableDeclSyntax {
        try VariableDeclSyntax("\(type.modifiers)var generatedContent: FoundationModels.GeneratedContent") {
            try SwitchExprSyntax("switch self") {
                for item in cases {
                    SwitchCaseSyntax("case .\(item.name):") { "FoundationModels.GeneratedContent(\(item.text))" }
                }
            }
        }
    }
}

extension SwitchCaseSyntax {
    /// The last case of a switch over a text from the content: it throws a `ParsingError`.
    static func unknown(expected: [ExprSyntax]) -> SwitchCaseSyntax {
        SwitchCaseSyntax("case let __text:") {
            "let __expected = \(ArrayExprSyntax(expressions: expected))"
            #"""
            throw FoundationModels.GeneratedContent.ParsingError(
                rawContent: content.jsonString, debugDescription: "'\(__text)' is not one of \(__expected).")
            """#
        }
    }
}
