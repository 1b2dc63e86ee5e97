internal import Inference

/// Reads the states that texts leave in a model that runs on this machine: the residual stream of the last token of a prompt, divided by
/// its root mean square.
package struct PromptStates: Sendable {
    private let executor: LocalModelExecutor

    /// The adapter that was installed with the model is not used: who reads states, such as a trained probe, belongs to the weights alone, and
    /// works with each version of the adapter.
    ///
    /// - Returns: nil if the model does not run on this machine.
    package init?(model: some LanguageModel) {
        guard var local = (model as? any HasLocalModel)?.localModel else { return nil }
        local.usesInstalledAdapter = false
        executor = LocalModelExecutor(local)
    }

    /// What identifies the weights, and the number of layers.
    ///
    /// - Throws: An error if the model cannot be loaded.
    package func model() async throws -> (fingerprint: String?, layerCount: Int) { try await executor.identity() }

    /// The state after each of some layers, in their order, for a text that is a prompt without instructions.
    ///
    /// - Parameter layers: Indices of layers, from 0.
    /// - Returns: `[layers][width]`.
    /// - Throws: ``LanguageModelError`` if the text does not fit the window, or `CancellationError`.
    package func states(of text: String, layers: [Int]) async throws -> [[Float]] {
        let transcript = Transcript(entries: [.prompt(.init(segments: [.text(.init(content: text))]))])
        return try await executor.states(after: transcript, layers: layers)
    }
}
