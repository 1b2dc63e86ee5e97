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
        var byte: UInt8
    }

    /// Node 0 is the root. After the last node, one more that has only ``Node/firstToken``: the number of tokens.
    private(set) var nodes = [Node(end: 0, firstToken: 0, depth: 0, byte: 0)]
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
                path.append((nodes.count, letter))
                if path.count == 1 { rootChild[Int(letter)] = Int32(nodes.count) }
                nodes.append(Node(end: 0, firstToken: Int32(position), depth: UInt16(clamping: path.count), byte: letter))
            }
            maximumDepth = max(maximumDepth, text.count)
        }
        for (node, _) in path { nodes[node].end = Int32(nodes.count) }
        nodes[0].end = Int32(nodes.count)
        nodes.append(Node(end: 0, firstToken: Int32(tokens.count), depth: 0, byte: 0))
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

    /// The arrays as pointers without bounds checks, for the loop that visits most nodes.
    struct UnsafeNodes {
        var nodes: UnsafePointer<Node>
        var tokens: UnsafePointer<Int32>
        /// The child of the root for each byte, or -1.
        var rootChild: UnsafePointer<Int32>

        subscript(node: Int) -> Node { nodes[node] }
    }

    func withUnsafeNodes(_ body: (UnsafeNodes) -> Void) {
        nodes.withUnsafeBufferPointer { nodes in
            tokens.withUnsafeBufferPointer { tokens in
                rootChild.withUnsafeBufferPointer { rootChild in
                    guard let nodes = nodes.baseAddress, let tokens = tokens.baseAddress, let rootChild = rootChild.baseAddress
                    else { return }
                    body(UnsafeNodes(nodes: nodes, tokens: tokens, rootChild: rootChild))
                }
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
