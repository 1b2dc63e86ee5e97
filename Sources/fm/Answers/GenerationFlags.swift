import ArgumentParser
import Foundation
import FoundationModels
import FoundationModelsGGUF
import Inference

/// The flags of all commands that generate text.
struct GenerationFlags: ParsableArguments {
    @Option(name: .shortAndLong, help: "Instructions for the model; they take precedence over prompts.")
    var instructions: String?

    @OptionGroup var modelFlags: ModelFlags

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

    @OptionGroup var sampling: SamplingFlags

    @Option(help: Guardrails.help)
    var guardrails = Guardrails.default

    /// What to say of an answer that was ended at a maximum number of tokens; nil if its user chose the maximum.
    func limitMessage(_ tokens: Int = defaultMaxTokens) -> String? {
        maxTokens == nil ? "(Stopped after \(tokens) tokens; --max-tokens allows more.)" : nil
    }

    /// Enough for a long letter. It stops a model that does not end its answer.
    static let defaultMaxTokens = 1500

    func validate() throws {
        if greedy, temperature != nil || topK != nil || topP != nil || seed != nil || sampling.minP != nil {
            throw ValidationError("--greedy cannot be combined with --temperature, --top-k, --top-p, --min-p or --seed.")
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
        var options = GenerationOptions(
            samplingMode: mode, temperature: temperature ?? (topK == nil && topP == nil && seed != nil ? 0.7 : nil),
            maximumResponseTokens: maxTokens ?? Self.defaultMaxTokens)
        sampling.apply(to: &options)
        return options
    }
}

/// The checks of prompts and answers, with Apple's names.
enum Guardrails: String, CaseIterable, ExpressibleByArgument {
    case `default`
    case permissiveContentTransformations = "permissive-content-transformations"

    static let help: ArgumentHelp =
        "Checks of the prompt and the answer; the permissive ones are for changing texts that may be unsafe."

    /// In a program, permissive checks are none of texts but some of values. Here, the command may have chosen the form of values.
    var value: SystemLanguageModel.Guardrails {
        switch self {
        case .default: .default
        case .permissiveContentTransformations: .unchecked
        }
    }
}

/// Flags that make some tokens less likely, as other engines have them. Without them, the settings of the model apply.
struct SamplingFlags: ParsableArguments {
    @Option(
        help: ArgumentHelp("Make tokens that occurred less likely by a factor; 1 changes nothing.", valueName: "factor"))
    var repetitionPenalty: Double?

    // Their values may begin with a dash.
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Make tokens of the answer so far less likely by an amount, -2 to 2.", valueName: "amount"))
    var presencePenalty: Double?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Make tokens of the answer so far less likely by an amount for each time, -2 to 2.", valueName: "amount"))
    var frequencyPenalty: Double?

    @Option(
        help: ArgumentHelp(
            "Sample only from tokens with at least this share of the most probable one's probability, 0 to 1.",
            valueName: "share"))
    var minP: Double?

    @Option(
        help: ArgumentHelp(
            "Make tokens that continue a repetition less likely (DRY); 0 changes nothing, 0.8 is usual.", valueName: "multiplier"
        ))
    var dry: Double?

    @Option(
        help: ArgumentHelp("With --dry, how fast this grows with the length of the repetition (usually 1.75).", valueName: "base")
    )
    var dryBase: Double?

    @Option(
        help: ArgumentHelp(
            "With --dry, the number of tokens that may be repeated freely (usually 2).", valueName: "tokens"))
    var dryAllowedLength: Int?

    func validate() throws {
        if let repetitionPenalty, !(repetitionPenalty > 0 && repetitionPenalty <= 10) {
            throw ValidationError("--repetition-penalty must be greater than 0 and at most 10.")
        }
        if let presencePenalty, !(-2...2).contains(presencePenalty) {
            throw ValidationError("--presence-penalty must be from -2 to 2.")
        }
        if let frequencyPenalty, !(-2...2).contains(frequencyPenalty) {
            throw ValidationError("--frequency-penalty must be from -2 to 2.")
        }
        if let minP, !(0...1).contains(minP) { throw ValidationError("--min-p must be from 0 to 1.") }
        if let dry, !(0...10).contains(dry) { throw ValidationError("--dry must be from 0 to 10.") }
        if let dryBase, !(1...10).contains(dryBase) { throw ValidationError("--dry-base must be from 1 to 10.") }
        if let dryAllowedLength, dryAllowedLength < 1 { throw ValidationError("--dry-allowed-length must be at least 1.") }
        if dry == nil, dryBase != nil || dryAllowedLength != nil {
            throw ValidationError("--dry-base and --dry-allowed-length require --dry.")
        }
    }

    func apply(to options: inout GenerationOptions) {
        let drySettings = dry.map { multiplier in
            SamplingAdjustments.DRY(multiplier: multiplier, base: dryBase ?? 1.75, allowedLength: dryAllowedLength ?? 2)
        }
        let adjustments = SamplingAdjustments(
            repetitionPenalty: repetitionPenalty, presencePenalty: presencePenalty ?? 0, frequencyPenalty: frequencyPenalty ?? 0,
            minP: minP ?? 0, dry: drySettings)
        if adjustments != SamplingAdjustments() { options.samplingAdjustments = adjustments }
    }
}
