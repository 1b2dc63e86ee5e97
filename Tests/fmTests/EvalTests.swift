import Foundation
import FoundationModels
import TestSupport
import Testing

@testable import fm

@Suite("fm eval") struct EvalTests {
    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(at: url) }  // the system removes what is left

        func write(_ name: String, _ text: String) throws -> URL {
            let file = url.appending(path: name)
            try Data(text.utf8).write(to: file)
            return file
        }
    }

    private func entry(_ id: String, passes: Bool, seed: UInt64? = nil, class name: String? = nil) -> EvalRun.Entry {
        EvalRun.Entry(
            id: id, seed: seed, class: name, prompt: "<prompt> & \u{1}\"\(id)\"", response: "answer",
            layer: passes ? nil : .refusal,
            checks: [.init(name: "contains", passes: passes, score: nil, reason: passes ? nil : "It does not <contain> it.")],
            started: "2026-01-01T00:00:00Z", seconds: 1.5, inputTokens: 10, outputTokens: 20)
    }

    private static let header = EvalRun.Header(dataset: "d", fingerprint: "f", model: "m", settings: "s")

    @Test("wrong data sets are described with their lines")
    func wrongData() {
        for (text, part) in [
            ("{\"prompt\": \"a\"}\n{\"promt\": \"b\"}\n", "line 2: “prompt” is missing"), ("", "contains no samples"),
            ("{\"prompt\": \"a\", \"regex\": \"(\"}", "is not a regular expression"), ("nonsense", "line 1"),
            ("{\"prompt\": \"a\", \"id\": \"x\"}\n\n{\"prompt\": \"b\", \"id\": \"x\"}", "line 3: there are two samples"),
            ("{\"prompt\": \"a\", \"contains\": \"b\"}", "contains"),
            ("{\"prompt\": \"a\", \"similarity\": 1}", "needs “expected”"),
        ] {
            #expect { try EvalSample.read(Data(text.utf8), name: "data") } throws: { "\($0)".contains(part) }
        }
    }

    @Test("answers are checked against what a sample requires")
    func checks() async throws {
        func passes(_ sample: String, _ answer: String, layer: EvalAnswer.Layer? = nil) async throws -> [String: Bool] {
            let sample = try EvalSample.read(Data(sample.utf8), name: "data")[0]
            let results = try await EvalChecks().results(for: sample, EvalAnswer(prompt: "p", text: answer, layer: layer))
            return Dictionary(results.map { ($0.name, $0.passes) }, uniquingKeysWith: { $0 && $1 })
        }
        #expect(try await passes(#"{"prompt":"p","expected":"Paris"}"#, " Paris\n") == ["answers": true, "exact": true])
        #expect(try await passes(#"{"prompt":"p","expected":{"a":[1,2.0]}}"#, "{\"a\": [1.0, 2]}")["exact"] == true)
        #expect(try await passes(#"{"prompt":"p","expected":{"a":1}}"#, "{\"a\": 1, \"b\": 2}")["exact"] == false)
        #expect(
            try await passes(#"{"prompt":"p","contains":["x","Y"],"excludes":["z"]}"#, "Xy") == [
                "answers": true, "contains": true, "excludes": true,
            ])
        #expect(try await passes(#"{"prompt":"p","excludes":["z"]}"#, "aZb")["excludes"] == false)
        #expect(try await passes(#"{"prompt":"p","regex":"^[0-9]+$"}"#, "42") == ["answers": true, "regex": true])
        #expect(try await passes(#"{"prompt":"p","schema":{}}"#, "no JSON")["schema"] == false)
        #expect(try await passes(#"{"prompt":"p","contains":["x"]}"#, "", layer: .guardrailPrompt) == ["answers": false])
        #expect(try await passes(#"{"prompt":"p","declines":true}"#, "", layer: .refusal) == ["declines": true])
        #expect(try await passes(#"{"prompt":"p","declines":true}"#, "Sure!") == ["declines": false])
    }

    @Test("a run continues after a line that was not written completely, and only with the same data")
    func resume() throws {
        let folder = try Folder()
        let file = folder.url.appending(path: "run.jsonl")
        do {
            let run = try EvalRun(file, Self.header)
            try run.append(entry("1", passes: true))
            try run.append(entry("2", passes: false, seed: 5))
        }
        let complete = try Data(contentsOf: file)
        for cut in [1, 20, 60] {
            try complete.dropLast(cut).write(to: file)
            let run = try EvalRun(file, Self.header)
            #expect(run.entries.map(\.id) == ["1"])
            try run.append(entry("2", passes: false, seed: 5))
            #expect(try Data(contentsOf: file) == complete)
        }
        var other = Self.header
        other.model = "another"
        #expect(throws: EvalError.self) { try EvalRun(file, other) }
        let strange = try folder.write("strange.jsonl", "{}\n")
        #expect(throws: EvalError.self) { try EvalRun(strange, Self.header) }
        // A file that is something else stays as it is.
        let data = try folder.write("data.json", "{\"prompt\": \"one line without an end\"}")
        #expect(throws: EvalError.self) { try EvalRun(data, Self.header) }
        #expect(try String(contentsOf: data, encoding: .utf8).contains("one line"))
        let damaged = try folder.write(
            "damaged.jsonl", String(decoding: complete, as: UTF8.self).replacing("\"id\":\"1\"", with: "\"id\":"))
        #expect(throws: EvalError.self) { try EvalRun(damaged, Self.header) }
    }

    @Test("intervals and probabilities have known values")
    func statistics() {
        let interval = EvalStatistics.interval(8, of: 10)
        #expect(abs(interval.lowerBound - 0.4902) < 0.0005 && abs(interval.upperBound - 0.9433) < 0.0005)
        #expect(EvalStatistics.interval(0, of: 0) == 0...1)
        #expect(abs(EvalStatistics.signTest(better: 1, worse: 9) - 0.02148) < 0.0001)
        #expect(EvalStatistics.signTest(better: 0, worse: 0) == 1 && EvalStatistics.signTest(better: 3, worse: 3) == 1)
        let comparison = EvalComparison(
            before: [entry("a", passes: true), entry("b", passes: false), entry("c", passes: true)],
            after: [entry("a", passes: true), entry("b", passes: true), entry("d", passes: true)])
        #expect(comparison.common == 2 && comparison.better == 1 && comparison.worse == 0 && comparison.passedBefore == 1)
    }

    @Test("reports are well-formed and complete")
    func reports() throws {
        let entries = [entry("b", passes: false, class: "one"), entry("a", passes: true, class: "one"), entry("c", passes: true)]
        let report = EvalReport(
            header: Self.header, entries: entries, comparison: EvalComparison(before: entries, after: entries), risks: "| a <b> |"
        )
        #expect(report.total.passed == 2 && report.classes.map(\.count) == [2] && report.entries.map(\.id) == ["a", "b", "c"])
        #expect(report.text.contains("contains: It does not <contain> it.") && report.text.contains("| a <b> |"))
        #expect(try JSONSerialization.jsonObject(with: Data(report.json().utf8)) is [String: Any])
        for text in [report.junit, report.html] {
            #expect(!text.contains("<prompt>") && text.contains("&lt;prompt&gt; &amp; &quot;"))
            #expect(!text.contains("\u{1}") && !text.contains("http"))
        }
        #expect(report.junit.contains("tests=\"3\" failures=\"1\""))
    }

    @Test("a run with the small model: report, exit code, continuing after the process was killed", .timeLimit(.minutes(5)))
    func command() throws {
        let folder = try Folder()
        let lines = (1...6).map { "{\"prompt\": \"Say the number \($0).\", \"excludes\": [\"xyzzy\"], \"id\": \"n\($0)\"}" }
        let data = try folder.write("numbers.jsonl", lines.joined(separator: "\n"))
        let run = folder.url.appending(path: "numbers.run.jsonl")
        let first = try CommandTests().fm(["eval", data.path, "--max-tokens", "8", "--parallel", "2", "--json"])
        #expect(first.status == 0, "\(first)")
        // What a process leaves that was killed while it wrote the fourth result.
        let complete = try String(contentsOf: run, encoding: .utf8).split(separator: "\n")
        #expect(complete.count == 7)
        try Data((complete.prefix(4).joined(separator: "\n") + "\n" + complete[4].prefix(50)).utf8).write(to: run)
        let second = try CommandTests().fm([
            "eval", data.path, "--max-tokens", "8", "--html", folder.url.appending(path: "r.html").path,
        ])
        #expect(second.status == 0 && second.output.contains("6 of 6") && second.error.contains("Continuing"))
        #expect(try String(contentsOf: run, encoding: .utf8).split(separator: "\n").count == 7)
        let failing = try folder.write("failing.jsonl", "{\"prompt\": \"Hello\", \"contains\": [\"xyzzy\"]}\n")
        #expect(try CommandTests().fm(["eval", failing.path, "--max-tokens", "5"]).status == 1)
        #expect(try CommandTests().fm(["eval", failing.path, "--max-tokens", "5", "--minimum", "0"]).status == 0)
        #expect(try CommandTests().fm(["eval", failing.path, "--max-tokens", "6"]).status == 64)
        let sample = """
            {"prompt": "Good morning", "tools": [{"name": "now", "description": "The time.", "output": "noon"}], \
            "requiresTool": true, "calls": {"unordered": [{"name": "now"}], "allowsAdditionalCalls": true}}
            """
        let calling = try folder.write("calling.jsonl", sample + "\n")
        #expect(try CommandTests().fm(["eval", calling.path, "--max-tokens", "5"]).status == 0)
        let impossible = try folder.write("impossible.jsonl", "{\"prompt\": \"Hello\", \"requiresTool\": true}\n")
        #expect(try CommandTests().fm(["eval", impossible.path]).status == 64)
        #expect(try CommandTests().fm(["eval", "/nowhere.jsonl"]).status == 64)
        #expect(try CommandTests().fm(["eval", "--risk-template"]).output.contains("| severity |"))
    }
}
