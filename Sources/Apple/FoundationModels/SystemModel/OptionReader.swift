internal import Inference
internal import Synchronization

/// A prompt, and texts of which one is the model's answer.
package struct OptionPrompt: Sendable {
    package enum Closing: Sendable, Equatable {
        /// The options are the beginnings of answers.
        case none
        /// Each option is the whole answer.
        case endOfTurn
        /// Each option is followed by this text.
        case text(String)
    }

    package var entries: [Transcript.Entry]
    /// What the answer begins with, before the option.
    package var opening: String
    /// Texts that are not empty, each different from the others.
    package var options: [String]
    package var closing: Closing

    package init(_ entries: [Transcript.Entry], opening: String = "", options: [String], closing: Closing = .none) {
        (self.entries, self.opening, self.options, self.closing) = (entries, opening, options, closing)
    }
}

/// What a model says of the options of several prompts.
package struct OptionReading: Sendable {
    /// The natural logarithms of the probabilities of each prompt's options.
    package var logProbabilities: [[Double]]
    /// The tokens of each prompt.
    package var promptTokens: [Int]
    /// Those of all prompts but the first one that were processed with it.
    package var sharedTokens: Int
    /// The tokens of options that were processed.
    package var optionTokens: Int
    /// Identifies the weights of the model and of its adapter.
    package var fingerprint: String?
}

/// Says how probable each of several answers of a model is, without generating one: the probabilities can be compared with each other, and
/// with a threshold.
package struct OptionReader: Sendable {
    private let executor: LocalModelExecutor
    /// Readers of different domains share no computed prompts.
    package var domain: UInt64 = 0

    /// - Returns: nil if the model does not run on this machine.
    package init?(model: some LanguageModel) {
        guard let model = model as? any HasLocalModel else { return nil }
        executor = LocalModelExecutor(model.localModel)
    }

    /// Reads options with a model file.
    package init(_ model: LocalModel) { executor = LocalModelExecutor(model) }

    /// - Throws: ``LanguageModelError`` if a prompt does not fit the window, or `CancellationError`.
    package func read(_ prompts: [OptionPrompt]) async throws -> OptionReading {
        do { return try await executor.read(prompts, domain: domain) } catch { throw _SessionFailure.wrapping(error) }
    }

    /// The natural logarithm of the odds of `yes` against `no` as the first word of the answer to a prompt.
    ///
    /// - Throws: ``LanguageModelError`` if the prompt does not fit the window, or `CancellationError`.
    package func logOdds(_ prompt: String, instructions: String, yes: String = "Yes", no: String = "No") async throws -> Double {
        let entries: [Transcript.Entry] = [
            .instructions(.init(segments: [.text(.init(content: instructions))], toolDefinitions: [])),
            .prompt(.init(segments: [.text(.init(content: prompt))])),
        ]
        let odds = try await executor.read([OptionPrompt(entries, options: [yes, no])], domain: domain).logProbabilities[0]
        return odds[0] - odds[1]
    }
}

extension LanguageModelSession {
    /// The model of the next request, and the entries that its prompt follows.
    package func nextRequest(
        isolation: isolated (any Actor)? = #isolation
    ) async -> (model: any LanguageModel, entries: [Transcript.Entry]) {
        let profile = await behavior.resolved(on: isolation)
        let transcript = behavior.completed(state.withLock { $0.transcript }, profile)
        return (profile.model ?? SystemLanguageModel.default, Array(transcript))
    }
}
