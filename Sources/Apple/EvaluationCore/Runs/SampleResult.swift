internal import Foundation
internal import FoundationModels

/// The result of one sample of an evaluation. An addition of this package.
///
/// A run file has one of these in each line, as JSON.
public struct SampleResult: Sendable, Codable {
    /// The result of a check: that of a ``Metric``.
    public struct Check: Sendable, Codable, Equatable {
        /// The name of the metric.
        public var name: String
        /// Whether the sample passes; nil if the check has only a score, or does not count for this sample.
        public var passes: Bool?
        /// The score, if there is one.
        public var score: Double?
        /// Why the result is as it is.
        public var reason: String?

        init(name: String, passes: Bool?, score: Double? = nil, reason: String? = nil) {
            (self.name, self.passes, self.score, self.reason) = (name, passes, score, reason)
        }

        init(_ metric: Metric) {
            self.init(name: metric.name, passes: nil, score: metric.score, reason: metric.rationale)
            switch metric.value {
            case .passing: passes = true
            case .failing: passes = false
            case .scoring(let value): score = value
            case .ignore: break
            }
        }

        var metric: Metric {
            let value: Metric.Value = passes.map { $0 ? .passing : .failing } ?? score.map { .scoring($0) } ?? .ignore
            return Metric(name, value, reason, score: passes == nil ? nil : score)
        }
    }

    /// A call of a tool.
    public struct Call: Sendable, Codable, Equatable {
        /// The name of the tool.
        public var name: String
        /// The arguments, a JSON object.
        public var arguments: String
        /// The output; nil if the request was stopped before.
        public var output: String?

        var text: String { "\(name)(\(arguments))" }
    }

    /// A question that was decided instead of answered.
    public struct Decision: Sendable, Codable, Equatable {
        /// The kind of the question: predicate, choice or score.
        public var kind: String
        /// The index of the most probable option.
        public var chosen: Int
        /// The index of the right option.
        public var expected: Int
        /// The probabilities of all options.
        public var probabilities: [Double]
        /// The logarithms of the probabilities of all options, before they are divided by a temperature.
        public var logProbabilities: [Double]
        /// Identifies the weights of the model; nil if they are not known.
        public var model: String?

        /// The probability of the right option.
        public var probability: Double { probabilities.indices.contains(expected) ? probabilities[expected] : 0 }
    }

    /// What stopped a request.
    public enum Layer: String, Sendable, Codable {
        /// The guardrails, because of the prompt.
        case guardrailPrompt = "guardrail (prompt)"
        /// The guardrails, because of the response.
        case guardrailResponse = "guardrail (response)"
        /// A deny list.
        case denyList = "deny list"
        /// The model does not know the language of the request.
        case language
        /// The model declined.
        case refusal
        /// The request does not fit into the context window.
        case contextWindow = "context window"
        /// The model cannot answer in the format or with the tools of the sample, however often it runs.
        case decoding
        /// A reason outside of the sample, which therefore runs again when the run is continued.
        case error

        /// Whether a request was declined on purpose.
        var isDeclined: Bool { [.guardrailPrompt, .guardrailResponse, .denyList, .refusal].contains(self) }
    }

    /// The texts of a transcript.
    struct TranscriptText: Sendable, Codable {
        var instructions: String
        var prompts: [String]
        var toolCalls: [String]
        var toolOutputs: [String]

        init(_ transcript: StructuredTranscript) {
            instructions = transcript.instructionText
            prompts = transcript.prompts
            toolCalls = transcript.toolCalls.map { "\($0.toolName)\($0.arguments.jsonString)" }
            toolOutputs = transcript.toolOutputs.map { $0.segments.modelText }
        }
    }

