import ArgumentParser
import EvaluationCore
import Foundation
import FoundationModels
import FoundationModelsGGUF

/// Measures how often a model that judges responses passes good ones, fails bad ones, and gives the better of two the better score.
struct JudgeBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "judge", abstract: "Measures a model that judges responses, on pairs of a good and a bad one.")

    @Option(help: "A GGUF file.") var model: String
    @Option(help: "Pairs, a JSON object a line: request, good, bad, quality.") var file: String
    @Flag(help: "Print the reasons of wrong judgements.") var shows = false

    private struct Pair: Decodable { let request: String, good: String, bad: String, quality: String }

    func run() async throws {
        let pairs = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map {
            try JSONDecoder().decode(Pair.self, from: Data($0.utf8))
        }
        let model = GGUFLanguageModel(url: URL(filePath: model), checksText: false)
        var (passed, failed, ordered, equal) = (0, 0, 0, 0)
        for pair in pairs {
            let sample = ModelSample<String>(prompt: pair.request)
            func score(_ response: String, _ scale: ScoringScale) async throws -> (Double, String) {
                let judge = ModelJudgeEvaluator<ModelSample<String>>(pair.quality, scale: scale, judge: model)
                let metric = try await judge.metrics(subject: ModelSubject(value: response), input: sample)[0]
                return (metric.doubleValue ?? .nan, metric.rationale ?? "")
            }
            let verdict = ScoringScale.passFail(
                passDescription: "The response is good: its \(pair.quality) is what a person would wish.",
                failDescription: "The response is not good in this respect.")
            let (good, bad) = (try await score(pair.good, verdict), try await score(pair.bad, verdict))
            passed += good.0 == 1 ? 1 : 0
            failed += bad.0 == 0 ? 1 : 0
            if shows, good.0 != 1 { print("good, failed: \(pair.request)\n  \(pair.good)\n  \(good.1)") }
            if shows, bad.0 != 0 { print("bad, passed: \(pair.request)\n  \(pair.bad)\n  \(bad.1)") }
            let levels = ScoringScale.numeric([
                5: "Excellent \(pair.quality).", 4: "Good \(pair.quality).", 3: "Acceptable \(pair.quality).",
                2: "Poor \(pair.quality).", 1: "Very poor \(pair.quality).",
            ])
            let scores = (try await score(pair.good, levels).0, try await score(pair.bad, levels).0)
            ordered += scores.0 > scores.1 ? 1 : 0
            equal += scores.0 == scores.1 ? 1 : 0
        }
        print(
            "\(pairs.count) pairs: good passed \(passed), bad failed \(failed); five levels: good above bad \(ordered), equal \(equal)"
        )
    }
}
