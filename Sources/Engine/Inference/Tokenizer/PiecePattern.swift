/// A pattern that splits text into pieces before byte-pair encoding: alternatives, tried in order at each position, of
/// runs of characters of certain classes. The published patterns need no other features of regular expressions.
struct PiecePattern: Sendable {
    enum Element: Sendable {
        /// A greedy run of characters that have any flag of `include` and no flag of `exclude`.
        case run(include: UInt32, exclude: UInt32, minimum: Int, maximum: Int)
        /// `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll`, `'d`.
        case contraction(ignoringCase: Bool)
        /// One of these, or nothing.
        case optionalContraction
        /// Negative lookahead: the next character has none of these flags, or the text ends.
        case notBefore(UInt32)
        /// Lookahead: a run of digits follows, whose length is a multiple of three.
        case beforeTriples
    }

    let alternatives: [[Element]]

    init(_ alternatives: [Element]...) { self.alternatives = alternatives }

    /// What is known of the run of digits where a lookahead counted last: the next piece of the same run need not count it again.
    struct DigitRun {
        fileprivate var start = 0
        fileprivate var count = 0
        fileprivate var end = 0

        /// The number of digits from `start` to the end of their run.
        fileprivate mutating func count(from start: Int, _ text: borrowing ClassifiedText) -> Int {
            // Positions near the last one, in the same run, differ from it by a few digits.
            if abs(start - self.start) <= 16, start < end,
                case let digits = Self.digits(in: text, min(start, self.start), until: max(start, self.start)),
                digits.end == max(start, self.start)
            {
                count += start < self.start ? digits.count : -digits.count
                self.start = start
            } else {
                let digits = Self.digits(in: text, start, until: text.count)
                (self.start, count, end) = (start, digits.count, digits.end)
            }
            return count
        }

        private static func digits(in text: borrowing ClassifiedText, _ start: Int, until limit: Int) -> (count: Int, end: Int) {
            var (end, count) = (start, 0)
            while end < limit, case let (flags, next) = text.flags(at: end), flags & CharacterFlags.number != 0 {
                count += 1
                end = next
            }
            return (count, end)
        }
    }

    /// The end of the piece that begins at `start`; nil if the pattern does not match there. Runs backtrack where the
    /// following elements do not match. The time at one position is linear in the length of the run, and the piece then takes the run or
    /// all but one character of it, so that the time of the whole text is linear too.
    func match(_ text: borrowing ClassifiedText, _ start: Int, _ digits: inout DigitRun) -> Int? {
        for alternative in alternatives {
            if let end = Self.match(alternative[...], text, start, &digits), end > start { return end }
        }
        return nil
    }

    /// The first position after `start`, where the pattern does not match, at which it may match. If it begins with a run of a class,
    /// it does not match later in the same run either.
    func next(after start: Int, _ text: borrowing ClassifiedText) -> Int {
        var end = text.flags(at: start).end
        guard alternatives.count == 1, case .run(let include, let exclude, 1, .max)? = alternatives[0].first,
            case let first = text.flags(at: start).flags, first & include != 0, first & exclude == 0
        else { return end }
        while end < text.count, case let (flags, next) = text.flags(at: end), flags & include != 0, flags & exclude == 0 {
            end = next
        }
        return end
    }

    private static func match(
        _ elements: ArraySlice<Element>, _ text: borrowing ClassifiedText, _ start: Int, _ digits: inout DigitRun
    ) -> Int? {
        guard let element = elements.first else { return start }
        let rest = elements.dropFirst()
        switch element {
        case .contraction(let ignoringCase):
            guard start < text.count, text.bytes[start] == UInt8(ascii: "'"),
                let end = PreTokenizer.contraction(text, start, caseInsensitive: ignoringCase)
            else { return nil }
            return match(rest, text, end, &digits)
        case .optionalContraction:
            let isThere = start < text.count && text.bytes[start] == UInt8(ascii: "'")
            let end = isThere ? PreTokenizer.contraction(text, start, caseInsensitive: true) : nil
            return match(rest, text, end ?? start, &digits)
        case .notBefore(let classes):
            if start < text.count, text.flags(at: start).flags & classes != 0 { return nil }
            return match(rest, text, start, &digits)
        case .beforeTriples:
            let count = digits.count(from: start, text)
            return count > 0 && count % 3 == 0 ? match(rest, text, start, &digits) : nil
        case .run(let include, let exclude, let minimum, let maximum):
            var count = 0
            var end = start
            while count < maximum, end < text.count, case let (flags, next) = text.flags(at: end),
                flags & include != 0, flags & exclude == 0
            {
                count += 1
                end = next
            }
            while count >= minimum {
                if let whole = match(rest, text, end, &digits) { return whole }
                if count == 0 { return nil }
                count -= 1
                end -= 1
                while end > start, text.bytes[end] & 0xC0 == 0x80 { end -= 1 }
            }
            return nil
        }
    }
}

