/// A set of strings as a trie. Node 0 is the root.
package struct WordTrie: Sendable {
    private var children: [[(byte: UInt8, node: Int32)]] = [[]]
    private var words: [Bool] = [false]

    package init(_ list: [[UInt8]]) {
        for word in list {
            var node: Int32 = 0
            for byte in word {
                if let next = child(of: node, byte) {
                    node = next
                } else {
                    let next = Int32(children.count)
                    children[Int(node)].append((byte, next))
                    children.append([])
                    words.append(false)
                    node = next
                }
            }
            words[Int(node)] = true
        }
    }

    func isWord(_ node: Int32) -> Bool { words[Int(node)] }
    func hasChildren(_ node: Int32) -> Bool { !children[Int(node)].isEmpty }
    package func child(of node: Int32, _ byte: UInt8) -> Int32? { children[Int(node)].first { $0.byte == byte }?.node }

    func words(below node: Int32) -> [[UInt8]] {
        var result: [[UInt8]] = []
        var open: [(node: Int32, word: [UInt8])] = [(node, [])]
        while let (node, word) = open.popLast() {
            if isWord(node) { result.append(word) }
            for child in children[Int(node)] { open.append((child.node, word + [child.byte])) }
        }
        return result
    }

    func forEachChild(of node: Int32, _ body: (UInt8, Int32) -> Void) {
        for child in children[Int(node)] { body(child.byte, child.node) }
    }
}
