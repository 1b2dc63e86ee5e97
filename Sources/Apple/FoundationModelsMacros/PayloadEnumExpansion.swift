import SwiftSyntax
import SwiftSyntaxBuilder

/// An enum with payloads. Its content is an object with the name of the case as `type`, and the payloads.
struct PayloadEnumExpansion: GenerableExpansion {
    let type: GenerableType
    let cases: [EnumCase]
    /// `indirect` or empty.
    let modifiers: DeclModifierListSyntax

    func members() throws -> [DeclSyntax] {
        let schema = try type.generationSchema(type.schema(anyOf: cases.map { "\($0.schemaType).self" }))
        let partial = type.hasPartialForm ? [] : [DeclSyntax(try partiallyGenerated())]
        return [DeclSyntax(schema), DeclSyntax(try generatedContent())] + partial
            + (try cases.map { DeclSyntax(try schemaType(of: $0)) })
    }

    func initializer() throws -> InitializerDeclSyntax {
        try InitializerDeclSyntax(type.initializerHead) {
            try SwitchExprSyntax(#"switch try content._caseName(forProperty: "type")"#) {
                for item in cases {
                    SwitchCaseSyntax("case \(item.tag):") { "self = \(item.read)" }
                }
                SwitchCaseSyntax.unknown(expected: cases.map(\.tag))
            }
        }
    }

    private func generatedContent() throws -> VariableDeclSyntax {
        try type.generatedContent {
            try SwitchExprSyntax("switch self") {
                for item in cases {
                    let variables = item.variables("__payload")
                    SwitchCaseSyntax("case \(item.pattern(binding: variables)):") {
                        #"__properties.append(("type", \#(item.tag)))"#
                        for (payload, variable) in zip(item.payloads, variables) {
                            payload.field.write("\(variable)", writesNil: type.writesNil)
                        }
                    }
                }
            }
        }
    }

    private func partiallyGenerated() throws -> EnumDeclSyntax {
        let protocols = type.partialProtocols()
        return try EnumDeclSyntax("\(type.modifiers)\(modifiers)enum PartiallyGenerated: \(protocols)") {
            for item in cases {
                item.partial
            }
            try initializer()
            if type.isEquatable {
                try type.equality { try comparison() }
            }
        }
    }

    private func comparison() throws -> SwitchExprSyntax {
        try SwitchExprSyntax("switch (first, second)") {
            for item in cases {
                let (first, second) = (item.variables("__first"), item.variables("__second"))
                SwitchCaseSyntax("case (\(item.pattern(binding: first)), \(item.pattern(binding: second))):") {
                    for (first, second) in zip(first, second) {
                        CodeBlockItemSyntax.comparison("\(first)", "\(second)")
                    }
                    "return true"
                }
            }
            // The compiler warns about a default that is never reached.
            if cases.count > 1 {
                SwitchCaseSyntax("default:") { "return false" }
            }
        }
    }

    /// A type that is only used for its schema. Its `generatedContent` is the content it was created from.
    private func schemaType(of item: EnumCase) throws -> StructDeclSyntax {
        let name = Field(key: "type", type: .string, guide: Guide(guides: [".constant(\(item.tag))"]))
        let schema = type.schema(name: item.tag, description: nil, properties: [name] + item.payloads.map(\.field))
        return try StructDeclSyntax("private nonisolated struct \(item.schemaType): FoundationModels.Generable") {
            try VariableDeclSyntax("static var generationSchema: FoundationModels.GenerationSchema") { schema }
            "let generatedContent: FoundationModels.GeneratedContent"
            """
            init(_ content: FoundationModels.GeneratedContent) {
                self.generatedContent = content
            }
            """
        }
    }
}

extension EnumCase {
    /// The name of the type that has the schema of the case.
    fileprivate var schemaType: TokenSyntax { name.escaped(prefix: "__Case_") }

    /// A variable for each payload.
    fileprivate func variables(_ prefix: String) -> [TokenSyntax] { payloads.indices.map { "\(raw: prefix)\(raw: $0)" } }

    /// Matches the case and binds the variables.
    fileprivate func pattern(binding variables: [TokenSyntax]) -> ExprSyntax {
        guard !payloads.isEmpty else { return ".\(name)" }
        let arguments = LabeledExprListSyntax {
            for variable in variables {
                LabeledExprSyntax(expression: DeclReferenceExprSyntax(baseName: variable))
            }
        }
        return "let .\(name)(\(arguments))"
    }

    /// Creates the case from `content`, in the enum and in its partially generated form.
    fileprivate var read: ExprSyntax {
        guard !payloads.isEmpty else { return ".\(name)" }
        let arguments = LabeledExprListSyntax {
            for payload in payloads {
                LabeledExprSyntax(label: payload.label?.escaped().text, expression: payload.field.read)
            }
        }
        return ".\(name)(\(arguments))"
    }

    fileprivate var partial: EnumCaseDeclSyntax {
        let parameters = EnumCaseParameterListSyntax {
            for payload in payloads {
                EnumCaseParameterSyntax(
                    firstName: payload.label, colon: payload.label.map { _ in .colonToken() }, type: payload.field.type.partial)
            }
        }
        let clause = payloads.isEmpty ? nil : EnumCaseParameterClauseSyntax(parameters: parameters)
        return EnumCaseDeclSyntax(modifiers: modifiers) { EnumCaseElementSyntax(name: name, parameterClause: clause) }
    }
}
