import Foundation

/// Generates the user messages of a long conversation: everyday messages, with facts in between. The same seed gives
/// the same messages.
struct Chatter {
    struct Fact {
        let turn: Int
        let statement: String
        let question: String
        /// The question in different words.
        let paraphrase: String
        /// The text that the context must contain for an answer.
        let evidence: String
    }

    private static let topics = [
        "gardening", "the history of bridges", "baking bread", "old maps", "learning the violin", "night trains",
        "chess openings",
        "repairing bicycles", "bird songs", "writing letters", "sailing knots", "volcanoes", "watercolour", "street food",
        "mountain weather", "board games", "beekeeping", "pottery", "lighthouses", "stamps",
    ]
    private static let openings = [
        "Tell me something about", "What is nice about", "How does one begin with", "Why do people like", "Give me a tip for",
        "What should I avoid in", "Who is known for", "What does it cost to start with", "Name a book about",
        "What is hard about",
    ]
    private static let things = [
        ("sister", "Marigold", "sibling"), ("boat", "Tern Rock", "vessel"), ("dentist", "Okonkwo", "tooth doctor"),
        ("cat", "Zephyrine", "pet"), ("street", "Halberd Lane", "road"), ("teacher", "Vasquez", "instructor"),
        ("bakery", "Crumbhold", "bread shop"), ("village", "Ostermoor", "hometown"), ("horse", "Bramblewick", "steed"),
        ("violin", "Lupot", "fiddle"), ("neighbour", "Thistlewood", "person next door"), ("hotel", "Gloamings", "inn"),
        ("password", "quillfish", "secret word"), ("car", "Peregrine", "automobile"), ("doctor", "Abernathy", "physician"),
        ("school", "Fenwright", "academy"), ("garden", "Larkspur Yard", "plot of flowers"), ("uncle", "Ambrose", "relative"),
        ("café", "Nine Lanterns", "coffee house"), ("mountain", "Skarnfell", "peak"),
    ]

    private var state: UInt64
    let facts: [Fact]

    /// - Parameter turns: The length of the conversation. Facts are distributed evenly over the first four fifths of
    ///   it.
    init(seed: UInt64, turns: Int) {
        state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        let step = max(1, turns * 4 / 5 / Self.things.count)
        facts = Self.things.enumerated().map { index, thing in
            Fact(
                turn: 3 + index * step, statement: "By the way, my \(thing.0) is called \(thing.1).",
                question: "What is my \(thing.0) called?", paraphrase: "Do you remember the name of my \(thing.2)?",
                evidence: thing.1)
        }
    }

    private mutating func next(_ count: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(count))
    }

    mutating func message(_ turn: Int) -> String {
        if let fact = facts.first(where: { $0.turn == turn }) { return fact.statement }
        return "\(Self.openings[next(Self.openings.count)]) \(Self.topics[next(Self.topics.count)])?"
    }
}
