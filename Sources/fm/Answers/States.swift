import ArgumentParser
import Foundation
import Inference
import InstalledModels

/// Writes the states that prompts leave in the model, from which the guardrail's probe is trained: see
/// Tests/Tools/train_probe.py.
struct States: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write the residual stream after the last token of each prompt or response, for training probes.",
        shouldDisplay: false)

    @Argument(help: "A file with a JSON object in each line: prompt, and instructions and response if any.") var file: String
    @Option(help: "A layer after which the state is taken, counted from 0. Can be repeated.") var layer: [Int]
    @Option(help: "The file that receives, for each prompt and layer, the values as 32-bit numbers.") var out: String
    @OptionGroup var modelFlags: ModelFlags

    private struct Line: Decodable {
        var prompt: String
        var instructions: String?
        /// An answer, after whose last token the state is taken.
        var response: String?
    }

    /// Probes read the states of a model alone, or with its adapter for general use, whose file --adapter names then: the model and the adapter in
    /// use do not count.
    func choice() throws -> ModelChoice {
        try ModelChoice(model: modelFlags.model ?? ModelCatalogue.standard.name, adapter: modelFlags.adapter ?? "none")
    }

    func run() async throws {
        let lines = try TextFile.read(file).split(separator: "\n")
            .map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
        let (model, adapter) = try await choice().loaded()
        let sequence = try model.makeSequence(contextSize: 2_048, adapter: adapter)
        var output = Data()
        for line in lines {
            var messages = [ChatMessage(role: .user, content: line.prompt)]
            if let instructions = line.instructions ?? model.defaults.instructions {
                messages.insert(ChatMessage(role: .system, content: instructions), at: 0)
            }
            let tokens = try model.tokens(for: ChatPrompt(messages)) + (line.response.map { model.tokenizer.encode($0) } ?? [])
            var request = GenerationRequest(tokens: tokens, sampling: .greedy, maximumTokens: 1)
            request.stateLayers = layer
            var states: [Int: [Float]] = [:]
            _ = try await model.generateTurn(request, in: sequence) { event in
                if case .state(let values, let layer) = event { states[layer] = values }
                return true
            }
            for layer in layer { (states[layer] ?? []).withUnsafeBytes { output.append(contentsOf: $0) } }
        }
        try output.write(to: URL(filePath: out))
        print("fingerprint \(model.fingerprint ?? "unknown")")
    }
}
