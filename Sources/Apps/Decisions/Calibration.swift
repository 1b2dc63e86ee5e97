internal import Foundation
internal import Learning

/// Makes the probabilities of a model's decisions mean what they say: of the answers with a probability of 80 %, 80 % are right.
///
/// The logarithms of the probabilities are divided by a temperature, which does not change which option is most probable, and those of yes
/// and no may get a bias, which may. They are fitted on questions whose answers are known (``fitted(to:model:)``), and belong to one model:
/// another one, or another adapter, is sure of other things.
public struct Calibration: Sendable, Codable, Equatable {
    /// The temperature of questions of one kind with a range of numbers of options.
    public struct Entry: Sendable, Codable, Equatable {
        /// The kind: ``DecisionQuestion/Kind/name``, or `value` for the values of types.
        public var kind: String
        /// The smallest and the largest number of options.
        public var minimumOptions: Int
        public var maximumOptions: Int
        /// What the logarithms of the probabilities are divided by.
        public var temperature: Double
        /// What is added to the logarithm of the odds of the first option against the second one, before the division. 0 except for
        /// predicates.
        public var bias: Double
        /// The number of questions from which it was fitted.
        public var samples: Int

        /// Creates an entry.
        public init(
            kind: String, options: ClosedRange<Int> = 2...DecisionQuestion.maximumOptions, temperature: Double, bias: Double = 0,
            samples: Int = 0
        ) {
            (self.kind, self.temperature, self.bias, self.samples) = (kind, temperature, bias, samples)
            (minimumOptions, maximumOptions) = (options.lowerBound, options.upperBound)
        }
    }

    /// Identifies the weights of the model and its adapter; nil for any model.
    public var model: String?
    public var entries: [Entry]

    /// Creates a calibration.
    public init(model: String? = nil, entries: [Entry]) { (self.model, self.entries) = (model, entries) }

    /// Probabilities as the model has them.
    public static let none = Calibration(entries: [])

    func entry(kind: String, options: Int) -> Entry? {
        entries.first { $0.kind == kind && $0.minimumOptions <= options && options <= $0.maximumOptions }
    }

    /// The weights of options from the logarithms of their probabilities.
    func weights(_ logProbabilities: [Double], kind: String) -> [Double] {
        let entry = entry(kind: kind, options: logProbabilities.count)
        return Self.weights(logProbabilities, temperature: entry?.temperature ?? 1, bias: entry?.bias ?? 0)
    }

    /// The decision with the logarithms of the probabilities that it has under this calibration.
    package func applied(to decision: LabelledDecision) -> LabelledDecision {
        var decision = decision
        decision.logProbabilities = weights(decision.logProbabilities, kind: decision.kind).map { $0 > 0 ? log($0) : -700 }
        return decision
    }

    static func weights(_ logProbabilities: [Double], temperature: Double, bias: Double) -> [Double] {
        var values = logProbabilities
        if bias != 0, !values.isEmpty { values[0] += bias }
        guard let maximum = values.max(), maximum.isFinite else { return values.map { _ in 1 } }
        let divisor = temperature.isFinite && temperature > 0 ? temperature : 1
        return values.map { exp(($0 - maximum) / divisor) }
    }
}

// MARK: - Fitting

/// A decision whose right answer is known.
public struct LabelledDecision: Sendable {
    /// The kind of the question: ``DecisionQuestion/Kind/name``.
    public var kind: String
    /// The natural logarithms of the probabilities of its options, as the model has them.
    public var logProbabilities: [Double]
    /// The index of the right option.
    public var expected: Int

    /// Creates a decision.
    public init(kind: String, logProbabilities: [Double], expected: Int) {
        (self.kind, self.logProbabilities, self.expected) = (kind, logProbabilities, expected)
    }
}

extension Calibration {
    /// The numbers of options that are fitted together: the more options, the less sure a model is of the best one.
    static let groups: [(kind: String, options: ClosedRange<Int>)] = [
        ("predicate", 2...2), ("choice", 2...3), ("choice", 4...6), ("choice", 7...DecisionQuestion.maximumOptions),
        ("score", 2...DecisionQuestion.maximumOptions), ("value", 2...DecisionQuestion.maximumOptions),
    ]
    /// With fewer questions than this, those of a kind have one temperature.
    static let minimumSamples = 30

