import ArgumentParser
import Foundation
import FoundationModels

/// The flags of all commands that generate text.
struct GenerationFlags: ParsableArguments {
    @Option(name: .shortAndLong, help: "What the model is told before the conversation; outranks prompts.")
    var instructions: String?

    @Option(
        name: [.short, .long], help: ArgumentHelp("An installed model, or a GGUF file, to use this time.", valueName: "name"))
    var model: String?

    @Flag(name: .shortAndLong, help: "Always take the most probable token: the same answer each time.")
    var greedy = false

    @Option(help: "How freely words are chosen, 0 to 2 (default: what suits the model, or 1 with --top-k or --top-p).")
    var temperature: Double?

    @Option(help: "Choose among the K most probable tokens.")
    var topK: Int?

    @Option(help: "Choose among the most probable tokens that together reach probability P (default: what suits the model).")
    var topP: Double?

    @Option(help: "A number that makes random choices repeatable; goes with --top-k or --top-p.")
    var seed: UInt64?

    @Option(help: "Cut the answer after this many tokens (default: \(GenerationFlags.defaultMaxTokens)).")
    var maxTokens: Int?

    /// Enough for a long letter; a model that does not find an end is stopped.
    static let defaultMaxTokens = 1500

    func validate() throws {
        if greedy, temperature != nil || topK != nil || topP != nil || seed != nil {
            throw ValidationError("--greedy leaves no choice: it does not go with --temperature, --top-k, --top-p or --seed.")
        }
        if topK != nil, topP != nil { throw ValidationError("Give either --top-k or --top-p, not both.") }
        if let temperature, !(0...2).contains(temperature) { throw ValidationError("--temperature goes from 0 to 2.") }
        if let topK, topK < 1 { throw ValidationError("--top-k must be at least 1.") }
        if let topP, !(topP > 0 && topP <= 1) { throw ValidationError("--top-p goes from above 0 to 1.") }
        if let maxTokens, maxTokens < 1 { throw ValidationError("--max-tokens must be at least 1.") }
    }

    var options: GenerationOptions {
        let mode: GenerationOptions.SamplingMode? =
            if greedy { .greedy } else if let topK { .random(top: topK, seed: seed) } else if let topP {
                .random(probabilityThreshold: topP, seed: seed)
            } else if let seed { .random(probabilityThreshold: 0.9, seed: seed) } else { nil }
        return GenerationOptions(
            samplingMode: mode, temperature: temperature ?? (topK == nil && topP == nil && seed != nil ? 0.7 : nil),
            maximumResponseTokens: maxTokens ?? Self.defaultMaxTokens)
    }

    /// Makes `--model` the system model, before it is first used.
    func selectModel() {
        if let model { setenv("FM_MODEL", model, 1) }
    }

    func makeSession() -> LanguageModelSession { LanguageModelSession(instructions: instructions) }
}
