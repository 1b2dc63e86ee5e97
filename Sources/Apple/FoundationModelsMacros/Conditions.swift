import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

// With these versions of swift-syntax, SwiftSyntaxMacros depends on SwiftIfConfig. Earlier ones do not tell macros how the program is
// compiled.
#if canImport(SwiftSyntax603)
import SwiftIfConfig

/// How the program is compiled, which decides about `#if`.
typealias Compilation = any BuildConfiguration
#else
/// How the program is compiled, which is not known.
typealias Compilation = Never
#endif

extension MacroExpansionContext {
    /// How the program is compiled; nil if the compiler or this version of swift-syntax does not tell.
    var compilation: Compilation? {
        #if canImport(SwiftSyntax603)
        buildConfiguration
        #else
        nil
        #endif
    }
}

extension MemberBlockItemListSyntax {
    /// The declarations for which `match` has a result: those outside of `#if` and those in active clauses.
    ///
    /// - Throws: An error if a condition around such a declaration cannot be evaluated. A macro cannot evaluate `canImport`, and
    ///   Swift 6.2 and swift-syntax 602 do not tell macros how the program is compiled.
    func active<Match>(in compilation: Compilation?, _ match: (DeclSyntax) -> Match?) throws -> [Match] {
        try flatMap { member -> [Match] in
            guard let condition = member.decl.as(IfConfigDeclSyntax.self) else { return match(member.decl).map { [$0] } ?? [] }
            guard condition.contains({ match($0) != nil }) else { return [] }
            #if canImport(SwiftSyntax603)
            if let compilation {
                let (clause, diagnostics) = condition.activeClause(in: compilation)
                if !diagnostics.contains(where: { $0.diagMessage.severity == .error }) {
                    return try clause?.members.active(in: compilation, match) ?? []
                }
            }
            #endif
            throw DiagnosticsError.conditional(condition)
        }
    }
}

extension IfConfigDeclSyntax {
    fileprivate func contains(_ isMatch: (DeclSyntax) -> Bool) -> Bool {
        clauses.flatMap(\.members).contains { member in
            member.decl.as(IfConfigDeclSyntax.self)?.contains(isMatch) ?? isMatch(member.decl)
        }
    }
}

extension IfConfigClauseSyntax {
    fileprivate var members: MemberBlockItemListSyntax { elements?.as(MemberBlockItemListSyntax.self) ?? [] }
}

extension DiagnosticsError {
    fileprivate static func conditional(_ condition: IfConfigDeclSyntax) -> DiagnosticsError {
        DiagnosticsError("'@Generable' cannot evaluate this '#if'; put it around the type.", at: condition)
    }
}
