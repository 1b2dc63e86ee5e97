internal import Foundation

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
    private(set) var utf8Count = 0
    /// Whether the string is marked with `safe`: strings that are appended with `+` are then escaped for HTML, as in
    /// jinja2.
    var isSafe = false

    init() {}
    init(_ text: String, isUser: Bool = false) { append(text, isUser: isUser) }

    var string: String { runs.count == 1 ? runs[0].text : runs.map(\.text).joined() }
    var isEmpty: Bool { runs.isEmpty }
    /// The number of Unicode scalars, which is the length in the template language.
    var count: Int { runs.reduce(0) { $0 + $1.text.unicodeScalars.count } }

    var hasUserText: Bool { runs.contains(where: \.isUser) }

    mutating func append(_ text: String, isUser: Bool) {
        guard !text.isEmpty else { return }
        utf8Count += text.utf8.count
        if runs.last?.isUser == isUser {
            runs[runs.count - 1].text += text
        } else {
            runs.append(Run(text: text, isUser: isUser))
        }
    }

    mutating func append(_ other: TemplateText) {
        for run in other.runs { append(run.text, isUser: run.isUser) }
    }

    /// Compares the lengths first and joins nothing: a long text is compared with each element of a list.
    static func == (a: TemplateText, b: TemplateText) -> Bool {
        guard a.utf8Count == b.utf8Count else { return false }
        if a.runs.count == 1, b.runs.count == 1 { return a.runs[0].text == b.runs[0].text }
        return a.runs.lazy.flatMap { $0.text.utf8 }.elementsEqual(b.runs.lazy.flatMap { $0.text.utf8 })
    }

    /// Whether another string occurs in this one.
    func contains(_ other: TemplateText) -> Bool {
        let wanted = Array(other.string.utf8)
        guard let first = wanted.first else { return true }
        var search = SequenceSearch(wanted)
        var text = string
        return text.withUTF8 { bytes in
            guard let base = bytes.baseAddress else { return false }
            var index = 0
            while index < bytes.count {
                if search.isAtBeginning {
                    guard let found = memchr(base + index, Int32(first), bytes.count - index) else { return false }
                    index = UnsafeRawPointer(found) - UnsafeRawPointer(base)
                }
                if search.endsOccurrence(bytes[index]) { return true }
                index += 1
            }
            return false
        }
    }

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
        var kept = runs.map { (text: $0.text.unicodeScalars[...], isUser: $0.isUser) }[...]
        while leading, let first = kept.first {
            let rest = first.text.drop(while: isRemoved)
            if !rest.isEmpty {
                kept[kept.startIndex].text = rest
                break
            }
            kept.removeFirst()
        }
        while trailing, let last = kept.last {
            var rest = last.text
            while let scalar = rest.last, isRemoved(scalar) { rest.removeLast() }
            if !rest.isEmpty {
                kept[kept.endIndex - 1].text = rest
                break
            }
            kept.removeLast()
        }
        var result = TemplateText()
        result.isSafe = isSafe
        for run in kept { result.append(String(run.text), isUser: run.isUser) }
        return result
    }

    /// Calls `body` with each part between occurrences of `separator`, with at most `limit` splits.
    func forEachPart(
        separator: String, limit: Int = .max, _ body: (TemplateText) throws(TemplateError) -> Void
    ) throws(TemplateError) {
        let scalars = scalars
        var search = SequenceSearch(Array(separator.unicodeScalars))
        var (start, splits) = (0, 0)
        for index in scalars.indices {
            if splits >= limit { break }
            guard search.endsOccurrence(scalars[index].scalar) else { continue }
            try body(TemplateText(scalars[start..<index + 1 - search.count]))
            start = index + 1
            splits += 1
        }
        try body(TemplateText(scalars[start...]))
    }

    /// Calls `body` with each run of scalars for which `isSeparator` is false.
    func forEachPart(
        where isSeparator: (Unicode.Scalar) -> Bool, _ body: (TemplateText) throws(TemplateError) -> Void
    ) throws(TemplateError) {
        var part: [Scalar] = []
        for scalar in scalars {
            if !isSeparator(scalar.scalar) {
                part.append(scalar)
            } else if !part.isEmpty {
                try body(TemplateText(part))
                part = []
            }
        }
        if !part.isEmpty { try body(TemplateText(part)) }
    }

    /// Calls `body` with each line of the string; lines are separated at the same characters as in Python's `splitlines`.
    func forEachLine(_ body: (TemplateText) throws(TemplateError) -> Void) throws(TemplateError) {
        var line: [Scalar] = []
        var previous: Unicode.Scalar?
        for scalar in scalars {
            switch scalar.scalar {
            case "\n" where previous == "\r": break
            case "\n", "\r", "\u{B}", "\u{C}", "\u{1C}", "\u{1D}", "\u{1E}", "\u{85}", "\u{2028}", "\u{2029}":
                try body(TemplateText(line))
                line.removeAll(keepingCapacity: true)
            default: line.append(scalar)
            }
            previous = scalar.scalar
        }
        try body(TemplateText(line))
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

/// Finds a sequence in another one in linear time (Knuth, Morris and Pratt): a text and what is searched for in it may be
/// megabytes of one letter. An empty sequence occurs nowhere.
struct SequenceSearch<Element: Equatable> {
    private let wanted: [Element]
    /// For each beginning of the sequence, the length of the longest shorter one that it ends with.
    private let borders: [Int]
    private var matched = 0

    var count: Int { wanted.count }
    /// Whether an occurrence can only begin with the next element.
    var isAtBeginning: Bool { matched == 0 }

    init(_ wanted: [Element]) {
        self.wanted = wanted
        var borders = [Int](repeating: 0, count: wanted.count)
        for index in wanted.indices.dropFirst() {
            var length = borders[index - 1]
            while length > 0, wanted[index] != wanted[length] { length = borders[length - 1] }
            borders[index] = wanted[index] == wanted[length] ? length + 1 : 0
        }
        self.borders = borders
    }

    /// Takes the next element; returns whether an occurrence ends with it. Occurrences do not overlap.
    mutating func endsOccurrence(_ element: Element) -> Bool {
        if wanted.isEmpty { return false }
        while matched > 0, wanted[matched] != element { matched = borders[matched - 1] }
        if wanted[matched] == element { matched += 1 }
        if matched < wanted.count { return false }
        matched = 0
        return true
    }
}
