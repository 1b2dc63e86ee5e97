import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

extension DiagnosticsError {
    /// An error with one diagnostic at `node`.
    init(_ message: String, at node: some SyntaxProtocol, fixIt: FixIt? = nil) {
        let message = MacroExpansionErrorMessage(message)
        self.init(diagnostics: [Diagnostic(node: node, message: message, fixIts: fixIt.map { [$0] } ?? [])])
    }

    static func reserved(name: TokenSyntax) -> DiagnosticsError {
        DiagnosticsError("'\(name.plainName)' is the name of a member that '@Generable' adds; use another name.", at: name)
    }
}

extension FixIt {
    init(_ message: String, _ changes: Change...) {
        self.init(message: MacroExpansionFixItMessage(message), changes: changes)
    }
}

extension FixIt.Change {
    /// Keeps the comments and whitespace around the old node.
    static func replacing(_ old: some SyntaxProtocol, with new: some SyntaxProtocol) -> FixIt.Change {
        .replaceText(range: old.trimmedRange, with: new.trimmedDescription, in: Syntax(old))
    }

    /// Also removes the whitespace after the node.
    static func removing(_ node: some SyntaxProtocol) -> FixIt.Change {
        .replaceText(range: node.positionAfterSkippingLeadingTrivia..<node.endPosition, with: "", in: Syntax(node))
    }

    static func inserting(_ new: some SyntaxProtocol, after node: some SyntaxProtocol) -> FixIt.Change {
        let end = node.endPositionBeforeTrailingTrivia
        return .replaceText(range: end..<end, with: new.description, in: Syntax(node))
    }
}

extension Sequence {
    /// Continues after an error, so that all errors are reported together.
    func mapReportingAll<Result>(_ transform: (Element) throws -> Result) throws -> [Result] {
        var results: [Result] = []
        var diagnostics: [Diagnostic] = []
        for element in self {
            do {
                results.append(try transform(element))
            } catch let error as DiagnosticsError {
                diagnostics += error.diagnostics
            }
        }
        guard diagnostics.isEmpty else { throw DiagnosticsError(diagnostics: diagnostics) }
        return results
    }
}
