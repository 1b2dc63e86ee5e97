internal import JSON

/// The reason why a pattern is not accepted.
struct PatternError: Error {
    var reason: String
    /// Whether the pattern is valid, but is not regular or uses an unsupported feature.
    var isUnsupported = false
}

/// Parses ECMA-262 patterns (with the escapes of the `u` flag) and builds the languages of complete texts.
///
/// A pattern matches if it is found anywhere in the text, unless anchors prevent that. Captures and lazy quantifiers do
/// not change a language. A lookbehind may look at one character. Back references, which are not regular, are errors.
struct RegexParser {
    indirect enum Term {
        case empty
        case set(ScalarSet)
        case sequence([Term])
        case choice([Term])
        case repetition(Term, minimum: Int, maximum: Int?)
        case start
        case end
        case ahead(Term, isNegative: Bool)
        /// The character before is in the set, or is not; before the first character there is none.
        case behind(ScalarSet, isNegative: Bool)

        /// A position between a word character and another one, or the end of the text.
        static func wordBoundary(isNegative: Bool) -> Term {
            func sides(_ before: Bool, _ after: Bool) -> Term {
                .sequence([.behind(.word, isNegative: !before), .ahead(.set(.word), isNegative: !after)])
            }
            return .choice([sides(true, isNegative), sides(false, !isNegative)])
        }

        /// The same term at a position after the start of the text.
        var withoutStarts: Term {
            switch self {
            case .start: .set(ScalarSet([]))
            case .empty, .set, .end, .behind: self
            case .sequence(let parts): .sequence(parts.map(\.withoutStarts))
            case .choice(let parts): .choice(parts.map(\.withoutStarts))
            case .repetition(let inner, let minimum, let maximum):
                .repetition(inner.withoutStarts, minimum: minimum, maximum: maximum)
            // A lookahead matches at its own position.
            case .ahead(let inner, let isNegative): .ahead(inner.withoutStarts, isNegative: isNegative)
            }
        }

        /// Whether it contains an unlimited repetition of a term with an anchor or a lookahead.
        var repeatsAssertions: Bool {
            switch self {
            case .empty, .set, .start, .end, .behind: false
            case .sequence(let parts), .choice(let parts): parts.contains(where: \.repeatsAssertions)
            case .repetition(let inner, _, let maximum): maximum == nil && inner.hasAssertion || inner.repeatsAssertions
            case .ahead(let inner, _): inner.repeatsAssertions
            }
        }

        /// Whether it contains an anchor or a lookahead.
        var hasAssertion: Bool {
            switch self {
            case .empty, .set: false
            case .sequence(let parts), .choice(let parts): parts.contains(where: \.hasAssertion)
            case .repetition(let inner, _, _): inner.hasAssertion
            case .start, .end, .ahead, .behind: true
            }
        }

        /// The sets of the lookbehinds in it.
        var setsBehind: [ScalarSet] {
            switch self {
            case .empty, .set, .start, .end: []
            case .sequence(let parts), .choice(let parts): parts.flatMap(\.setsBehind)
            case .repetition(let inner, _, _), .ahead(let inner, _): inner.setsBehind
            case .behind(let set, _): [set]
            }
        }
    }

    private let scalars: [UInt32]
    private var index = 0
    private var depth = 0
    /// Whether `.` matches line ends, and letters match in both cases: flags `s` and `i`.
    private var matchesLineEnds = false
    private var ignoresCase = false
    private static let maximumLength = 20_000
    private static let maximumDepth = 60

    /// The texts in which `pattern` is found.
    static func language(of pattern: String, in arena: RegexArena) throws(PatternError) -> RegexID {
        let scalars = pattern.unicodeScalars.map(\.value)
        if scalars.count > maximumLength {
            throw PatternError(reason: "the pattern is longer than \(maximumLength) characters", isUnsupported: true)
        }
        var parser = RegexParser(scalars: scalars)
        let term = try parser.choice()
        if parser.index < scalars.count { throw PatternError(reason: "')' without '('") }
        return try PatternBuilder(term, arena).language(of: term)
    }

