internal import JSON

/// The listed names of an object as JSON text with closing quotes, in a trie.
struct KeyTrie {
    struct Node {
        var children: [(byte: UInt8, node: Int32)] = []
        /// The name whose text ends here, or -1.
        var name: Int32 = -1
        /// The range in ``KeyTrie/order`` of the names below this node.
        var first: Int32 = 0
        var last: Int32 = 0
    }

    private(set) var nodes: [Node] = [Node()]
    /// Names in the order of their texts. A name with several spellings occurs several times.
    private(set) var order: [Int32] = []

    init() {}

    init(_ names: [(text: [UInt8], name: Int32)]) {
        for (text, name) in names.sorted(by: { $0.text.lexicographicallyPrecedes($1.text) }) {
            let rank = Int32(order.count)
            order.append(name)
            var node = 0
            nodes[0].last = rank + 1
            for byte in text {
                if let last = nodes[node].children.last, last.byte == byte {
                    node = Int(last.node)
                } else {
                    nodes[node].children.append((byte, Int32(nodes.count)))
                    node = nodes.count
                    nodes.append(Node(first: rank))
                }
                nodes[node].last = rank + 1
            }
            nodes[node].name = name
        }
    }
}

/// The JSON text of a member's name.
enum KeyText {
    /// The texts of a name after its opening quote, including the closing quote: plain, and with escapes beyond ASCII.
    static func spellings(_ name: [UInt8]) -> [[UInt8]] {
        var plain: [UInt8] = []
        JSONText.escape(name, into: &plain)
        plain.append(UInt8(ascii: "\""))
        guard name.contains(where: { $0 >= 0x7F }) else { return [plain] }
        var escaped: [UInt8] = []
        for scalar in String(decoding: name, as: UTF8.self).unicodeScalars {
            if scalar.value < 0x7F {
                JSONText.escape(CollectionOfOne(UInt8(scalar.value)), into: &escaped)
                continue
            }
            for unit in String(scalar).utf16 {
                let hex = String(unit, radix: 16)
                escaped += Array("\\u".utf8) + [UInt8](repeating: 0x30, count: 4 - hex.utf8.count) + Array(hex.utf8)
            }
        }
        escaped.append(UInt8(ascii: "\""))
        return [plain, escaped]
    }

    /// Number of bytes of the plain text, including both quotes.
    static func length(_ name: [UInt8]) -> Int {
        var text: [UInt8] = []
        JSONText.escape(name, into: &text)
        return text.count + 2
    }
}
