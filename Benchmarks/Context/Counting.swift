import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import FoundationModelsGGUF

struct Counting: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "count", abstract: "Measures the time to count the tokens of prompts and conversations.")

    @Option(help: "A GGUF file.") var model: String

    func run() async throws {
        let model = GGUFLanguageModel(url: URL(filePath: model), checksText: false)
        let sentence = "The night train to Lisbon leaves at 21:40 from platform 7, and breakfast costs €9. "
        for kilobytes in [1, 10, 100, 1_000] {
            let text = String(repeating: sentence, count: kilobytes * 1_000 / sentence.utf8.count)
            let entries: [Transcript.Entry] = [.prompt(.init(segments: [.text(.init(content: text))]))]
            try await report("a prompt of \(kilobytes) kB", kilobytes, model, entries)
        }
        for turns in [10, 100] {
            let entries = (0..<turns).flatMap { turn -> [Transcript.Entry] in
                [
                    .prompt(.init(segments: [.text(.init(content: "\(turn): \(sentence)"))])),
                    .response(.init(segments: [.text(.init(content: sentence))])),
                ]
            }
            try await report("a conversation of \(turns) turns", turns * 2 * sentence.utf8.count / 1_000, model, entries)
        }
    }

    private func report(
        _ what: String, _ kilobytes: Int, _ model: GGUFLanguageModel, _ entries: [Transcript.Entry]
    ) async throws {
        var best = Double.infinity
        var tokens = 0
        for _ in 0..<5 {
            let start = ContinuousClock.now
            tokens = try await model.tokenCount(for: entries)
            let time = start.duration(to: .now).components
            best = min(best, Double(time.seconds) * 1e6 + Double(time.attoseconds) * 1e-12)
        }
        print(String(format: "%@: %d tokens, %.0f µs, %.0f µs per kB", what, tokens, best, best / Double(max(1, kilobytes))))
    }
}
