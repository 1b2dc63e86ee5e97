internal import Waiting
public import Embeddings
internal import Foundation
internal import Inference
internal import Learning

/// How a classifier is trained. The defaults choose by cross-validation.
public struct ClassifierOptions: Sendable {
    /// The features; nil to try all, embeddings only if there is an embedding model.
    public var features: TextClassifier.Features?
    /// The penalty on the squares of the weights; nil to try several.
    public var penalty: Double?
    /// Whether rare classes count as much as frequent ones.
    public var isBalanced = false
    /// The number of parts for cross-validation, 2 to 20; nil for 5, or 3 with more than 3,000 texts.
    public var folds: Int?
    public var seed: UInt64 = 1
    /// The embedding model; by default the one that is installed, or none.
    public var embedder: (any EmbeddingModel)? =
        GGUFEmbeddingModel.default.isAvailable ? GGUFEmbeddingModel.default : nil

    /// Creates the default options.
    public init() {}
}

extension TextClassifier {
    /// Trains a classifier. The work is done on threads of its own; cancelling the task ends it.
    ///
    /// - Parameters:
    ///   - data: At least two classes, with at least two texts each.
    ///   - test: Texts to judge the classifier with; nil to judge by cross-validation.
    ///   - report: Called with what is being done, and the share of the work that is done, from 0 to 1.
    /// - Throws: ``ClassifierError``, the error of the embedding model, or `CancellationError`.
    @concurrent public static func train(
        _ data: LabelledTexts, test: LabelledTexts? = nil, options: ClassifierOptions = ClassifierOptions(),
        report: @escaping @Sendable (String, Double) -> Void = { _, _ in }
    ) async throws -> (classifier: TextClassifier, report: ClassifierReport) {
        let started = ContinuousClock.now
        let training = try ClassifierTraining(data, test, options)
        var vectors: [[Float]]?
        var embedder: (identifier: String, name: String)?
        if options.features == .embeddings || options.features == nil, let model = options.embedder {
            let info = try await model.info()
            embedder = (info.identifier, info.name)
            var all: [[Float]] = []
            let texts = training.texts + training.testTexts
            for start in stride(from: 0, to: texts.count, by: embeddingBatch) {
                try Task.checkCancellation()
                report("Embedding", 0.5 * Double(start) / Double(texts.count))
                let part = Array(texts[start..<min(start + embeddingBatch, texts.count)])
                all += try await model.checkedVectors(of: part, as: .document, dimension: info.dimension)
            }
            vectors = all
        } else if options.features == .embeddings {
            throw ClassifierError.wrongEmbedder("There is no embedding model.")
        }
        // Embedding takes about half of the time.
        let done = vectors == nil ? 0 : 0.5
        var result = try await onAnotherThread(cancellable: { [vectors, embedder] check in
            try training.run(vectors, embedder, check: check) { report("Training", done + (1 - done) * $0) }
        })
        result.report.seconds = (ContinuousClock.now - started).seconds
        return result
    }

    private static let embeddingBatch = 256
}

/// The search for features and penalty, and the training with all texts.
struct ClassifierTraining: Sendable {
    private let labels: [String]
    let texts: [String]
    let testTexts: [String]
    private let targets: [[Int]]
    private let testTargets: [[Int]]
    private let hasSeveralLabels: Bool
    private let options: ClassifierOptions
    private let foldCount: Int
    /// The part that each text belongs to.
    private let folds: [Int]

    private static let penalties = [1.0, 0.15, 0.02]
    private static let maximumLabels = 1000
    private static let curve = [0.125, 0.25, 0.5, 1]
    /// Enough to compare candidates.
    private static let roughTolerance = 2e-3

