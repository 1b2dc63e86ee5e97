/// The bytes of all tokens, and a hash table that finds a token by them.
struct TokenTexts: Sendable {
    /// The token `i` has the bytes from `offsets[i]` to `offsets[i + 1]` of `arena`.
    let offsets: [UInt32]
    let arena: [UInt8]
    /// Open addressing, by token bytes; -1 is an empty slot.
    private let slots: [TokenID]
    private let bits: Int

    /// - Parameter kinds: of the tokens: raw values of ``Vocabulary/Kind``.
    init(file: GGUFFile, tokens: GGUFArray, kinds: [UInt8], model: Vocabulary.Model) throws(ModelError) {
        typealias Kind = Vocabulary.Kind
        guard tokens.range.count < 1 << 31 else { throw .invalid(field: "tokenizer.ggml.tokens", reason: "is too long") }
        var offsets = [UInt32](repeating: 0, count: tokens.count + 1)
        var arena = [UInt8](repeating: 0, count: tokens.range.count)
        var unreachable: Set<Int> = []
        let decoder = TokenDecoder(model: model)
        var end = 0
        // In GPT-2 vocabularies, special tokens are plain text; all others encode their bytes in GPT-2's printable alphabet. In other
        // vocabularies, a byte token is written “<0xAB>”.
        try arena.withUnsafeMutableBufferPointer { arena throws(ModelError) in
            try file.forEachString(in: tokens) { (index, text) throws(ModelError) in
                let output = UnsafeMutableBufferPointer(rebasing: arena[end...])
                let isPlain = kinds[index] == Kind.control.rawValue || kinds[index] == Kind.userDefined.rawValue
                if model != .gpt2, kinds[index] == Kind.byte.rawValue, let byte = Self.byteValue(text) {
                    output[0] = byte
                    end += 1
                } else if model != .gpt2 || !isPlain, let count = decoder.decode(text, to: output) {
                    end += count
                } else {
                    for (place, byte) in text.enumerated() { output[place] = byte }
                    end += text.count
                    // A token with characters outside the alphabet is decoded as text, but never results from encoding.
                    if !isPlain { unreachable.insert(index) }
                }
                offsets[index + 1] = UInt32(end)
            }
        }
        arena.removeLast(arena.count - end)
        (self.offsets, self.arena) = (offsets, arena)

        let bits = tableBits(for: tokens.count)
        var slots = [TokenID](repeating: -1, count: 1 << bits)
        for index in 0..<tokens.count where offsets[index] < offsets[index + 1] {
            // Encoding never produces unused and unknown tokens, and special ones only from template text.
            // Byte tokens of vocabularies other than GPT-2's are found with `byteTokens`, if no other token matches.
            guard kinds[index] == Kind.normal.rawValue || kinds[index] == Kind.byte.rawValue && model == .gpt2 else { continue }
            if !unreachable.isEmpty, unreachable.contains(index) { continue }
            arena.withUnsafeBufferPointer { arena in
                let text = UnsafeBufferPointer(rebasing: arena[Int(offsets[index])..<Int(offsets[index + 1])])
                // Of several tokens with equal bytes the first is found.
                let slot = Self.slot(of: text, in: slots, bits: bits, offsets: offsets, arena: arena)
                if slots[slot] < 0 { slots[slot] = TokenID(index) }
            }
        }
        (self.slots, self.bits) = (slots, bits)
    }

    func bytes(of token: TokenID) -> ArraySlice<UInt8> { arena[Int(offsets[Int(token)])..<Int(offsets[Int(token) + 1])] }

    func find(_ bytes: UnsafeBufferPointer<UInt8>) -> TokenID? {
        let slot = arena.withUnsafeBufferPointer { Self.slot(of: bytes, in: slots, bits: bits, offsets: offsets, arena: $0) }
        return slots[slot] < 0 ? nil : slots[slot]
    }

