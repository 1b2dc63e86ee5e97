extension NeuralModel {
    /// Appends tokens to an empty cache and passes the logits of each row from `first` on to a function, with the token that follows.
    /// The function may overwrite them.
    package func forEachRow(
        of tokens: [TokenID], from first: Int, cache: KVCache, isCancelled: () -> Bool,
        _ body: (_ row: Int, _ logits: UnsafeMutableBufferPointer<Float>, _ next: TokenID) throws -> Void
    ) throws {
        var start = 0
        while start < tokens.count {
            let end = min(start + scratch.batch, tokens.count)
            try forward(tokens[start..<end], cache: cache, wantsLogits: false, isCancelled: isCancelled)
            var row = max(start, first)
            while row < end, row < tokens.count - 1 {
                let count = min(limits.logitRows, min(end, tokens.count - 1) - row)
                computeLogits(ofRows: Array(row - start..<row - start + count)[...], candidates: nil)
                for index in 0..<count { try body(row + index, logits(index), tokens[row + index + 1]) }
                row += count
            }
            start = end
        }
    }
}
