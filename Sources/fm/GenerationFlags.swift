import ArgumentParser
import Foundation
import FoundationModels
import Inference

/// The flags of all commands that generate text.
struct GenerationFlags: ParsableArguments {
    @Option(name: .shortAndLong, help: "Instructions for the model; they take precedence over prompts.")
    var instructions: String?

    @Option(
        name: [.short, .long], help: ArgumentHelp("An installed model or a GGUF file to use this time.", valueName: "name"))
    var model: String?

    @Option(
        help: ArgumentHelp(
            "An adapter of the model to use this time: a file, a name of “fm adapter list”, or none.", valueName: "file"))
    var adapter: String?

    @Flag(name: .shortAndLong, help: "Always select the most probable token: the answer is repeatable.")
    var greedy = false

    @Option(help: "Randomness of sampling, 0 to 2 (default: depends on the model; 1 with --top-k or --top-p).")
    var temperature: Double?

    @Option(help: "Sample from the K most probable tokens.")
    var topK: Int?

    @Option(help: "Sample from the most probable tokens that together reach probability P (default: depends on the model).")
    var topP: Double?

    @Option(help: "A seed that makes sampling repeatable.")
    var seed: UInt64?

    @Option(help: "Stop the answer after this many tokens (default: \(GenerationFlags.defaultMaxTokens)).")
    var maxTokens: Int?

    /// Enough for a long letter. It stops a model that does not end its answer.
    static let defaultMaxTokens = 1500

    func validate() throws {
        if greedy, temperature != nil || topK != nil || topP != nil || seed != nil {
            throw ValidationError("--greedy cannot be combined with --temperature, --top-k, --top-p or --seed.")
        }
        if topK != nil, topP != nil { throw ValidationError("Use either --top-k or --top-p, not both.") }
        if let temperature, !(0...2).contains(temperature) { throw ValidationError("--temperature must be from 0 to 2.") }
        if let topK, topK < 1 { throw ValidationError("--top-k must be at least 1.") }
        if let topP, !(topP > 0 && topP <= 1) { throw ValidationError("--top-p must be greater than 0 and at most 1.") }
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

    /// Makes `--model` the system model, with `--adapter`, or the one of `fm adapter use` if it was made for this model. Must be called
    /// before the system model is first used.
    func selectModel() throws {
        try ModelChoice.select(model: model, adapter: adapter)
    }
}
