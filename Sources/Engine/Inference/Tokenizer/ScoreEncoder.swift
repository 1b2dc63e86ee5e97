/// SentencePiece's BPE (arXiv:1808.06226): repeatedly merges the adjacent pair whose concatenation is the token with
/// the highest score; of equal scores, the leftmost pair.
///
/// Pairs are stored in a heap, so that no input takes quadratic time. Buffers are reused between words.
struct ScoreEncoder {
    private struct Symbol { var start: Int32, count: Int32, previous: Int32, next: Int32 }
    private struct Candidate: HeapElement {
        var score: Float, position: Int32, count: Int32

        /// A position is the index of the symbol's first character, so it reflects the order in the word.
        func precedes(_ other: Candidate) -> Bool {
            score != other.score ? score > other.score : position < other.position
        }
    }

    private var symbols: [Symbol] = []
    private var heap = Heap<Candidate>()

    /// Appends the tokens of `word`. Characters that are not tokens are encoded as byte tokens or unknown tokens.
    mutating func encode(_ word: UnsafeBufferPointer<UInt8>, with vocabulary: Vocabulary, into output: inout [TokenID]) {
        symbols.removeAll(keepingCapacity: true)
        heap.removeAll()
        var start = 0
        while start < word.count {
            let end = UTF8Length.end(of: start, in: word)
            let index = Int32(symbols.count)
            symbols.append(Symbol(start: Int32(start), count: Int32(end - start), previous: index - 1, next: index + 1))
            start = end
        }
        guard !symbols.isEmpty else { return }
        symbols[symbols.count - 1].next = -1
        for index in 0..<symbols.count - 1 { push(Int32(index), word, vocabulary) }
        while let candidate = heap.pop() {
            let left = Int(candidate.position)
            // Skip entries whose symbols have been merged in the meantime.
            guard symbols[left].count > 0, symbols[left].next >= 0,
                symbols[left].count + symbols[Int(symbols[left].next)].count == candidate.count
            else { continue }
            let right = Int(symbols[left].next)
            symbols[left].count = candidate.count
            symbols[right].count = 0
            symbols[left].next = symbols[right].next
            if symbols[left].next >= 0 {
                symbols[Int(symbols[left].next)].previous = Int32(left)
                push(Int32(left), word, vocabulary)
            }
            if symbols[left].previous >= 0 { push(symbols[left].previous, word, vocabulary) }
        }
        var index: Int32 = 0
        while index >= 0 {
            let symbol = symbols[Int(index)]
            let bytes = word[Int(symbol.start)..<Int(symbol.start + symbol.count)]
            if let token = vocabulary.token(for: UnsafeBufferPointer(rebasing: bytes)) {
                output.append(token)
            } else {
                for byte in bytes {
                    let token = vocabulary.byteTokens[Int(byte)]
                    if token >= 0 {
                        output.append(token)
                    } else if let unknown = vocabulary.unknownToken {
                        output.append(unknown)
                    }
                }
            }
            index = symbol.next
        }
    }

    /// Adds the pair that begins at a symbol to the heap, if its concatenation is a token.
    private mutating func push(_ left: Int32, _ word: UnsafeBufferPointer<UInt8>, _ vocabulary: Vocabulary) {
        let (a, next) = (symbols[Int(left)], symbols[Int(left)].next)
        guard next >= 0 else { return }
        let count = a.count + symbols[Int(next)].count
        guard count <= vocabulary.longestToken else { return }
        let bytes = UnsafeBufferPointer(rebasing: word[Int(a.start)..<Int(a.start + count)])
        guard let token = vocabulary.token(for: bytes) else { return }
        heap.push(Candidate(score: vocabulary.scores[Int(token)], position: left, count: count))
    }
}

enum UTF8Length {
    /// The end of the character at `start`; a byte that does not begin a valid sequence counts as one character.
    static func end(of start: Int, in bytes: UnsafeBufferPointer<UInt8>) -> Int {
        let first = bytes[start]
        let length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
        guard start + length <= bytes.count else { return start + 1 }
        for index in start + 1..<max(start + 1, start + length) where bytes[index] & 0xC0 != 0x80 { return start + 1 }
        return start + length
    }
}
