internal import Foundation

/// How well a classifier does on texts that it has not learned.
public struct ClassifierReport: Sendable, Codable {
    /// The figures of one class.
    public struct Class: Sendable, Codable {
        public var label: String
        /// The number of texts of the class.
        public var support: Int
        /// The share of right ones among the texts that were assigned to the class; nil if there are none.
        public var precision: Double?
        /// The share of the class's texts that were assigned to it.
        public var recall: Double
        /// The harmonic mean of precision and recall.
        public var f1: Double
    }

    /// A text that was assigned to a wrong class.
    public struct Mistake: Sendable, Codable {
        public var text: String
        public var labels: [String]
        public var predicted: [String]
        /// The probability of the wrong class.
        public var probability: Double
    }

    /// Texts whose most probable class has a probability within a tenth.
    public struct Bin: Sendable, Codable {
        public var count: Int
        /// The mean probability.
        public var probability: Double
        /// The share of right ones.
        public var accuracy: Double
    }

    /// The accuracy after learning from a part of the examples.
    public struct LearningPoint: Sendable, Codable {
        public var examples: Int
        public var accuracy: Double
    }

    /// A kind of features and a penalty that were tried.
    public struct Candidate: Sendable, Codable {
        public var features: TextClassifier.Features
        public var penalty: Double
        public var accuracy: Double
        public var logLoss: Double
    }

    /// The number of texts that were judged.
    public var count: Int
    /// Whether these are texts of a file of their own; if not, each was judged by a classifier that had learned from the others
    /// (cross-validation).
    public var isSeparate: Bool
    /// The accuracy of always choosing the most frequent class.
    public var baseline: Double
    /// The share of texts whose labels are all right.
    public var accuracy: Double
    public var classes: [Class]
    /// The mean F1 of the classes.
    public var macroF1: Double
    /// The mean negative logarithm of the probability of the right class, in nats.
    public var logLoss: Double
    /// The mean difference between probability and share of right ones, over tenths, weighted by their number.
    public var calibrationError: Double
    public var bins: [Bin]
    /// For each class, how often its texts were assigned to each class; empty if texts have several labels.
    public var confusion: [[Int]]
    /// The mistakes with the largest probabilities.
    public var mistakes: [Mistake]
    public var learningCurve: [LearningPoint] = []
    public var candidates: [Candidate] = []
    public var features: TextClassifier.Features
    public var seconds = 0.0

    private static let mistakeCount = 30

    /// - Parameters:
    ///   - targets: For each text the numbers of its labels.
    ///   - probabilities: `[texts][labels]`.
    init(
        labels: [String], texts: [String], targets: [[Int]], probabilities: [[Double]], hasSeveralLabels: Bool,
        features: TextClassifier.Features, isSeparate: Bool
    ) {
        count = texts.count
        self.isSeparate = isSeparate
        self.features = features
        let predicted = probabilities.map { Self.predicted($0, hasSeveralLabels) }
        let right = zip(targets, predicted).map { Set($0) == Set($1) }
        let total = Double(max(1, texts.count))
        accuracy = Double(right.count { $0 }) / total
        var frequent: [Set<Int>: Int] = [:]
        for target in targets { frequent[Set(target), default: 0] += 1 }
        baseline = Double(frequent.values.max() ?? 0) / total

        classes = labels.indices.map { label in
            var (hits, assigned, support) = (0, 0, 0)
            for (target, predicted) in zip(targets, predicted) {
                let (isTarget, isPredicted) = (target.contains(label), predicted.contains(label))
                hits += isTarget && isPredicted ? 1 : 0
                assigned += isPredicted ? 1 : 0
                support += isTarget ? 1 : 0
            }
            return Class(
                label: labels[label], support: support, precision: assigned > 0 ? Double(hits) / Double(assigned) : nil,
                recall: support > 0 ? Double(hits) / Double(support) : 0,
                f1: assigned + support > 0 ? 2 * Double(hits) / Double(assigned + support) : 0)
        }
        macroF1 = classes.reduce(0) { $0 + $1.f1 } / Double(max(1, classes.count))
        logLoss = Self.logLoss(targets, probabilities, hasSeveralLabels)

        // Of texts with several labels, each label is a question of its own.
        var sums = [(count: Int, probability: Double, right: Int)](repeating: (0, 0, 0), count: 10)
        func note(_ probability: Double, _ isRight: Bool) {
            let bin = min(9, max(0, Int(probability * 10)))
            sums[bin] = (sums[bin].count + 1, sums[bin].probability + probability, sums[bin].right + (isRight ? 1 : 0))
        }
        for (index, row) in probabilities.enumerated() {
            if hasSeveralLabels {
                for label in row.indices { note(row[label], targets[index].contains(label)) }
            } else {
                note(row[predicted[index][0]], right[index])
            }
        }
        let judged = Double(max(1, sums.reduce(0) { $0 + $1.count }))
        bins = sums.filter { $0.count > 0 }.map {
            Bin(count: $0.count, probability: $0.probability / Double($0.count), accuracy: Double($0.right) / Double($0.count))
        }
        calibrationError = bins.reduce(0) { $0 + Double($1.count) / judged * abs($1.probability - $1.accuracy) }

        if hasSeveralLabels {
            confusion = []
        } else {
            var confusion = [[Int]](repeating: [Int](repeating: 0, count: labels.count), count: labels.count)
            for (target, predicted) in zip(targets, predicted) { confusion[target[0]][predicted[0]] += 1 }
            self.confusion = confusion
        }
        let wrong = right.indices.filter { !right[$0] }.map { index -> Mistake in
            let row = probabilities[index]
            // The most certain of what is wrong.
            let certainty =
                hasSeveralLabels
                ? row.indices.map { targets[index].contains($0) ? 1 - row[$0] : row[$0] }.max() ?? 0 : row[predicted[index][0]]
            return Mistake(
                text: texts[index], labels: targets[index].map { labels[$0] }, predicted: predicted[index].map { labels[$0] },
                probability: certainty)
        }
        mistakes = Array(wrong.sorted { $0.probability > $1.probability }.prefix(Self.mistakeCount))
    }

    /// The labels of a text by their probabilities; of equal ones, the first.
    static func predicted(_ row: [Double], _ hasSeveralLabels: Bool) -> [Int] {
        if hasSeveralLabels { return row.indices.filter { row[$0] >= 0.5 } }
        return [row.indices.max { (row[$0], $1) < (row[$1], $0) } ?? 0]
    }

    static func logLoss(_ targets: [[Int]], _ probabilities: [[Double]], _ hasSeveralLabels: Bool) -> Double {
        let smallest = 1e-15
        let sum = zip(targets, probabilities).reduce(0.0) { sum, item in
            let (target, row) = item
            guard hasSeveralLabels else { return sum - log(max(smallest, row[target[0]])) }
            return sum
                - row.indices.reduce(0.0) { $0 + log(max(smallest, target.contains($1) ? row[$1] : 1 - row[$1])) }
                / Double(max(1, row.count))
        }
        return sum / Double(max(1, targets.count))
    }
}
