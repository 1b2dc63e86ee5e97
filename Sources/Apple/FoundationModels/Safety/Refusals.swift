internal import TextScreening

/// Recognises guided responses in which the model declines the request. Decoding is constrained to the schema, so a model declines
/// in the texts of a value.
enum Refusals {
    /// The minimum log-odds of a prompt with which “This is not allowed.” is a refusal, instead of an answer: 70 % of unsafe prompts have
    /// it. It is below the threshold of the guardrail, because such prompts are accepted.
    static let promptThreshold: Float = -0.3

    /// The error of a guided response that is a refusal. Its explanation is what the model wrote.
    static func refusal(in json: String, prompt: String) -> LanguageModelError? {
        // An incomplete document has an error of its own.
        guard let content = try? GeneratedContent(json: json) else { return nil }
        // Only the first text counts: later ones may quote somebody. It may do so too, where the prompt is about such a text.
        guard let text = firstText(of: content),
            RefusalText.isRefusal(text)
                || RefusalText.judgesRequest(text) && UnsafeTextScore.score(prompt).unsafe >= promptThreshold,
            !RefusalText.isSubject(of: prompt)
        else { return nil }
        return .refusal(.init(explanation: text, debugDescription: "The model declined the request: \(text)"))
    }

    private static func firstText(of content: GeneratedContent) -> String? {
        switch content.kind {
        case .string(let text): return text
        case .array(let elements): return elements.lazy.compactMap { firstText(of: $0) }.first
        case .structure(let properties, let keys):
            return keys.lazy.compactMap { properties[$0] }.compactMap { firstText(of: $0) }.first
        default: return nil
        }
    }
}
