import Foundation
import Testing

@testable import EvaluationCore

@Suite("run files") struct RunFileTests {
    @Test("a run continues after a line that was not written completely, and only with the same data")
    func resume() throws {
        let folder = try Folder()
        let file = folder.url.appending(path: "run.jsonl")
        do {
            let run = try EvaluationRunFile(file, .test)
            try run.append(.test("1", passes: true))
            try run.append(.test("2", passes: false, seed: 5))
        }
        let complete = try Data(contentsOf: file)
        for cut in [1, 20, 60] {
            try complete.dropLast(cut).write(to: file)
            let run = try EvaluationRunFile(file, .test)
            #expect(run.results.keys.map(\.id) == ["1"])
            try run.append(.test("2", passes: false, seed: 5))
            #expect(try Data(contentsOf: file) == complete)
        }
        func differences(_ file: URL, _ header: RunHeader) -> [String]? {
            do { _ = try EvaluationRunFile(file, header) } catch EvaluationDataError.otherRun(_, _, let differences) {
                return differences
            } catch {
                Issue.record(error)
            }
            return nil
        }
        var other = RunHeader.test
        other.info["model"] = "another"
        #expect(differences(file, other) == ["model"])
        other = .test
        other.info["screening"] = "another"
        other.fingerprint = "another"
        #expect(differences(file, other) == ["data set", "screening"])
        // A model of the same name and size may be another one.
        other = .test
        other.contents = ["model": "1"]
        #expect(throws: EvaluationDataError.runWithoutFingerprints(file)) { try EvaluationRunFile(file, other) }
        let new = folder.url.appending(path: "new.run.jsonl")
        do { try EvaluationRunFile(new, other).append(.test("1", passes: true)) }
        #expect(try EvaluationRunFile(new, other).results.count == 1)
        for part in ["model", "adapter", "judge", "embedder"] {
            var changed = other
            changed.contents?[part] = "2"
            #expect(differences(new, changed) == [part])
        }
        // An editor may have put a mark before it.
        try (Data([0xEF, 0xBB, 0xBF]) + complete).write(to: file)
        #expect(try EvaluationRunFile(file, .test).results.count == 2)
        #expect(try Data(contentsOf: file).dropFirst(3) == complete)
        let strange = try folder.write("strange.jsonl", "{}\n")
        #expect(throws: EvaluationDataError.notARun(strange)) { try EvaluationRunFile(strange, .test) }
        // A file that is something else stays as it is.
        let data = try folder.write("data.json", "{\"prompt\": \"one line without an end\"}")
        #expect(throws: EvaluationDataError.notARun(data)) { try EvaluationRunFile(data, .test) }
        #expect(try String(contentsOf: data, encoding: .utf8).contains("one line"))
        let damaged = try folder.write(
            "damaged.jsonl", String(decoding: complete, as: UTF8.self).replacing("\"id\":\"1\"", with: "\"id\":"))
        #expect(throws: EvaluationDataError.damagedRun(damaged, line: 2)) { try EvaluationRunFile(damaged, .test) }
    }

    @Test("a sample that failed with an error runs again, and is there for comparisons")
    func errors() throws {
        let folder = try Folder()
        let file = folder.url.appending(path: "run.jsonl")
        do {
            let run = try EvaluationRunFile(file, .test)
            try run.append(.test("1", passes: false, layer: .error))
            try run.append(.test("2", passes: false, layer: .decoding))
        }
        #expect(try EvaluationRunFile(file, .test).results.keys.map(\.id) == ["2"])
        #expect(try EvaluationResult(contentsOfRun: file).samples.map(\.id) == ["1", "2"])
        withExtendedLifetime(folder) {}
    }

    @Test("a file that cannot be opened, or that somebody is writing, is described")
    func unusable() throws {
        let folder = try Folder()
        let nowhere = folder.url.appending(path: "none/run.jsonl")
        #expect(throws: EvaluationDataError.unwritable(nowhere, reason: "No such file or directory.")) {
            try EvaluationRunFile(nowhere, .test)
        }
        let file = folder.url.appending(path: "run.jsonl")
        let first = try EvaluationRunFile(file, .test)
        #expect(throws: EvaluationDataError.inUse(file)) { try EvaluationRunFile(file, .test) }
        withExtendedLifetime((folder, first)) {}
    }

    @Test("a run file of the version before is read, and continued")
    func earlierVersion() throws {
        let folder = try Folder()
        let lines = #"""
            {"contents":{"adapter":"a","model":"1f"},"dataset":"facts.jsonl","fingerprint":"9","model":"m.gguf, 135000000 bytes","program":"0.1.0","screening":"5","settings":"greedy, at most 300 tokens"}
            {"checks":[{"name":"answers","passes":true},{"name":"calls","passes":true,"reason":"All calls.","score":1},{"name":"rubric","passes":false,"reason":"It is long.","score":0}],"class":"facts","id":"line 1","inputTokens":12,"outputTokens":3,"prompt":"Rain?","request":"rain","response":"No.","seconds":0.25,"started":"2026-01-31T12:34:56Z","seed":7,"calls":[{"arguments":"{}","name":"weather","output":"sunny"}],"instructions":"Be brief.","stopReason":"endOfTurn"}
            {"checks":[{"name":"answers","passes":false,"reason":"guardrail (prompt): The prompt is unsafe."}],"detail":"The prompt is unsafe.","id":"line 2","inputTokens":0,"layer":"guardrail (prompt)","outputTokens":0,"prompt":"Bad","response":"","seconds":0,"started":"2026-01-31T12:34:57Z"}

            """#
        let file = try folder.write("facts.run.jsonl", lines)
        let result = try EvaluationResult(contentsOfRun: file)
        #expect(result.evaluationID == "facts.jsonl" && result.evaluationInfo["settings"] == "greedy, at most 300 tokens")
        #expect(result.header.heading == "m.gguf, 135 MB (greedy, at most 300 tokens)")
        #expect(result.samples.map(\.title) == ["line 1 (seed 7)", "line 2"])
        #expect(result.samples.map(\.passes) == [false, false] && result.samples[1].layer == .guardrailPrompt)
        #expect(result.samples[0].checks[1] == .init(name: "calls", passes: true, score: 1, reason: "All calls."))
        #expect(result.samples[0].calls?.first?.output == "sunny" && result.samples[0].stopReason == "endOfTurn")
        #expect(result.duration == 1 && result.lastStart == "2026-01-31 12:34 UTC")
        #expect(result.aggregateValue(.mean(of: Metric("answers"))) == 0.5)
        #expect(try EvaluationRunFile(file, result.header).results.count == 2)
        #expect(try Data(contentsOf: file) == Data(lines.utf8))
        // The header of the same run is written as before.
        let header = String(decoding: try JSONEncoder.results.encode(result.header), as: UTF8.self)
        #expect(lines.hasPrefix(header + "\n"))
        let own = RunHeader(dataset: "d", info: ["version": "1", "dataset": "other"])
        #expect(try JSONDecoder.results.decode(RunHeader.self, from: JSONEncoder.results.encode(own)) == own)
        #expect(own.title == "d with dataset other, version 1" && RunHeader(dataset: "d").title == "d")
    }
}
