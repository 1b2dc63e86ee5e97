import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

/// The type of a field: `T`, or `T?` in any notation.
struct FieldType {
    private let wrapped: TypeSyntax
    let isOptional: Bool

    /// - Parameter enclosing: The generable type, which replaces `Self`: in the generated nested types, `Self` would be
    ///   a different type.
    init(_ type: TypeSyntax, in enclosing: TokenSyntax) throws {
        let optionalWrapped = type.optionalWrapped
        let wrapped = optionalWrapped ?? type.withoutParentheses
        if let error = wrapped.unsupported { throw error }
        isOptional = optionalWrapped != nil
        self.wrapped = SelfRewriter(enclosing).visit(wrapped).trimmed
    }

    private init(_ wrapped: TypeSyntax) {
        self.wrapped = wrapped
        isOptional = false
    }

    static let string = FieldType("Swift.String")

    /// `T` or `T?`
    var complete: TypeSyntax { isOptional ? "\(wrapped)?" : wrapped }

    /// The type of the field in the partially generated form, where every field is optional.
    var partial: TypeSyntax { "\(wrapped).PartiallyGenerated?" }

    /// Whether the partial type is known to be hashable.
    var isHashable: Bool {
        ["Bool", "Decimal", "Double", "Float", "Int", "String"].contains { wrapped.isNamed($0) }
    }
}

private final class SelfRewriter: SyntaxRewriter {
    private let name: TokenSyntax

    init(_ name: TokenSyntax) {
        self.name = name
    }

    override func visit(_ node: IdentifierTypeSyntax) -> TypeSyntax {
        super.visit(node.name.tokenKind == .keyword(.Self) ? node.with(\.name, name) : node)
    }
}
