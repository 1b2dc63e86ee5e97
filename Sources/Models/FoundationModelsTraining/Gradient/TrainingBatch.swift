internal import Inference

/// Tokens of one or several sequences, one after the other, with the tokens that are to be learned.
package struct TrainingBatch {
    package var tokens: [Int32] = []
    /// The first row of each sequence, and the number of all rows.
    var starts: [Int32] = [0]
    /// The rows of each sequence that its branches have in common, see ``TrainingSequence/branches``.
    var prefixes: [Int32] = []
    /// For each row, the first row of its branch within the sequence; 0 for rows that all branches have in common.
    var branches: [Int32] = []
    /// The position of each row in its conversation.
    var positions: [Int32] = []
    private(set) var hasBranches = false
    /// For each row whose next token is learned: the row and that token.
    package var targets: [(row: Int, token: Int32)] = []

    package init() {}

    /// - Parameter isLearned: whether each token is learned, by the row before it.
    package mutating func add(_ sequence: [Int32], isLearned: [Bool]) {
        add(TrainingSequence(line: 0, tokens: sequence, isLearned: isLearned))
    }

    package mutating func add(_ sequence: TrainingSequence) {
        let first = tokens.count
        tokens += sequence.tokens
        starts.append(Int32(tokens.count))
        let prefix = sequence.branches.first ?? 0
        prefixes.append(Int32(prefix))
        if !sequence.branches.isEmpty { hasBranches = true }
        var branch = 0
        var next = sequence.branches[...]
        for index in sequence.tokens.indices {
            if index == next.first {
                branch = index
                next.removeFirst()
            }
            branches.append(Int32(branch))
            positions.append(Int32(branch == 0 ? index : prefix + index - branch))
            // The first token of a branch is never learned: the row before it is of another branch.
            if index > 0, index != branch, sequence.isLearned[index] {
                targets.append((first + index - 1, sequence.tokens[index]))
            }
        }
    }
}
