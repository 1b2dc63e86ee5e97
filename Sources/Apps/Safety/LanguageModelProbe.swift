internal import Waiting
public import Foundation
public import FoundationModels
internal import Learning

/// A classifier of texts that reads them with a language model: a linear function of the state that a text leaves after one of the
/// middle layers. The model has read the whole text, so that the probe tells a request for harm from the same words in a harmless sense.
///
/// ```swift
/// let probe = try await LanguageModelProbe(examples: examples)  // some hundred labelled prompts of the app
/// print(probe.quality)
/// try JSONEncoder().encode(probe).write(to: file)
///
/// let model = GuardedLanguageModel(SystemLanguageModel.default, classifier: ProbeGuardrailClassifier(prompts: probe))
/// ```
///
/// A text costs one pass of the model over it, and no generation. A probe belongs to the weights of the model that it was trained with.
/// Built-in guardrails use such a probe for prompts to the default model, at no cost, because the prompt is processed for the answer anyway.
public struct LanguageModelProbe: Sendable, Codable, Equatable {
    /// A labelled text.
    public struct Example: Sendable, Codable, Equatable {
        /// The text, such as a prompt.
        public var text: String
        /// Whether the probe must find it.
        public var isPositive: Bool

        /// Creates a labelled text.
        public init(_ text: String, isPositive: Bool) {
            self.text = text
            self.isPositive = isPositive
        }
    }

    /// What five-fold cross-validation says of a probe.
    public struct Quality: Sendable, Codable, Equatable {
        /// The area under the ROC curve: 0.5 for chance, 1 for a perfect order.
        public var area: Double
        /// The share of the positive texts that are found.
        public var recall: Double
        /// The share of the other texts that are found too.
        public var falseAlarms: Double

        private enum CodingKeys: String, CodingKey {
            case area
            // The name in stored probes.
            case recall = "found"
            case falseAlarms
        }
    }

    /// Identifies the weights of the model.
    public let fingerprint: String
    /// The index of the layer after which the state is read.
    public let layer: Int
    /// What cross-validation says.
    public let quality: Quality
    /// The minimum score of a text that is found. Raise it for fewer false alarms.
    public var threshold: Double
    private let weights: [Float]
    private let bias: Double

    /// Trains a probe. The model reads each text once; of three layers, the one with the largest area is chosen.
    ///
    /// - Parameters:
    ///   - examples: Labelled texts, at least ten of each kind; some hundred are better. Texts that look alike and differ in the label
    ///     teach most.
    ///   - model: A model that runs on this machine.
    ///   - falseAlarms: The share of the negative texts that may be found, which determines the threshold.
    ///   - progress: Called after each text with the number of texts read.
    /// - Throws: ``LanguageModelProbeError``, an error of the model, or `CancellationError`.
    public init(
        examples: [Example], model: some LanguageModel = SystemLanguageModel.default, falseAlarms: Double = 0.02,
        progress: @Sendable (Int) -> Void = { _ in }
    ) async throws {
        let states = try PromptStates.local(model)
        let positive = examples.count { $0.isPositive }
        guard min(positive, examples.count - positive) >= Self.minimumExamples else {
            throw LanguageModelProbeError.tooFewExamples(positive: positive, negative: examples.count - positive)
        }
        let identity = try await states.model()
        guard let fingerprint = identity.fingerprint else { throw LanguageModelProbeError.noFingerprint }
        // The middle layers know most of the sense of a text; the last ones prepare the next token.
        let layers = Set([0.5, 0.57, 0.64].map { Int(Double(identity.layerCount) * $0) }).sorted()
        var rows: [[[Float]]] = layers.map { _ in [] }
        for (index, example) in examples.enumerated() {
            let values = try await states.states(of: example.text, layers: layers)
            for place in layers.indices { rows[place].append(values[place]) }
            progress(index + 1)
        }
        let labels = examples.map(\.isPositive)
        let read = rows
        // Minutes of arithmetic for thousands of texts.
        self = try await onAnotherThread(cancellable: { check in
            try Self(fingerprint: fingerprint, layers: layers, rows: read, labels: labels, falseAlarms: falseAlarms, check)
        })
    }

    private static let minimumExamples = 10
    private static let folds = 5
    /// States have a root mean square of 1. Smaller penalties find less in cross-validation, for models of 0.1 and 1.5 billion weights.
    private static let penalty = 100.0

    init(fingerprint: String, layers: [Int], rows: [[[Float]]], labels: [Bool], falseAlarms: Double, _ check: () throws -> Void)
        throws
    {
        var best: (place: Int, scores: [Double], area: Double)?
        for place in layers.indices {
            let scores = try Self.crossValidated(rows[place], labels, check)
            let area = Self.area(scores, labels)
            if area > best?.area ?? -1 { best = (place, scores, area) }
        }
        let chosen = best ?? (0, [], 0)
        let negative = zip(chosen.scores, labels).filter { !$0.1 }.map(\.0).sorted()
        // The highest scores of negative texts above the threshold are the false alarms.
        let allowed = Int(Double(negative.count) * min(max(falseAlarms, 0), 1))
        let threshold = allowed >= negative.count ? (negative.first ?? 0) - 1 : negative[negative.count - 1 - allowed].nextUp
        let model = try LogisticRegression(features: rows[chosen.place], labels: labels, penalty: Self.penalty, check: check)
        let found = zip(chosen.scores, labels).count { $0.1 && $0.0 >= threshold }
        self.fingerprint = fingerprint
        self.layer = layers[chosen.place]
        self.threshold = threshold
        quality = Quality(
            area: chosen.area, recall: Double(found) / Double(labels.count { $0 }),
            falseAlarms: Double(negative.count { $0 >= threshold }) / Double(max(1, negative.count)))
        weights = model.weights.map { Float($0) }
        bias = model.bias
    }