    init(_ data: LabelledTexts, _ test: LabelledTexts?, _ options: ClassifierOptions) throws(ClassifierError) {
        labels = data.labels
        texts = data.examples.map(\.text)
        self.options = options
        hasSeveralLabels = data.hasSeveralLabels
        let numbers = Dictionary(labels.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        targets = data.examples.map { example in Array(Set(example.labels.compactMap { numbers[$0] })).sorted() }
        // With or without one label is a question too.
        guard labels.count >= 2 || labels.count == 1 && hasSeveralLabels else {
            throw .unsuitableData("All texts have the same label: there is nothing to learn.")
        }
        guard labels.count <= Self.maximumLabels else {
            throw .unsuitableData(
                "There are \(labels.count) different labels, at most \(Self.maximumLabels) are allowed. Is it the right column?")
        }
        var counts = [Int](repeating: 0, count: labels.count)
        for target in targets { for label in target { counts[label] += 1 } }
        let rare = zip(data.labels, counts).filter { $1 < 2 }.prefix(5).map { "“\($0.0)”" }
        guard rare.isEmpty else {
            throw .unsuitableData(
                "At least two texts of each label are needed; there is one of \(rare.joined(separator: ", ")).")
        }
        if let penalty = options.penalty, !(penalty > 0 && penalty <= 1e6) {
            throw .invalidOption("The penalty must be greater than 0 and at most 1,000,000.")
        }
        if let folds = options.folds, !(2...20).contains(folds) {
            throw .invalidOption("The number of parts must be from 2 to 20.")
        }
        testTexts = test?.examples.map(\.text) ?? []
        var testTargets: [[Int]] = []
        for (index, example) in (test?.examples ?? []).enumerated() {
            let known = example.labels.compactMap { numbers[$0] }
            guard known.count == example.labels.count, hasSeveralLabels || known.count == 1 else {
                throw .unsuitableData(
                    "Test text \(index + 1) has the labels “\(example.labels.joined(separator: ", "))”, which the training texts do not have in this form."
                )
            }
            testTargets.append(known)
        }
        self.testTargets = testTargets
        foldCount = options.folds ?? min(texts.count > 3_000 ? 3 : 5, max(2, counts.min() ?? 2))
        // Each label is spread evenly over the parts. Equal texts belong to the same part: they would be judged by themselves.
        var folds = [Int](repeating: 0, count: texts.count)
        var next = [Int: Int]()
        var known: [String: Int] = [:]
        var random = SplitMix64(state: options.seed)
        for index in texts.indices.shuffled(using: &random) {
            if let fold = known[texts[index]] {
                folds[index] = fold
                continue
            }
            let label = targets[index].first ?? -1
            folds[index] = next[label, default: max(0, label) % foldCount] % foldCount
            next[label] = folds[index] + 1
            known[texts[index]] = folds[index]
        }
        self.folds = folds
    }

    private var kind: LinearClassifier.Kind { hasSeveralLabels || labels.count == 2 ? .binary : .softmax }
    private var outputs: Int { labels.count == 2 && !hasSeveralLabels ? 1 : labels.count }

    /// The targets as outputs: of two classes, the second is the one output.
    private func outputs(of target: [Int]) -> [Int] {
        outputs == 1 ? (target == [1] ? [0] : []) : target
    }

    /// What each text contains.
    private struct Contents {
        var counts: [WordGrams.Part: [[UInt32: Int32]]]
        var vectors: [[Float]]?
    }

    private static func parts(_ features: TextClassifier.Features) -> [WordGrams.Part] {
        switch features {
        case .words: [.words]
        case .characters: [.words, .characters]
        case .embeddings: []
        }
    }

    private func tables(_ features: TextClassifier.Features, _ contents: Contents, _ chosen: [Int]) -> [GramTable] {
        let parts = Self.parts(features)
        // The file's size, divided among the tables; and the memory of the optimiser.
        let limit = min(TextClassifier.usualBytes / (8 + 2 * outputs), 4_000_000 / outputs)
        return parts.map { part in
            let counts = contents.counts[part] ?? []
            // Words that occur once teach nothing where there are many texts.
            return GramTable(
                part: part, counts: chosen.map { counts[$0] }, minimum: chosen.count > 500 ? 2 : 1,
                limit: part == .words && parts.count > 1 ? limit / 3 : parts.count > 1 ? limit - limit / 3 : limit)
        }
    }

    private func rows(_ tables: [GramTable], _ contents: Contents, _ chosen: [Int]) -> SparseRows {
        if tables.isEmpty, let vectors = contents.vectors {
            var rows = SparseRows(width: vectors.first?.count ?? 0)
            for index in chosen { rows.append(TextClassifier.row(vectors[index])) }
            return rows
        }
        var rows = SparseRows(width: tables.reduce(0) { $0 + $1.hashes.count })
        for index in chosen {
            rows.append(TextClassifier.row(tables.map { contents.counts[$0.part]?[index] ?? [:] }, tables))
        }
        return rows
    }

    /// What each text counts.
    private func weights(_ chosen: [Int]) -> [Double]? {
        guard options.isBalanced else { return nil }
        var counts = [Double](repeating: 0, count: labels.count)
        for index in chosen { for label in targets[index] { counts[label] += 1 } }
        return chosen.map { index in
            let label = targets[index].min { counts[$0] < counts[$1] }
            return label.map { Double(chosen.count) / (Double(labels.count) * max(1, counts[$0])) } ?? 1
        }
    }

    private func fit(
        _ rows: SparseRows, _ chosen: [Int], penalty: Double, isRough: Bool, start: LinearClassifier? = nil,
        check: () throws -> Void
    ) throws -> LinearClassifier {
        try LinearClassifier(
            kind, rows: rows, targets: chosen.map { outputs(of: targets[$0]) }, outputs: outputs, penalty: penalty,
            counts: weights(chosen), maximumSteps: isRough ? 100 : 500, tolerance: isRough ? Self.roughTolerance : 1e-5,
            start: start, check: check)
    }

    private func probabilities(_ scores: [[Float]], temperature: Double = 1) -> [[Double]] {
        scores.map { TextClassifier.byLabel(LinearClassifier.probabilities($0, kind, temperature: temperature), labels.count) }
    }

    private func accuracy(_ targets: [[Int]], _ probabilities: [[Double]]) -> Double {
        let right = zip(targets, probabilities).count { $0 == ClassifierReport.predicted($1, hasSeveralLabels) }
        return Double(right) / Double(max(1, targets.count))
    }

    /// The temperature with the smallest loss, which has one minimum in the logarithm.
    private func temperature(_ scores: [[Float]], _ targets: [[Int]]) -> Double {
        func loss(_ logarithm: Double) -> Double {
            ClassifierReport.logLoss(targets, probabilities(scores, temperature: exp(logarithm)), hasSeveralLabels)
        }
        return exp(GoldenSection.minimum(in: -3...3, of: loss))
    }

    func run(
        _ vectors: [[Float]]?, _ embedder: (identifier: String, name: String)?, check: @Sendable () throws -> Void,
        report: (Double) -> Void
    ) throws -> (classifier: TextClassifier, report: ClassifierReport) {
        var candidates: [TextClassifier.Features] = options.features.map { [$0] } ?? [.words, .characters]
        if options.features == nil, vectors != nil { candidates.append(.embeddings) }
        let all = texts + testTexts
        var counts: [WordGrams.Part: [[UInt32: Int32]]] = [:]
        for part in Set(candidates.flatMap(Self.parts)) {
            counts[part] = try all.map { text in
                try check()
                return WordGrams.counts(text, part)
            }
        }
        let contents = Contents(counts: counts, vectors: vectors)
        let penalties = options.penalty.map { [$0] } ?? Self.penalties

        // Each text is judged by classifiers that have not learned it.
        struct Trial {
            var candidate: ClassifierReport.Candidate
            var scores: [[Float]]
        }
        var trials: [Trial] = []
        for (number, features) in candidates.enumerated() {
            var scores = [[[Float]]](repeating: [[Float]](repeating: [], count: texts.count), count: penalties.count)
            let parts = try concurrently(foldCount) { fold -> [[(Int, [Float])]] in
                let (learned, judged) = (folds.indices.filter { folds[$0] != fold }, folds.indices.filter { folds[$0] == fold })
                let tables = self.tables(features, contents, learned)
                let (rows, judgedRows) = (self.rows(tables, contents, learned), self.rows(tables, contents, judged))
                var last: LinearClassifier?
                return try penalties.map { penalty in
                    let fitted = try fit(rows, learned, penalty: penalty, isRough: true, start: last, check: check)
                    last = fitted
                    return judged.indices.map { (judged[$0], fitted.scores(judgedRows, $0)) }
                }
            }
            for part in parts {
                for (penalty, list) in part.enumerated() { for (index, row) in list { scores[penalty][index] = row } }
            }
            for (penalty, scores) in zip(penalties, scores) {
                // With the temperature that it would have.
                let probabilities = probabilities(scores, temperature: temperature(scores, targets))
                trials.append(
                    Trial(
                        candidate: .init(
                            features: features, penalty: penalty, accuracy: accuracy(targets, probabilities),
                            logLoss: ClassifierReport.logLoss(targets, probabilities, hasSeveralLabels)), scores: scores))
            }
            report(0.8 * Double(number + 1) / Double(candidates.count))
        }
        // By the loss, which changes less by chance than the accuracy does.
        guard let best = trials.min(by: { $0.candidate.logLoss < $1.candidate.logLoss }) else {
            throw ClassifierError.unsuitableData("There is nothing to learn from.")
        }
        let (features, penalty) = (best.candidate.features, best.candidate.penalty)
        let temperature = temperature(best.scores, targets)

        let everything = Array(texts.indices)
        let tables = tables(features, contents, everything)
        let linear = try fit(rows(tables, contents, everything), everything, penalty: penalty, isRough: false, check: check)
        report(0.9)
        let classifier = TextClassifier(
            labels: labels, hasSeveralLabels: hasSeveralLabels, features: features, tables: tables, linear: linear,
            temperature: temperature, embedder: features == .embeddings ? embedder : nil,
            model: features == .embeddings ? options.embedder : nil)
        var result: ClassifierReport
        if testTexts.isEmpty {
            result = ClassifierReport(
                labels: labels, texts: texts, targets: targets,
                probabilities: probabilities(best.scores, temperature: temperature), hasSeveralLabels: hasSeveralLabels,
                features: features, isSeparate: false)
        } else {
            let rows = rows(tables, contents, testTexts.indices.map { texts.count + $0 })
            let scores = testTexts.indices.map { linear.scores(rows, $0) }
            result = ClassifierReport(
                labels: labels, texts: testTexts, targets: testTargets,
                probabilities: probabilities(scores, temperature: temperature), hasSeveralLabels: hasSeveralLabels,
                features: features, isSeparate: true)
        }
        result.candidates = trials.map(\.candidate)
        result.learningCurve = try learningCurve(features, penalty, contents, check)
        report(1)
        return (classifier, result)
    }

    /// The accuracy for the first part of the texts after learning from shares of the others.
    private func learningCurve(
        _ features: TextClassifier.Features, _ penalty: Double, _ contents: Contents, _ check: @Sendable () throws -> Void
    ) throws -> [ClassifierReport.LearningPoint] {
        let (learned, judged) = (folds.indices.filter { folds[$0] != 0 }, folds.indices.filter { folds[$0] == 0 })
        var random = SplitMix64(state: options.seed)
        let order = learned.shuffled(using: &random)
        return try concurrently(Self.curve.count) { number in
            let part = Array(order.prefix(max(2, Int(Self.curve[number] * Double(order.count)))))
            let tables = self.tables(features, contents, part)
            let fitted = try fit(rows(tables, contents, part), part, penalty: penalty, isRough: true, check: check)
            let judgedRows = rows(tables, contents, judged)
            let scores = judged.indices.map { fitted.scores(judgedRows, $0) }
            return ClassifierReport.LearningPoint(
                examples: part.count, accuracy: accuracy(judged.map { targets[$0] }, probabilities(scores)))
        }
    }
}