    /// The calibration under which the right answers of questions are most probable.
    ///
    /// Kinds without questions get no entry. Of choices with few questions, all numbers of options have the same temperature.
    ///
    /// - Parameter model: what ``DecisionRun/model`` says.
    public static func fitted(to decisions: [LabelledDecision], model: String? = nil) -> Calibration {
        var entries: [Entry] = []
        for (kind, options) in groups {
            let all = decisions.filter {
                $0.kind == kind && $0.logProbabilities.count > 1 && $0.logProbabilities.indices.contains($0.expected)
            }
            let own = all.filter { options.contains($0.logProbabilities.count) }
            let used = own.count < minimumSamples ? all : own
            guard !used.isEmpty else { continue }
            let bias = kind == "predicate" ? fittedBias(used) : 0
            entries.append(
                Entry(
                    kind: kind, options: options, temperature: fittedTemperature(used, bias: bias), bias: bias,
                    samples: used.count))
        }
        return Calibration(model: model, entries: entries)
    }

    /// The mean of −log p of the right answers.
    static func loss(_ decisions: [LabelledDecision], temperature: Double, bias: Double) -> Double {
        decisions.reduce(0) { sum, decision in
            let weights = weights(decision.logProbabilities, temperature: temperature, bias: bias)
            return sum - log(max(1e-12, weights[decision.expected] / weights.reduce(0, +)))
        } / Double(max(1, decisions.count))
    }

    /// The loss has one minimum in the logarithm of the temperature.
    private static func fittedTemperature(_ decisions: [LabelledDecision], bias: Double) -> Double {
        exp(GoldenSection.minimum(in: -3...3) { loss(decisions, temperature: exp($0), bias: bias) })
    }

    /// For each bias the best temperature.
    private static func fittedBias(_ decisions: [LabelledDecision]) -> Double {
        GoldenSection.minimum(in: -4...4) { bias in
            loss(decisions, temperature: fittedTemperature(decisions, bias: bias), bias: bias)
        }
    }
}

/// How good decisions with known answers are.
public struct DecisionQuality: Sendable, Codable, Equatable {
    /// A range of probabilities of the most probable option.
    public struct Bin: Sendable, Codable, Equatable {
        /// The number of decisions.
        public var count: Int
        /// The mean of their probabilities.
        public var probability: Double
        /// The share of them that are right.
        public var accuracy: Double
    }

    /// The number of decisions.
    public var count: Int
    /// The share of decisions whose most probable option is the right one.
    public var accuracy: Double
    /// The expected calibration error: the mean difference between probability and accuracy in ten ranges of equal width, weighted by
    /// their numbers of decisions.
    public var calibrationError: Double
    /// The mean of −log p of the right answers, in nats.
    public var logLoss: Double
    /// The ranges that have decisions, in ascending order.
    public var bins: [Bin]

    /// Judges decisions.
    public init(_ decisions: [LabelledDecision], calibration: Calibration = .none) {
        var ranges = [[(probability: Double, isRight: Bool)]](repeating: [], count: 10)
        var (loss, right) = (0.0, 0)
        for decision in decisions {
            let weights = calibration.weights(decision.logProbabilities, kind: decision.kind)
            guard let distribution = Distribution(Array(weights.indices), weights: weights) else { continue }
            let isRight = distribution.mostLikely == decision.expected
            right += isRight ? 1 : 0
            loss -= log(max(1e-12, distribution.probability(of: decision.expected)))
            let probability = distribution.probabilityOfMostLikely
            ranges[min(ranges.count - 1, Int(probability * Double(ranges.count)))].append((probability, isRight))
        }
        let total = Double(max(1, decisions.count))
        count = decisions.count
        accuracy = Double(right) / total
        logLoss = loss / total
        bins = ranges.filter { !$0.isEmpty }.map { range in
            let count = Double(range.count)
            return Bin(
                count: range.count, probability: range.reduce(0) { $0 + $1.probability } / count,
                accuracy: Double(range.count { $0.isRight }) / count)
        }
        calibrationError = bins.reduce(0) { $0 + Double($1.count) / total * abs($1.probability - $1.accuracy) }
    }
}