/// Character properties used in patterns, as bits.
enum CharacterFlags {
    static let upper: UInt32 = 1 << 0  // Lu
    static let lower: UInt32 = 1 << 1  // Ll
    static let title: UInt32 = 1 << 2  // Lt
    static let modifier: UInt32 = 1 << 3  // Lm
    static let otherLetter: UInt32 = 1 << 4  // Lo
    static let mark: UInt32 = 1 << 5  // M
    static let number: UInt32 = 1 << 6  // N
    static let punctuation: UInt32 = 1 << 7  // P
    static let symbol: UInt32 = 1 << 8  // S
    static let space: UInt32 = 1 << 9  // \s
    static let lineBreak: UInt32 = 1 << 10  // \r \n
    static let blank: UInt32 = 1 << 11  // U+0020
    static let slash: UInt32 = 1 << 12
    /// `$+<=>^~|`; the backtick has a separate flag.
    static let sign: UInt32 = 1 << 13
    static let backtick: UInt32 = 1 << 14
    static let asciiLetter: UInt32 = 1 << 15
    static let asciiPunctuation: UInt32 = 1 << 16
    static let asciiDigit: UInt32 = 1 << 17
    /// Ideographs and kana in DeepSeek's patterns; `wideCJK` is the wider range of its first models.
    static let kanji: UInt32 = 1 << 18
    static let wideCJK: UInt32 = 1 << 19
    /// Letters that are listed explicitly in the pattern of DeepSeek's first models.
    static let listedLetter: UInt32 = 1 << 20
    static let fullWidthPunctuation: UInt32 = 1 << 21
    static let bloomStop: UInt32 = 1 << 22
    static let other: UInt32 = 1 << 23
    static let all: UInt32 = (1 << 24) - 1

    static let letter = upper | lower | title | modifier | otherLetter

    static func flags(of scalar: UInt32) -> UInt32 {
        guard let unicode = Unicode.Scalar(scalar) else { return other }
        let properties = unicode.properties
        var flags: UInt32 =
            switch properties.generalCategory {
            case .uppercaseLetter: upper
            case .lowercaseLetter: lower
            case .titlecaseLetter: title
            case .modifierLetter: modifier
            case .otherLetter: otherLetter
            case .nonspacingMark, .spacingMark, .enclosingMark: mark
            case .decimalNumber, .letterNumber, .otherNumber: number
            case .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation, .initialPunctuation,
                .finalPunctuation, .otherPunctuation:
                punctuation
            case .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol: symbol
            default: other
            }
        if properties.isWhitespace { flags = flags & ~other | space }
        switch scalar {
        case 0x0A, 0x0D: flags |= lineBreak
        case 0x20: flags |= blank
        case 0x2F: flags |= slash
        case 0x60: flags |= backtick
        default: break
        }
        if "$+<=>^~|".unicodeScalars.contains(unicode) { flags |= sign }
        if scalar < 0x80 {
            if flags & letter != 0 { flags |= asciiLetter }
            if flags & number != 0 { flags |= asciiDigit }
            if flags & (punctuation | symbol) != 0 { flags |= asciiPunctuation }
        }
        if (0x4E00...0x9FA5).contains(scalar) || (0x3040...0x309F).contains(scalar) || (0x30A0...0x30FF).contains(scalar) {
            flags |= kanji
        }
        if (0x4E00...0x9FA5).contains(scalar) || (0x0800...0x4E00).contains(scalar) || (0xAC00...0xD7FF).contains(scalar) {
            flags |= wideCJK
        }
        if isListedLetter(scalar) { flags |= listedLetter }
        if (0xFF01...0xFF0F).contains(scalar) || (0xFF1A...0xFF5E).contains(scalar) || (0x2018...0x201F).contains(scalar)
            || (0x3000...0x3002).contains(scalar)
        {
            flags |= fullWidthPunctuation
        }
        // ` ?[^(\s|.,!?…。，、।۔،)]+`
        if "(|.,!?…。，、।۔،)".unicodeScalars.contains(unicode) { flags |= bloomStop }
        return flags
    }

