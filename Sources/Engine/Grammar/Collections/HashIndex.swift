/// An index of small integers by hash: open addressing with linear probing. The caller stores the values that the
/// integers identify.
struct HashIndex {
    private struct Slot {
        /// -1 in an empty slot.
        var value: Int32
        /// Half of the hash, so that the index can grow without the values.
        var hash: UInt32
    }

    private var slots: [Slot]
    private var count = 0

    /// - Parameter capacity: A power of two.
    init(capacity: Int = 64) { slots = [Slot](repeating: Slot(value: -1, hash: 0), count: capacity) }

    /// The integer with this hash for which `matches` returns true; -1 if there is none.
    func find(_ hash: UInt64, _ matches: (Int32) -> Bool) -> Int32 {
        let mask = slots.count - 1
        let hash = UInt32(truncatingIfNeeded: hash)
        var index = Int(truncatingIfNeeded: hash) & mask
        while slots[index].value >= 0 {
            if slots[index].hash == hash, matches(slots[index].value) { return slots[index].value }
            index = (index + 1) & mask
        }
        return -1
    }

    mutating func insert(_ hash: UInt64, _ value: Int32) {
        if (count + 1) * 2 > slots.count {
            // Twice the size: growing happens within one mask, which then takes longer.
            let old = slots
            self = HashIndex(capacity: slots.count * 2)
            for slot in old where slot.value >= 0 { place(slot) }
        }
        place(Slot(value: value, hash: UInt32(truncatingIfNeeded: hash)))
    }

    private mutating func place(_ slot: Slot) {
        let mask = slots.count - 1
        var index = Int(truncatingIfNeeded: slot.hash) & mask
        while slots[index].value >= 0 { index = (index + 1) & mask }
        slots[index] = slot
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
            self = IntegerTable(capacity: keys.count * 2)
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
