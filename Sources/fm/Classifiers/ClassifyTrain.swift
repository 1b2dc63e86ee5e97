public import ArgumentParser
import Embeddings
import Foundation
public import TextClassification

extension Classify {
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