    /// The letters listed in the pattern of `deepseek-llm`: Latin, Greek, Cyrillic, Armenian and their extensions.
    private static func isListedLetter(_ scalar: UInt32) -> Bool {
        let ranges: [ClosedRange<UInt32>] = [
            0x41...0x5A, 0x61...0x7A, 0xB5...0xB5, 0xC0...0xD6, 0xD8...0xF6, 0xF8...0x1BA, 0x1BC...0x1BF, 0x1C4...0x293,
            0x295...0x2AF, 0x370...0x373, 0x376...0x377, 0x37B...0x37D, 0x37F...0x37F, 0x386...0x386, 0x388...0x38A,
            0x38C...0x38C, 0x38E...0x3A1, 0x3A3...0x3F5, 0x3F7...0x481, 0x48A...0x52F, 0x531...0x556, 0x10A0...0x10C5,
            0x13A0...0x13F5, 0x13F8...0x13FD, 0x1C90...0x1CBA, 0x1CBD...0x1CBF, 0x1D00...0x1D2B, 0x1D6B...0x1D77,
            0x1D79...0x1D9A, 0x1E00...0x1F15, 0x1F18...0x1F1D, 0x1F20...0x1F45, 0x1F48...0x1F4D, 0x1F50...0x1F57,
            0x1F59...0x1F59, 0x1F5B...0x1F5B, 0x1F5D...0x1F5D, 0x1F5F...0x1F7D, 0x1F80...0x1FB4, 0x1FB6...0x1FBC,
            0x1FBE...0x1FBE, 0x1FC2...0x1FC4, 0x1FC6...0x1FCC, 0x1FD0...0x1FD3, 0x1FD6...0x1FDB, 0x1FE0...0x1FEC,
            0x1FF2...0x1FF4, 0x1FF6...0x1FFC, 0x2102...0x2102, 0x2107...0x2107, 0x210A...0x2113, 0x2115...0x2115,
            0x2119...0x211D, 0x2124...0x2124, 0x2126...0x2126, 0x2128...0x2128, 0x212A...0x212D, 0x212F...0x2134,
            0x2139...0x2139, 0x213C...0x213F, 0x2145...0x2149, 0x214E...0x214E, 0x2183...0x2184, 0x2C00...0x2C7B,
            0x2C7E...0x2CE4, 0x2CEB...0x2CEE, 0x2CF2...0x2CF3, 0xA640...0xA66D, 0xA680...0xA69B, 0xA722...0xA76F,
            0xA771...0xA787, 0xA78B...0xA78E, 0xAB70...0xABBF, 0xFB00...0xFB06, 0xFB13...0xFB17, 0xFF21...0xFF3A,
            0xFF41...0xFF5A, 0x10400...0x1044F, 0x104B0...0x104D3, 0x104D8...0x104FB, 0x10C80...0x10CB2,
            0x10CC0...0x10CF2, 0x118A0...0x118DF, 0x1E900...0x1E943,
        ]
        return ranges.contains { $0.contains(scalar) }
    }
}

/// The published patterns. Flags represent `\p{L}` and similar classes; runs of 0…1 represent `?`, runs of at least 1
/// `+`.
extension PiecePattern {
    private typealias F = CharacterFlags

    private static func one(_ include: UInt32, not exclude: UInt32 = 0) -> Element {
        .run(include: include, exclude: exclude, minimum: 1, maximum: 1)
    }
    private static func optional(_ include: UInt32, not exclude: UInt32 = 0) -> Element {
        .run(include: include, exclude: exclude, minimum: 0, maximum: 1)
    }
    private static func some(_ include: UInt32, not exclude: UInt32 = 0) -> Element {
        .run(include: include, exclude: exclude, minimum: 1, maximum: .max)
    }
    private static func any(_ include: UInt32, not exclude: UInt32 = 0) -> Element {
        .run(include: include, exclude: exclude, minimum: 0, maximum: .max)
    }
    private static func few(_ include: UInt32, _ maximum: Int) -> Element {
        .run(include: include, exclude: 0, minimum: 1, maximum: maximum)
    }

