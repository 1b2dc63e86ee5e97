package import Inference
internal import ModelPrompts

/// Checks a model's turn for safety while it is generated: the states that the prompt leaves in the model, and the text of the answer.
package struct TurnGuard {
    private var output: CheckedOutput
    private let probe: GuardrailProbe?
    /// The states that the probe reads, by layer.
    private var states: [Int: [Float]] = [:]
    /// What the words of the prompt say, until the probe has confirmed it or not.
    private var suspicion: Guardrail.Violation?
    private var promptViolation: Guardrail.Violation?

    /// - Parameters:
    ///   - isChecked: whether the answer is checked.
    ///   - probe: reads the states; nil if the model has none.
    ///   - suspicion: what the words of the prompt say.
    init(isChecked: Bool, probe: GuardrailProbe?, suspicion: Guardrail.Violation?) {
        output = CheckedOutput(isChecked: isChecked)
        (self.probe, self.suspicion) = (probe, suspicion)
    }

    /// The checks of a prompt for a model, as sessions have them.
    ///
    /// - Parameters:
    ///   - usesAssistant: whether the model's adapter for general use is in use, and no other.
    ///   - hasOtherAdapter: whether another one is, whose states no probe knows: then the words decide.
    package init(prompt: String, _ model: LoadedModel, usesAssistant: Bool, hasOtherAdapter: Bool, hasSchema: Bool) {
        let probe = GuardrailProbe.probe(of: model.fingerprint, usesAssistant: usesAssistant, hasSchema: hasSchema)
        self.init(
            isChecked: true, probe: hasOtherAdapter || usesAssistant && probe?.usesAssistant != true ? nil : probe,
            suspicion: Guardrail.violation(in: ModelPrompts.ownWords(in: prompt), threshold: Guardrail.promptThreshold))
    }

    /// The layers after which the states of the prompt's last token are needed.
    package var layers: [Int] { probe?.layers ?? [] }

    /// Whether the prompt is unsafe by its words alone, and nothing can say otherwise.
    package var isPromptUnsafe: Bool { probe == nil && suspicion != nil }

    /// The error of an unsafe prompt or response, once it is complete.
    package var violation: LanguageModelError? {
        mutating get { (promptViolation ?? suspicion).map { Guardrail.error("The prompt", $0) } ?? output.violation }
    }

    /// Takes the state of a layer; returns false to end the turn. The states come before all text.
    package mutating func take(_ state: [Float], layer: Int) -> Bool {
        states[layer] = state
        guard let probe, let score = probe.score(states) else { return true }
        if score >= probe.threshold - (suspicion == nil ? 0 : probe.marginOfSuspicion) {
            promptViolation = suspicion ?? .init(category: "unsafe", score: score)
            return false
        }
        suspicion = nil
        return true
    }

    /// Takes a part of the answer; returns false to end the turn.
    package mutating func take(_ text: String) -> Bool {
        output.append(text)
        return !output.isUnsafe
    }
}
