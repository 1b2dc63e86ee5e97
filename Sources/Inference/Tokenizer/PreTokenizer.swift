/// Cuts text into words before byte-pair encoding, as the pattern that a vocabulary was trained with does.
///
/// The published patterns are regular expressions; these are the same as scanners, so that time is linear whatever the
/// input.
package enum PreTokenizer: String, CaseIterable, Sendable {
    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    case gpt2 = "gpt-2"
    /// `\p{N}` first: digits stand alone, and the text between them is cut as by `gpt2`, each stretch for itself.
    case smollm
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    case llamaBPE = "llama-bpe"
    /// As `llama-bpe`, with single digits.
    case qwen2

    /// The pre-tokenizer for the value of `tokenizer.ggml.pre`.
    init(name: String) throws(ModelError) {
        switch name {
        case "gpt-2", "gpt2": self = .gpt2
        case "smollm": self = .smollm
        case "llama-bpe", "llama3", "llama-v3": self = .llamaBPE
        case "qwen2": self = .qwen2
        default:
            throw .unsupported(
                field: "tokenizer.ggml.pre", value: name, supported: Self.allCases.map(\.rawValue).joined(separator: ", "))
        }
    }

    /// The end of the word that starts at `start`, which is before the end of the text.
    func wordEnd(in text: borrowing ClassifiedText, from start: Int) -> Int {
        switch self {
        case .gpt2: Self.gpt2Word(text, start, digitsApart: false)
        case .smollm: Self.gpt2Word(text, start, digitsApart: true)
        case .llamaBPE: Self.llamaWord(text, start, digits: 3)
        case .qwen2: Self.llamaWord(text, start, digits: 1)
        }
    }

    /// All words of a text.
    package func words(of text: String) -> [String] {
        let bytes = Array(text.utf8)
        var classes = UnicodeClasses()
        return bytes.withUnsafeBufferPointer { buffer in
            withUnsafePointer(to: &classes) { classes in
                let classified = ClassifiedText(bytes: buffer, classes: classes)
                var words: [String] = []
                var start = 0
                while start < buffer.count {
                    let end = wordEnd(in: classified, from: start)
                    words.append(String(decoding: buffer[start..<end], as: UTF8.self))
                    start = end
                }
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
        // One character that is no line break, letter or number may lead a run of letters.
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

    /// `\s+(?!\S)|\s+`: a run of white space leaves its last character to the word that follows, unless it is alone or
    /// what follows counts as the end of the text.
    private static func spaces(
        _ text: borrowing ClassifiedText, _ start: Int, endsText: (CharacterClass) -> Bool
    ) -> Int {
        let run = text.runEnd(of: .space, from: start)
        if run == text.count || endsText(text.scalar(at: run).0) { return run }
        var last = run - 1
        while last > start, text.bytes[last] & 0xC0 == 0x80 { last -= 1 }
        return last > start ? last : run
    }

    private static func contraction(_ text: borrowing ClassifiedText, _ start: Int, caseInsensitive: Bool) -> Int? {
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

/// Text as bytes, read as classified code points. A byte that does not begin a valid UTF-8 sequence counts as one
/// character of class `other`.
struct ClassifiedText: ~Copyable {
    let bytes: UnsafeBufferPointer<UInt8>
    private let classes: UnsafePointer<UnicodeClasses>

    init(bytes: UnsafeBufferPointer<UInt8>, classes: UnsafePointer<UnicodeClasses>) {
        self.bytes = bytes
        self.classes = classes
    }

    var count: Int { bytes.count }

    /// The class of the character at `index` and where it ends.
    func scalar(at index: Int) -> (CharacterClass, Int) {
        let first = UInt32(bytes[index])
        if first < 0x80 { return (classes.pointee(first), index + 1) }
        func continuation(_ offset: Int) -> UInt32? {
            guard index + offset < bytes.count, bytes[index + offset] & 0xC0 == 0x80 else { return nil }
            return UInt32(bytes[index + offset] & 0x3F)
        }
        if first >= 0xC2, first < 0xE0, let a = continuation(1) {
            return (classes.pointee((first & 0x1F) << 6 | a), index + 2)
        }
        if first & 0xF0 == 0xE0, let a = continuation(1), let b = continuation(2) {
            return (classes.pointee((first & 0xF) << 12 | a << 6 | b), index + 3)
        }
        if first >= 0xF0, first < 0xF5, let a = continuation(1), let b = continuation(2), let c = continuation(3) {
            return (classes.pointee((first & 7) << 18 | a << 12 | b << 6 | c), index + 4)
        }
        return (.other, index + 1)
    }

    /// The end of the run of `wanted` that continues at `index`.
    func runEnd(of wanted: CharacterClass, from index: Int) -> Int {
        var end = index
        while end < bytes.count, case let (next, nextEnd) = scalar(at: end), next == wanted { end = nextEnd }
        return end
    }
}
