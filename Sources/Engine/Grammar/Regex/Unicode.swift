internal import JSON

/// A set of Unicode scalar values, as sorted ranges that do not touch. It never contains surrogates.
struct ScalarSet: Hashable {
    private(set) var ranges: [ClosedRange<UInt32>] = []

    static let all = ScalarSet([0...0x10FFFF])
    static let digits = ScalarSet([0x30...0x39])
    static let word = ScalarSet([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
    static let lineEnds = ScalarSet([0x0A...0x0A, 0x0D...0x0D, 0x2028...0x2029])
    /// WhiteSpace and LineTerminator of ECMA-262.
    static let space = ScalarSet([
        0x09...0x0D, 0x20...0x20, 0xA0...0xA0, 0x1680...0x1680, 0x2000...0x200A, 0x2028...0x2029, 0x202F...0x202F,
        0x205F...0x205F, 0x3000...0x3000, 0xFEFF...0xFEFF,
    ])

    init(_ ranges: [ClosedRange<UInt32>]) {
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            for part in Self.withoutSurrogates(range) { append(part) }
        }
    }

    init(_ scalar: UInt32) { self.init([scalar...scalar]) }

    private static func withoutSurrogates(_ range: ClosedRange<UInt32>) -> [ClosedRange<UInt32>] {
        guard range.overlaps(0xD800...0xDFFF) else { return [range] }
        var parts: [ClosedRange<UInt32>] = []
        if range.lowerBound < 0xD800 { parts.append(range.lowerBound...0xD7FF) }
        if range.upperBound > 0xDFFF { parts.append(0xE000...range.upperBound) }
        return parts
    }

    private mutating func append(_ range: ClosedRange<UInt32>) {
        if let last = ranges.last, range.lowerBound <= last.upperBound + 1 {
            ranges[ranges.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
        } else {
            ranges.append(range)
        }
    }

    func union(_ other: ScalarSet) -> ScalarSet { ScalarSet(ranges + other.ranges) }

    func intersection(_ other: ScalarSet) -> ScalarSet {
        if self == .all { return other }
        return inverted.union(other.inverted).inverted
    }

    var inverted: ScalarSet {
        var gaps: [ClosedRange<UInt32>] = []
        var next: UInt32 = 0
        for range in ranges {
            if range.lowerBound > next { gaps.append(next...range.lowerBound - 1) }
            next = range.upperBound + 1
        }
        if next <= 0x10FFFF { gaps.append(next...0x10FFFF) }
        return ScalarSet(gaps)
    }
}

/// Ranges of Unicode scalar values as sequences of byte ranges.
enum UTF8Ranges {
    /// Byte ranges whose concatenations together are the UTF-8 encodings of `scalars`, without surrogates.
    static func sequences(of scalars: ClosedRange<UInt32>) -> [[ClosedRange<UInt8>]] {
        var result: [[ClosedRange<UInt8>]] = []
        var rest = [scalars]
        while let range = rest.popLast() {
            if range.overlaps(0xD800...0xDFFF) {
                if range.upperBound > 0xDFFF { rest.append(0xE000...range.upperBound) }
                if range.lowerBound < 0xD800 { rest.append(range.lowerBound...0xD7FF) }
                continue
            }
            if let cut = cut(range) {
                rest.append(cut + 1...range.upperBound)
                rest.append(range.lowerBound...cut)
                continue
            }
            let low = JSONText.utf8(range.lowerBound)
            let high = JSONText.utf8(range.upperBound)
            result.append(zip(low, high).map { $0...$1 })
        }
        return result
    }

    /// The last value before a split, which is needed so that each byte of both parts takes all values of its own
    /// range; nil if no split is needed.
    private static func cut(_ range: ClosedRange<UInt32>) -> UInt32? {
        for limit: UInt32 in [0x7F, 0x7FF, 0xFFFF] where range.lowerBound <= limit && range.upperBound > limit { return limit }
        guard range.lowerBound > 0x7F else { return nil }
        for shift: UInt32 in [6, 12, 18] {
            let mask = (UInt32(1) << shift) - 1
            guard range.lowerBound & ~mask != range.upperBound & ~mask else { continue }
            if range.lowerBound & mask != 0 { return range.lowerBound | mask }
            if range.upperBound & mask != mask { return (range.upperBound & ~mask) - 1 }
        }
        return nil
    }
}

extension RegexArena {
    /// The language of one character of `set`.
    func character(of set: ScalarSet) -> RegexID {
        tree(set.ranges.flatMap { UTF8Ranges.sequences(of: $0)[...] }.map { $0[...] })
    }

    /// The union of sequences, as a tree that shares common first bytes.
    private func tree(_ sequences: [ArraySlice<ClosedRange<UInt8>>]) -> RegexID {
        if sequences.contains(where: \.isEmpty) { return Self.epsilon }
        var parts: [RegexID] = []
        var index = 0
        while index < sequences.count {
            let first = sequences[index].first
            var end = index + 1
            while end < sequences.count, sequences[end].first == first { end += 1 }
            if let first {
                let rest = tree(sequences[index..<end].map { $0.dropFirst() })
                parts.append(concat(bytes(ByteSet(first)), rest))
            }
            index = end
        }
        return alternation(parts)
    }
}

/// Character sets that `\p{…}` refers to.
enum UnicodeProperty {
    /// The set of a property; nil if the name is not supported. Scripts are not supported.
    static func set(named name: String) -> ScalarSet? {
        var name = name
        for prefix in ["General_Category=", "gc="] where name.hasPrefix(prefix) { name.removeFirst(prefix.count) }
        switch name {
        case "Any": return .all
        case "ASCII": return ScalarSet([0...0x7F])
        case "White_Space", "space": return scan { $0.properties.isWhitespace }
        case "Alphabetic", "Alpha": return scan { $0.properties.isAlphabetic }
        case "Uppercase", "Upper": return scan { $0.properties.isUppercase }
        case "Lowercase", "Lower": return scan { $0.properties.isLowercase }
        // Classes of ASCII in Java and POSIX, which published schemas use.
        case "Graph": return ScalarSet([0x21...0x7E])
        case "Print": return ScalarSet([0x20...0x7E])
        case "Emoji": return scan { $0.properties.isEmoji }
        default: break
        }
        guard let names = groups.first(where: { $0.names.contains(name) })?.categories else { return nil }
        return names.reduce(ScalarSet([])) { $0.union(categories[$1] ?? ScalarSet([])) }
    }

    /// The characters of each general category, computed in one pass when a pattern first uses a category.
    private static let categories: [String: ScalarSet] = {
        var ranges: [String: [ClosedRange<UInt32>]] = [:]
        var start: UInt32 = 0
        var current = Unicode.GeneralCategory.control
        func finish(_ end: UInt32) { ranges[shortName(current), default: []].append(start...end) }
        for value in UInt32(1)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let category = scalar.properties.generalCategory
            if category == current, value != 0xE000 { continue }
            finish(value == 0xE000 ? 0xD7FF : value - 1)
            (start, current) = (value, category)
        }
        finish(0x10FFFF)
        return ranges.mapValues { ScalarSet($0) }
    }()

    private static func scan(_ belongs: (Unicode.Scalar) -> Bool) -> ScalarSet {
        var ranges: [ClosedRange<UInt32>] = []
        for value in UInt32(0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value), belongs(scalar) else { continue }
            if let last = ranges.last, last.upperBound + 1 == value {
                ranges[ranges.count - 1] = last.lowerBound...value
            } else {
                ranges.append(value...value)
            }
        }
        return ScalarSet(ranges)
    }