    /// The slot of the token with these bytes, or the empty slot where it belongs.
    private static func slot(
        of bytes: UnsafeBufferPointer<UInt8>, in slots: [TokenID], bits: Int, offsets: [UInt32], arena: UnsafeBufferPointer<UInt8>
    ) -> Int {
        var slot = Int(hash(bytes) >> UInt64(64 - bits))
        while slots[slot] >= 0 {
            let token = Int(slots[slot]), start = Int(offsets[token])
            if Int(offsets[token + 1]) - start == bytes.count {
                var place = 0
                while place < bytes.count, arena[start + place] == bytes[place] { place += 1 }
                if place == bytes.count { return slot }
            }
            slot = (slot + 1) & (1 << bits - 1)
        }
        return slot
    }

    private static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
        var hash = UInt64(bytes.count)
        var index = 0
        let raw = UnsafeRawBufferPointer(bytes)
        while index + 8 <= raw.count {
            hash = mixedHash(hash ^ raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index += 8
        }
        var tail: UInt64 = 0
        while index < raw.count {
            tail = tail << 8 | UInt64(raw[index])
            index += 1
        }
        return mixedHash(hash ^ tail &* 0x2545_F491_4F6C_DD1D)
    }

    /// Parses a byte token such as `<0xAB>`.
    private static func byteValue(_ text: UnsafeRawBufferPointer) -> UInt8? {
        guard text.count == 6, text[0] == UInt8(ascii: "<") else { return nil }
        return UInt8(String(decoding: text[3..<5], as: UTF8.self), radix: 16)
    }
}

/// The merges of a BPE vocabulary, by the pair of tokens that is merged. Empty for vocabularies of other kinds.
struct MergeTable: Sendable {
    struct Merge { var rank: UInt32, result: TokenID }

    /// Open addressing, by `left << 32 | right`; the maximum is an empty slot.
    private let keys: [UInt64]
    private let values: [Merge]
    private let bits: Int

    init(file: GGUFFile, texts: TokenTexts, model: Vocabulary.Model) throws(ModelError) {
        guard model == .gpt2 || model == .gemma4 else {
            (keys, values, bits) = ([.max], [Merge(rank: 0, result: 0)], 0)
            return
        }
        guard let merges = try file.metadata.array("tokenizer.ggml.merges", of: .string) else {
            throw .missing("tokenizer.ggml.merges")
        }
        let bits = tableBits(for: merges.count)
        var keys = [UInt64](repeating: .max, count: 1 << bits)
        var values = [Merge](repeating: Merge(rank: 0, result: 0), count: 1 << bits)
        let decoder = TokenDecoder(model: model)
        var pair = [UInt8](repeating: 0, count: 64)
        try file.forEachString(in: merges) { (rank, text) throws(ModelError) in
            // The first character of the left part may itself be a space.
            var space = 1
            while space < text.count, text[space] != UInt8(ascii: " ") { space += 1 }
            guard space < text.count else {
                throw .invalid(field: "tokenizer.ggml.merges", reason: "has no space in element \(rank)")
            }
            if pair.count < text.count { pair = [UInt8](repeating: 0, count: text.count * 2) }
            let ids = pair.withUnsafeMutableBufferPointer { pair -> (left: TokenID, right: TokenID, whole: TokenID)?? in
                let left = UnsafeRawBufferPointer(rebasing: text[..<space])
                let right = UnsafeRawBufferPointer(rebasing: text[(space + 1)...])
                guard let middle = decoder.decode(left, to: pair),
                    let rest = decoder.decode(right, to: UnsafeMutableBufferPointer(rebasing: pair[middle...]))
                else { return .none }
                let all = UnsafeBufferPointer(rebasing: pair[..<(middle + rest)])
                // A merge whose parts or result are not tokens can never be applied.
                guard let left = texts.find(UnsafeBufferPointer(rebasing: all[..<middle])),
                    let right = texts.find(UnsafeBufferPointer(rebasing: all[middle...])), let whole = texts.find(all)
                else { return .some(nil) }
                return (left, right, whole)
            }
            guard let ids else {
                throw .invalid(
                    field: "tokenizer.ggml.merges", reason: "has a character outside the byte alphabet in element \(rank)")
            }
            guard let ids else { return }
            let key = Self.key(ids.left, ids.right)
            let slot = Self.slot(of: key, in: keys, bits: bits)
            if keys[slot] == key { return }  // the lower rank takes precedence
            keys[slot] = key
            values[slot] = Merge(rank: UInt32(rank), result: ids.whole)
        }
        (self.keys, self.values, self.bits) = (keys, values, bits)
    }

