internal import Embeddings
internal import Foundation
public import FoundationModels
internal import Learning

/// Assigns texts to classes, after learning from labelled texts: for tasks where a language model is more than is needed.
///
/// ```swift
/// let data = try LabelledTexts(contentsOf: URL(filePath: "tickets.csv"))
/// let (classifier, report) = try await TextClassifier.train(data)
/// print(report.accuracy)
/// try classifier.write(to: URL(filePath: "tickets.classifier"))
/// let label = try await classifier.label(of: "I cannot log in")
/// ```
///
/// With words and sequences of letters as features, it needs no other model and takes microseconds; with embeddings, it needs the
/// embedding model that it was trained with. Values of this type can be used from any task.
public struct TextClassifier: Sendable {
    /// What of a text is looked at.
    public enum Features: String, Sendable, Codable, CaseIterable {
        /// Words and pairs of words.
        case words
        /// These, and sequences of three to five letters: for short texts, misspellings, and languages with many forms of a word.
        case characters
        /// The vector of an embedding model: for few examples.
        case embeddings
    }

    /// A class with its probability.
    public struct Prediction: Sendable, Codable, Equatable {
        public var label: String
        /// From 0 to 1. Of texts like those of the training with this probability, about this share belongs to the class.
        public var probability: Double
    }

    /// The classes.
    public let labels: [String]
    /// Whether a text can belong to several classes, or to none.
    public let hasSeveralLabels: Bool
    public let features: Features

    let tables: [GramTable]
    let linear: LinearClassifier
    /// The scores are divided by it.
    let temperature: Double
    /// The identifier of the embedding model, and its name for people.
    let embedder: (identifier: String, name: String)?
    private let model: (any EmbeddingModel)?

    init(
        labels: [String], hasSeveralLabels: Bool, features: Features, tables: [GramTable], linear: LinearClassifier,
        temperature: Double, embedder: (identifier: String, name: String)?, model: (any EmbeddingModel)?
    ) {
        (self.labels, self.hasSeveralLabels, self.features) = (labels, hasSeveralLabels, features)
        (self.tables, self.linear, self.temperature) = (tables, linear, temperature)
        (self.embedder, self.model) = (embedder, model)
    }

    /// The classes of each text, the most probable first.
    ///
    /// - Throws: ``ClassifierError/wrongEmbedder(_:)``, or the error of the embedding model.
    public nonisolated(nonsending) func predictions(for texts: [String]) async throws -> [[Prediction]] {
        var rows: [[(column: Int, value: Float)]]
        if features == .embeddings {
            guard let model, let embedder else { throw ClassifierError.wrongEmbedder("The classifier needs an embedding model.") }
            let info = try await model.info()
            guard info.identifier == embedder.identifier else {
                throw ClassifierError.wrongEmbedder(
                    "The classifier was trained with the embedding model \(embedder.name), and the one in use is \(info.name).")
            }
            guard info.dimension * linear.outputs == linear.weights.count else {
                throw ClassifierError.damagedFile("its weights do not fit the vectors of \(info.name)")
            }
            rows = try await model.checkedVectors(of: texts, as: .document, dimension: info.dimension).map(Self.row)
        } else {
            rows = texts.map { text in Self.row(tables.map { WordGrams.counts(text, $0.part) }, tables) }
        }
        return rows.map { row in
            let probabilities = LinearClassifier.probabilities(linear.scores(row), linear.kind, temperature: temperature)
            return Self.ranked(zip(labels, Self.byLabel(probabilities, labels.count)))
        }
    }

    /// The classes of a text, the most probable first.
    public nonisolated(nonsending) func predictions(for text: String) async throws -> [Prediction] {
        try await predictions(for: [text]).first ?? []
    }

    /// The most probable class of a text; nil if none has the probability `threshold`.
    public nonisolated(nonsending) func label(of text: String, threshold: Double = 0) async throws -> String? {
        try await predictions(for: text).first.flatMap { $0.probability >= threshold ? $0.label : nil }
    }

    /// The most probable class of a text as a value of a `@Generable` enumeration whose cases have the names of the labels.
    ///
    /// - Throws: The error of the type if it has no such case.
    public nonisolated(nonsending) func label<Label: ConvertibleFromGeneratedContent>(
        of text: String, as type: Label.Type, threshold: Double = 0
    ) async throws -> Label? {
        try await label(of: text, threshold: threshold).map { try Label(GeneratedContent($0)) }
    }

    /// All classes of a text with at least this probability, for classifiers whose texts have several.
    public nonisolated(nonsending) func labels(of text: String, threshold: Double = 0.5) async throws -> [String] {
        try await predictions(for: text).filter { $0.probability >= threshold }.map(\.label)
    }

    // MARK: - Rows

    static func row(_ vector: [Float]) -> [(column: Int, value: Float)] { vector.enumerated().map { ($0, $1) } }

    /// The rows of several tables, one after the other.
    static func row(_ counts: [[UInt32: Int32]], _ tables: [GramTable]) -> [(column: Int, value: Float)] {
        var first = 0
        var row: [(column: Int, value: Float)] = []
        for (counts, table) in zip(counts, tables) {
            row += table.row(counts).map { ($0.column + first, $0.value) }
            first += table.hashes.count
        }
        return row
    }

    /// Two classes have one output: the probability of the second.
    static func byLabel(_ probabilities: [Double], _ labels: Int) -> [Double] {
        labels == 2 && probabilities.count == 1 ? [1 - probabilities[0], probabilities[0]] : probabilities
    }

    private static func ranked(_ classes: some Sequence<(String, Double)>) -> [Prediction] {
        classes.map { Prediction(label: $0, probability: $1) }.sorted { ($1.probability, $0.label) < ($0.probability, $1.label) }
    }
}
