internal import Inference
internal import ModelPrompts

/// The checks of a prompt for safety and language, as far as they need no model.
struct InputChecks {
    /// Whether the texts of the request and its response are checked.
    let isChecked: Bool
    /// The probe that reads the model's states after the prompt; nil if the model has none.
    private(set) var probe: GuardrailProbe?
    /// What the user's own words say of a prompt. The probe confirms it or not, if the model has one: it reads them in their context.
    private(set) var suspicion: Guardrail.Violation?

    /// - Parameter usesAssistant: whether the conversation uses the model's adapter for general use, and no other.
    init(
        _ request: LanguageModelExecutorGenerationRequest, _ configuration: LocalModel, _ model: LoadedModel, usesAssistant: Bool
    ) {
        isChecked = configuration.checksText || request.schema != nil && configuration.checksValues
        guard isChecked else { return }
        probe = GuardrailProbe.probe(
            of: model.fingerprint, usesAssistant: usesAssistant, hasSchema: request.schema != nil || request.format != nil)
        suspicion = Guardrail.violation(
            in: ModelPrompts.ownWords(in: request.transcript.lastPromptText), threshold: Guardrail.promptThreshold)
    }

    /// Checks the prompt now.
    ///
    /// - Parameter states: the states of the prompt after some layers, computed without the adapter of the conversation; nil if it has
    ///   none, or if the probe was trained with it: then the turn itself reads them. Another adapter changes the states that the probe
    ///   reads, so that a suspicion is confirmed in a pass of its own.
    /// - Throws: an error of the guardrail, or of a language that the model does not support.
    mutating func check(
        _ transcript: Transcript, languages: LanguageCheck, statesWithoutAdapter states: (([Int]) async throws -> [Int: [Float]])?
    ) async throws {
        if let known = probe, let states {
            if let found = suspicion {
                let score = known.score(try await states(known.layers))
                suspicion = score.map { $0 >= known.threshold - known.marginOfSuspicion } ?? true ? found : nil
            }
            probe = nil
        }
        if let suspicion, probe == nil { throw Guardrail.error("The prompt", suspicion) }
        try languages.check(transcript)
    }
}
