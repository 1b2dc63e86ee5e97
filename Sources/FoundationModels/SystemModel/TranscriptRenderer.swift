internal import Inference

/// Transcript entries as the chat messages a model's template expects.
enum TranscriptRenderer {
    static func messages(for entries: some Sequence<Transcript.Entry>) -> [ChatMessage] {
        entries.map { entry in
            switch entry {
            case .instructions(let instructions): ChatMessage(role: .system, content: text(instructions.segments))
            case .prompt(let prompt): ChatMessage(role: .user, content: text(prompt.segments))
            case .response(let response): ChatMessage(role: .assistant, content: text(response.segments))
            }
        }
    }

    private static func text(_ segments: [Transcript.Segment]) -> String {
        segments.map { segment in
            switch segment {
            case .text(let text): text.content
            }
        }.joined(separator: "\n")
    }
}

extension SamplingSettings {
    /// What the options ask for; what they leave open is chosen as the default model's authors recommend
    /// (temperature 0.2 and top-p 0.9), with a penalty on repetition that keeps a small model out of loops.
    init(_ options: GenerationOptions) {
        switch options.samplingMode?.kind {
        case .greedy: self = .greedy
        case .randomTopK(let k, let seed): self.init(temperature: options.temperature ?? 1, topK: k, seed: seed)
        case .randomProbabilityThreshold(let threshold, let seed):
            self.init(temperature: options.temperature ?? 1, topP: threshold, seed: seed)
        case nil: self.init(temperature: options.temperature ?? 0.2, topP: 0.9, repetitionPenalty: 1.15)
        }
    }
}
