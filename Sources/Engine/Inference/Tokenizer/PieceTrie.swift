/// A trie over the bytes of a vocabulary's tokens, to find all tokens that are prefixes of a text.
///
/// Nodes are numbered level by level, so that the children of a node are contiguous and ordered by their bytes. A node
/// takes nine bytes.
struct PieceTrie: Sendable {
    /// The byte on the edge to each node.
    private var labels: [UInt8] = [0]
    /// The token that ends at each node, or -1.
    private var tokens: [TokenID] = [-1]
    /// The index of the first child of each node; the children end where those of the next node begin.
    private var children: [UInt32] = []

    init(_ tokens: [TokenID], bytes: (TokenID) -> ArraySlice<UInt8>) {
        // Of tokens with equal bytes, the one with the lowest id counts.
        let sorted = tokens.map { (token: $0, bytes: bytes($0)) }.sorted {
            $0.bytes.elementsEqual($1.bytes) ? $0.token < $1.token : $0.bytes.lexicographicallyPrecedes($1.bytes)
        }
        // The range of sorted tokens below each node of the current level.
        var level = [0..<sorted.count]
        var depth = 0
        while !level.isEmpty {
            var next: [Range<Int>] = []
            for range in level {
                children.append(UInt32(labels.count))
                // Tokens that end at this node come first; there may be several with equal bytes.
                var low = range.lowerBound
                while low < range.upperBound, sorted[low].bytes.count == depth { low += 1 }
                while low < range.upperBound {
                    let bytes = sorted[low].bytes
                    let label = bytes[bytes.startIndex + depth]
                    var high = low + 1
                    while high < range.upperBound, case let other = sorted[high].bytes, other[other.startIndex + depth] == label {
                        high += 1
                    }
                    labels.append(label)
                    self.tokens.append(bytes.count == depth + 1 ? sorted[low].token : -1)
                    next.append(low..<high)
                    low = high
                }
            }
            (level, depth) = (next, depth + 1)
        }
        children.append(UInt32(labels.count))
    }

    /// Calls `body` with each token that is a prefix of the text at `start`, shortest first, and with its end index.
    func forEachToken(from start: Int, in text: UnsafeBufferPointer<UInt8>, _ body: (TokenID, Int) -> Void) {
        labels.withUnsafeBufferPointer { labels in
            var node = 0
            for place in start..<text.count {
                var (low, high) = (Int(children[node]), Int(children[node + 1]))
                let end = high
                while low < high {
                    let middle = (low + high) / 2
                    if labels[middle] < text[place] { low = middle + 1 } else { high = middle }
                }
                guard low < end, labels[low] == text[place] else { return }
                node = low
                if tokens[node] >= 0 { body(tokens[node], place + 1) }
            }
        }
    }
}