    /// The id of the sample: its own, or its number.
    public internal(set) var id = ""
    /// The seed with which the answer was sampled; nil for the most probable answer, and if the program does not say it.
    public internal(set) var seed: UInt64?
    /// The class of the sample. Reports count the samples of a class together.
    public internal(set) var `class`: String?
    /// The prompt, as the model received it.
    public internal(set) var prompt: String
    /// The prompt without marks, by which runs are compared; nil if it is the same.
    public internal(set) var request: String?
    /// The instructions.
    public internal(set) var instructions: String?
    /// The tool calls, in order; nil if there are none.
    public internal(set) var calls: [Call]?
    /// The text of the expected output.
    public internal(set) var expected: String?
    /// The text of the output; nil if the feature failed.
    public internal(set) var response: String?
    /// What was decided; nil for answers.
    public internal(set) var decision: Decision?
    /// What stopped the request; nil if it was answered.
    public internal(set) var layer: Layer?
    /// The results of the evaluators.
    public internal(set) var checks: [Check] = []
    /// What stopped the request, in words.
    public internal(set) var detail: String?
    private var failures: [String]?
    /// When the sample began, in ISO 8601.
    public internal(set) var started = ""
    /// How long it took.
    public internal(set) var seconds = 0.0
    /// Input tokens; nil if they were not counted.
    public internal(set) var inputTokens: Int?
    /// Output tokens; nil if they were not counted.
    public internal(set) var outputTokens: Int?
    /// Why the model ended the answer; nil if it does not say it.
    public internal(set) var stopReason: String?
    var transcript: TranscriptText?

    enum CodingKeys: String, CodingKey {
        case id, seed, `class`, prompt, request, instructions, calls, expected, response, decision, layer, checks, detail
        case failures = "errors"
        case started, seconds, inputTokens, outputTokens, stopReason, transcript
    }

    init(prompt: String) { self.prompt = prompt }

    /// Errors of the feature and of evaluators, in words.
    public internal(set) var errors: [String] {
        get { failures ?? [] }
        set { failures = newValue.isEmpty ? nil : newValue }
    }

    /// Whether no check failed, and there was no error.
    public var passes: Bool { errors.isEmpty && !checks.contains { $0.passes == false } }

    /// The id, with the seed if there is one.
    public var title: String { id + (seed.map { " (seed \($0))" } ?? "") }

    var metrics: [Metric] { checks.map(\.metric) }

    /// The seconds; 0 for what a file has instead of a time, such as an infinite number.
    var plausibleSeconds: Double { (0...1e9).contains(seconds) ? seconds : 0 }

    /// Sets the instructions, tool calls and texts of a transcript.
    mutating func add(_ transcript: StructuredTranscript) {
        self.transcript = TranscriptText(transcript)
        instructions = transcript.instructionText.isEmpty ? nil : transcript.instructionText
        let calls = transcript.toolCalls.map { call in
            let output = transcript.toolOutputs.first { $0.id == call.id }
            return Call(name: call.toolName, arguments: call.arguments.jsonString, output: output?.segments.modelText)
        }
        self.calls = calls.isEmpty ? nil : calls
    }

    /// Sets what is known of the tokens and the end of the answer.
    mutating func add(_ usage: LanguageModelSession.Usage) {
        inputTokens = usage.input.totalTokenCount
        outputTokens = usage.output.totalTokenCount
        if case .string(let reason)? = usage.metadata["stopReason"]?.kind { stopReason = reason }
    }

    // MARK: - Comparison

    /// What a result belongs to. A data set has each of them once.
    struct Key: Hashable, Sendable {
        var id: String
        var seed: UInt64?
    }

    var key: Key { Key(id: id, seed: seed) }

    /// Whether the id is the number of the sample, which another version of the data set may have for another sample.
    var hasNumberAsID: Bool {
        ["line ", "sample "].contains { id.hasPrefix($0) && id.dropFirst($0.count).allSatisfy(\.isNumber) }
    }

    var comparedPrompt: String { request ?? prompt }

    /// Sorts by id, with numbers in ids as numbers.
    static func isInOrder(_ a: SampleResult, _ b: SampleResult) -> Bool {
        switch a.id.compare(b.id, options: .numeric) {
        case .orderedAscending: true
        case .orderedDescending: false
        case .orderedSame: (a.id, a.seed ?? 0) < (b.id, b.seed ?? 0)
        }
    }
}

extension [SampleResult] {
    /// The names of the metrics, in the order of their first results.
    var metricNames: [String] {
        var names: [String] = []
        for check in flatMap(\.checks) where !names.contains(check.name) { names.append(check.name) }
        return names
    }
}