    /// The score of each text from a model that was trained without it.
    private static func crossValidated(_ rows: [[Float]], _ labels: [Bool], _ check: () throws -> Void) throws -> [Double] {
        // Every fifth text of each kind, so that all parts have both.
        var counts = (positive: 0, negative: 0)
        let fold = labels.map { label in
            defer { if label { counts.positive += 1 } else { counts.negative += 1 } }
            return (label ? counts.positive : counts.negative) % folds
        }
        var scores = [Double](repeating: 0, count: rows.count)
        for part in 0..<folds {
            let kept = rows.indices.filter { fold[$0] != part }
            let model = try LogisticRegression(
                features: kept.map { rows[$0] }, labels: kept.map { labels[$0] }, penalty: penalty, check: check)
            for index in rows.indices where fold[index] == part { scores[index] = model.logOdds(rows[index]) }
        }
        return scores
    }

    /// The share of pairs of a positive and a negative text that are in the right order.
    private static func area(_ scores: [Double], _ labels: [Bool]) -> Double {
        let order = scores.indices.sorted { scores[$0] < scores[$1] }
        var negatives = 0.0
        var right = 0.0
        var positives = 0.0
        for index in order {
            if labels[index] {
                positives += 1
                right += negatives
            } else {
                negatives += 1
            }
        }
        return positives * negatives == 0 ? 0 : right / (positives * negatives)
    }

    /// The log odds that a text is positive, for a model with the weights that the probe was trained with.
    ///
    /// - Throws: ``LanguageModelProbeError``, an error of the model, or `CancellationError`.
    public func score(of text: String, model: some LanguageModel = SystemLanguageModel.default) async throws -> Double {
        // A sequence of its own for each text: several may be scored at once.
        let states = try PromptStates.local(model)
        let identity = try await states.model()
        // The file of a probe may have been changed.
        guard identity.fingerprint == fingerprint, (0..<identity.layerCount).contains(layer) else {
            throw LanguageModelProbeError.otherModel(expected: fingerprint)
        }
        let state = try await states.states(of: text, layers: [layer])[0]
        guard state.count == weights.count else { throw LanguageModelProbeError.otherModel(expected: fingerprint) }
        return zip(state, weights).reduce(bias) { $0 + Double($1.0 * $1.1) }
    }
}

/// Why a probe cannot be trained or used.
public enum LanguageModelProbeError: Error, LocalizedError, Equatable {
    /// The model runs elsewhere, so that its states cannot be read.
    case notLocal
    /// The contents of the model cannot be identified: an adapter is merged into its weights, or its file cannot be read.
    case noFingerprint
    /// There are fewer than ten texts of one kind.
    case tooFewExamples(positive: Int, negative: Int)
    /// The probe was trained with a model with this fingerprint.
    case otherModel(expected: String)

    public var errorDescription: String? {
        switch self {
        case .notLocal: "A probe reads the states of a model, which must run on this machine."
        case .noFingerprint: "A probe needs a model file without merged adapters."
        case .tooFewExamples(let positive, let negative):
            "A probe needs at least ten texts of each kind; there are \(positive) positive and \(negative) negative ones."
        case .otherModel(let expected):
            "The probe was trained with another model (fingerprint \(expected)). Train it again with this one."
        }
    }
}

/// Checks texts with probes that a program has trained: one for prompts, one for responses, or both.
public struct ProbeGuardrailClassifier<Model: LanguageModel>: GuardrailClassifier {
    private let model: Model
    private let prompts: LanguageModelProbe?
    private let responses: LanguageModelProbe?

    /// Creates a classifier.
    ///
    /// - Parameters:
    ///   - prompts: A probe that finds unsafe prompts; nil if prompts are not checked.
    ///   - responses: A probe that was trained with responses and finds unsafe ones; nil if responses are not checked.
    ///   - model: The model that the probes were trained with.
    public init(
        prompts: LanguageModelProbe?, responses: LanguageModelProbe? = nil, model: Model = SystemLanguageModel.default
    ) {
        self.prompts = prompts
        self.responses = responses
        self.model = model
    }

    public func assess(_ text: String, as subject: DenyList.Subject) async throws -> GuardrailAssessment {
        guard let probe = subject == .prompt ? prompts : responses else { return GuardrailAssessment(isUnsafe: false) }
        let score = try await probe.score(of: text, model: model)
        let isUnsafe = score >= probe.threshold
        return GuardrailAssessment(isUnsafe: isUnsafe, category: isUnsafe ? "probe" : nil, scores: ["probe": score])
    }
}

extension PromptStates {
    fileprivate static func local(_ model: some LanguageModel) throws -> PromptStates {
        guard let states = PromptStates(model: model) else { throw LanguageModelProbeError.notLocal }
        return states
    }
}
