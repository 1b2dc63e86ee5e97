/// Names a type of a ``Program``.
typealias TypeID = Int32

/// A schema ready to run: its types, objects and arrays as tables, all of them satisfiable.
struct Program {
    struct ValueEntry {
        /// Null, booleans, numbers and strings, as JSON text.
        var scalar: RegexID = RegexArena.empty
        var objects: [Int32] = []
        var arrays: [Int32] = []
        /// Bytes of the shortest document of this type.
        var shortest = Program.endless
    }

    struct Name {
        var text: [UInt8]
        var type: TypeID
        var isRequired: Bool
        /// Whether it can be written at all.
        var isAllowed: Bool
        /// Bytes of its shortest member: name, colon and value.
        var shortest = Program.endless
    }

    /// Members with names that the schema does not list.
    struct Region {
        var names: RegexID
        var type: TypeID
        /// Bytes of the shortest name, without quotes.
        var shortestName: Int
        /// Which of the object's wants such a member satisfies.
        var wants: UInt64
    }

    struct Object {
        var names: [Name] = []
        /// For each name, those that cannot be written after it.
        var before: [BitSet] = []
        /// Names that may stand anywhere, and do not have to be written before other members.
        var loose = BitSet(count: 0)
        var required = BitSet(count: 0)
        var regions: [Region] = []
        var least = 0
        var most: Int?
        /// How many members are wanted that only a region can give.
        var wantCount = 0
        var keys = KeyTrie()
        var shortest = Program.endless

        var allWants: UInt64 { wantCount == 0 ? 0 : (1 << UInt64(wantCount)) - 1 }
        var counts: Bool { least > 0 || most != nil }

        /// The fewest regions whose members give all of `wants`; nil if there are none. Exact for a few wants, and otherwise the
        /// region that gives most of what is left, each time.
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
        /// For items that are counted by none of `contains`, by the first, by the second…, by both…: types by mask.
        var prefix: [[TypeID?]] = []
        var rest: [TypeID?] = []
        var least = 0
        var most: Int?
        var contains: [Contains] = []
        var isUnique = false
        var shortest = Program.endless
    }

    static let endless = 1 << 40
    /// Members or counted items that may be required.
    static let greatestCount = 1_000
    /// Items that `contains` may ask for.
    static let greatestContains = 100
    /// Characters that a text may be required to have, and that a pattern may.
    static let greatestText = 8_000
    static let greatestPattern = 1_000
    /// Bytes that the shortest document may have.
    static let greatestDocument = 200_000

    var types: [ValueEntry] = []
    var objects: [Object] = []
    var arrays: [Array] = []
    var root: TypeID = 0
}
