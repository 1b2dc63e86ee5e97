/// The texts of a vocabulary as a byte trie in preorder: a subtree is a contiguous range of nodes and of tokens.
struct TokenTrie: Sendable {
    /// Byte, depth and subtree end of each node; node 0 is the root.
    private(set) var byte: [UInt8] = [0]
    private(set) var depth: [UInt16] = [0]
    private(set) var end: [Int32] = [0]
    /// The index in ``tokens`` of each node's first token, followed by the number of tokens.
    private(set) var firstToken: [Int32] = []
    /// The classes of all bytes below each node, as bits; see ``ByteClasses``.
    private(set) var below: [UInt64] = []
    /// Number of bytes of the longest path below each node.
    private var height: [Int32] = []
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
        firstToken = [0]
        var path: [(node: Int32, byte: UInt8)] = []
        for (position, token) in order.enumerated() {
            let text = texts[Int(token)]
            var common = 0
            while common < path.count, common < text.count, path[common].byte == text[common] { common += 1 }
            while path.count > common { if let last = path.popLast() { end[Int(last.node)] = Int32(byte.count) } }
            for letter in text[common...] {
                let node = Int32(byte.count)
                path.append((node, letter))
                byte.append(letter)
                depth.append(UInt16(clamping: path.count))
                end.append(0)
                firstToken.append(Int32(position))
                if path.count == 1 { rootChild[Int(letter)] = node }
            }
            maximumDepth = max(maximumDepth, text.count)
        }
        for (node, _) in path { end[Int(node)] = Int32(byte.count) }
        end[0] = Int32(byte.count)
        firstToken.append(Int32(tokens.count))
        height = [Int32](repeating: 0, count: count)
        below = [UInt64](repeating: 0, count: count)
        var around: [Int] = []
        for node in 1..<max(1, count) {
            let level = Int(depth[node])
            around.removeLast(max(0, around.count - (level - 1)))
            let bit = UInt64(1) << UInt64(ByteClasses.ofByte[Int(byte[node])])
            for outer in around {
                below[outer] |= bit
                height[outer] = max(height[outer], Int32(level) - Int32(depth[outer]))
            }
            around.append(node)
        }
    }

    var count: Int { byte.count }

    /// The arrays as pointers without bounds checks, for the loop that visits most nodes.
    struct UnsafeNodes {
        var count: Int
        var byte: UnsafePointer<UInt8>
        var depth: UnsafePointer<UInt16>
        var end: UnsafePointer<Int32>
        /// One element more than there are nodes.
        var firstToken: UnsafePointer<Int32>
        var tokens: UnsafePointer<Int32>
        var below: UnsafePointer<UInt64>
        var height: UnsafePointer<Int32>
        /// The child of the root for each byte, or -1.
        var rootChild: UnsafePointer<Int32>
    }

    func withUnsafeNodes(_ body: (UnsafeNodes) -> Void) {
        byte.withUnsafeBufferPointer { byte in
            depth.withUnsafeBufferPointer { depth in
                end.withUnsafeBufferPointer { end in
                    firstToken.withUnsafeBufferPointer { firstToken in
                        tokens.withUnsafeBufferPointer { tokens in
                            below.withUnsafeBufferPointer { below in
                                height.withUnsafeBufferPointer { height in
                                    rootChild.withUnsafeBufferPointer { rootChild in
                                        guard let byte = byte.baseAddress, let depth = depth.baseAddress,
                                            let end = end.baseAddress,
                                            let firstToken = firstToken.baseAddress, let tokens = tokens.baseAddress,
                                            let below = below.baseAddress, let height = height.baseAddress,
                                            let rootChild = rootChild.baseAddress
                                        else { return }
                                        body(
                                            UnsafeNodes(
                                                count: count, byte: byte, depth: depth, end: end, firstToken: firstToken,
                                                tokens: tokens, below: below, height: height, rootChild: rootChild))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    func hasChildren(_ node: Int) -> Bool { Int(end[node]) > node + 1 }

    /// The range in ``tokens`` of the tokens that end at `node`.
    func tokens(at node: Int) -> Range<Int> { Int(firstToken[node])..<Int(firstToken[node + 1]) }
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