    /// Flags that only characters other than white space have.
    private static let visible = F.letter | F.mark | F.number | F.punctuation | F.symbol | F.other

    /// `\s+(?!\S)`, then `\s+`.
    private static let trailingSpace: [Element] = [some(F.space), .notBefore(visible)]

    static let gpt2 = PiecePattern(
        [.contraction(ignoringCase: false)], [optional(F.blank), some(F.letter)], [optional(F.blank), some(F.number)],
        [optional(F.blank), some(F.all, not: F.space | F.letter | F.number)], trailingSpace)

    static let digit = PiecePattern([one(F.number)])
    static let numbers = PiecePattern([some(F.number)])
    static let asciiTriples = PiecePattern([.run(include: F.asciiDigit, exclude: 0, minimum: 3, maximum: 3)])
    static let signs = PiecePattern([some(F.punctuation | F.sign)])
    static let signsAndBackticks = PiecePattern([some(F.punctuation | F.sign | F.backtick)])
    static let fewDigits = PiecePattern([few(F.number, 3)])
    static let digitTriples = PiecePattern([few(F.number, 3), .beforeTriples], [few(F.number, 3), .notBefore(F.number)])

    /// The Llama 3 family: contractions, words with one leading sign, numbers of up to `digits` digits, signs, white
    /// space. Line breaks after signs belong to them, but not in Seed's pattern.
    static func words(
        digits: Int, letters: UInt32 = F.letter, ignoringCase: Bool = true, breaksAfterSigns: Bool = true
    ) -> PiecePattern {
        let signs = [optional(F.blank), some(F.all, not: F.space | letters | F.number)]
        return PiecePattern(
            [.contraction(ignoringCase: ignoringCase)],
            [optional(F.all, not: F.lineBreak | F.letter | F.number), some(letters)],
            [few(F.number, digits)],
            breaksAfterSigns ? signs + [any(F.lineBreak)] : signs, [any(F.space), some(F.lineBreak)], trailingSpace,
            [some(F.space)])
    }

    /// The GPT-4o family: words are split where the case changes.
    static func cased(digits: Int, contractions: Bool) -> PiecePattern {
        let begins = F.upper | F.title | F.modifier | F.otherLetter | F.mark
        let ends = F.lower | F.modifier | F.otherLetter | F.mark
        let lead = optional(F.all, not: F.lineBreak | F.letter | F.number)
        let first: [Element] = [lead, any(begins), some(ends)]
        let second: [Element] = [lead, some(begins), any(ends)]
        let rest: [[Element]] = [
            [few(F.number, digits)],
            [
                optional(F.blank), some(F.all, not: F.space | F.letter | F.number), any(F.lineBreak | F.slash),
            ],
            [any(F.space), some(F.lineBreak)], trailingSpace, [some(F.space)],
        ]
        // A contraction belongs to the word before it. A shorter word cannot be followed by one: an apostrophe is in neither class.
        let end: [Element] = contractions ? [.optionalContraction] : []
        return PiecePattern(list: [first + end, second + end] + rest)
    }

    private init(list: [[Element]]) { alternatives = list }

    static let deepSeekWords = PiecePattern(
        [one(F.asciiPunctuation), some(F.asciiLetter)],
        [optional(F.all, not: F.lineBreak | F.letter | F.punctuation | F.symbol), some(F.letter | F.mark)],
        [optional(F.blank), some(F.punctuation | F.symbol), any(F.lineBreak)],
        [any(F.space), some(F.lineBreak)], trailingSpace, [some(F.space)])
    static let kanji = PiecePattern([some(F.kanji)])
    static let wideCJK = PiecePattern([some(F.wideCJK)])
    static let lineBreaks = PiecePattern([one(F.lineBreak)])
    static let spacedListedLetters = PiecePattern([optional(F.space), some(F.listedLetter)])
    static let spacedListedSigns = PiecePattern([optional(F.space), some(F.asciiPunctuation | F.fullWidthPunctuation)])
    static let finalSpace = PiecePattern([some(F.space), .notBefore(F.all)])
    static let spacedLetters = PiecePattern([optional(F.space), some(F.letter)])
    static let spacedPunctuation = PiecePattern([optional(F.space), some(F.punctuation)])
    static let bloom = PiecePattern([optional(F.blank), some(F.all, not: F.space | F.bloomStop)])
    static let words = PiecePattern([some(visible)])
}
