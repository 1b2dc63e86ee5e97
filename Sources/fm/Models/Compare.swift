import ArgumentParser
import Foundation
import FoundationModelsInstallation
import FoundationModelsTraining
import Inference
import ModelTools
import Reports

extension Model {
    struct Compare: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "compare",
            abstract: "Measure how one model differs from another, such as a quantised one from its original.",
            discussion: """
                A is the original. Both models read the same text in parts of 512 tokens, of each of which the second half counts. \
                Divergence says how far B's probabilities are from A's: 0.01 is hardly to be noticed, above 0.1 answers suffer. Both \
                need the same vocabulary.
                """)

        @Argument(help: "The model to compare with: a GGUF file, or an installed model.") var first: String
        @Argument(help: "The other model.") var other: String
        @Option(help: "A text file (default: a short text of many kinds).") var text: [String] = []
        @Option(help: "The largest number of parts of 512 tokens.") var chunks = 40
        @Flag(help: "Also ask both models the twenty questions of “fm model check”.") var questions = false
        @Flag(help: "Write one JSON object.") var json = false
        @Option(help: ArgumentHelp("Write an HTML page.", valueName: "file")) var html: String?

        func validate() throws {
            if chunks < 1 { throw ValidationError("--chunks must be at least 1.") }
        }

        func run() async throws {
            let paths = (try Model.file(named: first), try Model.file(named: other))
            if let html { try OutputFile.check(html, inputs: [paths.0, paths.1] + text) }
            let contents = text.isEmpty ? [PlainText.sample] : try text.map { try TextFile.read($0) }
            let chunks = chunks
            var comparison = try await LongWork.run { check in
                try ModelComparison.measure(paths.0, paths.1, contents, chunks: chunks, check: check)
            }
            if questions {
                for (index, path) in [paths.0, paths.1].enumerated() {
                    Message.say("Asking \(URL(filePath: path).lastPathComponent)")
                    comparison.models[index].answers = try await ModelCheck.of(URL(filePath: path)).answers
                }
            }
            if let html { try OutputFile.write(Data(comparison.html.utf8), to: html) }
            if json {
                try Output().writeJSON(comparison, isPretty: true)
            } else {
                print(comparison.text)
            }
        }
    }
}

/// What a comparison of two models found.
struct ModelComparison: Encodable {
    struct Side: Encodable {
        var file: String
        var megabytes: Double
        var bitsPerWeight: Double
        var memoryMegabytes: Double
        var promptTokensPerSecond: Double
        var generatedTokensPerSecond: Double
        var perplexity: Double
        var perplexityError: Double
        /// What the file says of its quantisation.
        var importance: String?
        var types: [String: Int]
        var answers: [ModelCheck.Answer]?
    }

    var models: [Side]
    /// The number of tokens that were compared.
    var tokens: Int
    var divergence: Double
    var divergenceError: Double
    var median: Double
    var percentile95: Double
    var percentile99: Double
    var percentile999: Double
    /// The share of tokens with the same most probable token.
    var sameToken: Double
    /// The change of the perplexity, as a share.
    var perplexityChange: Double
    /// Shares of tokens by divergence, in powers of two from 2⁻¹⁶.
    var histogram: [Double]

    static func measure(
        _ first: String, _ other: String, _ texts: [String], chunks: Int, check: @Sendable () throws -> Void
    ) throws -> ModelComparison {
        let models = (try TextMeasurement(path: first), try TextMeasurement(path: other))
        guard models.0.hasSameVocabulary(as: models.1) else {
            throw CommandFailure(
                "Only models with the same tokens can be compared. The first has \(models.0.vocabularySize), the other \(models.1.vocabularySize).",
                code: .wrongUsage)
        }
        let windows = try models.0.requiredWindows(of: texts, limit: chunks)
        func isCancelled() -> Bool { LongWork.isCancelled(check) }
        let line = ProgressLine("Comparing", total: windows.count)
        defer { line.end() }
        var divergence = ModelDivergence()
        for (index, window) in windows.enumerated() {
            let expected = try WindowPredictions(window, by: models.0, isCancelled: isCancelled)
            try divergence.add(window, expected, models.1, isCancelled: isCancelled)
            line.show(index + 1, text: "\(index + 1) of \(windows.count) parts")
        }
        let sides = try [(models.0, divergence.losses.map(\.first)), (models.1, divergence.losses.map(\.other))].map {
            model, losses in
            let speed = try model.speed(isCancelled: isCancelled)
            let perplexity = ModelDivergence.perplexity(losses)
            let tensors = model.file.tensorNames.compactMap { model.file.tensors[$0] }
            let weights = tensors.reduce(0) { $0 + $1.elementCount }
            return Side(
                file: model.path, megabytes: Double(model.file.size) / 1e6,
                bitsPerWeight: 8 * Double(model.file.size) / Double(max(1, weights)),
                memoryMegabytes: Double(model.weightBytes) / 1e6,
                promptTokensPerSecond: speed.prompt, generatedTokensPerSecond: speed.generation, perplexity: perplexity.value,
                perplexityError: perplexity.error, importance: try model.file.metadata.string("quantize.imatrix.file"),
                types: Dictionary(grouping: tensors, by: \.type.name).mapValues(\.count))
        }
        var histogram = [Double](repeating: 0, count: 20)
        for value in divergence.divergences {
            let bin = Int(min(19, max(0, log2(max(value, 1e-9)) + 17)))
            histogram[bin] += 1 / Double(divergence.count)
        }
        return ModelComparison(
            models: sides, tokens: divergence.count, divergence: divergence.mean, divergenceError: divergence.meanError,
            median: divergence.quantile(0.5), percentile95: divergence.quantile(0.95), percentile99: divergence.quantile(0.99),
            percentile999: divergence.quantile(0.999), sameToken: divergence.equalShare,
            perplexityChange: sides[1].perplexity / sides[0].perplexity - 1, histogram: histogram)
    }