    private init(scalars: [UInt32]) { self.scalars = scalars }

    // MARK: - Syntax

    private var next: UInt32? { index < scalars.count ? scalars[index] : nil }
    private func character(_ letter: Unicode.Scalar) -> UInt32 { letter.value }

    private mutating func take(_ letter: Unicode.Scalar) -> Bool {
        guard next == letter.value else { return false }
        index += 1
        return true
    }

    private mutating func take(_ text: String) -> Bool {
        let wanted = text.unicodeScalars.map(\.value)
        guard scalars[index...].starts(with: wanted) else { return false }
        index += wanted.count
        return true
    }

    private mutating func choice() throws(PatternError) -> Term {
        depth += 1
        if depth > Self.maximumDepth { throw PatternError(reason: "groups are nested too deeply", isUnsupported: true) }
        defer { depth -= 1 }
        var parts = [try sequence()]
        while take("|") { parts.append(try sequence()) }
        return parts.count == 1 ? parts[0] : .choice(parts)
    }

    private mutating func sequence() throws(PatternError) -> Term {
        var parts: [Term] = []
        while let letter = next, letter != 0x7C, letter != 0x29 { parts.append(try quantified()) }
        return parts.count == 1 ? parts[0] : .sequence(parts)
    }

    private mutating func quantified() throws(PatternError) -> Term {
        let term = try atom()
        var minimum = 0
        var maximum: Int?
        if take("*") {
        } else if take("+") {
            minimum = 1
        } else if take("?") {
            maximum = 1
        } else if let bounds = try braces() {
            (minimum, maximum) = bounds
        } else {
            return term
        }
        _ = take("?")  // lazy: the same language
        if next == character("+") || next == character("*") || next == character("?") {
            throw PatternError(reason: "nothing to repeat at character \(index + 1)")
        }
        return .repetition(term, minimum: minimum, maximum: maximum)
    }

    /// `{2}`, `{2,}` or `{2,5}`; otherwise the brace is an ordinary character.
    private mutating func braces() throws(PatternError) -> (Int, Int?)? {
        let start = index
        guard take("{"), let minimum = number() else {
            index = start
            return nil
        }
        var maximum: Int? = minimum
        if take(",") { maximum = number() }
        guard take("}") else {
            index = start
            return nil
        }
        if let maximum, maximum < minimum {
            throw PatternError(reason: "the minimum of a repetition is greater than its maximum")
        }
        return (minimum, maximum)
    }

    private mutating func number() -> Int? {
        var value: Int?
        while let letter = next, (0x30...0x39).contains(letter) {
            value = min((value ?? 0) * 10 + Int(letter - 0x30), 100_000_000)
            index += 1
        }
        return value
    }

    private mutating func atom() throws(PatternError) -> Term {
        guard let letter = next else { return .empty }
        let at = index + 1
        index += 1
        switch letter {
        case character("."): return .set(matchesLineEnds ? .all : ScalarSet.lineEnds.inverted)
        case character("^"): return .start
        case character("$"): return .end
        case character("("): return try group()
        case character("["): return .set(folded(try bracket()))
        case character("\\") where take("b"): return .wordBoundary(isNegative: false)
        case character("\\") where take("B"): return .wordBoundary(isNegative: true)
        // Anchors of other dialects, which published schemas use.
        case character("\\") where take("A"): return .start
        case character("\\") where take("Z") || take("z"): return .end
        case character("\\"): return .set(folded(try escape()))
        case character("*"), character("+"), character("?"): throw PatternError(reason: "nothing to repeat at character \(at)")
        default: return .set(folded(ScalarSet(letter)))
        }
    }

