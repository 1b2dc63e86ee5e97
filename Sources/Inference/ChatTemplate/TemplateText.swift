/// A string of the template language that records which of its characters came from a message.
///
/// Control tokens are recognised only in the template's own text, so every operation preserves the origin of
/// characters: the result of a filter applied to a user's text is still marked as a user's text.
struct TemplateText: Equatable, Sendable {
    struct Run: Equatable, Sendable {
        var text: String
        var isUser: Bool
    }

    private(set) var runs: [Run] = []
    /// Whether the string is marked with `safe`: strings that are appended with `+` are then escaped for HTML, as in
    /// jinja2.
    var isSafe = false

    init() {}
    init(_ text: String, isUser: Bool = false) { append(text, isUser: isUser) }

    var string: String { runs.count == 1 ? runs[0].text : runs.map(\.text).joined() }
    var isEmpty: Bool { runs.isEmpty }
    /// The number of Unicode scalars, which is the length in the template language.
    var count: Int { runs.reduce(0) { $0 + $1.text.unicodeScalars.count } }

    var utf8Count: Int { runs.reduce(0) { $0 + $1.text.utf8.count } }

    mutating func append(_ text: String, isUser: Bool) {
        guard !text.isEmpty else { return }
        if runs.last?.isUser == isUser {
            runs[runs.count - 1].text += text
        } else {
            runs.append(Run(text: text, isUser: isUser))
        }
    }

    mutating func append(_ other: TemplateText) {
        for run in other.runs { append(run.text, isUser: run.isUser) }
    }

    static func == (a: TemplateText, b: TemplateText) -> Bool { a.string == b.string }

    /// Applies a function to each run separately; suitable for case conversion.
    func mapRuns(_ change: (String) -> String) -> TemplateText {
        var result = TemplateText()
        for run in runs { result.append(change(run.text), isUser: run.isUser) }
        return result
    }

    /// The string with `&`, `<`, `>` and quotes escaped for HTML.
    var escaped: TemplateText {
        mapRuns { text in
            text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
                .replacing("'", with: "&#39;").replacing("\"", with: "&#34;")
        }
    }

    // MARK: - By scalar

    typealias Scalar = (scalar: Unicode.Scalar, isUser: Bool)

    var scalars: [Scalar] {
        runs.flatMap { run in run.text.unicodeScalars.map { ($0, run.isUser) } }
    }

    /// The scalar at a position; nil outside the string.
    func scalar(at position: Int) -> Scalar? {
        guard position >= 0 else { return nil }
        var rest = position
        for run in runs {
            let scalars = run.text.unicodeScalars
            if let index = scalars.index(scalars.startIndex, offsetBy: rest, limitedBy: scalars.endIndex),
                index < scalars.endIndex
            {
                return (scalars[index], run.isUser)
            }
            rest -= scalars.count
        }
        return nil
    }

    init(_ scalars: some Sequence<Scalar>) {
        var text = String.UnicodeScalarView()
        var isUser = false
        for scalar in scalars {
            if scalar.isUser != isUser {
                append(String(text), isUser: isUser)
                text = String.UnicodeScalarView()
                isUser = scalar.isUser
            }
            text.append(scalar.scalar)
        }
        append(String(text), isUser: isUser)
    }

    /// The string without leading and trailing scalars for which `isRemoved` returns true.
    func trimmed(leading: Bool = true, trailing: Bool = true, _ isRemoved: (Unicode.Scalar) -> Bool) -> TemplateText {
        var result = self
        while leading, let first = result.runs.first {
            let rest = first.text.unicodeScalars.drop(while: isRemoved)
            result.runs[0].text = String(rest)
            if !rest.isEmpty { break }
            result.runs.removeFirst()
        }
        while trailing, let last = result.runs.last {
            var rest = last.text.unicodeScalars[...]
            while let scalar = rest.last, isRemoved(scalar) { rest.removeLast() }
            result.runs[result.runs.count - 1].text = String(rest)
            if !rest.isEmpty { break }
            result.runs.removeLast()
        }
        return result
    }

    /// The parts between occurrences of `separator`, with at most `limit` splits.
    func split(separator: String, limit: Int = .max) -> [TemplateText] {
        let all = scalars
        let needle = Array(separator.unicodeScalars)
        guard !needle.isEmpty else { return [self] }
        var parts: [TemplateText] = []
        var start = 0
        var index = 0
        while index + needle.count <= all.count, parts.count < limit {
            if (0..<needle.count).allSatisfy({ all[index + $0].scalar == needle[$0] }) {
                parts.append(TemplateText(all[start..<index]))
                index += needle.count
                start = index
            } else {
                index += 1
            }
        }
        parts.append(TemplateText(all[start...]))
        return parts
    }

    /// The lines of the string, separated at the same characters as in Python's `splitlines`.
    var lines: [TemplateText] {
        var lines: [TemplateText] = []
        var line: [Scalar] = []
        var previous: Unicode.Scalar?
        for scalar in scalars {
            switch scalar.scalar {
            case "\n" where previous == "\r": break
            case "\n", "\r", "\u{B}", "\u{C}", "\u{1C}", "\u{1D}", "\u{1E}", "\u{85}", "\u{2028}", "\u{2029}":
                lines.append(TemplateText(line))
                line = []
            default: line.append(scalar)
            }
            previous = scalar.scalar
        }
        return lines + [TemplateText(line)]
    }

    static func join(_ parts: [TemplateText], separator: TemplateText) -> TemplateText {
        var result = TemplateText()
        for (index, part) in parts.enumerated() {
            if index > 0 { result.append(separator) }
            result.append(part)
        }
        return result
    }
}
