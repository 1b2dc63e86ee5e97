/// A set of small integers.
struct BitSet: Hashable {
    private(set) var words: [UInt64]

    init(count: Int) { words = [UInt64](repeating: 0, count: (count + 63) / 64) }

    func contains(_ index: Int) -> Bool { words[index >> 6] >> UInt64(index & 63) & 1 == 1 }
    mutating func remove(word index: Int, _ bits: UInt64) { words[index] &= ~bits }
    mutating func insert(_ index: Int) { words[index >> 6] |= 1 << UInt64(index & 63) }
    mutating func formUnion(_ other: BitSet) { for index in words.indices { words[index] |= other.words[index] } }

    /// Whether all members of `self` are in `other`.
    func isSubset(of other: BitSet) -> Bool {
        for index in words.indices where words[index] & ~other.words[index] != 0 { return false }
        return true
    }

    var count: Int { words.reduce(0) { $0 + $1.nonzeroBitCount } }

    func withoutMembers(of other: BitSet) -> BitSet {
        var result = self
        for index in words.indices { result.remove(word: index, other.words[index]) }
        return result
    }

    func isDisjoint(with other: BitSet) -> Bool { words.indices.allSatisfy { words[$0] & other.words[$0] == 0 } }
    var isEmpty: Bool { words.allSatisfy { $0 == 0 } }
    func intersectionCount(_ other: BitSet) -> Int {
        words.indices.reduce(0) { $0 + (words[$1] & other.words[$1]).nonzeroBitCount }
    }

    func count(where predicate: (Int) -> Bool) -> Int {
        var count = 0
        for (index, word) in words.enumerated() {
            var rest = word
            while rest != 0 {
                if predicate(index * 64 + rest.trailingZeroBitCount) { count += 1 }
                rest &= rest - 1
            }
        }
        return count
    }
}
