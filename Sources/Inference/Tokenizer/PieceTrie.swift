/// The tokens of a vocabulary as a trie over their bytes, to find all that a text begins with.
///
/// Nodes are numbered level by level, so that the children of a node are neighbours, in the order of their bytes: a node takes nine
/// bytes.
struct PieceTrie: Sendable {
    /// The byte that leads to a node.
    private var labels: [UInt8] = [0]
    /// The token that ends at a node, or -1.
    private var tokens: [TokenID] = [-1]
    /// Where the children of a node begin; the next node's begin where they end.
    private var children: [UInt32] = []

    init(_ tokens: [TokenID], bytes: (TokenID) -> ArraySlice<UInt8>) {
        // Of equal tokens the first one counts.
        let sorted = tokens.map { (token: $0, bytes: bytes($0)) }.sorted {
            $0.bytes.elementsEqual($1.bytes) ? $0.token < $1.token : $0.bytes.lexicographicallyPrecedes($1.bytes)
        }
        // The tokens below each node of a level: those that begin with the bytes that lead to it.
        var level = [0..<sorted.count]
        var depth = 0
        while !level.isEmpty {
            var next: [Range<Int>] = []
            for range in level {
                children.append(UInt32(labels.count))
                // The token that ends here comes first, perhaps several times.
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

    /// Calls `body` with each token that the text at `start` begins with, the shortest first, and where it ends.
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