    /// With the letters of ASCII in both cases, if case is ignored.
    private func folded(_ set: ScalarSet) -> ScalarSet {
        guard ignoresCase else { return set }
        let upper = set.intersection(ScalarSet([0x41...0x5A])).ranges.map { ($0.lowerBound + 32)...($0.upperBound + 32) }
        let lower = set.intersection(ScalarSet([0x61...0x7A])).ranges.map { ($0.lowerBound - 32)...($0.upperBound - 32) }
        return set.union(ScalarSet(upper + lower))
    }

    private mutating func group() throws(PatternError) -> Term {
        var wrap: (Term) -> Term = { $0 }
        let outer = (matchesLineEnds, ignoresCase)
        if take("?=") {
            wrap = { .ahead($0, isNegative: false) }
        } else if take("?!") {
            wrap = { .ahead($0, isNegative: true) }
        } else if let isNegative = take("?<!") ? true : take("?<=") ? false : nil {
            let inner = try choice()
            guard take(")") else { throw PatternError(reason: "'(' without ')'") }
            guard let set = Self.singleCharacter(inner) else {
                throw PatternError(reason: "a lookbehind of more than one character is not supported", isUnsupported: true)
            }
            return .behind(set, isNegative: isNegative)
        } else if take("?<") || take("?P<") {
            while let letter = next, letter != character(">") {
                index += 1
                _ = letter
            }
            guard take(">") else { throw PatternError(reason: "the name of a group has no end") }
        } else if take("?:") {
        } else if let flags = flags() {
            matchesLineEnds = matchesLineEnds || flags.contains(character("s"))
            ignoresCase = ignoresCase || flags.contains(character("i"))
            // Without a term, the flags hold until the end of the group around them.
            if take(")") { return .empty }
            guard take(":") else { throw PatternError(reason: "this kind of group is not supported", isUnsupported: true) }
        } else if next == character("?") {
            throw PatternError(reason: "this kind of group is not supported", isUnsupported: true)
        }
        let inner = try choice()
        guard take(")") else { throw PatternError(reason: "'(' without ')'") }
        (matchesLineEnds, ignoresCase) = outer
        return wrap(inner)
    }

    /// The letters of `?s`, `?i` or `?si`, at the beginning of a group.
    private mutating func flags() -> ArraySlice<UInt32>? {
        guard next == character("?") else { return nil }
        let letters = scalars[(index + 1)...].prefix { $0 == character("s") || $0 == character("i") }
        guard !letters.isEmpty else { return nil }
        index = letters.endIndex
        return letters
    }

    /// The characters that a term matches, if it always matches exactly one.
    private static func singleCharacter(_ term: Term) -> ScalarSet? {
        switch term {
        case .set(let set): return set
        case .choice(let parts):
            var result = ScalarSet([])
            for part in parts {
                guard let set = singleCharacter(part) else { return nil }
                result = result.union(set)
            }
            return result
        default: return nil
        }
    }

    private mutating func bracket() throws(PatternError) -> ScalarSet {
        let isInverted = take("^")
        var ranges: [ClosedRange<UInt32>] = []
        while let letter = next, letter != character("]") {
            let low = try member()
            guard next == character("-"), index + 1 < scalars.count, scalars[index + 1] != character("]") else {
                ranges += low.ranges
                continue
            }
            index += 1
            let high = try member()
            if low.ranges.isEmpty || high.ranges.isEmpty {
                // Between two surrogates there is no character; beside one, the range has no defined other end.
                guard low.ranges.isEmpty, high.ranges.isEmpty else {
                    throw PatternError(reason: "a range from or to an unpaired surrogate is not supported", isUnsupported: true)
                }
                continue
            }
            guard let first = low.single, let last = high.single else {
                ranges += low.ranges + high.ranges + [0x2D...0x2D]
                continue
            }
            guard first <= last else { throw PatternError(reason: "the start of a character range is greater than its end") }
            ranges.append(first...last)
        }
        guard take("]") else { throw PatternError(reason: "'[' without ']'") }
        let set = ScalarSet(ranges)
        return isInverted ? set.inverted : set
    }

