import ArgumentParser
import Embeddings
import Foundation
import TextClassification

/// `fm classify`: classes of texts, without a language model.
struct Classify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Assign texts to classes with a classifier that was trained from labelled texts.",
        discussion: """
            EXAMPLES
              fm classify train tickets.csv --out tickets.classifier   learn from labelled texts
              fm classify tickets.classifier "I cannot log in"         the class of a text
              fm classify tickets.classifier <lines.txt                of each line
              fm classify tickets.classifier --threshold 0.7 "Hello"   “none” if no class is probable enough
            """,
        subcommands: [Run.self, Train.self], defaultSubcommand: Run.self)

    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "run", abstract: "Assign texts to classes (default).",
            discussion: "Writes a line for each text: label, tabulator, probability.")

        @Argument(help: "The classifier's file.") var classifier: String
        @Argument(help: "Texts; without any, each line of standard input is one.") var texts: [String] = []
        @Option(help: "Below this probability, a text belongs to none of the classes.") var threshold: Double?
        @Flag(help: "Write all classes, the most probable first.") var all = false
        @Flag(help: "Write a line of JSON for each text.") var json = false

        func validate() throws {
            if let threshold, !(0...1).contains(threshold) { throw ValidationError("--threshold must be from 0 to 1.") }
            if texts.contains(where: { $0.allSatisfy(\.isWhitespace) }) { throw ValidationError("A text is empty.") }
        }

        private struct Line: Encodable {
            var text: String
            var labels: [String]
            var probabilities: [String: Double]
        }

        func run() async throws {
            let model = try TextClassifier(contentsOf: URL(filePath: classifier))
            if !texts.isEmpty { return try await write(texts, model) }
            // Some lines at a time: embeddings are faster together.
            var batch: [String] = []
            while let line = StandardInput.line() {
                batch.append(line)
                if batch.count == 64 || model.features != .embeddings {
                    try await write(batch, model)
                    batch = []
                }
            }
            try await write(batch, model)
        }

        private func write(_ texts: [String], _ model: TextClassifier) async throws {
            guard !texts.isEmpty else { return }
            for (text, predictions) in zip(texts, try await model.predictions(for: texts)) {
                let chosen =
                    model.hasSeveralLabels
                    ? predictions.filter { $0.probability >= threshold ?? 0.5 }
                    : predictions.prefix(1).filter { $0.probability >= threshold ?? 0 }
                if json {
                    let line = Line(
                        text: text, labels: chosen.map(\.label),
                        probabilities: Dictionary(predictions.map { ($0.label, $0.probability) }, uniquingKeysWith: max))
                    try Output().writeJSON(line)
                } else if all {
                    print(predictions.map { Self.field($0) }.joined(separator: "\t"))
                } else if chosen.isEmpty {
                    print("none\t\(String(format: "%.3f", predictions.first?.probability ?? 0))")
                } else {
                    print(chosen.map { Self.field($0) }.joined(separator: "\t"))
                }
            }
        }

        private static func field(_ prediction: TextClassifier.Prediction) -> String {
            "\(prediction.label)\t\(String(format: "%.3f", prediction.probability))"
        }
    }
}