    private var rows: [(name: String, values: [String])] {
        func both(_ name: String, _ format: String, _ value: (Side) -> Double) -> (String, [String]) {
            (name, models.map { String(format: format, value($0)) })
        }
        var rows: [(name: String, values: [String])] = [
            both("file, MB", "%.0f", \.megabytes), both("bits for each weight", "%.2f", \.bitsPerWeight),
            both("memory of the weights, MB", "%.0f", \.memoryMegabytes),
            both("prompt, tokens/s", "%.0f", \.promptTokensPerSecond),
            both("generation, tokens/s", "%.1f", \.generatedTokensPerSecond),
            ("perplexity", models.map { String(format: "%.3f ± %.3f", $0.perplexity, $0.perplexityError) }),
            (
                "types",
                models.map { $0.types.sorted { $0.value > $1.value }.map { "\($0.value) \($0.key)" }.joined(separator: ", ") }
            ),
            ("importance matrix", models.map { $0.importance ?? "none" }),
        ]
        if models.allSatisfy({ $0.answers != nil }) {
            rows.append(
                ("questions answered", models.map { "\($0.answers?.count(where: \.isRight) ?? 0) of \($0.answers?.count ?? 0)" }))
        }
        return rows
    }

    private var figures: [(name: String, value: String)] {
        [
            ("tokens compared", "\(tokens)"),
            ("divergence, nats per token", String(format: "%.5f ± %.5f", divergence, divergenceError)),
            ("  median", String(format: "%.5f", median)), ("  95th percentile", String(format: "%.5f", percentile95)),
            ("  99th percentile", String(format: "%.5f", percentile99)),
            ("  99.9th percentile", String(format: "%.5f", percentile999)),
            ("same most probable token", String(format: "%.2f %%", 100 * sameToken)),
            ("change of the perplexity", String(format: "%+.2f %%", 100 * perplexityChange)),
        ]
    }

    private var names: [String] { models.map { URL(filePath: $0.file).lastPathComponent } }

    var text: String {
        let table = TextTable([.left(), .left("A"), .left("B")], rows: rows.map { [$0.name] + $0.values })
        let lines =
            zip(["A", "B"], names).map { "\($0)  \($1)" } + [""] + table.lines() + [""] + TextTable(facts: figures).lines()
        return lines.joined(separator: "\n")
    }

    var html: String {
        var page = Page("Comparison of models")
        page.add(
            Page.table(
                titles: ["", "A: \(names[0])", "B: \(names[1])"], rows.map { [.name($0.name)] + $0.values.map { .text($0) } }))
        page.add("How far B is from A", Page.table(facts: figures))
        page.add(
            "Tokens by their divergence (nats)",
            Chart.bars(
                histogram.enumerated().map { index, share in
                    (share, String(format: "%.2f %%", 100 * share), index % 4 == 1 ? "2\(Self.raised(index - 17))" : "")
                }))
        func answer(_ answer: ModelCheck.Answer) -> Page.Cell {
            .text("\(answer.isRight ? "✓" : "✗") \(answer.answer.prefix(300))")
        }
        page.add(
            "Answers",
            Page.table(
                titles: ["question", "A", "B"],
                zip(models[0].answers ?? [], models[1].answers ?? []).map { [.text($0.question), answer($0), answer($1)] }))
        return page.html
    }

    /// A number as an exponent.
    private static func raised(_ number: Int) -> String {
        String("\(number)".map { $0 == "-" ? "⁻" : Array("⁰¹²³⁴⁵⁶⁷⁸⁹")[$0.wholeNumberValue ?? 0] })
    }
}
