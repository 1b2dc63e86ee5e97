/// The texts of a vocabulary as a byte trie in preorder: a subtree is a contiguous range of nodes and of tokens.
struct TokenTrie: Sendable {
    struct Node {
        /// The end of the subtree.
        var end: Int32
        /// The index in ``tokens`` of the first token at or below the node.
        var firstToken: Int32
        /// The classes of all bytes below the node, as bits; see ``ByteClasses``.
        var below: UInt64 = 0
        /// The first bytes of the characters below the node; see ``LeadBytes``.
        var leads: UInt64 = 0
        /// Number of bytes of the longest path below the node.
        var height: UInt16 = 0
        var depth: UInt16
        /// The number of characters up to the node or the first escape before it, and whether there is an escape, whose
        /// number of characters is not known.
        private var counted: UInt16 = 0
        var byte: UInt8

        /// The root, or the end of the nodes.
        init(firstToken: Int) { (end, self.firstToken, depth, byte) = (0, Int32(firstToken), 0, 0) }

        init(below parent: Node, _ byte: UInt8, firstToken: Int) {
            (end, self.firstToken, depth, self.byte) = (0, Int32(firstToken), parent.depth + 1, byte)
            let isCharacter = byte & 0xC0 != 0x80 && byte != UInt8(ascii: "\\") && parent.counted < 0x8000
            counted = (parent.counted + (isCharacter ? 1 : 0)) | (byte == UInt8(ascii: "\\") ? 0x8000 : 0)
        }

        /// Bounds of the number of characters of a text from the root to the node.
        var characters: Int32 { Int32(counted & 0x7FFF) }
        var mostCharacters: Int32 { counted > 0x7FFF ? Int32(depth) : Int32(counted) }
    }

    /// Node 0 is the root. After the last node, one more that has only ``Node/firstToken``: the number of tokens.
    private(set) var nodes = [Node(firstToken: 0)]
    /// Token ids, sorted by their bytes.
    private(set) var tokens: [Int32] = []
    /// The child of the root for each byte, or -1.
    private(set) var rootChild = [Int32](repeating: -1, count: 256)
    private(set) var maximumDepth = 0

    /// Longer tokens are ignored: no model has them, but a damaged file may.
    static let longestToken = 1_000

    init(_ texts: [[UInt8]?]) {
        var order: [Int32] = []
        for (index, text) in texts.enumerated() {
            if let text, !text.isEmpty, text.count <= Self.longestToken { order.append(Int32(index)) }
        }
        let texts = texts.map { $0 ?? [] }
        order.sort { a, b in
            let first = texts[Int(a)]
            let second = texts[Int(b)]
            return first == second ? a < b : first.lexicographicallyPrecedes(second)
        }
        tokens = order
        var path: [(node: Int, byte: UInt8)] = []
        for (position, token) in order.enumerated() {
            let text = texts[Int(token)]
            var common = 0
            while common < path.count, common < text.count, path[common].byte == text[common] { common += 1 }
            while path.count > common { if let last = path.popLast() { nodes[last.node].end = Int32(nodes.count) } }
            for letter in text[common...] {
                let parent = path.last?.node ?? 0
                if path.isEmpty { rootChild[Int(letter)] = Int32(nodes.count) }
                path.append((nodes.count, letter))
                nodes.append(Node(below: nodes[parent], letter, firstToken: position))
            }
            maximumDepth = max(maximumDepth, text.count)
        }
        for (node, _) in path { nodes[node].end = Int32(nodes.count) }
        nodes[0].end = Int32(nodes.count)
        nodes.append(Node(firstToken: tokens.count))
        // Children come after their parents.
        for node in (0..<count).reversed() {
            var child = node + 1
            while child < Int(nodes[node].end) {
                nodes[node].below |= nodes[child].below | ByteClasses.mask(nodes[child].byte)
                nodes[node].height = max(nodes[node].height, nodes[child].height + 1)
                child = Int(nodes[child].end)
            }
            nodes[node].leads = LeadBytes.below(node, nodes)
        }
    }

    /// Number of nodes.
    var count: Int { nodes.count - 1 }

    /// The arrays without bounds checks, for a walk that visits most nodes.
    struct UnsafeNodes {
        var nodes: UnsafeBufferPointer<Node>
        var tokens: UnsafeBufferPointer<Int32>
        /// The child of the root for each byte, or -1.
        var rootChild: UnsafeBufferPointer<Int32>
    }

    func withUnsafeNodes<Result>(_ body: (UnsafeNodes) -> Result) -> Result {
        nodes.withUnsafeBufferPointer { nodes in
            tokens.withUnsafeBufferPointer { tokens in
                rootChild.withUnsafeBufferPointer { body(UnsafeNodes(nodes: nodes, tokens: tokens, rootChild: $0)) }
            }
        }
    }

    func hasChildren(_ node: Int) -> Bool { Int(nodes[node].end) > node + 1 }

    /// The range in ``tokens`` of the tokens that end at `node`.
    func tokens(at node: Int) -> Range<Int> { Int(nodes[node].firstToken)..<Int(nodes[node + 1].firstToken) }

    /// The child of `node` for a byte, or -1.
    func child(of node: Int, _ byte: UInt8) -> Int {
        var child = node + 1
        while child < Int(nodes[node].end) {
            if nodes[child].byte == byte { return child }
            child = Int(nodes[child].end)
        }
        return -1
    }

    /// The index in ``tokens`` after the last token in the subtree of `node`.
    func lastToken(below node: Int) -> Int { Int(nodes[Int(nodes[node].end)].firstToken) }
}

/// A partition of the bytes into classes: letters and digits are split at boundaries that are common in patterns, each
/// punctuation character has its own class.
enum ByteClasses {
    /// The class of a byte as a bit.
    static func mask(_ byte: UInt8) -> UInt64 { ofByte.withUnsafeBufferPointer { 1 << UInt64($0[Int(byte)]) } }

    /// The classes of which all bytes satisfy a condition.
    static func all(where condition: (UInt8) -> Bool) -> UInt64 {
        var inside: UInt64 = 0
        var outside: UInt64 = 0
        ofByte.withUnsafeBufferPointer { classes in
            for byte in UInt8.min...UInt8.max {
                let bit = UInt64(1) << UInt64(classes[Int(byte)])
                if condition(byte) { inside |= bit } else { outside |= bit }
            }
        }
        return inside & ~outside
    }

    /// The class of each byte, below 64.
    static let ofByte: [UInt8] = (0..<256).map { byte in
        switch UInt8(byte) {
        case UInt8(ascii: "a")...UInt8(ascii: "f"): 0
        case UInt8(ascii: "g")...UInt8(ascii: "z"): 1
        case UInt8(ascii: "A")...UInt8(ascii: "F"): 2
        case UInt8(ascii: "G")...UInt8(ascii: "Z"): 3
        case UInt8(ascii: "0")...UInt8(ascii: "9"): 4
        case 0x80...: 5
        case ..<0x20, 0x7F: 6
        case 0x20...0x2F: 7 + UInt8(byte) - 0x20
        case 0x3A...0x40: 23 + UInt8(byte) - 0x3A
        case 0x5B...0x60: 30 + UInt8(byte) - 0x5B
        default: 36 + UInt8(byte) - 0x7B
        }
    }
}
