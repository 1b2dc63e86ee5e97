import Foundation

/// A regular expression that is searched in a text, with bounded work: expressions of data sets come from outside, and may backtrack
/// without end.
struct SearchPattern {
    private let expression: NSRegularExpression
    private let pattern: String

    /// The maximum number of reports of a search besides one for each place in the text. They come after some ten thousand steps each;
    /// ordinary expressions need none.
    private static let maximumReports = 1_000

    /// - Throws: ``EvaluatorArgumentError/invalidPattern(_:)``.
    init(_ pattern: String) throws {
        self.pattern = pattern
        // The error has no text that says more.
        do { expression = try NSRegularExpression(pattern: pattern) } catch {
            throw EvaluatorArgumentError.invalidPattern(pattern)
        }
    }

    /// Whether a part of a text matches.
    ///
    /// - Throws: ``EvaluatorArgumentError/patternTooSlow(_:)``.
    func isFound(in text: String) throws -> Bool {
        var isFound = false
        var reports = 0
        let limit = Self.maximumReports + text.utf16.count
        expression.enumerateMatches(
            in: text, options: .reportProgress, range: NSRange(text.startIndex..., in: text)
        ) { match, _, stop in
            isFound = match != nil
            reports += 1
            if isFound || reports > limit { stop.pointee = true }
        }
        if !isFound, reports > limit { throw EvaluatorArgumentError.patternTooSlow(pattern) }
        return isFound
    }
}
