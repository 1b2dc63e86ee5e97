import Foundation
import Learning
import Testing

@testable import TextClassification

/// The same numbers as scikit-learn 1.9 (`Tests/Tools/record_classifier.py`).
@Suite struct LinearClassifierTests {
    struct Recorded: Decodable {
        struct Model: Decodable { var weights: [[Float]], bias: [Float] }
        var features: [[Float]]
        var classes: [Int]
        var several: [[Int]]
        var softmax: Model
        var balanced: Model
        var binary: Model
        var learned: [String]
        var labels: [String]
        var judged: [String]
        var scores: [String: [[Float]]]

        static func read() throws -> Recorded {
            let url = Bundle.module.url(forResource: "sklearn", withExtension: "json", subdirectory: "Recorded")
            return try JSONDecoder().decode(Recorded.self, from: Data(contentsOf: try #require(url)))
        }
    }

    private func rows(_ features: [[Float]]) -> SparseRows {
        var rows = SparseRows(width: features[0].count)
        for row in features { rows.append(row.enumerated().map { (column: $0, value: $1) }) }
        return rows
    }

    private func expect(_ model: LinearClassifier, _ expected: Recorded.Model) {
        for (output, weights) in expected.weights.enumerated() {
            for (feature, weight) in weights.enumerated() {
                #expect(abs(model.weights[feature * model.outputs + output] - weight) < 1e-3)
            }
            #expect(abs(model.bias[output] - expected.bias[output]) < 1e-3)
        }
    }

    @Test("[H3] coefficients are those of scikit-learn: several classes, several labels, balanced") func coefficients() throws {
        let recorded = try Recorded.read()
        let rows = rows(recorded.features)
        let targets = recorded.classes.map { [$0] }
        expect(try LinearClassifier(.softmax, rows: rows, targets: targets, outputs: 3, penalty: 0.5), recorded.softmax)
        let counts = (0..<3).map { label in Double(recorded.classes.count { $0 == label }) }
        expect(
            try LinearClassifier(
                .softmax, rows: rows, targets: targets, outputs: 3, penalty: 0.5,
                counts: recorded.classes.map { Double(recorded.classes.count) / (3 * counts[$0]) }), recorded.balanced)
        let several = recorded.several.map { row in row.indices.filter { row[$0] == 1 } }
        expect(try LinearClassifier(.binary, rows: rows, targets: several, outputs: 3, penalty: 2), recorded.binary)
    }

    @Test("[H3] words and letters are weighted as those of TfidfVectorizer", arguments: ["words", "characters"])
    func scores(_ name: String) throws {
        let recorded = try Recorded.read()
        let expected = try #require(recorded.scores[name])
        let labels = Set(recorded.labels).sorted()
        let parts: [WordGrams.Part] = name == "words" ? [.words] : [.words, .characters]
        let learned = parts.map { part in recorded.learned.map { WordGrams.counts($0, part) } }
        let tables = zip(parts, learned).map { GramTable(part: $0, counts: $1, minimum: 1, limit: .max) }
        var rows = SparseRows(width: tables.reduce(0) { $0 + $1.hashes.count })
        for index in recorded.learned.indices { rows.append(TextClassifier.row(learned.map { $0[index] }, tables)) }
        let model = try LinearClassifier(
            .softmax, rows: rows, targets: recorded.labels.map { [labels.firstIndex(of: $0) ?? 0] }, outputs: labels.count,
            penalty: 0.25)
        for (text, wanted) in zip(recorded.judged, expected) {
            let scores = model.scores(TextClassifier.row(parts.map { WordGrams.counts(text, $0) }, tables))
            for (score, wanted) in zip(scores, wanted) { #expect(abs(score - wanted) < 2e-3, "\(text)") }
        }
    }
}
