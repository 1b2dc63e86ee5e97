/// Sets of the first bytes of characters beyond ASCII, as bits: with them, a subtree of the vocabulary can be accepted
/// without a walk if all of its characters lead back to the same state.
enum LeadBytes {
    static let all: ClosedRange<UInt8> = 0xC2...0xF4
    static let allBits = all.reduce(0) { $0 | bit($1) }
    /// Text that is not UTF-8, except for an incomplete character at the end.
    static let malformed = UInt64(1) << 63

    static func bit(_ byte: UInt8) -> UInt64 { 1 << UInt64(byte - all.lowerBound) }

    /// Number of bytes that follow a first byte.
    static func tailCount(_ byte: UInt8) -> Int { byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3 }

    /// The bytes that may follow a first byte directly (Unicode, table 3-7).
    static func secondBytes(_ byte: UInt8) -> ClosedRange<UInt8> {
        switch byte {
        case 0xE0: 0xA0...0xBF
        case 0xED: 0x80...0x9F
        case 0xF0: 0x90...0xBF
        case 0xF4: 0x80...0x8F
        default: 0x80...0xBF
        }
    }

    /// The first bytes of all characters below a node of a trie, if a character begins after the node. Those of the nodes
    /// below it are known.
    static func below(_ node: Int, _ nodes: [TokenTrie.Node]) -> UInt64 {
        func afterTails(_ node: Int, _ allowed: ClosedRange<UInt8>, _ count: Int) -> UInt64 {
            var mask: UInt64 = 0
            var child = node + 1
            while child < Int(nodes[node].end) {
                if !allowed.contains(nodes[child].byte) { return malformed }
                mask |= count == 1 ? nodes[child].leads : afterTails(child, 0x80...0xBF, count - 1)
                child = Int(nodes[child].end)
            }
            return mask
        }
        var mask: UInt64 = 0
        var child = node + 1
        while child < Int(nodes[node].end) {
            let first = nodes[child].byte
            if first < 0x80 {
                mask |= nodes[child].leads
            } else if all.contains(first) {
                mask |= bit(first) | afterTails(child, secondBytes(first), tailCount(first))
            } else {
                mask |= malformed
            }
            child = Int(nodes[child].end)
        }
        return mask
    }
}

extension RegexArena {
    /// Whether every character with a first byte leads from a language back to it.
    func returns(to language: RegexID, _ lead: UInt8) -> Bool {
        func returns(_ state: RegexID, _ allowed: ClosedRange<UInt8>, _ count: Int) -> Bool {
            guard state != Self.empty, let row = liveRow(state) else { return false }
            if count == 1 { return allowed.allSatisfy { row[Int($0)] == language } }
            var known = Self.empty
            for byte in allowed where row[Int(byte)] != known || known == Self.empty {
                known = row[Int(byte)]
                if !returns(known, 0x80...0xBF, count - 1) { return false }
            }
            return true
        }
        guard let row = liveRow(language) else { return false }
        return returns(row[Int(lead)], LeadBytes.secondBytes(lead), LeadBytes.tailCount(lead))
    }
}
