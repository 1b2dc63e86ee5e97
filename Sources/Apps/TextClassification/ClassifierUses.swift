public import EvaluationCore
internal import FoundationModels
public import Safety

/// Checks prompts and responses with a classifier that a program has trained.
///
/// ```swift
/// let guardrail = TextClassifierGuardrail(classifier, unsafe: ["spam", "insult"])
/// ```
public struct TextClassifierGuardrail: GuardrailClassifier {
    private let classifier: TextClassifier
    private let unsafe: Set<String>
    private let threshold: Double
    private let subjects: Set<DenyList.Subject>

    /// Creates a guardrail.
    ///
    /// - Parameters:
    ///   - unsafe: The labels of unsafe texts.
    ///   - threshold: A text is unsafe if these labels together have at least this probability; of texts with several labels, if one has.
    ///   - subjects: Whether prompts are checked, responses, or both.
    public init(
        _ classifier: TextClassifier, unsafe: Set<String>, threshold: Double = 0.5,
        subjects: Set<DenyList.Subject> = [.prompt, .response]
    ) {
        (self.classifier, self.unsafe, self.threshold, self.subjects) = (classifier, unsafe, threshold, subjects)
    }

    public func assess(_ text: String, as subject: DenyList.Subject) async throws -> GuardrailAssessment {
        guard subjects.contains(subject) else { return GuardrailAssessment(isUnsafe: false) }
        let predictions = try await classifier.predictions(for: text)
        let found = predictions.filter { unsafe.contains($0.label) }
        let probability =
            classifier.hasSeveralLabels
            ? found.first?.probability ?? 0 : found.reduce(0) { $0 + $1.probability }
        let isUnsafe = probability >= threshold
        return GuardrailAssessment(
            isUnsafe: isUnsafe, category: isUnsafe ? found.first?.label : nil,
            scores: Dictionary(predictions.map { ($0.label, $0.probability) }, uniquingKeysWith: max))
    }
}

extension TextClassifier {
    /// An evaluator that passes answers of one class, for example those that a classifier of tones calls polite.
    ///
    /// - Parameter threshold: The smallest probability of the class.
    public func evaluator<Input: ModelSampleProtocol>(
        _ metric: Metric, expecting label: String, threshold: Double = 0.5, for type: Input.Type = Input.self
    ) -> Evaluator<Input> where Input.ExpectedValue == String {
        Evaluator { _, subject in
            let predictions = try await predictions(for: subject.value)
            let probability = predictions.first { $0.label == label }?.probability ?? 0
            let reason = predictions.first.map { "\($0.label) (\(Int((100 * $0.probability).rounded())) %)" } ?? ""
            return probability >= threshold ? metric.passing(rationale: reason) : metric.failing(rationale: reason)
        }
    }
}
