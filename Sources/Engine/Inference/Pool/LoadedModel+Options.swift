/// A question that is answered by one of several continuations of a prompt.
package struct OptionQuestion: Sendable {
    package var prompt: [TokenID]
    /// The tokens of each option; none is empty, and none begins with another one.
    package var options: [[TokenID]]

    package init(prompt: [TokenID], options: [[TokenID]]) { (self.prompt, self.options) = (prompt, options) }
}

/// How probable the options of a question are.
package struct OptionScores: Sendable, Equatable {
    /// The natural logarithm of the probability that the model writes each option, in their order. The sum over the tokens of an option,
    /// not a mean: a mean prefers long options.
    package var logProbabilities: [Double]
    package var promptTokens: Int
    /// Those of them that were processed for all questions together.
    package var sharedTokens: Int
    /// The tokens of the options that were processed. Tokens that several options begin with are processed once, and the last one of an
    /// option never is.
    package var optionTokens = 0
}

extension LoadedModel {
    /// The probabilities of the options of several questions. Prompts that begin in the same way are processed once up to there, and what
    /// remains of all questions together; so are the options.
    ///
    /// Options are a tree of tokens: the logits after a prompt say how probable the first token of each option is. Where several
    /// options go on, the next level is computed, for all options of all questions in one batch.
    ///
    /// The results do not depend on which questions are asked together.
    ///
    /// - Parameter makeSequence: makes an empty sequence.
    /// - Throws: ``GenerationFailure`` if a prompt with an option does not fit the sequence, or `CancellationError`.
    package nonisolated func scores(
        of questions: [OptionQuestion], makeSequence: @Sendable () throws -> SequenceState
    ) async throws -> [OptionScores] {
        let first = try makeSequence()
        for question in questions {
            guard !question.prompt.isEmpty else { throw GenerationFailure.emptyPrompt }
            let count = question.prompt.count + (question.options.map(\.count).max() ?? 0)
            guard count <= first.contextSize else {
                throw GenerationFailure.promptTooLong(tokens: count, contextSize: first.contextSize)
            }
        }
        // What all have in common is there before the first one begins: also where recurrent states are copied only from checkpoints.
        let shared = questions.count > 1 ? questions.map(\.prompt).commonPrefixCount : 0
        if shared > 0, let prompt = questions.first?.prompt { try await prefill(Array(prompt.prefix(shared)), in: first) }

        var scores = questions.map {
            OptionScores(
                logProbabilities: [Double](repeating: 0, count: $0.options.count), promptTokens: $0.prompt.count,
                sharedTokens: shared)
        }
        // They were processed for the first one.
        if !scores.isEmpty { scores[0].sharedTokens = 0 }
        // The sequences with the prompts stay, so that options are computed after a copy.
        var prompts: [SequenceState] = [first]
        var level = questions.indices.compactMap { index in
            questions[index].options.count > 1 ? OptionNode(root: index, questions[index]) : nil
        }
        while !level.isEmpty {
            var next: [OptionNode] = []
            for start in stride(from: 0, to: level.count, by: OptionNode.maximumSequences) {
                let nodes = level[start..<min(start + OptionNode.maximumSequences, level.count)]
                try await withThrowingTaskGroup(of: (Int, OptionNode.Result, SequenceState).self) { group in
                    for index in nodes.indices {
                        let node = nodes[index]
                        let sequence = try makeSequence()
                        group.addTask { (index, try await self.result(of: node, in: sequence), sequence) }
                    }
                    for try await (index, result, sequence) in group {
                        let node = nodes[index]
                        if node.isRoot { prompts.append(sequence) }
                        next += node.take(result, &scores[node.question])
                    }
                }
            }
            level = next
        }
        withExtendedLifetime(prompts) {}
        return scores
    }

    private nonisolated func result(of node: OptionNode, in sequence: SequenceState) async throws -> OptionNode.Result {
        let work = ScoringWork(of: node.path, after: node.prompt, candidates: node.candidates)
        try await run(work, in: sequence)
        return OptionNode.Result(path: work.logProbability, candidates: work.candidateLogProbabilities)
    }
}

/// A place in the tree of a question's options: the tokens that lead to it, and the options that go on from there.
private struct OptionNode: Sendable {
    struct Result: Sendable {
        /// The logarithm of the probability of the path.
        let path: Double
        let candidates: [Double]
    }

    /// The sequences that are computed together.
    static let maximumSequences = 16

    let question: Int
    /// What has been processed before.
    let prompt: [TokenID]
    /// The tokens from the prompt to this place.
    let path: [TokenID]
    /// The options that go through this place, and the tokens of each after it.
    private let options: [(index: Int, rest: ArraySlice<TokenID>)]
    let isRoot: Bool
    /// The different first tokens of the rests, in ascending order; none if a single option ends here.
    let candidates: [TokenID]

    init(root: Int, _ question: OptionQuestion) {
        self.init(
            question: root, prompt: question.prompt, options: question.options.enumerated().map { ($0.offset, $0.element[...]) },
            isRoot: true)
    }

    /// - Parameter options: the rests of those that begin with the same tokens, as far as they do, become the path.
    private init(question: Int, prompt: [TokenID], options: [(index: Int, rest: ArraySlice<TokenID>)], isRoot: Bool) {
        let shared = options.count == 1 ? options[0].rest.count : options.map { Array($0.rest) }.commonPrefixCount
        (self.question, self.prompt, self.isRoot) = (question, prompt, isRoot)
        path = Array(options[0].rest.prefix(shared))
        self.options = options.map { ($0.index, $0.rest.dropFirst(shared)) }
        candidates = Set(self.options.compactMap(\.rest.first)).sorted()
    }

    /// Adds what has been computed to the scores.
    ///
    /// - Returns: the places to which several tokens lead on.
    func take(_ result: Result, _ scores: inout OptionScores) -> [OptionNode] {
        // The last token of the prompt is one of the options', except at the root.
        scores.optionTokens += max(0, path.count - (candidates.isEmpty ? 1 : 0)) + (isRoot ? 0 : 1)
        for option in options { scores.logProbabilities[option.index] += result.path }
        var next: [OptionNode] = []
        for (token, logProbability) in zip(candidates, result.candidates) {
            let group = options.filter { $0.rest.first == token }
            for option in group { scores.logProbabilities[option.index] += logProbability }
            let rests = group.map { ($0.index, $0.rest.dropFirst()) }
            if rests.contains(where: { !$0.1.isEmpty }) {
                next.append(OptionNode(question: question, prompt: prompt + path + [token], options: rests, isRoot: false))
            }
        }
        return next
    }
}

extension [[TokenID]] {
    /// The number of tokens that all of these begin with.
    fileprivate var commonPrefixCount: Int {
        guard let first else { return 0 }
        return dropFirst().reduce(first.count) { count, other in zip(first.prefix(count), other).prefix { $0 == $1 }.count }
    }
}
