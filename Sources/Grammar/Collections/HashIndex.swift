/// An index of small integers by hash: open addressing with linear probing. The caller stores the values that the
/// integers identify.
struct HashIndex {
    private var slots: [Int32]
    private var hashes: [UInt32]
    private var count = 0

    init(capacity: Int = 64) {
        slots = [Int32](repeating: -1, count: capacity)
        hashes = [UInt32](repeating: 0, count: capacity)
    }

    /// The integer with this hash for which `matches` returns true; -1 if there is none.
    func find(_ hash: UInt64, _ matches: (Int32) -> Bool) -> Int32 {
        let mask = slots.count - 1
        let short = UInt32(truncatingIfNeeded: hash >> 32)
        var index = Int(truncatingIfNeeded: hash) & mask
        while slots[index] >= 0 {
            if hashes[index] == short, matches(slots[index]) { return slots[index] }
            index = (index + 1) & mask
        }
        return -1
    }

    /// - Parameter hashOf: Returns the hash of an integer that is already in the index; called when the index grows.
    mutating func insert(_ hash: UInt64, _ value: Int32, hashOf: (Int32) -> UInt64) {
        if (count + 1) * 2 > slots.count {
            let old = slots
            self = HashIndex(capacity: slots.count * 4)
            for value in old where value >= 0 { place(hashOf(value), value) }
        }
        place(hash, value)
    }

    private mutating func place(_ hash: UInt64, _ value: Int32) {
        let mask = slots.count - 1
        var index = Int(truncatingIfNeeded: hash) & mask
        while slots[index] >= 0 { index = (index + 1) & mask }
        slots[index] = value
        hashes[index] = UInt32(truncatingIfNeeded: hash >> 32)
        count += 1
    }

    /// Mixes a word into a hash (the finalizer of SplitMix64).
    static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        var z = (hash ^ word) &+ 0x9E37_79B9_7F4A_7C15
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// A hash table from 64-bit keys to 32-bit values.
struct IntegerTable {
    private var keys: [UInt64]
    private var values: [Int32]
    private var count = 0
    /// Marks an empty slot. Never a key, because callers never set the most significant bits.
    private static let none = UInt64.max

    init(capacity: Int = 256) {
        keys = [UInt64](repeating: Self.none, count: capacity)
        values = [Int32](repeating: 0, count: capacity)
    }

    subscript(key: UInt64) -> Int32? {
        let mask = keys.count - 1
        var index = Int(truncatingIfNeeded: HashIndex.mix(0, key)) & mask
        while keys[index] != Self.none {
            if keys[index] == key { return values[index] }
            index = (index + 1) & mask
        }
        return nil
    }

    /// Adds a key that is not in the table.
    mutating func insert(_ key: UInt64, _ value: Int32) {
        if (count + 1) * 2 > keys.count {
            let old = self
            self = IntegerTable(capacity: keys.count * 4)
            for (index, key) in old.keys.enumerated() where key != Self.none { place(key, old.values[index]) }
        }
        place(key, value)
    }

    private mutating func place(_ key: UInt64, _ value: Int32) {
        let mask = keys.count - 1
        var index = Int(truncatingIfNeeded: HashIndex.mix(0, key)) & mask
        while keys[index] != Self.none { index = (index + 1) & mask }
        keys[index] = key
        values[index] = value
        count += 1
    }
}
