public import FoundationModels
internal import ModelPrompts
internal import TextScreening

/// The result of a check.
public struct GuardrailAssessment: Sendable, Equatable {
    /// Whether the text must not be processed or shown.
    public var isUnsafe: Bool
    /// What makes the text unsafe, for people and logs.
    public var category: String?
    /// A number for each category; larger is less safe. The scale is that of the classifier.
    public var scores: [String: Double]

    /// Creates a result.
    public init(isUnsafe: Bool, category: String? = nil, scores: [String: Double] = [:]) {
        self.isUnsafe = isUnsafe
        self.category = category
        self.scores = scores
    }
}

/// Decides whether a text is safe: the classifier of this package, a model that was trained for this, or a server.
public protocol GuardrailClassifier: Sendable {
    /// Checks a prompt or a part of a response.
    ///
    /// - Throws: Any error. The request fails with it: an unchecked text is not passed on.
    func assess(_ text: String, as subject: DenyList.Subject) async throws -> GuardrailAssessment
}

/// The classifier that the default guardrails use: some 46,000 words and sequences of letters, about 1 MB, no language model. See
/// BENCHMARKS.md for what it finds and what it misses.
public struct BuiltInGuardrailClassifier: GuardrailClassifier, Hashable {
    /// The minimum log-odds of an unsafe prompt.
    public var promptThreshold: Double
    /// The minimum log-odds of an unsafe response.
    public var responseThreshold: Double

    /// Creates a classifier. Lower thresholds find more unsafe texts and reject more harmless ones.
    public init(promptThreshold: Double? = nil, responseThreshold: Double? = nil) {
        self.promptThreshold = promptThreshold ?? Double(Guardrail.promptThreshold)
        self.responseThreshold = responseThreshold ?? Double(Guardrail.responseThreshold)
    }

    public func assess(_ text: String, as subject: DenyList.Subject) async -> GuardrailAssessment {
        let threshold = Float(subject == .prompt ? promptThreshold : responseThreshold)
        let result = UnsafeTextScore.score(text)
        var scores = Dictionary(result.categories.map { ($0.name, Double($0.score)) }, uniquingKeysWith: max)
        scores["unsafe"] = Double(result.unsafe)
        let violation = Guardrail.violation(in: text, result, threshold: threshold)
        return GuardrailAssessment(isUnsafe: violation != nil, category: violation?.category, scores: scores)
    }
}

/// Asks a language model, which must choose between "safe" and "unsafe".
///
/// The quality is that of the model: use one that was trained to moderate texts. General models of one or two billion weights call
/// most harmless prompts with dangerous words unsafe.
public struct LanguageModelGuardrailClassifier: GuardrailClassifier {
    private let model: any LanguageModel
    private let policy: String

    /// What is unsafe, if no other policy is given.
    public static var defaultPolicy: String { ModelPrompts.safetyPolicy }

    /// Creates a classifier.
    ///
    /// - Parameters:
    ///   - model: A model that supports guided generation, without guardrails of its own.
    ///   - policy: The instructions of the model.
    public init(model: any LanguageModel, policy: String = defaultPolicy) {
        self.model = model
        self.policy = policy
    }

    public func assess(_ text: String, as subject: DenyList.Subject) async throws -> GuardrailAssessment {
        let schema = try GenerationSchema(
            root: DynamicGenerationSchema(name: "Verdict", anyOf: ["safe", "unsafe"]), dependencies: [])
        let session = LanguageModelSession(model: model, instructions: policy)
        let verdict = try await session.respond(
            to: ModelPrompts.isSafe(text, isPrompt: subject == .prompt), schema: schema,
            options: GenerationOptions(samplingMode: .greedy)
        ).content.value(String.self)
        return GuardrailAssessment(isUnsafe: verdict == "unsafe", category: verdict == "unsafe" ? "model" : nil)
    }
}
