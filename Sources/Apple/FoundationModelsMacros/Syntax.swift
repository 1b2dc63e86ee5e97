import SwiftSyntax
import SwiftSyntaxBuilder

extension TokenSyntax {
    /// The name without backticks.
    var plainName: String { identifier?.name ?? text }

    /// The name for positions where keywords need no backticks, such as an argument label or after a prefix.
    func escaped(prefix: String = "") -> TokenSyntax {
        let isWord = plainName.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
        // The only keyword that cannot be an argument label.
        let isKept = prefix.isEmpty && plainName == "inout"
        return .identifier(isWord && !isKept ? prefix + plainName : "`\(prefix)\(plainName)`")
    }
}

extension TypeSyntax {
    var withoutParentheses: TypeSyntax {
        guard let tuple = self.as(TupleTypeSyntax.self), let only = tuple.elements.first, tuple.elements.count == 1 else {
            return self
        }
        return only.type.withoutParentheses
    }

    /// `T` of `T?`, `T!` and `Optional<T>`.
    var optionalWrapped: TypeSyntax? {
        let type = withoutParentheses
        let wrapped =
            type.as(OptionalTypeSyntax.self)?.wrappedType
            ?? type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self)?.wrappedType
            ?? (type.isNamed("Optional") ? type.genericArguments.first : nil)
        return wrapped?.withoutParentheses
    }

    /// Whether the type has this name, with or without a module prefix.
    func isNamed(_ name: String) -> Bool {
        lastName?.text == name
    }

    private var lastName: TokenSyntax? {
        self.as(IdentifierTypeSyntax.self)?.name ?? self.as(MemberTypeSyntax.self)?.name
    }

    /// `A` and `B` of `A & B`; otherwise only the type itself.
    var components: [TypeSyntax] {
        self.as(CompositionTypeSyntax.self)?.elements.map(\.type) ?? [self]
    }

    var genericArguments: [TypeSyntax] {
        let clause =
            self.as(IdentifierTypeSyntax.self)?.genericArgumentClause ?? self.as(MemberTypeSyntax.self)?.genericArgumentClause
        return clause?.arguments.compactMap { $0.argument.as(TypeSyntax.self) } ?? []
    }
}

extension AttributeSyntax {
    /// The arguments with this label, or without a label if nil.
    func arguments(labeled label: String?) -> [ExprSyntax] {
        let arguments = arguments?.as(LabeledExprListSyntax.self) ?? []
        return arguments.compactMap { $0.label?.text == label ? $0.expression : nil }
    }
}

extension DeclModifierListSyntax {
    /// `public`, `private` and so on, or empty.
    var accessLevel: DeclModifierListSyntax {
        first(of: [.public, .package, .internal, .fileprivate, .private])
    }

    /// At most one modifier, with trailing whitespace. `private(set)` does not count as `private`.
    func first(of keywords: [Keyword]) -> DeclModifierListSyntax {
        let modifier = first { $0.detail == nil && keywords.map(TokenKind.keyword).contains($0.name.tokenKind) }
        return DeclModifierListSyntax(modifier.map { [$0.trimmed.with(\.trailingTrivia, .space)] } ?? [])
    }

    func contains(_ keywords: Keyword...) -> Bool {
        !first(of: keywords).isEmpty
    }
}

extension VariableDeclSyntax {
    var isConstant: Bool { bindingSpecifier.tokenKind == .keyword(.let) }

    /// The stored instance bindings with their types. In `var a, b: Int`, the type of `b` is also the type of `a`.
    var storedBindings: [(binding: PatternBindingSyntax, type: TypeSyntax?)] {
        guard !modifiers.contains(.static, .class, .lazy) else { return [] }
        var type: TypeSyntax?
        let reversed = bindings.reversed().map { binding in
            if binding.typeAnnotation != nil || binding.initializer != nil { type = binding.typeAnnotation?.type }
            return (binding, type)
        }
        return reversed.reversed().filter { !$0.0.isComputed }
    }
}

extension PatternBindingSyntax {
    /// Whether the binding has accessors other than observers.
    fileprivate var isComputed: Bool {
        switch accessorBlock?.accessors {
        case nil: false
        case .accessors(let accessors):
            !accessors.allSatisfy { [.keyword(.willSet), .keyword(.didSet)].contains($0.accessorSpecifier.tokenKind) }
        default: true
        }
    }
}

extension EnumCaseParameterSyntax {
    /// The argument label; nil for `_`.
    var label: TokenSyntax? {
        firstName.flatMap { $0.tokenKind == .wildcard ? nil : $0.trimmed }
    }
}
