public import ArgumentParser
import Embeddings
import Foundation
public import TextClassification

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

    struct Train: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "train", abstract: "Train a classifier from labelled texts.",
            discussion: """
                The data is a CSV file with the columns text and label, JSON Lines with "text" and "label" (or an array \
                "labels" for texts with several or no classes), or a folder with a folder of text files for each label.

                Features and penalty are chosen by cross-validation, and the report says how well texts are classified that \
                were not learned. With words and letters as features, the classifier needs no other model; with embeddings, \
                which are better for few examples, it needs the embedding model.
                """)

        @Argument(help: "The data.") var data: String
        @Option(name: .shortAndLong, help: "The classifier's file (default: the name of the data, .classifier).")
        var out: String?
        @Option(help: "Data to judge the classifier with (default: cross-validation).") var test: String?
        @Option(help: "The name of the column with the text.") var text: String?
        @Option(help: "The name of the column with the label.") var label: String?
        @Option(help: "words, characters or embeddings (default: the best).") var features: TextClassifier.Features?
        @Option(help: "The penalty on large weights (default: the best of three).") var penalty: Double?
        @Option(help: "The number of parts of the cross-validation.") var folds: Int?
        @Flag(help: "Let rare classes count as much as frequent ones.") var balance = false
        @Option(help: "The seed of the division into parts.") var seed: UInt64 = 1
        @Option(help: ArgumentHelp("Write the report as an HTML page.", valueName: "file")) var html: String?
        @Flag(help: "Write the report as JSON.") var json = false

        func run() async throws {
            let url = URL(filePath: out ?? URL(filePath: data).deletingPathExtension().lastPathComponent + ".classifier")
            for path in [url.path] + (html.map { [$0] } ?? []) {
                try OutputFile.check(path, inputs: [data] + (test.map { [$0] } ?? []))
            }
            let examples = try LabelledTexts(contentsOf: URL(filePath: data), text: text, label: label)
            let judged = try test.map { try LabelledTexts(contentsOf: URL(filePath: $0), text: text, label: label) }
            var options = ClassifierOptions()
            (options.features, options.penalty, options.isBalanced) = (features, penalty, balance)
            (options.folds, options.seed) = (folds, seed)
            Message.say("\(examples.examples.count) texts, \(examples.labels.count) classes")
            let line = ProgressLine("Training", total: 100)
            let (classifier, report) = try await LongWork.untilInterrupted { [options] in
                defer { line.end() }
                return try await TextClassifier.train(examples, test: judged, options: options) { name, share in
                    line.show(Int(share * 100), text: name)
                }
            }
            try classifier.write(to: url)
            let size = try url.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
            let page = ClassifierPage(report)
            if json {
                try Output().writeJSON(report, isPretty: true)
            } else {
                print(page.text)
            }
            Message.say("Written: \(url.path) (\((size + 1023) / 1024) KB). Use it: fm classify \(url.path) \"…\"")
            // The classifier is written: what fails now is only the page.
            if let html { try OutputFile.write(Data(page.html.utf8), to: html) }
        }
    }
}

extension TextClassifier.Features: ExpressibleByArgument {}
