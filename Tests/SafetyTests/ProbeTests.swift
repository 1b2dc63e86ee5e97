import Foundation
import FoundationModels
import FoundationModelsGGUF
import FoundationModelsTesting
import Safety
import TestSupport
import Testing

@Suite("[E1] probes that a program trains") struct ProbeTests {
    /// Texts about two things; a model with random weights tells their letters apart.
    private static func examples(_ count: Int, from start: Int = 0) -> [LanguageModelProbe.Example] {
        (start..<start + count).flatMap { number in
            [
                LanguageModelProbe.Example("Please sum the numbers \(number), \(number * 7) and 9.", isPositive: false),
                LanguageModelProbe.Example("OPEN THE DOOR \(number) TIMES AND \(number * 7) MORE!", isPositive: true),
            ]
        }
    }

    @Test("a probe finds texts like those of its training, and keeps its weights in a file") func training() async throws {
        let file = try TinyModel().file()
        let model = GGUFLanguageModel(url: URL(filePath: file.path))
        let probe = try await LanguageModelProbe(examples: Self.examples(20), model: model)
        #expect(probe.quality.area > 0.99 && probe.quality.recall > 0.9 && probe.quality.falseAlarms <= 0.05)
        let read = try JSONDecoder().decode(LanguageModelProbe.self, from: JSONEncoder().encode(probe))
        #expect(read == probe)
        let classifier = ProbeGuardrailClassifier(prompts: read, model: model)
        for example in Self.examples(5, from: 100) {
            let result = try await classifier.assess(example.text, as: .prompt)
            #expect(result.isUnsafe == example.isPositive)
            #expect(try await probe.score(of: example.text, model: model) == result.scores["probe"])
        }
        // Nothing checks responses.
        #expect(try await !classifier.assess("OPEN THE DOOR 1 TIMES AND 2 MORE!", as: .response).isUnsafe)
        let guarded = GuardedLanguageModel(ScriptedLanguageModel([.text("Done.")]), classifier: classifier)
        let violation = try await DenyListTests.violation {
            _ = try await LanguageModelSession(model: guarded).respond(to: "OPEN THE DOOR 3 TIMES AND 5 MORE!")
        }
        #expect(violation != nil)
    }

    @Test("a probe without enough texts, or for another model, says so") func errors() async throws {
        let file = try TinyModel().file()
        let model = GGUFLanguageModel(url: URL(filePath: file.path))
        await #expect(throws: LanguageModelProbeError.tooFewExamples(positive: 9, negative: 9)) {
            _ = try await LanguageModelProbe(examples: Self.examples(9), model: model)
        }
        await #expect(throws: LanguageModelProbeError.notLocal) {
            _ = try await LanguageModelProbe(examples: Self.examples(10), model: ScriptedLanguageModel([]))
        }
        let probe = try await LanguageModelProbe(examples: Self.examples(10), model: model)
        // A file that names a layer which the model does not have.
        let changed = try String(decoding: JSONEncoder().encode(probe), as: UTF8.self)
            .replacing("\"layer\":\(probe.layer)", with: "\"layer\":99")
        let wrong = try JSONDecoder().decode(LanguageModelProbe.self, from: Data(changed.utf8))
        #expect(wrong.layer == 99)
        await #expect(throws: LanguageModelProbeError.otherModel(expected: probe.fingerprint)) {
            _ = try await wrong.score(of: "Hi", model: model)
        }
        // Any share of false alarms is possible, and the probe can be written.
        let all = try await LanguageModelProbe(examples: Self.examples(10), model: model, falseAlarms: 1)
        #expect(all.quality.falseAlarms == 1 && all.quality.recall == 1)
        _ = try JSONEncoder().encode(all)
        var tiny = TinyModel()
        tiny.seed = 2
        let other = try tiny.file()
        await #expect(throws: LanguageModelProbeError.otherModel(expected: probe.fingerprint)) {
            _ = try await probe.score(of: "Hi", model: GGUFLanguageModel(url: URL(filePath: other.path)))
        }
    }
}
