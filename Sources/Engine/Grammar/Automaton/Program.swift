/// The id of a type of a ``Program``.
typealias TypeID = Int32

/// A compiled schema: its types, objects and arrays as tables. All of them are satisfiable.
struct Program {
    struct ValueEntry {
        /// The JSON text of null, booleans, numbers and strings.
        var scalar: RegexID = RegexArena.empty
        /// Alternatives: indices of objects and arrays of the program.
        var objects: [Int32] = []
        var arrays: [Int32] = []
        /// Number of bytes of the shortest document of this type.
        var shortest = Program.infiniteLength
    }

    struct Name {
        var text: [UInt8]
        var type: TypeID
        var isRequired: Bool
        /// Whether the name may be written at all.
        var isAllowed: Bool
        /// Number of bytes of the shortest member with this name: name, colon and value.
        var shortest = Program.infiniteLength
    }

    /// A class of members whose names the schema does not list.
    struct Region {
        var names: RegexID
        var type: TypeID
        /// Number of bytes of the shortest name, without quotes.
        var shortestName: Int
        /// The witnesses of the object that such a member satisfies, as bits.
        var wants: UInt64
    }

    struct Object {
        var names: [Name] = []
        /// For each name, the names that can no longer be written after it.
        var before: [BitSet] = []
        /// Names without a fixed position. The other listed names come before the members of regions.
        var unordered = BitSet(count: 0)
        var required = BitSet(count: 0)
        var regions: [Region] = []
        var minimum = 0
        var maximum: Int?
        /// Number of required witnesses: members that must come from a region.
        var wantCount = 0
        var keys = KeyTrie()
        var shortest = Program.infiniteLength

        var allWants: UInt64 { wantCount == 0 ? 0 : (1 << UInt64(wantCount)) - 1 }
        var counts: Bool { minimum > 0 || maximum != nil }

        /// The minimum number of regions whose members together satisfy all of `wants`; nil if that is impossible.
        /// Exact for up to ten witnesses; for more, a greedy choice.
        func regions(for wants: UInt64, where isPossible: (Region) -> Bool = { _ in true }) -> [Int]? {
            guard wants != 0 else { return [] }
            let givers = regions.indices.filter { regions[$0].wants & wants != 0 && isPossible(regions[$0]) }
            if wants.nonzeroBitCount > 10 {
                var (rest, chosen) = (wants, [Int]())
                while rest != 0 {
                    func gain(_ giver: Int) -> Int { (regions[giver].wants & rest).nonzeroBitCount }
                    guard let best = givers.max(by: { gain($0) < gain($1) }), regions[best].wants & rest != 0 else { return nil }
                    rest &= ~regions[best].wants
                    chosen.append(best)
                }
                return chosen
            }
            var seen: Set<UInt64> = [wants]
            var front: [(rest: UInt64, chosen: [Int])] = [(wants, [])]
            while !front.isEmpty {
                var next: [(rest: UInt64, chosen: [Int])] = []
                for (rest, chosen) in front {
                    for giver in givers where regions[giver].wants & rest != 0 {
                        let left = rest & ~regions[giver].wants
                        if left == 0 { return chosen + [giver] }
                        if seen.insert(left).inserted { next.append((left, chosen + [giver])) }
                    }
                }
                front = next
            }
            return nil
        }
    }

    struct Array {
        /// For each item, its type by bit mask of the `contains` conditions that it counts for; nil if impossible.
        var prefix: [[TypeID?]] = []
        /// The same for the items after the prefix.
        var rest: [TypeID?] = []
        /// Minimum and maximum number of items.
        var minimum = 0
        var maximum: Int?
        var contains: [Contains] = []
        var isUnique = false
        var shortest = Program.infiniteLength
    }

    /// The length of a document that does not exist.
    static let infiniteLength = 1 << 40
    /// Maximum number of members that may be required.
    static let maximumCount = 1_000
    /// Maximum number of items that `contains` may require.
    static let maximumContains = 100
    /// Maximum number of characters that a text without a pattern, or a text with a pattern, may be required to have.
    static let maximumText = 8_000
    static let maximumPattern = 1_000
    /// Maximum number of bytes that the shortest document may have.
    static let maximumDocument = 200_000

    var types: [ValueEntry] = []
    var objects: [Object] = []
    var arrays: [Array] = []
    var root: TypeID = 0
}
