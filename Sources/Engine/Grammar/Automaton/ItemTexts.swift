internal import JSON

/// Texts read so far, byte by byte, as a tree: texts that begin alike share nodes, and equal texts are one node.
struct ItemTexts {
    private struct Node {
        var parent: Int32
        /// An ancestor far above, for searches in logarithmic time (Myers, "An applicative random-access stack", 1983).
        var jump: Int32
        var length: Int32
        var byte: UInt8
        /// Whether the text has no escapes and only numbers that cannot be written in another way.
        var isPlain: Bool
        /// A hash of the text's bytes in any order.
        var sum: UInt64
    }

    private var nodes = [Node(parent: 0, jump: 0, length: 0, byte: 0, isPlain: true, sum: 0)]
    private var ids = IntegerTable()

    static let empty: Int32 = 0

    mutating func appending(_ byte: UInt8, to text: Int32) -> Int32 {
        let key = UInt64(UInt32(bitPattern: text)) << 8 | UInt64(byte)
        if let known = ids[key] { return known }
        let parent = nodes[Int(text)]
        let jump = nodes[Int(parent.jump)]
        let isFarther = parent.length - jump.length == jump.length - nodes[Int(jump.jump)].length
        nodes.append(
            Node(
                parent: text, jump: isFarther ? jump.jump : text, length: parent.length + 1, byte: byte,
                isPlain: parent.isPlain && Self.isPlain(byte, after: parent.byte),
                sum: parent.sum &+ HashIndex.mix(0, UInt64(byte))))
        ids.insert(key, Int32(nodes.count - 1))
        return Int32(nodes.count - 1)
    }

    mutating func appending(_ bytes: some Sequence<UInt8>, to text: Int32) -> Int32 {
        bytes.reduce(text) { appending($1, to: $0) }
    }

    /// Letters and points after digits may belong to a number, which 1.0 and 1e0 write in two ways; and zero has a sign.
    private static func isPlain(_ byte: UInt8, after last: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\\"): false
        case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): !JSONText.isDigit(last)
        case UInt8(ascii: "0"): last != UInt8(ascii: "-")
        default: true
        }
    }

    func length(_ text: Int32) -> Int { Int(nodes[Int(text)].length) }

    func bytes(_ text: Int32) -> [UInt8] { bytes(text, from: 0, maximum: .max) }

    /// The bytes of a text from an offset on, at most so many.
    func bytes(_ text: Int32, from offset: Int, maximum: Int) -> [UInt8] {
        let end = min(length(text), maximum < Int.max - offset ? offset + maximum : Int.max)
        var node = prefix(text, end)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(max(0, end - offset))
        while length(node) > offset {
            bytes.append(nodes[Int(node)].byte)
            node = nodes[Int(node)].parent
        }
        return bytes.reversed()
    }

    /// The first `length` bytes of a text.
    private func prefix(_ text: Int32, _ length: Int) -> Int32 {
        var id = text
        while Int(nodes[Int(id)].length) > length {
            let node = nodes[Int(id)]
            id = Int(nodes[Int(node.jump)].length) < length ? node.parent : node.jump
        }
        return id
    }

    func begins(_ text: Int32, with start: Int32) -> Bool {
        length(text) >= length(start) && prefix(text, length(start)) == start
    }

    /// The byte of `text` after its first `offset` ones.
    func byte(_ text: Int32, at offset: Int) -> UInt8? {
        offset < length(text) ? nodes[Int(prefix(text, offset + 1))].byte : nil
    }

    /// Whether the text has no escapes and only numbers that cannot be written in another way.
    func isPlain(_ text: Int32) -> Bool { nodes[Int(text)].isPlain }

    /// Whether two different texts could be one JSON value, with members in another order or another spelling.
    func couldBeEqual(_ a: Int32, _ b: Int32) -> Bool {
        let (first, second) = (nodes[Int(a)], nodes[Int(b)])
        if !first.isPlain || !second.isPlain { return true }
        return first.length == second.length && first.sum == second.sum
    }
}
