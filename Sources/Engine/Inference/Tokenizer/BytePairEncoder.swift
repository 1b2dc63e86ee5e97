/// Byte-pair encoding of one word, from its bytes or, for vocabularies without a byte alphabet, from its characters:
/// repeatedly merges the adjacent pair with the lowest rank (Sennrich et al., arXiv:1508.07909); of equal ranks, the
/// leftmost pair.
///
/// Short words are scanned, long ones use a heap, so that no input takes quadratic time. Buffers are reused between
/// words.
struct BytePairEncoder {
    private struct Symbol { var token: TokenID, previous: Int32, next: Int32 }
    private struct Candidate: HeapElement {
        var rank: UInt32, position: Int32, left: TokenID, right: TokenID, result: TokenID

        func precedes(_ other: Candidate) -> Bool { (rank, position) < (other.rank, other.position) }
    }

    private var symbols: [Symbol] = []
    private var heap = Heap<Candidate>()

    private static let scanLimit = 24

    /// Appends the tokens of `word`.
    mutating func encode(_ word: UnsafeBufferPointer<UInt8>, with vocabulary: Vocabulary, into output: inout [TokenID]) {
        if vocabulary.model == .gpt2, let whole = word.count == 1 ? vocabulary.byteTokens[Int(word[0])] : nil {
            if whole >= 0 { output.append(whole) }
            return
        }
        if word.count <= Self.scanLimit {
            encodeByScanning(word, with: vocabulary, into: &output)
        } else {
            encodeWithHeap(word, with: vocabulary, into: &output)
        }
    }

    private func encodeByScanning(_ word: UnsafeBufferPointer<UInt8>, with vocabulary: Vocabulary, into output: inout [TokenID]) {
        withUnsafeTemporaryAllocation(of: TokenID.self, capacity: Self.scanLimit) { tokens in
            withUnsafeTemporaryAllocation(of: MergeTable.Merge.self, capacity: Self.scanLimit) { merges in
                var count = 0
                Self.forEachSymbol(of: word, in: vocabulary) {
                    tokens[count] = $0
                    count += 1
                }
                let none = MergeTable.Merge(rank: .max, result: -1)
                // merges[i] is the merge of tokens[i] and tokens[i + 1].
                for i in 0..<max(0, count - 1) { merges[i] = vocabulary.merge(tokens[i], tokens[i + 1]) ?? none }
                while count > 1 {
                    var best = 0
                    for i in 1..<max(1, count - 1) where merges[i].rank < merges[best].rank { best = i }
                    guard merges[best].rank != .max else { break }
                    tokens[best] = merges[best].result
                    count -= 1
                    for i in best + 1..<max(best + 1, count) {
                        tokens[i] = tokens[i + 1]
                        merges[i - 1] = merges[i]
                    }
                    if best > 0 { merges[best - 1] = vocabulary.merge(tokens[best - 1], tokens[best]) ?? none }
                    if best + 1 < count { merges[best] = vocabulary.merge(tokens[best], tokens[best + 1]) ?? none }
                }
                output.append(contentsOf: tokens[..<count])
            }
        }
    }

    private mutating func encodeWithHeap(
        _ word: UnsafeBufferPointer<UInt8>, with vocabulary: Vocabulary, into output: inout [TokenID]
    ) {
        symbols.removeAll(keepingCapacity: true)
        heap.removeAll()
        Self.forEachSymbol(of: word, in: vocabulary) { token in
            let index = Int32(symbols.count)
            symbols.append(Symbol(token: token, previous: index - 1, next: index + 1))
        }
        guard !symbols.isEmpty else { return }
        symbols[symbols.count - 1].next = -1
        for i in 0..<symbols.count - 1 { push(Int32(i), Int32(i + 1), vocabulary) }
        while let candidate = heap.pop() {
            let left = candidate.position
            let right = symbols[Int(left)].next
            // Skip entries whose tokens have been merged in the meantime.
            guard right >= 0, symbols[Int(left)].token == candidate.left, symbols[Int(right)].token == candidate.right else {
                continue
            }
            symbols[Int(left)].token = candidate.result
            symbols[Int(right)].token = -1
            let next = symbols[Int(right)].next
            symbols[Int(left)].next = next
            if next >= 0 {
                symbols[Int(next)].previous = left
                push(left, next, vocabulary)
            }
            let previous = symbols[Int(left)].previous
            if previous >= 0 { push(previous, left, vocabulary) }
        }
        var index: Int32 = 0
        while index >= 0 {
            output.append(symbols[Int(index)].token)
            index = symbols[Int(index)].next
        }
    }

    /// Calls `body` with the initial tokens of a word, before any merge.
    private static func forEachSymbol(
        of word: UnsafeBufferPointer<UInt8>, in vocabulary: Vocabulary, _ body: (TokenID) -> Void
    ) {
        if vocabulary.model == .gpt2 {
            for byte in word where vocabulary.byteTokens[Int(byte)] >= 0 { body(vocabulary.byteTokens[Int(byte)]) }
            return
        }
        var start = 0
        while start < word.count {
            let end = UTF8Length.end(of: start, in: word)
            if let token = vocabulary.token(for: UnsafeBufferPointer(rebasing: word[start..<end])) {
                body(token)
            } else {
                for byte in word[start..<end] where vocabulary.byteTokens[Int(byte)] >= 0 {
                    body(vocabulary.byteTokens[Int(byte)])
                }
            }
            start = end
        }
    }

    private mutating func push(_ left: Int32, _ right: Int32, _ vocabulary: Vocabulary) {
        let (a, b) = (symbols[Int(left)].token, symbols[Int(right)].token)
        guard let merge = vocabulary.merge(a, b) else { return }
        heap.push(Candidate(rank: merge.rank, position: left, left: a, right: b, result: merge.result))
    }
}
