/// Identifies a token of a vocabulary.
package typealias TokenID = Int32

/// A vocabulary of any kind: the bytes of every token, and hash tables that find a token by its bytes or by the pair of
/// tokens that it is merged from.
///
/// Built once per model directly from the file's bytes, without creating a `String` per token.
package final class Vocabulary: Sendable {
    package enum Kind: UInt8, Sendable {
        case normal = 1, unknown, control, userDefined, unused, byte
    }

    package let count: Int
    private let offsets: [UInt32]
    private let arena: [UInt8]
    private let kinds: [UInt8]
    /// Hash table with open addressing, by token bytes; -1 is an empty slot.
    private let slots: [TokenID]
    /// Hash table with open addressing, by `left << 32 | right`.
    private let mergeKeys: [UInt64]
    private let mergeValues: [Merge]

    struct Merge { var rank: UInt32, result: TokenID }

    /// The token of each single byte, or -1: vocabularies that were built from text lack control characters and bytes
    /// that do not occur in valid UTF-8. Encoding omits such bytes, as the reference implementation does.
    let byteTokens: [TokenID]
    /// Control and user-defined tokens, longest first; text is split at them before it is split into words.
    let specialTokens: [TokenID]
    /// The special tokens by their first byte, longest first; the second table contains only those that are recognised
    /// in any text.
    let specialsByFirstByte: [[TokenID]]
    let openSpecialsByFirstByte: [[TokenID]]
    /// The tokenization algorithm of the vocabulary.
    package let model: Model
    /// The score of each token (SPM, Unigram); empty if the algorithm has none.
    let scores: [Float]
    /// The token for characters that are not in the vocabulary and have no byte tokens.
    let unknownToken: TokenID?
    /// For each byte, whether some token contains it directly before a space. After other bytes, text can be split
    /// before a space without changing its tokens.
    let precedesSpace: [Bool]
    /// The length of the longest normal token in bytes.
    let longestToken: Int
    /// Unigram: the score of a character without a token. WordPiece and Unigram: the normal tokens as a trie.
    let unknownScore: Double
    let pieces: PieceTrie

    /// Tokenization algorithms; raw values are the names in `tokenizer.ggml.model`.
    package enum Model: String, CaseIterable, Sendable {
        /// Byte-level BPE.
        case gpt2
        /// SentencePiece BPE: adjacent pairs are merged in the order of the score of the merged token.
        case llama
        /// BPE over characters, with U+2581 for spaces as in SentencePiece.
        case gemma4
        /// WordPiece.
        case bert
        /// Unigram.
        case t5

        /// The unknown token in files that do not specify it.
        var defaultUnknownToken: TokenID? {
            switch self {
            case .gpt2, .gemma4: nil
            case .llama: 0
            case .bert: 100
            case .t5: 2
            }
        }

        /// The beginning and end tokens in files that do not specify them.
        var defaultBoundaryTokens: (beginning: Int?, end: Int?) {
            switch self {
            case .gpt2, .gemma4: (nil, nil)
            case .llama: (1, 2)
            case .bert: (101, 102)
            case .t5: (nil, 1)
            }
        }
    }

    /// U+2581, which represents a space in SentencePiece vocabularies.
    static let mark: [UInt8] = [0xE2, 0x96, 0x81]

    init(file: GGUFFile) throws(ModelError) {
        guard let name = try file.metadata.string("tokenizer.ggml.model") else { throw .missing("tokenizer.ggml.model") }
        guard let model = Model(rawValue: name) else {
            throw .unsupported(
                field: "tokenizer.ggml.model", value: name, supported: Model.allCases.map(\.rawValue).joined(separator: ", "))
        }
        self.model = model
        guard let tokens = try file.metadata.array("tokenizer.ggml.tokens", of: .string) else {
            throw .missing("tokenizer.ggml.tokens")
        }
        guard tokens.count > 0, tokens.count <= 1 << 22 else {
            throw .invalid(field: "tokenizer.ggml.tokens", reason: "has \(tokens.count) elements")
        }
        var kinds = [UInt8](repeating: Kind.normal.rawValue, count: tokens.count)
        if let types = try file.metadata.array("tokenizer.ggml.token_type", of: .int32) {
            guard types.count == tokens.count else {
                throw .invalid(
                    field: "tokenizer.ggml.token_type", reason: "has \(types.count) elements for \(tokens.count) tokens")
            }
            for (index, type) in file.values(of: types, as: Int32.self).enumerated() {
                guard let raw = UInt8(exactly: type), Kind(rawValue: raw) != nil else {
                    throw .invalid(field: "tokenizer.ggml.token_type", reason: "has the type \(type) at \(index)")
                }
                kinds[index] = raw
            }
        }

        var offsets: [UInt32] = [0]
        offsets.reserveCapacity(tokens.count + 1)
        var arena: [UInt8] = []
        arena.reserveCapacity(tokens.count * 8)
        var unreachable: Set<Int> = []
        try file.forEachString(in: tokens) { (index, bytes) throws(ModelError) in
            // In GPT-2 vocabularies, special tokens are plain text; all others encode their bytes in GPT-2's printable
            // alphabet. In other vocabularies, a byte token is written “<0xAB>”.
            if model != .gpt2 {
                if kinds[index] == Kind.byte.rawValue, let byte = Self.byteValue(bytes) {
                    arena.append(byte)
                } else {
                    Self.appendWithSpaces(bytes, to: &arena)
                }
                guard arena.count < 1 << 31 else { throw .invalid(field: "tokenizer.ggml.tokens", reason: "is too long") }
                offsets.append(UInt32(arena.count))
                return
            }
            let plain = kinds[index] == Kind.control.rawValue || kinds[index] == Kind.userDefined.rawValue
            if plain || !Self.appendDecoded(bytes, to: &arena) {
                arena.append(contentsOf: bytes)
                // A token with characters outside the alphabet is decoded as text, but never results from encoding.
                if !plain { unreachable.insert(index) }
            }
            guard arena.count < 1 << 31 else { throw .invalid(field: "tokenizer.ggml.tokens", reason: "is too long") }
            offsets.append(UInt32(arena.count))
        }
        let bits = Self.tableBits(for: tokens.count)
        var slots = [TokenID](repeating: -1, count: 1 << bits)
        for index in 0..<tokens.count where offsets[index] < offsets[index + 1] {
            // Encoding never produces unused and unknown tokens, and special ones only from template text.
            // Byte tokens of vocabularies other than GPT-2's are found with `byteTokens`, if no other token matches.
            guard kinds[index] == Kind.normal.rawValue || kinds[index] == Kind.byte.rawValue && model == .gpt2 else { continue }
            if unreachable.contains(index) { continue }
            let range = Int(offsets[index])..<Int(offsets[index + 1])
            var slot = arena.withUnsafeBufferPointer { Self.hash(UnsafeBufferPointer(rebasing: $0[range])) } >> (64 - bits)
            var isKnown = false
            while slots[Int(slot)] >= 0, !isKnown {
                let other = Int(slots[Int(slot)])
                let bytes = Int(offsets[other])..<Int(offsets[other + 1])
                isKnown = bytes.count == range.count && arena[bytes].elementsEqual(arena[range])
                slot = (slot + 1) & (1 << bits - 1)
            }
            // Of several tokens with equal bytes the first is found.
            if !isKnown { slots[Int(slot)] = TokenID(index) }
        }
        (count, self.offsets, self.arena, self.kinds, self.slots) = (tokens.count, offsets, arena, kinds, slots)

        func find(_ bytes: UnsafeBufferPointer<UInt8>) -> TokenID? {
            Self.find(bytes, slots: slots, bits: bits, offsets: offsets, arena: arena)
        }
        if model == .gpt2 {
            byteTokens = (0..<256).map { byte in
                withUnsafePointer(to: UInt8(byte)) { find(UnsafeBufferPointer(start: $0, count: 1)) ?? -1 }
            }
        } else {
            var byteTokens = [TokenID](repeating: -1, count: 256)
            for index in 0..<tokens.count
            where kinds[index] == Kind.byte.rawValue && offsets[index + 1] - offsets[index] == 1 {
                byteTokens[Int(arena[Int(offsets[index])])] = TokenID(index)
            }
            self.byteTokens = byteTokens
        }
        var scores: [Float] = []
        if let array = try file.metadata.array("tokenizer.ggml.scores", of: .float32), array.count == tokens.count {
            scores = file.values(of: array, as: Float.self).map { $0.isNaN ? -.infinity : $0 }
        } else if model == .llama || model == .t5 {
            // Without scores, earlier tokens take precedence.
            scores = (0..<tokens.count).map { -Float($0) }
        }
        self.scores = scores
        unknownToken =
            try file.metadata.integer("tokenizer.ggml.unknown_token_id", in: 0...tokens.count - 1).map { TokenID($0) }
            ?? model.defaultUnknownToken.flatMap { Int($0) < tokens.count ? $0 : nil }
        var longest = 0
        var beforeSpace = [Bool](repeating: false, count: 256)
        for index in 0..<tokens.count where kinds[index] == Kind.normal.rawValue {
            let range = Int(offsets[index])..<Int(offsets[index + 1])
            longest = max(longest, range.count)
            for place in range.dropFirst() where arena[place] == 0x20 && arena[place - 1] != 0x20 {
                beforeSpace[Int(arena[place - 1])] = true
            }
        }
        (longestToken, precedesSpace) = (longest, beforeSpace)
        unknownScore = Double(scores.min() ?? 0) - 10
        let known =
            model == .t5 || model == .bert
            ? (0..<tokens.count).filter { kinds[$0] == Kind.normal.rawValue && offsets[$0] < offsets[$0 + 1] } : []
        pieces = PieceTrie(known.map { TokenID($0) }) { arena[Int(offsets[Int($0)])..<Int(offsets[Int($0) + 1])] }
        var special: [Int] = []
        for index in 0..<tokens.count where offsets[index] < offsets[index + 1] {
            if kinds[index] == Kind.control.rawValue || kinds[index] == Kind.userDefined.rawValue { special.append(index) }
        }
        special.sort { offsets[$0 + 1] - offsets[$0] > offsets[$1 + 1] - offsets[$1] }
        specialTokens = special.map { TokenID($0) }
        var byFirst = [[TokenID]](repeating: [], count: 256)
        var openByFirst = byFirst
        for index in special {
            let text = arena[Int(offsets[index])..<Int(offsets[index + 1])]
            guard let first = text.first, let last = text.last else { continue }
            byFirst[Int(first)].append(TokenID(index))
            // Marks such as <tool_call> are recognised in templates only; line breaks, spaces and the like in any text.
            let isMark =
                [UInt8(ascii: "<"), UInt8(ascii: "[")].contains(first) && [UInt8(ascii: ">"), UInt8(ascii: "]")].contains(last)
            if kinds[index] == Kind.userDefined.rawValue, !isMark { openByFirst[Int(first)].append(TokenID(index)) }
        }
        specialsByFirstByte = byFirst
        openSpecialsByFirstByte = openByFirst

        guard model == .gpt2 || model == .gemma4 else {
            (mergeKeys, mergeValues) = ([.max], [Merge(rank: 0, result: 0)])
            return
        }
        guard let merges = try file.metadata.array("tokenizer.ggml.merges", of: .string) else {
            throw .missing("tokenizer.ggml.merges")
        }
        let mergeBits = Self.tableBits(for: merges.count)
        var keys = [UInt64](repeating: .max, count: 1 << mergeBits)
        var values = [Merge](repeating: Merge(rank: 0, result: 0), count: 1 << mergeBits)
        func insert(_ left: TokenID, _ right: TokenID, _ whole: TokenID, rank: Int) {
            let key = UInt64(UInt32(bitPattern: left)) << 32 | UInt64(UInt32(bitPattern: right))
            var slot = Self.mix(key) >> (64 - mergeBits)
            while keys[Int(slot)] != .max {
                if keys[Int(slot)] == key { return }  // the lower rank takes precedence
                slot = (slot + 1) & (1 << mergeBits - 1)
            }
            keys[Int(slot)] = key
            values[Int(slot)] = Merge(rank: UInt32(rank), result: whole)
        }
        var pair: [UInt8] = []
        try file.forEachString(in: merges) { (rank, bytes) throws(ModelError) in
            // The first character of the left part may itself be a space.
            guard let space = bytes.dropFirst().firstIndex(of: UInt8(ascii: " ")) else {
                throw .invalid(field: "tokenizer.ggml.merges", reason: "has no space in element \(rank)")
            }
            pair.removeAll(keepingCapacity: true)
            var middle = 0
            for part in [bytes[..<space], bytes[(space + 1)...]] {
                middle = pair.count
                let part = UnsafeRawBufferPointer(rebasing: part)
                if model == .gemma4 {
                    Self.appendWithSpaces(part, to: &pair)
                } else if !Self.appendDecoded(part, to: &pair) {
                    throw .invalid(
                        field: "tokenizer.ggml.merges", reason: "has a character outside the byte alphabet in element \(rank)")
                }
            }
            // A merge whose parts or result are not tokens can never be applied.
            let ids: (TokenID, TokenID, TokenID)? = pair.withUnsafeBufferPointer { all in
                guard let left = find(UnsafeBufferPointer(rebasing: all[..<middle])),
                    let right = find(UnsafeBufferPointer(rebasing: all[middle...])), let whole = find(all)
                else { return nil }
                return (left, right, whole)
            }
            if let (left, right, whole) = ids { insert(left, right, whole, rank: rank) }
        }
        mergeKeys = keys
        mergeValues = values
    }

    /// Parses a byte token such as `<0xAB>`.
    private static func byteValue(_ text: UnsafeRawBufferPointer) -> UInt8? {
        guard text.count == 6, text[0] == UInt8(ascii: "<") else { return nil }
        return UInt8(String(decoding: text[3..<5], as: UTF8.self), radix: 16)
    }

    /// Appends text with each U+2581 replaced by a space.
    private static func appendWithSpaces(_ text: UnsafeRawBufferPointer, to output: inout [UInt8]) {
        var index = 0
        while index < text.count {
            if index + 2 < text.count, text[index] == mark[0], text[index + 1] == mark[1], text[index + 2] == mark[2] {
                output.append(0x20)
                index += 3
            } else {
                output.append(text[index])
                index += 1
            }
        }
    }

    // MARK: - Look-up

    /// Whether any special token is recognised in all text.
    var hasOpenSpecials: Bool { openSpecialsByFirstByte.contains { !$0.isEmpty } }

    package func kind(of token: TokenID) -> Kind { Kind(rawValue: kinds[Int(token)]) ?? .normal }

    /// The bytes that a token represents; for special tokens, the text of their name.
    package func bytes(of token: TokenID) -> ArraySlice<UInt8> {
        arena[Int(offsets[Int(token)])..<Int(offsets[Int(token) + 1])]
    }

    /// The normal token with exactly these bytes.
    func token(for bytes: UnsafeBufferPointer<UInt8>) -> TokenID? {
        Self.find(bytes, slots: slots, bits: slots.count.trailingZeroBitCount, offsets: offsets, arena: arena)
    }

    /// The special token with this name, such as `<|im_end|>`.
    package func specialToken(named name: String) -> TokenID? {
        let utf8 = Array(name.utf8)
        guard let first = utf8.first else { return nil }
        return specialsByFirstByte[Int(first)].first { bytes(of: $0).elementsEqual(utf8) }
    }

    /// The merge of two adjacent tokens; nil if there is none.
    func merge(_ left: TokenID, _ right: TokenID) -> Merge? {
        let key = UInt64(UInt32(bitPattern: left)) << 32 | UInt64(UInt32(bitPattern: right))
        let mask = UInt64(mergeKeys.count - 1)
        var slot = Self.mix(key) >> UInt64(64 - mergeKeys.count.trailingZeroBitCount)
        while mergeKeys[Int(slot)] != .max {
            if mergeKeys[Int(slot)] == key { return mergeValues[Int(slot)] }
            slot = (slot + 1) & mask
        }
        return nil
    }

    private static func find(
        _ bytes: UnsafeBufferPointer<UInt8>, slots: [TokenID], bits: Int, offsets: [UInt32], arena: [UInt8]
    ) -> TokenID? {
        var slot = hash(bytes) >> UInt64(64 - bits)
        while slots[Int(slot)] >= 0 {
            let id = Int(slots[Int(slot)])
            let start = Int(offsets[id])
            if Int(offsets[id + 1]) - start == bytes.count,
                arena.withUnsafeBufferPointer({ memcmpEqual($0, start, bytes) })
            {
                return TokenID(id)
            }
            slot = (slot + 1) & UInt64(slots.count - 1)
        }
        return nil
    }

    private static func memcmpEqual(_ arena: UnsafeBufferPointer<UInt8>, _ start: Int, _ bytes: UnsafeBufferPointer<UInt8>)
        -> Bool
    {
        for i in 0..<bytes.count where arena[start + i] != bytes[i] { return false }
        return true
    }

    // MARK: - Hashing

    /// The base-2 logarithm of the number of slots, which is a power of two greater than twice the number of items, at
    /// least 16.
    private static func tableBits(for count: Int) -> Int { max(4, Int.bitWidth - (count * 2).leadingZeroBitCount) }

    static func mix(_ key: UInt64) -> UInt64 {
        let product = (key ^ key >> 32) &* 0x9E37_79B9_7F4A_7C15
        return (product ^ product >> 29) &* 0xBF58_476D_1CE4_E5B9
    }

    static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
        var hash: UInt64 = UInt64(bytes.count)
        var index = 0
        let raw = UnsafeRawBufferPointer(bytes)
        while index + 8 <= raw.count {
            hash = mix(hash ^ raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index += 8
        }
        var tail: UInt64 = 0
        while index < raw.count {
            tail = tail << 8 | UInt64(raw[index])
            index += 1
        }
        return mix(hash ^ tail &* 0x2545_F491_4F6C_DD1D)
    }

    // MARK: - GPT-2's byte alphabet

    /// GPT-2 represents each byte by a printable character: the same code point if it is printable, else the next
    /// unused one from U+0100 on.
    private static let byteOfCharacter: [Int16] = {
        var table = [Int16](repeating: -1, count: 0x144)
        var next = 0x100
        for byte in 0..<256 {
            let printable = (0x21...0x7E).contains(byte) || (0xA1...0xAC).contains(byte) || (0xAE...0xFF).contains(byte)
            table[printable ? byte : next] = Int16(byte)
            if !printable { next += 1 }
        }
        return table
    }()

    /// Appends the bytes that `text` (UTF-8) represents in the byte alphabet. If it contains other characters, appends
    /// nothing and returns false.
    private static func appendDecoded(_ text: UnsafeRawBufferPointer, to output: inout [UInt8]) -> Bool {
        let start = output.count
        return byteOfCharacter.withUnsafeBufferPointer { table in
            var index = 0
            while index < text.count {
                var codePoint = Int(text[index])
                index += 1
                if codePoint >= 0x80 {
                    guard codePoint >= 0xC2, codePoint < 0xE0, index < text.count, text[index] & 0xC0 == 0x80 else {
                        output.removeLast(output.count - start)
                        return false
                    }
                    codePoint = (codePoint & 0x1F) << 6 | Int(text[index] & 0x3F)
                    index += 1
                }
                guard codePoint < table.count, table[codePoint] >= 0 else {
                    output.removeLast(output.count - start)
                    return false
                }
                output.append(UInt8(table[codePoint]))
            }
            return true
        }
    }
}
