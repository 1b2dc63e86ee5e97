import Foundation
import FoundationModelsTraining
import Inference

/// Shows rows as the model reads them, with what is learned in colour, or in brackets where there are no colours.
struct TrainingPreview {
    private let encoder: SequenceEncoder
    private let data: TrainingData
    private static let shownRows = 5

    init(model path: String, _ data: TrainingData) throws {
        do { encoder = try SequenceEncoder(GGUFFile(path: path)) } catch let error as ModelError {
            throw TrainingError.damagedModel(error.description)
        }
        self.data = data
    }

    func show() throws {
        let hasColors = isatty(STDOUT_FILENO) == 1
        let (begin, end) = hasColors ? ("\u{1B}[32m", "\u{1B}[0m") : ("⟦", "⟧")
        var (tokens, learned, longest) = (0, 0, 0)
        for (number, row) in data.rows.enumerated() {
            for sequence in try encoder.sequences(row) {
                tokens += sequence.tokens.count
                learned += sequence.learnedCount
                longest = max(longest, sequence.tokens.count)
                guard number < Self.shownRows else { continue }
                print("── line \(sequence.line): \(sequence.tokens.count) tokens, \(sequence.learnedCount) learned")
                var bytes: [UInt8] = []
                var isInside = false
                var text = ""
                func flush() {
                    text += TerminalText.safe(String(decoding: bytes, as: UTF8.self))
                    bytes = []
                }
                for (token, isLearned) in zip(sequence.tokens, sequence.isLearned) {
                    if isLearned != isInside {
                        flush()
                        text += isLearned ? begin : end
                        isInside = isLearned
                    }
                    bytes += encoder.bytes(of: token)
                }
                flush()
                print(text + (isInside ? end : ""))
            }
        }
        print(
            "\(data.count) rows, \(tokens) tokens, \(learned) learned (\(begin)marked\(end)); the longest row has \(longest) tokens."
        )
    }
}

/// Answers to prompts of the data by the model alone and with an adapter, side by side.
struct SampleAnswers {
    private let model: String
    private let adapter: String
    private let prompts: [ChatPrompt]

    init(model: String, adapter: String, _ data: TrainingData, count: Int) {
        (self.model, self.adapter) = (model, adapter)
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
        let loaded = try await LoadedModel.load(path: model)
        let factors = try await loaded.adapter(path: adapter)
        for prompt in prompts {
            Message.say("\n> \(prompt.messages.last?.content ?? "")")
            for (title, adapter) in [("before", nil), ("after", factors)] {
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
