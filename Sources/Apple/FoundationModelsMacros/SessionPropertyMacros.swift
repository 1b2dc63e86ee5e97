import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@SessionPropertyEntry`: stores a property of `SessionPropertyValues` under a generated key type with the default
/// value.
struct SessionPropertyEntryMacro {
    /// The parts of `var name: type = value`.
    private struct Entry {
        let name: TokenSyntax
        let type: TypeSyntax?
        let value: ExprSyntax?

        var key: TokenSyntax { name.escaped(prefix: "__Key_") }

        init(_ declaration: some DeclSyntaxProtocol, attribute: AttributeSyntax) throws {
            guard let variable = declaration.as(VariableDeclSyntax.self), !variable.isConstant,
                let binding = variable.storedBindings.first?.binding, variable.bindings.count == 1,
                let pattern = binding.pattern.as(IdentifierPatternSyntax.self)
            else {
                throw DiagnosticsError(
                    "'@SessionPropertyEntry' can only be used on a single instance 'var' without accessors.", at: attribute)
            }
            name = pattern.identifier.trimmed
            type = binding.typeAnnotation?.type.trimmed
            value = binding.initializer?.value.trimmed
            guard value != nil || type?.optionalWrapped != nil else {
                throw DiagnosticsError.missingValue(of: binding, name)
            }
        }
    }
}

extension SessionPropertyEntryMacro: AccessorMacro {
    static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        let key = try Entry(declaration, attribute: node).key
        return ["get { self[\(key).self] }", "set { self[\(key).self] = newValue }"]
    }
}

extension SessionPropertyEntryMacro: PeerMacro {
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        // The accessor role has already reported errors in the declaration.
        guard let entry = try? Entry(declaration, attribute: node) else { return [] }
        let value = entry.value ?? "nil"
        // Without an annotation, the compiler infers the type from the value.
        let defaultValue: DeclSyntax =
            if let type = entry.type {
                "static var defaultValue: \(type) { \(value) }"
            } else {
                "@FoundationModels.__SessionPropertyEntryDefaultValue static var defaultValue = \(value)"
            }
        return [
            """
            private nonisolated struct \(entry.key): FoundationModels.SessionPropertyKey {
                \(defaultValue)
            }
            """
        ]
    }
}

/// Moves the initial value of a property into a getter, so that no value is stored or shared.
struct SessionPropertyEntryDefaultValueMacro: AccessorMacro {
    static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let value = declaration.as(VariableDeclSyntax.self)?.bindings.first?.initializer?.value.trimmed else { return [] }
        return ["get { \(value) }"]
    }
}

extension DiagnosticsError {
    fileprivate static func missingValue(of binding: PatternBindingSyntax, _ name: TokenSyntax) -> DiagnosticsError {
        let value = InitializerClauseSyntax(
            leadingTrivia: .space, equal: .equalToken(trailingTrivia: .space), value: "<#value#>" as ExprSyntax)
        return DiagnosticsError(
            "The session property '\(name.plainName)' needs an initial value.", at: binding,
            fixIt: FixIt("Add an initial value", .inserting(value, after: binding)))
    }
}
