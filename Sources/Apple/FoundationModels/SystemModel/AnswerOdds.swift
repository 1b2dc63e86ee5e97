internal import Inference

/// Compares how likely a model is to begin its answer in one way or another. Unlike a constrained answer, which says only which of
/// two is more likely, the odds can be compared with a threshold.
package struct AnswerOdds: Sendable {
    private let executor: LocalModelExecutor
    private let instructions: String

    /// - Returns: nil if the model does not run on this machine.
    package init?(model: some LanguageModel, instructions: String) {
        guard let model = model as? any HasLocalModel else { return nil }
        executor = LocalModelExecutor(model.localModel)
        self.instructions = instructions
    }

    /// The natural logarithm of the odds of `yes` against `no` as the first word of the answer to a prompt. What prompts have in
    /// common with the last one is not computed again.
    ///
    /// - Throws: ``LanguageModelError`` if the prompt does not fit the window, or `CancellationError`.
    package func logOdds(_ prompt: String, yes: String = "Yes", no: String = "No") async throws -> Double {
        let transcript = Transcript(entries: [
            .instructions(.init(segments: [.text(.init(content: instructions))], toolDefinitions: [])),
            .prompt(.init(segments: [.text(.init(content: prompt))])),
        ])
        return try await executor.logOdds(of: yes, against: no, after: transcript)
    }
}