    private static let groups: [(names: [String], categories: [String])] = [
        (["L", "Letter"], ["Lu", "Ll", "Lt", "Lm", "Lo"]), (["LC", "Cased_Letter"], ["Lu", "Ll", "Lt"]),
        (["Lu", "Uppercase_Letter"], ["Lu"]), (["Ll", "Lowercase_Letter"], ["Ll"]), (["Lt", "Titlecase_Letter"], ["Lt"]),
        (["Lm", "Modifier_Letter"], ["Lm"]), (["Lo", "Other_Letter"], ["Lo"]),
        (["M", "Mark", "Combining_Mark"], ["Mn", "Mc", "Me"]), (["Mn", "Nonspacing_Mark"], ["Mn"]),
        (["Mc", "Spacing_Mark"], ["Mc"]), (["Me", "Enclosing_Mark"], ["Me"]), (["N", "Number"], ["Nd", "Nl", "No"]),
        (["Nd", "Decimal_Number", "digit"], ["Nd"]), (["Nl", "Letter_Number"], ["Nl"]), (["No", "Other_Number"], ["No"]),
        (["P", "Punctuation", "punct"], ["Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"]), (["Pc", "Connector_Punctuation"], ["Pc"]),
        (["Pd", "Dash_Punctuation"], ["Pd"]), (["Ps", "Open_Punctuation"], ["Ps"]), (["Pe", "Close_Punctuation"], ["Pe"]),
        (["Pi", "Initial_Punctuation"], ["Pi"]), (["Pf", "Final_Punctuation"], ["Pf"]), (["Po", "Other_Punctuation"], ["Po"]),
        (["S", "Symbol"], ["Sm", "Sc", "Sk", "So"]), (["Sm", "Math_Symbol"], ["Sm"]), (["Sc", "Currency_Symbol"], ["Sc"]),
        (["Sk", "Modifier_Symbol"], ["Sk"]), (["So", "Other_Symbol"], ["So"]), (["Z", "Separator"], ["Zs", "Zl", "Zp"]),
        (["Zs", "Space_Separator"], ["Zs"]), (["Zl", "Line_Separator"], ["Zl"]), (["Zp", "Paragraph_Separator"], ["Zp"]),
        (["C", "Other"], ["Cc", "Cf", "Co", "Cn"]), (["Cc", "Control", "cntrl"], ["Cc"]), (["Cf", "Format"], ["Cf"]),
        (["Co", "Private_Use"], ["Co"]), (["Cn", "Unassigned"], ["Cn"]),
    ]

    private static func shortName(_ category: Unicode.GeneralCategory) -> String {
        switch category {
        case .uppercaseLetter: "Lu"
        case .lowercaseLetter: "Ll"
        case .titlecaseLetter: "Lt"
        case .modifierLetter: "Lm"
        case .otherLetter: "Lo"
        case .nonspacingMark: "Mn"
        case .spacingMark: "Mc"
        case .enclosingMark: "Me"
        case .decimalNumber: "Nd"
        case .letterNumber: "Nl"
        case .otherNumber: "No"
        case .connectorPunctuation: "Pc"
        case .dashPunctuation: "Pd"
        case .openPunctuation: "Ps"
        case .closePunctuation: "Pe"
        case .initialPunctuation: "Pi"
        case .finalPunctuation: "Pf"
        case .otherPunctuation: "Po"
        case .mathSymbol: "Sm"
        case .currencySymbol: "Sc"
        case .modifierSymbol: "Sk"
        case .otherSymbol: "So"
        case .spaceSeparator: "Zs"
        case .lineSeparator: "Zl"
        case .paragraphSeparator: "Zp"
        case .control: "Cc"
        case .format: "Cf"
        case .surrogate: "Cs"
        case .privateUse: "Co"
        case .unassigned: "Cn"
        @unknown default: "Cn"
        }
    }
}
