/// Tokens of one or several sequences, one after the other, with the tokens that are to be learned.
package struct TrainingBatch {
    package var tokens: [Int32] = []
    /// The first row of each sequence, and the number of all rows.
    var starts: [Int32] = [0]
    /// For each row whose next token is learned: the row and that token.
    package var targets: [(row: Int, token: Int32)] = []

    package init() {}

    /// - Parameter isLearned: whether each token is learned, by the row before it.
    package mutating func add(_ sequence: [Int32], isLearned: [Bool]) {
        let first = tokens.count
        tokens += sequence
        starts.append(Int32(tokens.count))
        for index in sequence.indices.dropFirst() where isLearned[index] {
            targets.append((first + index - 1, sequence[index]))
        }
    }
}
