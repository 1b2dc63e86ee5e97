/// A set of bytes, as 256 bits.
struct ByteSet: Hashable, Sendable {
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    static func == (a: ByteSet, b: ByteSet) -> Bool { a.words == b.words }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }

    static let ascii = ByteSet(0x00...0x7F)

    init() {}
    init(_ range: ClosedRange<UInt8>) { for byte in range { insert(byte) } }
    init(_ byte: UInt8) { insert(byte) }
    init(_ bytes: [UInt8]) { for byte in bytes { insert(byte) } }

    var isEmpty: Bool { words == (0, 0, 0, 0) }

    /// A hash value that is the same in every process.
    var mixed: UInt64 {
        HashIndex.mix(HashIndex.mix(HashIndex.mix(HashIndex.mix(3, words.0), words.1), words.2), words.3)
    }

    /// The only byte in the set; nil if there are none or several.
    var single: UInt8? {
        var found: UInt8?
        if count == 1 { forEach { found = $0 } }
        return found
    }

    var count: Int { words.0.nonzeroBitCount + words.1.nonzeroBitCount + words.2.nonzeroBitCount + words.3.nonzeroBitCount }

    func contains(_ byte: UInt8) -> Bool {
        let word = byte < 128 ? (byte < 64 ? words.0 : words.1) : (byte < 192 ? words.2 : words.3)
        return word >> UInt64(byte & 63) & 1 == 1
    }

    mutating func insert(_ byte: UInt8) {
        let bit = UInt64(1) << UInt64(byte & 63)
        switch byte >> 6 {
        case 0: words.0 |= bit
        case 1: words.1 |= bit
        case 2: words.2 |= bit
        default: words.3 |= bit
        }
    }

    func union(_ other: ByteSet) -> ByteSet {
        var result = self
        result.words.0 |= other.words.0
        result.words.1 |= other.words.1
        result.words.2 |= other.words.2
        result.words.3 |= other.words.3
        return result
    }

    func intersection(_ other: ByteSet) -> ByteSet {
        var result = self
        result.words.0 &= other.words.0
        result.words.1 &= other.words.1
        result.words.2 &= other.words.2
        result.words.3 &= other.words.3
        return result
    }

    func forEach(_ body: (UInt8) -> Void) {
        for (index, word) in [words.0, words.1, words.2, words.3].enumerated() {
            var rest = word
            while rest != 0 {
                body(UInt8(index * 64 + rest.trailingZeroBitCount))
                rest &= rest - 1
            }
        }
    }
}