    private mutating func member() throws(PatternError) -> ScalarSet {
        guard let letter = next else { throw PatternError(reason: "'[' without ']'") }
        index += 1
        guard letter == character("\\") else { return ScalarSet(letter) }
        if take("b") { return ScalarSet(0x08) }
        return try escape()
    }

    private mutating func escape() throws(PatternError) -> ScalarSet {
        guard let letter = next else { throw PatternError(reason: "the pattern ends in '\\'") }
        index += 1
        switch letter {
        case character("d"): return .digits
        case character("D"): return ScalarSet.digits.inverted
        case character("w"): return .word
        case character("W"): return ScalarSet.word.inverted
        case character("s"): return .space
        case character("S"): return ScalarSet.space.inverted
        case character("t"): return ScalarSet(0x09)
        case character("n"): return ScalarSet(0x0A)
        case character("v"): return ScalarSet(0x0B)
        case character("f"): return ScalarSet(0x0C)
        case character("r"): return ScalarSet(0x0D)
        case character("x"): return ScalarSet(try hex(2))
        case character("u"): return try unicodeEscape()
        case character("c"):
            guard let control = next, (0x41...0x5A).contains(control & ~0x20) else {
                throw PatternError(reason: "'\\c' needs a letter")
            }
            index += 1
            return ScalarSet(control & 31)
        case character("p"): return try property()
        case character("P"): return try property().inverted
        case character("0"):
            if let digit = next, (0x30...0x39).contains(digit) {
                throw PatternError(reason: "octal escapes are not supported", isUnsupported: true)
            }
            return ScalarSet(0)
        case 0x31...0x39, character("k"):
            throw PatternError(reason: "back references are not regular and not supported", isUnsupported: true)
        case character("B"): throw PatternError(reason: "'\\B' is not a character")
        case 0x41...0x5A, 0x61...0x7A:
            throw PatternError(
                reason: "the escape '\\\(Unicode.Scalar(letter).map(String.init) ?? "")' is not supported", isUnsupported: true)
        default: return ScalarSet(letter)
        }
    }

    private mutating func hex(_ count: Int) throws(PatternError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let letter = next, letter < 128, let digit = JSONText.hexDigit(UInt8(letter)) else {
                throw PatternError(reason: "hexadecimal digits are missing after '\\'")
            }
            value = value << 4 | digit
            index += 1
        }
        return value
    }

    /// The character with this code point. An unpaired surrogate is not a character of any text, so its set is empty.
    private mutating func unicodeEscape() throws(PatternError) -> ScalarSet {
        if take("{") {
            var value: UInt32 = 0
            while let letter = next, letter < 128, let digit = JSONText.hexDigit(UInt8(letter)), value <= 0x10FFFF {
                value = value << 4 | digit
                index += 1
            }
            guard take("}"), value <= 0x10FFFF else { throw PatternError(reason: "'\\u{' without a valid code point") }
            return ScalarSet(value)
        }
        let high = try hex(4)
        let start = index
        // If the digits after the second "\u" are wrong, reading goes on there and reports it.
        if JSONText.isHighSurrogate(high), take("\\u"), let low = try? hex(4), JSONText.isLowSurrogate(low) {
            return ScalarSet(JSONText.scalar(high: high, low: low))
        }
        index = start
        return ScalarSet(high)
    }

    private mutating func property() throws(PatternError) -> ScalarSet {
        guard take("{"), let end = scalars[index...].firstIndex(of: character("}")) else {
            throw PatternError(reason: "'\\p' needs a property in braces")
        }
        let name = String(String.UnicodeScalarView(scalars[index..<end].compactMap(Unicode.Scalar.init)))
        index = end + 1
        guard let set = UnicodeProperty.set(named: name) else {
            throw PatternError(reason: "the property '\(name)' is not supported", isUnsupported: true)
        }
        return set
    }
}

extension ScalarSet {
    /// The only character in the set; nil if there are none or several.
    fileprivate var single: UInt32? {
        guard ranges.count == 1, let range = ranges.first, range.count == 1 else { return nil }
        return range.lowerBound
    }
}
