import SwiftSyntax
import SwiftSyntaxBuilder

extension TokenSyntax {
    /// The name without the backticks that only Swift needs.
    var plainName: String { identifier?.name ?? text }

    /// The name where keywords need no backticks, as in an argument label or behind a prefix.
    func escaped(prefix: String = "") -> TokenSyntax {
        let isWord = plainName.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
        // The only keyword that is no argument label.
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

    /// Whether this is the name, with or without the module in front.
    func isNamed(_ name: String) -> Bool {
        lastName?.text == name
    }

    private var lastName: TokenSyntax? {
        self.as(IdentifierTypeSyntax.self)?.name ?? self.as(MemberTypeSyntax.self)?.name
    }

    var genericArguments: [TypeSyntax] {
        let clause =
            self.as(IdentifierTypeSyntax.self)?.genericArgumentClause ?? self.as(MemberTypeSyntax.self)?.genericArgumentClause
        return clause?.arguments.compactMap { $0.argument.as(TypeSyntax.self) } ?? []
    }
}

extension AttributeSyntax {
    /// The arguments with one label, or without any.
    func arguments(labeled label: String?) -> [ExprSyntax] {
        let arguments = arguments?.as(LabeledExprListSyntax.self) ?? []
        return arguments.compactMap { $0.label?.text == label ? $0.expression : nil }
    }
}

extension DeclModifierListSyntax {
    /// `public`, `private` and so on, or nothing.
    var accessLevel: DeclModifierListSyntax {
        first(of: [.public, .package, .internal, .fileprivate, .private])
    }

    /// At most one modifier, ready to be followed by another word; `private(set)` is not `private`.
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

    /// The stored bindings of an instance with their types; in `var a, b: Int` the type of `b` is the one of `a` too.
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
    /// Whether there are accessors other than observers.
    fileprivate var isComputed: Bool {
        switch accessorBlock?.accessors {
        case nil: false
        case .accessors(let accessors):
            !accessors.allSatisfy { [.keyword(.willSet), .keyword(.didSet)].contains($0.accessorSpecifier.tokenKind) }
        default: true
        }
    }
}

extension MemberBlockItemListSyntax {
    /// The first `#if` with a matching declaration in it.
    func firstCondition(around isMatch: (DeclSyntax) -> Bool) -> IfConfigDeclSyntax? {
        compactMap { $0.decl.as(IfConfigDeclSyntax.self) }.first { condition in
            let members = condition.clauses.compactMap { $0.elements?.as(MemberBlockItemListSyntax.self) }
            return members.contains { $0.contains { isMatch($0.decl) } || $0.firstCondition(around: isMatch) != nil }
        }
    }
}

extension EnumCaseParameterSyntax {
    /// What a caller writes before the colon.
    var label: TokenSyntax? {
        firstName.flatMap { $0.tokenKind == .wildcard ? nil : $0.trimmed }
    }
}
