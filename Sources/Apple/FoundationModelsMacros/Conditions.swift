import SwiftDiagnostics
import SwiftIfConfig
import SwiftSyntax

extension MemberBlockItemListSyntax {
    /// The declarations for which `match` has a result: those outside of `#if` and those in active clauses.
    ///
    /// - Throws: An error if a condition around such a declaration cannot be evaluated. A macro cannot evaluate `canImport`, and
    ///   Swift 6.2 does not tell macros how it compiles.
    func active<Match>(in configuration: (any BuildConfiguration)?, _ match: (DeclSyntax) -> Match?) throws -> [Match] {
        try flatMap { member -> [Match] in
            guard let condition = member.decl.as(IfConfigDeclSyntax.self) else { return match(member.decl).map { [$0] } ?? [] }
            guard condition.contains({ match($0) != nil }) else { return [] }
            guard let configuration else { throw DiagnosticsError.conditional(condition) }
            let (clause, diagnostics) = condition.activeClause(in: configuration)
            guard !diagnostics.contains(where: { $0.diagMessage.severity == .error }) else {
                throw DiagnosticsError.conditional(condition)
            }
            return try clause?.members.active(in: configuration, match) ?? []
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
