/// Splits text into words before byte-pair encoding, equivalent to the pattern that the vocabulary was trained with.
///
/// The published patterns are regular expressions. Here the most common ones are implemented as scanners, all others as
/// ``PiecePattern``, so that the time is linear for any input.
package struct PreTokenizer: Sendable, Equatable {
    /// The value of `tokenizer.ggml.pre`.
    package let name: String
    private let kind: Kind
    /// Whether a word that is a token is encoded as that token, without applying merges.
    let ignoresMerges: Bool
    /// Whether a beginning token is added if the file does not specify it.
    let addsBeginning: Bool

    private enum Kind: Equatable {
        case gpt2, smollm, llama(digits: Int)
        /// A key of `patterns`. The patterns are applied one after the other, each to the pieces that result from the
        /// previous ones.
        case patterns(String)
    }

    private static let gpt2Names: Set<String> = [
        "gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "a.x-4.0", "mellum",
        "modern-bert", "exaone4", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe",
    ]
    private static let digitNames: Set<String> = [
        "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2",
    ]
    private static let llamaNames: Set<String> = [
        "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano",
    ]
    private static let plainLlamaNames: Set<String> = ["dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "glm5"]
    private static let qwenNames: Set<String> = [
        "qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "solar-open", "megrez", "grok-2", "kormo", "f2llmv2",
    ]

    private static let patterns: [String: [PiecePattern]] = {
        let deepSeek: [PiecePattern] = [.fewDigits, .kanji, .deepSeekWords]
        let cased = [PiecePattern.cased(digits: 3, contractions: true)]
        let tekken = [PiecePattern.cased(digits: 1, contractions: false)]
        return [
            "default": [.signs, .gpt2, .numbers, .asciiTriples],
            "qwen35": [.words(digits: 1, letters: CharacterFlags.letter | CharacterFlags.mark)],
            "seed-coder": [.words(digits: 1, breaksAfterSigns: false)],
            "minicpm5": [.fewDigits, .words(digits: 3)],
            "gpt-4o": cased, "llama4": cased, "kanana2": cased, "minimax-m2": cased, "tekken": tekken,
            "tiny_aya": [.digitTriples] + cased, "cohere2moe": [.digitTriples] + cased,
            "deepseek-v3": deepSeek, "hunyuan-dense": deepSeek, "hy_v4": deepSeek, "joyai-llm": deepSeek,
            "deepseek-llm": [.lineBreaks, .spacedListedLetters, .spacedListedSigns, .finalSpace, .wideCJK, .numbers],
            "deepseek-coder": [.lineBreaks, .spacedLetters, .spacedPunctuation, .wideCJK, .digit],
            "falcon": [.signsAndBackticks, .gpt2, .asciiTriples],
            "viking": [.bloom, .digit], "poro-chat": [.bloom], "poro": [.bloom], "bloom": [.bloom], "gpt3-finnish": [.bloom],
            "superbpe": [.numbers, .digitTriples], "whitespace": [.words],
        ]
    }()

    /// All supported values of `tokenizer.ggml.pre`.
    package static var names: [String] {
        (gpt2Names.union(digitNames).union(llamaNames).union(plainLlamaNames).union(qwenNames).union(patterns.keys)).sorted()
    }

    /// Creates the pre-tokenizer for a value of `tokenizer.ggml.pre`.
    ///
    /// - Throws: ``ModelError/unsupported(field:value:supported:)`` if the name is unknown.
    package init(name: String) throws(ModelError) {
        self.name = name
        ignoresMerges =
            Self.llamaNames.contains(name) || ["tekken", "glm4", "glm5", "minicpm5"].contains(name)
        addsBeginning = Self.llamaNames.contains(name) || name == "tekken"
        if Self.gpt2Names.contains(name) {
            kind = .gpt2
        } else if Self.digitNames.contains(name) {
            kind = .smollm
        } else if Self.llamaNames.contains(name) || Self.plainLlamaNames.contains(name) {
            kind = .llama(digits: 3)
        } else if Self.qwenNames.contains(name) {
            kind = .llama(digits: 1)
        } else if Self.patterns[name] != nil {
            kind = .patterns(name)
        } else {
            throw .unsupported(field: "tokenizer.ggml.pre", value: name, supported: Self.names.joined(separator: ", "))
        }
    }

    /// Calls `body` with the byte range of each word of a text, in order.
    func forEachWord(in text: borrowing ClassifiedText, _ body: (Range<Int>) -> Void) {
        if case .patterns(let name) = kind {
            Self.cut(0..<text.count, Self.patterns[name, default: []][...], text, body)
            return
        }
        var start = 0
        while start < text.count {
            let end =
                switch kind {
                case .gpt2: Self.gpt2Word(text, start, digitsApart: false)
                case .smollm: Self.gpt2Word(text, start, digitsApart: true)
                case .llama(let digits): Self.llamaWord(text, start, digits: digits)
                case .patterns: text.count
                }
            body(start..<end)
            start = end
        }
    }

    /// Splits a range by the first pattern, and the resulting pieces by the other patterns. Text between two matches is
    /// one piece.
    private static func cut(
        _ range: Range<Int>, _ patterns: ArraySlice<PiecePattern>, _ text: borrowing ClassifiedText, _ body: (Range<Int>) -> Void
    ) {
        guard let pattern = patterns.first else { return body(range) }
        // Each range is matched as a separate text, so lookahead must not extend beyond it.
        let stretch = text.prefix(range.upperBound)
        var (gap, index) = (range.lowerBound, range.lowerBound)
        var digits = PiecePattern.DigitRun()
        while index < range.upperBound {
            if let end = pattern.match(stretch, index, &digits) {
                if gap < index { cut(gap..<index, patterns.dropFirst(), text, body) }
                cut(index..<end, patterns.dropFirst(), text, body)
                (gap, index) = (end, end)
            } else {
                index = pattern.next(after: index, stretch)
            }
        }
        if gap < range.upperBound { cut(gap..<range.upperBound, patterns.dropFirst(), text, body) }
    }

    #if DEBUG
    /// The number of characters that are looked at, repeatedly or not, to split a text. Tests compare texts of different lengths.
    package func steps(for text: String) -> Int {
        let bytes = Array(text.utf8)
        var classes = UnicodeClasses()
        var steps = 0
        bytes.withUnsafeBufferPointer { buffer in
            withUnsafePointer(to: &classes) { classes in
                withUnsafeMutablePointer(to: &steps) { steps in
                    var classified = ClassifiedText(bytes: buffer, classes: classes)
                    classified.steps = steps
                    forEachWord(in: classified) { _ in }
                }
            }
        }
        return steps
    }
    #endif

    /// All words of a text.
    package func words(of text: String) -> [String] {
        let bytes = Array(text.utf8)
        var classes = UnicodeClasses()
        return bytes.withUnsafeBufferPointer { buffer in
            withUnsafePointer(to: &classes) { classes in
                let classified = ClassifiedText(bytes: buffer, classes: classes)
                var words: [String] = []
                forEachWord(in: classified) { words.append(String(decoding: buffer[$0], as: UTF8.self)) }
                return words
            }
        }
    }

    private static func gpt2Word(_ text: borrowing ClassifiedText, _ start: Int, digitsApart: Bool) -> Int {
        let (first, firstEnd) = text.scalar(at: start)
        if digitsApart, first == .number { return firstEnd }
        if text.bytes[start] == UInt8(ascii: "'"), let end = contraction(text, start, caseInsensitive: false) { return end }
        // An optional space, then a run of one class.
        var (runClass, end) = (first, firstEnd)
        if text.bytes[start] == UInt8(ascii: " "), firstEnd < text.count {
            let (second, secondEnd) = text.scalar(at: firstEnd)
            if second != .space, !(digitsApart && second == .number) { (runClass, end) = (second, secondEnd) }
        }
        if runClass != .space { return text.runEnd(of: runClass, from: end) }
        return spaces(text, start) { digitsApart && $0 == .number }
    }

    private static func llamaWord(_ text: borrowing ClassifiedText, _ start: Int, digits: Int) -> Int {
        let byte = text.bytes[start]
        let (first, firstEnd) = text.scalar(at: start)
        if byte == UInt8(ascii: "'"), let end = contraction(text, start, caseInsensitive: true) { return end }
        // One character other than a line break, letter or number may precede a run of letters.
        let isBreak = isLineBreak(byte)
        if first == .letter { return text.runEnd(of: .letter, from: firstEnd) }
        if first != .number, !isBreak, firstEnd < text.count, text.scalar(at: firstEnd).0 == .letter {
            return text.runEnd(of: .letter, from: firstEnd)
        }
        if first == .number {
            var end = firstEnd
            var count = 1
            while count < digits, end < text.count, case let (next, nextEnd) = text.scalar(at: end), next == .number {
                end = nextEnd
                count += 1
            }
            return end
        }
        var symbols = start
        if byte == UInt8(ascii: " "), firstEnd < text.count, text.scalar(at: firstEnd).0 == .other { symbols = firstEnd }
        if text.scalar(at: symbols).0 == .other {
            var end = text.runEnd(of: .other, from: symbols)
            while end < text.count, isLineBreak(text.bytes[end]) { end += 1 }
            return end
        }
        // White space up to and including its last line break.
        let run = text.runEnd(of: .space, from: start)
        var lastBreak = run
        while lastBreak > start, !isLineBreak(text.bytes[lastBreak - 1]) { lastBreak -= 1 }
        if lastBreak > start { return lastBreak }
        return spaces(text, start) { _ in false }
    }

    private static func isLineBreak(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }

    /// `\s+(?!\S)|\s+`: the last character of a run of white space belongs to the following word, unless the run has
    /// only one character or is followed by the end of the text or by a character for which `endsText` returns true.
    private static func spaces(
        _ text: borrowing ClassifiedText, _ start: Int, endsText: (CharacterClass) -> Bool
    ) -> Int {
        let run = text.runEnd(of: .space, from: start)
        if run == text.count || endsText(text.scalar(at: run).0) { return run }
        var last = run - 1
        while last > start, text.bytes[last] & 0xC0 == 0x80 { last -= 1 }
        return last > start ? last : run
    }

    static func contraction(_ text: borrowing ClassifiedText, _ start: Int, caseInsensitive: Bool) -> Int? {
        func letter(_ offset: Int) -> UInt8 {
            guard start + offset < text.count else { return 0 }
            let byte = text.bytes[start + offset]
            return caseInsensitive && (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
        }
        switch (letter(1), letter(2)) {
        case (UInt8(ascii: "s"), _), (UInt8(ascii: "t"), _), (UInt8(ascii: "m"), _), (UInt8(ascii: "d"), _): return start + 2
        case (UInt8(ascii: "r"), UInt8(ascii: "e")), (UInt8(ascii: "v"), UInt8(ascii: "e")),
            (UInt8(ascii: "l"), UInt8(ascii: "l")):
            return start + 3
        default: return nil
        }
    }
}

/// UTF-8 text with the character class of each code point. A byte that does not begin a valid UTF-8 sequence counts as
/// one character of class `other`.
struct ClassifiedText: ~Copyable {
    let bytes: UnsafeBufferPointer<UInt8>
    private let classes: UnsafePointer<UnicodeClasses>
    #if DEBUG
    /// Incremented for each character that is looked at.
    var steps: UnsafeMutablePointer<Int>?
    #endif

    init(bytes: UnsafeBufferPointer<UInt8>, classes: UnsafePointer<UnicodeClasses>) {
        self.bytes = bytes
        self.classes = classes
    }

    var count: Int { bytes.count }

    /// The same text up to `end`.
    func prefix(_ end: Int) -> ClassifiedText {
        #if DEBUG
        var part = ClassifiedText(bytes: UnsafeBufferPointer(rebasing: bytes[..<end]), classes: classes)
        part.steps = steps
        return part
        #else
        return ClassifiedText(bytes: UnsafeBufferPointer(rebasing: bytes[..<end]), classes: classes)
        #endif
    }

    /// The class and the end index of the character at `index`.
    func scalar(at index: Int) -> (CharacterClass, Int) {
        let (codePoint, end) = codePoint(at: index)
        return (codePoint.map { classes.pointee($0) } ?? .other, end)
    }

    /// The ``CharacterFlags`` and the end index of the character at `index`.
    func flags(at index: Int) -> (flags: UInt32, end: Int) {
        let (codePoint, end) = codePoint(at: index)
        return (codePoint.map { classes.pointee.flags($0) } ?? CharacterFlags.other, end)
    }

    private func codePoint(at index: Int) -> (UInt32?, Int) {
        #if DEBUG
        steps?.pointee += 1
        #endif
        let first = UInt32(bytes[index])
        if first < 0x80 { return (first, index + 1) }
        func continuation(_ offset: Int) -> UInt32? {
            guard index + offset < bytes.count, bytes[index + offset] & 0xC0 == 0x80 else { return nil }
            return UInt32(bytes[index + offset] & 0x3F)
        }
        if first >= 0xC2, first < 0xE0, let a = continuation(1) {
            return ((first & 0x1F) << 6 | a, index + 2)
        }
        if first & 0xF0 == 0xE0, let a = continuation(1), let b = continuation(2) {
            return ((first & 0xF) << 12 | a << 6 | b, index + 3)
        }
        if first >= 0xF0, first < 0xF5, let a = continuation(1), let b = continuation(2), let c = continuation(3) {
            return ((first & 7) << 18 | a << 12 | b << 6 | c, index + 4)
        }
        return (nil, index + 1)
    }

    /// The end of the run of `wanted` that continues at `index`.
    func runEnd(of wanted: CharacterClass, from index: Int) -> Int {
        var end = index
        while end < bytes.count, case let (next, nextEnd) = scalar(at: end), next == wanted { end = nextEnd }
        return end
    }
}
