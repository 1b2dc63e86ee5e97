/// Processes a prompt, so that a later request that begins with it starts sooner.
final class PrefillWork: SequenceWork {
    let prompt: ModelInput
    let wantsPromptLogits = false

    init(prompt: ModelInput) { self.prompt = prompt }

    func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? { nil }
    func take(_ logits: UnsafeMutableBufferPointer<Float>) {}
}
