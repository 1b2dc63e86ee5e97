/// The text normalization of SentencePiece's Unigram vocabularies: characters are replaced according to the file's map;
/// where the file requires it, white space is merged to single spaces and a space is added before the first word.
struct UnigramText: Sendable {
    /// A double-array trie in the format of Darts (https://github.com/s-yata/darts-clone) that maps byte strings to
    /// offsets of replacements.
    private let units: [UInt32]
    /// Replacement strings, zero-terminated.
    private let replacements: [UInt8]
    private let mergesSpaces: Bool
    private let addsLeadingSpace: Bool

    init(file: GGUFFile, addsLeadingSpace: Bool) throws(ModelError) {
        self.addsLeadingSpace = addsLeadingSpace
        mergesSpaces = try file.metadata.bool("tokenizer.ggml.remove_extra_whitespaces") ?? false
        let key = "tokenizer.ggml.precompiled_charsmap"
        guard case .array(let array)? = try file.metadata.value(of: key), array.count > 0 else {
            (units, replacements) = ([], [])
            return
        }
        guard array.elementType == .uint8 || array.elementType == .int8 else {
            throw .invalid(field: key, reason: "is not an array of bytes")
        }
        let blob = file.values(of: array, as: UInt8.self)
        func word(_ index: Int) -> UInt32 { (0..<4).reduce(0) { $0 | UInt32(blob[index + $1]) << (8 * $1) } }
        guard blob.count >= 4, case let size = Int(word(0)), size <= blob.count - 4, size % 4 == 0 else {
            throw .invalid(field: key, reason: "is shorter than its stated length")
        }
        units = stride(from: 4, to: 4 + size, by: 4).map(word)
        replacements = Array(blob[(4 + size)...])
    }

    func callAsFunction(_ bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + 1)
        var (isInWord, hasStarted) = (false, false)
        var index = 0
        while index < bytes.count {
            let (text, length) = normalized(bytes, index)
            index += length
            for byte in text {
                // Spaces in replacements are treated like spaces in the text.
                if byte == 0x20 {
                    isInWord = false
                    if !mergesSpaces { output.append(0x20) }
                } else {
                    if !isInWord, mergesSpaces || addsLeadingSpace && !hasStarted { output.append(0x20) }
                    (isInWord, hasStarted) = (true, true)
                    output.append(byte)
                }
            }
        }
        return output
    }

    /// The replacement of the longest mapped string at `start`, or else the character itself; and the number of bytes
    /// consumed.
    private func normalized(_ bytes: [UInt8], _ start: Int) -> (ArraySlice<UInt8>, Int) {
        var node: UInt32 = units.isEmpty ? 0 : base(units[0])
        var (length, place) = (0, 0)
        var index = start
        while index < bytes.count, !units.isEmpty {
            node ^= UInt32(bytes[index])
            guard node < units.count, case let unit = units[Int(node)], unit & 0x8000_00FF == UInt32(bytes[index]) else { break }
            node ^= base(unit)
            index += 1
            if unit >> 8 & 1 == 1 {
                guard node < units.count else { break }
                (length, place) = (index - start, Int(units[Int(node)] & 0x7FFF_FFFF))
            }
        }
        if length > 0, place < replacements.count {
            return (replacements[place...].prefix { $0 != 0 }, length)
        }
        let end = bytes.withUnsafeBufferPointer { UTF8Length.end(of: start, in: $0) }
        let character = bytes[start..<end]
        if end - start == 1, bytes[start] >= 0x80 { return ([0xEF, 0xBF, 0xBD], 1) }  // not UTF-8: U+FFFD
        return (character, end - start)
    }

    private func base(_ unit: UInt32) -> UInt32 { (unit >> 10) << ((unit & 0x200) >> 6) }
}

/// Unigram (Kudo, arXiv:1804.10959): finds the segmentation of a word into tokens with the maximum sum of scores.
struct UnigramEncoder {
    /// The last token of the best segmentation up to a position in the word.
    private struct Step { var score: Double, token: TokenID, start: Int32 }

    private var steps: [Step] = []
    private var path: [TokenID] = []

    /// Appends the tokens of `word`.
    mutating func encode(_ word: UnsafeBufferPointer<UInt8>, with vocabulary: Vocabulary, into output: inout [TokenID]) {
        let unknown = vocabulary.unknownToken ?? 0
        steps.removeAll(keepingCapacity: true)
        steps.append(contentsOf: repeatElement(Step(score: -.infinity, token: unknown, start: 0), count: word.count + 1))
        steps[0].score = 0
        var start = 0
        while start < word.count {
            let score = steps[start].score
            let character = UTF8Length.end(of: start, in: word)
            var coversCharacter = false
            vocabulary.pieces.forEachToken(from: start, in: word) { (token, end) in
                coversCharacter = coversCharacter || end == character
                let sum = score + Double(vocabulary.scores[Int(token)])
                if sum > steps[end].score { steps[end] = Step(score: sum, token: token, start: Int32(start)) }
            }
            if !coversCharacter, case let sum = score + vocabulary.unknownScore, sum > steps[character].score {
                steps[character] = Step(score: sum, token: unknown, start: Int32(start))
            }
            start = character
        }
        path.removeAll(keepingCapacity: true)
        var end = word.count
        while end > 0 {
            // Adjacent unknown tokens are merged into one.
            if steps[end].token != unknown || path.last != unknown { path.append(steps[end].token) }
            end = Int(steps[end].start)
        }
        output.append(contentsOf: path.reversed())
    }
}