    func find(_ left: TokenID, _ right: TokenID) -> Merge? {
        let key = Self.key(left, right), slot = Self.slot(of: key, in: keys, bits: bits)
        return keys[slot] == key ? values[slot] : nil
    }

    private static func key(_ left: TokenID, _ right: TokenID) -> UInt64 {
        UInt64(UInt32(bitPattern: left)) << 32 | UInt64(UInt32(bitPattern: right))
    }

    /// The slot of a key, or the empty slot where it belongs.
    private static func slot(of key: UInt64, in keys: [UInt64], bits: Int) -> Int {
        var slot = Int(mixedHash(key) >> UInt64(64 - bits))
        while keys[slot] != .max, keys[slot] != key { slot = (slot + 1) & (1 << bits - 1) }
        return slot
    }
}

/// Decodes the texts of tokens in a file to the bytes that they represent.
private struct TokenDecoder {
    let model: Vocabulary.Model
    /// GPT-2 represents each byte by a printable character: the same code point if it is printable, else the next
    /// unused one from U+0100 on. The byte of each code point, or -1.
    private let bytes: [Int16]

    init(model: Vocabulary.Model) {
        self.model = model
        var table = [Int16](repeating: -1, count: 0x144)
        var next = 0x100
        for byte in 0..<256 {
            let printable = (0x21...0x7E).contains(byte) || (0xA1...0xAC).contains(byte) || (0xAE...0xFF).contains(byte)
            table[printable ? byte : next] = Int16(byte)
            if !printable { next += 1 }
        }
        bytes = table
    }

    /// Writes the bytes to `output`, which has space for as many as `text` has, and returns their number; nil if a GPT-2 text has
    /// characters outside the alphabet. In other vocabularies, U+2581 represents a space.
    func decode(_ text: UnsafeRawBufferPointer, to output: UnsafeMutableBufferPointer<UInt8>) -> Int? {
        var index = 0, count = 0
        let mark = Vocabulary.mark
        while index < text.count {
            let byte = text[index]
            if model == .gpt2 {
                var codePoint = Int(byte)
                index += 1
                if codePoint >= 0x80 {
                    guard codePoint >= 0xC2, codePoint < 0xE0, index < text.count, text[index] & 0xC0 == 0x80 else { return nil }
                    codePoint = (codePoint & 0x1F) << 6 | Int(text[index] & 0x3F)
                    index += 1
                }
                guard codePoint < bytes.count, bytes[codePoint] >= 0 else { return nil }
                output[count] = UInt8(bytes[codePoint])
            } else if byte == mark[0], index + 2 < text.count, text[index + 1] == mark[1], text[index + 2] == mark[2] {
                output[count] = 0x20
                index += 3
            } else {
                output[count] = byte
                index += 1
            }
            count += 1
        }
        return count
    }
}

/// The base-2 logarithm of the number of slots, which is a power of two greater than twice the number of items, at least 16.
private func tableBits(for count: Int) -> Int { max(4, Int.bitWidth - (count * 2).leadingZeroBitCount) }

/// A hash whose upper bits depend on all bits of the key.
func mixedHash(_ key: UInt64) -> UInt64 {
    let product = (key ^ key >> 32) &* 0x9E37_79B9_7F4A_7C15
    return (product ^ product >> 29) &* 0xBF58_476D_1CE4_E5B9
}
