import SwiftSyntax
import SwiftSyntaxBuilder

/// Members that structs and enums have in common.
extension GenerableType {
    func generationSchema(_ schema: FunctionCallExprSyntax) throws -> VariableDeclSyntax {
        try VariableDeclSyntax("\(modifiers)static var generationSchema: FoundationModels.GenerationSchema") { schema }
    }

    func schema(properties: [Field]) -> FunctionCallExprSyntax {
        schema(name: schemaName, description: description, properties: properties)
    }

    func schema(anyOf choices: [ExprSyntax]) -> FunctionCallExprSyntax {
        schema(name: schemaName, description: description) {
            LabeledExprSyntax(label: "anyOf", expression: ArrayExprSyntax(expressions: choices))
        }
    }

    func schema(name: ExprSyntax?, description: ExprSyntax?, properties: [Field]) -> FunctionCallExprSyntax {
        schema(name: name, description: description) {
            if writesNil {
                LabeledExprSyntax(label: "representNilExplicitlyInGeneratedContent", expression: true.makeLiteralSyntax())
            }
            LabeledExprSyntax(label: "properties", expression: ArrayExprSyntax(lines: properties.map(\.schema)))
        }
    }

    /// Only initializers of the module with underscored labels accept a name.
    private func schema(
        name: ExprSyntax?, description: ExprSyntax?, @LabeledExprListBuilder _ content: () -> LabeledExprListSyntax
    ) -> FunctionCallExprSyntax {
        let arguments = LabeledExprListSyntax {
            if let name { LabeledExprSyntax(label: "_name", expression: name) }
            LabeledExprSyntax(label: "type", expression: "Self.self" as ExprSyntax)
            if let description { LabeledExprSyntax(label: "description", expression: description) }
            content()
        }
        return FunctionCallExprSyntax(callee: "FoundationModels.GenerationSchema", lines: arguments)
    }

    /// `generatedContent` of an object. The statements append to `__properties`.
    func generatedContent(
        id: ExprSyntax = "nil", @CodeBlockItemListBuilder _ appending: () throws -> CodeBlockItemListSyntax
    ) throws -> VariableDeclSyntax {
        let statements = try appending()
        // The compiler warns about a variable that is never changed.
        let specifier: TokenSyntax = statements.isEmpty ? .keyword(.let) : .keyword(.var)
        return try VariableDeclSyntax("\(modifiers)var generatedContent: FoundationModels.GeneratedContent") {
            """
            \(specifier) __properties: [(Swift.String, any FoundationModels.ConvertibleToGeneratedContent)] = []
            """
            statements
            """
            return FoundationModels.GeneratedContent(
                properties: __properties,
                id: \(id),
                uniquingKeysWith: { _, second in second }
            )
            """
        }
    }

    /// The signature of `init(_ content:)`, also used by the partially generated form.
    var initializerHead: SyntaxNodeString {
        "\(modifiers)init(_ content: FoundationModels.GeneratedContent) throws"
    }

    /// The protocols that the partially generated form conforms to.
    func partialProtocols(isIdentifiable: Bool = false) -> InheritedTypeListSyntax {
        InheritedTypeListSyntax {
            if isIdentifiable { InheritedTypeSyntax(type: "Swift.Identifiable" as TypeSyntax) }
            InheritedTypeSyntax(type: "FoundationModels.ConvertibleFromGeneratedContent" as TypeSyntax)
            if isEquatable { InheritedTypeSyntax(type: "Swift.Equatable" as TypeSyntax) }
        }
    }

    /// `==` of the partially generated form. The compiler would only derive it if the partial forms of all properties were
    /// `Equatable`, which a macro cannot determine. The statements compare `first` and `second`.
    func equality(
        @CodeBlockItemListBuilder _ comparing: () throws -> CodeBlockItemListSyntax
    ) throws -> FunctionDeclSyntax {
        try FunctionDeclSyntax("\(modifiers)static func == (first: Self, second: Self) -> Swift.Bool", bodyBuilder: comparing)
    }
}

extension CodeBlockItemSyntax {
    /// Returns false from `==` if the values differ.
    static func comparison(_ first: ExprSyntax, _ second: ExprSyntax) -> CodeBlockItemSyntax {
        "guard FoundationModels.GeneratedContent._areEqual(\(first), \(second)) else { return false }"
    }
}

extension FunctionCallExprSyntax {
    /// A call with each argument on its own line.
    fileprivate init(callee: ExprSyntax, lines arguments: LabeledExprListSyntax) {
        self.init(
            calledExpression: callee, leftParen: .leftParenToken(),
            arguments: LabeledExprListSyntax(arguments.map { $0.with(\.leadingTrivia, .newline) }),
            rightParen: .rightParenToken(leadingTrivia: .newline))
    }
}

extension ArrayExprSyntax {
    /// An array with each element on its own line.
    fileprivate init(lines: [some ExprSyntaxProtocol]) {
        let elements = ArrayElementListSyntax {
            for line in lines {
                ArrayElementSyntax(leadingTrivia: .newline, expression: line)
            }
        }
        self.init(elements: elements, rightSquare: .rightSquareToken(leadingTrivia: lines.isEmpty ? [] : .newline))
    }
}
