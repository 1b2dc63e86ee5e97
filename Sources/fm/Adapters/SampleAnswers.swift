import Foundation
import FoundationModelsTraining
import Inference
import InstalledModels

/// Answers to prompts of the data before and after an adapter was trained, side by side.
struct SampleAnswers {
    private let model: String
    private let base: String?
    private let adapter: String
    private let prompts: [ChatPrompt]

    /// - Parameter base: The adapter on top of which the other one was trained; nil for none.
    init(model: String, base: String?, adapter: String, _ data: TrainingData, count: Int) {
        (self.model, self.base, self.adapter) = (model, base, adapter)
        // Spread over the data.
        let rows = data.rows
        prompts = (0..<min(count, rows.count)).compactMap { index in
            guard case .chat(let messages, let tools, _) = rows[index * rows.count / min(count, rows.count)].content,
                let end = messages.firstIndex(where: { $0.role == .assistant })
            else { return nil }
            return ChatPrompt(Array(messages[..<end]), tools: tools)
        }
    }

    func show() async throws {
        guard !prompts.isEmpty else { return }
        let loaded = try await LoadedModel.load(path: model, defaults: ModelCatalogue.defaults)
        let below = [base].compactMap(\.self)
        let before = below.isEmpty ? nil : try await loaded.adapter(paths: below)
        let after = try await loaded.adapter(paths: below + [adapter])
        for prompt in prompts {
            Message.say("\n> \(prompt.messages.last?.content ?? "")")
            for (title, adapter) in [("before", before), ("after", after)] {
                var prompt = prompt
                if prompt.messages.first?.role != .system, let own = loaded.defaults.instructions {
                    prompt.messages.insert(ChatMessage(role: .system, content: own), at: 0)
                }
                // Of a long prompt, no answer is shown.
                guard try loaded.tokens(for: prompt).count < 3_500 else { continue }
                var request = GenerationRequest(
                    tokens: try loaded.tokens(for: prompt), sampling: SamplingSettings(temperature: 0))
                request.stopTokens = loaded.tokenizer.stopTokens
                request.maximumTokens = 120
                let sequence = try loaded.makeSequence(contextSize: 4096, adapter: adapter)
                var text = ""
                _ = try await loaded.generate(request, in: sequence) { piece in
                    text += piece.text
                    return true
                }
                Message.say("  \(title): \(text.replacingOccurrences(of: "\n", with: "\n          "))")
            }
        }
        Message.say("")
    }
}
