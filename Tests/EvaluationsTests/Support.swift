import Foundation
import FoundationModels
import FoundationModelsTesting

@testable import EvaluationCore

/// A folder that is removed at the end of a test.
final class Folder {
    let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(at: url) }  // the system removes what is left

    func write(_ name: String, _ text: String) throws -> URL {
        let file = url.appending(path: name)
        try Data(text.utf8).write(to: file)
        return file
    }
}

extension RunHeader {
    static let test = RunHeader(dataset: "d", fingerprint: "f", info: ["model": "m", "settings": "s"])
}

extension SampleResult {
    static func test(
        _ id: String, passes: Bool, seed: UInt64? = nil, class name: String? = nil, prompt: String? = nil, layer: Layer? = nil
    ) -> SampleResult {
        var result = SampleResult(prompt: prompt ?? "<prompt> & \u{1}\"\(id)\"")
        (result.id, result.seed, result.class, result.response) = (id, seed, name, "answer")
        result.layer = layer ?? (passes ? nil : .refusal)
        result.checks = [.init(name: "contains", passes: passes, reason: passes ? nil : "It does not <contain> it.")]
        (result.started, result.seconds, result.inputTokens, result.outputTokens) = ("2026-01-01T00:00:00Z", 1.5, 10, 20)
        return result
    }
}

extension EvaluationResult {
    init(test samples: [SampleResult]) {
        self.init(header: .test, start: .distantPast, end: .distantPast, samples: samples)
    }
}

extension ScriptedLanguageModel {
    /// A model that answers these prompts, in any order and any number of times.
    init(answers: [String: String]) {
        self.init(
            Recording(
                exchanges: answers.map { prompt, answer in
                    Recording.Exchange(
                        requestKey: prompt,
                        response: Transcript(entries: [
                            .response(.init(assetIDs: [], segments: [.text(.init(content: answer))]))
                        ]))
                }))
    }
}
