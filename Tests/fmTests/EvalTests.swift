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

    private func entry(
        _ id: String, passes: Bool, seed: UInt64? = nil, class name: String? = nil, prompt: String? = nil,
        layer: EvalAnswer.Layer? = nil
    ) -> EvalRun.Entry {
        EvalRun.Entry(
            id: id, seed: seed, class: name, prompt: prompt ?? "<prompt> & \u{1}\"\(id)\"", response: "answer",
            layer: layer ?? (passes ? nil : .refusal),
            checks: [.init(name: "contains", passes: passes, score: nil, reason: passes ? nil : "It does not <contain> it.")],
            started: "2026-01-01T00:00:00Z", seconds: 1.5, inputTokens: 10, outputTokens: 20)
    }

    private static let header = EvalRun.Header(dataset: "d", fingerprint: "f", model: "m", settings: "s")

    @Test("wrong data sets are described with their lines")
    func wrongData() {
        for (text, part) in [
            ("{\"prompt\": \"a\"}\n{\"promt\": \"b\"}\n", "line 2: there is no key “promt”"), ("", "contains no samples"),
            ("{\"id\": \"b\"}", "“prompt” is missing"), ("[1]", "this is not an object"),
            ("{\"prompt\": \"a\"", "not valid JSON at column"),
            ("{\"prompt\": \"a\", \"regex\": \"(\"}", "is not a regular expression"), ("nonsense", "line 1"),
            ("{\"prompt\": \"a\", \"id\": \"x\"}\n\n{\"prompt\": \"b\", \"id\": \"x\"}", "line 3: there are two samples"),
            ("{\"prompt\": \"a\", \"contains\": \"b\"}", "“contains” must be a list."),
            ("{\"prompt\": \"a\", \"similarity\": 1}", "needs “expected”"),
        ] {
            #expect { try EvalSample.read(Data(text.utf8), name: "data") } throws: { "\($0)".contains(part) }
        }
        #expect { try EvalSample.read(Data([0x7B, 0xE9, 0x7D]), name: "data") } throws: { "\($0)" == "data is not UTF-8 text." }
    }

    @Test("a misspelt key at any level, and a schema that cannot be used, are found while the data set is read")
    func wrongParts() throws {
        for (part, message) in [
            (#""tools": [{"nme": "x", "description": "", "output": ""}]"#, "“nme” in “tools[0]”"),
            (#""calls": {"orderd": []}"#, "“orderd” in “calls”"),
            (#""calls": {"ordered": [{"name": "x", "argments": []}]}"#, "“argments” in “calls.ordered[0]”"),
            (#""calls": {"unordered": [{"anyOrder": [{"nam": "x"}]}]}"#, "“nam” in “calls.unordered[0].anyOrder[0]”"),
            (#""calls": {"ordered": [{"name": "x", "arguments": [{"exat": {}}]}]}"#, "“exat” in “calls.ordered[0].arguments[0]”"),
            (
                #""calls": {"ordered": [{"name": "x", "arguments": [{"range": {"argumentName": "a", "min": 1}}]}]}"#,
                "“min” in “calls.ordered[0].arguments[0].range”"
            ), (#""calls": {"ordered": [{"arguments": []}]}"#, "“calls.ordered[0].name” is missing"),
            (#""schema": {"pattern": "(a)\\1"}"#, "“schema” cannot be used"),
            (
                #""tools": [{"name": "x", "description": "", "output": "", "parameters": {"type": "string"}}]"#,
                "must be an object"
            ),
            (
                #""tools": [{"name": "x", "description": "", "output": "", "parameters": {"properties": {"a": {"$ref": "b.json"}}}}]"#,
                "“x” cannot be used: the schema at /properties/a/$ref uses an unsupported feature"
            ),
        ] {
            let line = "{\"prompt\": \"p\", \(part)}"
            #expect { try EvalSample.read(Data(line.utf8), name: "data") } throws: { "\($0)".contains(message) }
        }
        let line = """
            {"prompt": "p", "calls": {"ordered": [{"name": "x", "arguments": [{"oneOf": {"argumentName": "a", "allowedValues": [1]}}, \
            {"range": {"argumentName": "b", "minimum": 1}}]}], "allowsAdditionalCalls": false}}
            """
        #expect(try EvalSample.read(Data(line.utf8), name: "data").map(\.id) == ["line 1"])
    }

    @Test("the parameters of a tool are a JSON Schema as people write it, which is kept as it is and in its order")
    func toolParameters() throws {
        for parameters in [
            #"{"type":"object","properties":{"when":{"type":"string","format":"date"},"city":{}},"required":["when","note"],"x-order":["when","city"]}"#,
            #"{"type":"object","additionalProperties":{"type":["string","null"],"maxLength":9}}"#,
            #"{"properties":{"n":{"type":"integer","exclusiveMinimum":0,"multipleOf":5,"not":{"const":10}}}}"#,
        ] {
            let line =
                #"{"prompt": "p", "tools": [{"name": "x", "description": "", "output": "", "parameters": \#(parameters)}]}"#
            let tool = try #require(try EvalSample.read(Data(line.utf8), name: "data")[0].tools?.first)
            #expect(try EvalTool(tool).parameters.debugDescription == parameters)
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
        let schema = #"{"prompt":"p","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}"#
        #expect(try await passes(schema, "{\"a\": 1}")["schema"] == true)
        #expect(try await passes(schema, "{\"a\": \"one\"}")["schema"] == false)
        #expect(try await passes(schema, "{}")["schema"] == false)
        #expect(try await passes(#"{"prompt":"p","contains":["x"]}"#, "", layer: .guardrailPrompt) == ["answers": false])
        #expect(try await passes(#"{"prompt":"p","declines":true}"#, "", layer: .refusal) == ["declines": true])
        #expect(try await passes(#"{"prompt":"p","declines":true}"#, "Sure!") == ["declines": false])
        // A model may stop requests in languages that it does not list.
        let sample = try EvalSample.read(Data(#"{"prompt":"p","language":"el"}"#.utf8), name: "data")[0]
        var answer = EvalAnswer(prompt: "p", text: "", layer: .language)
        #expect(try await EvalChecks().results(for: sample, answer).map(\.passes) == [false])
        answer.isUnsupportedLanguage = true
        #expect(try await EvalChecks().results(for: sample, answer).map(\.passes) == [true])
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
        other = Self.header
        other.screening = "another"
        #expect { try EvalRun(file, other) } throws: { "\($0)".contains("guardrail or language identification") }
        // A model of the same name and size may be another one.
        other = Self.header
        other.contents = ["model": "1"]
        #expect { try EvalRun(file, other) } throws: {
            "\($0)".contains("of an earlier version") && "\($0)".contains("--compare")
        }
        let new = folder.url.appending(path: "new.run.jsonl")
        do { try EvalRun(new, other).append(entry("1", passes: true)) }
        #expect(try EvalRun(new, other).entries.count == 1)
        for (part, name) in [("model", "model"), ("adapter", "adapter"), ("judge", "judge"), ("embedder", "embedder")] {
            var changed = other
            changed.contents?[part] = "2"
            #expect { try EvalRun(new, changed) } throws: { "\($0)".contains("different are: \(name).") }
        }
        // An editor may have put a mark before it.
        try (Data([0xEF, 0xBB, 0xBF]) + complete).write(to: file)
        #expect(try EvalRun(file, Self.header).entries.count == 2)
        #expect(try Data(contentsOf: file).dropFirst(3) == complete)
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

    @Test("a schema of arguments is passed on as it was written: no type, a name without a description, and the order of members")
    func toolSchemas() throws {
        for parameters in [
            #"{"properties": {"zone": {}, "area": {"description": "Any."}}, "required": ["zone"]}"#,
            #"{"type": "object", "properties": {"zone": {"type": "string"}, "area": {"maxLength": 3}}, "required": ["zone", "more"]}"#,
            #"{"type": "object"}"#, "{}", "null",
        ] {
            let line =
                #"{"prompt": "p", "tools": [{"name": "t", "description": "", "output": "", "parameters": \#(parameters)}]}"#
            let sample = try EvalSample.read(Data(line.utf8), name: "data")[0]
            let schema = try EvalTool(#require(sample.tools?.first)).parameters.debugDescription
            if parameters.contains("zone") {
                let places = (schema.range(of: "\"zone\"")?.lowerBound, schema.range(of: "\"area\"")?.lowerBound)
                #expect(try #require(places.0) < #require(places.1), "\(schema)")
            }
        }
        let line = #"{"prompt": "p", "tools": [{"name": "t", "description": "", "output": "", "parameters": {"type": "text"}}]}"#
        #expect { try EvalSample.read(Data(line.utf8), name: "data") } throws: {
            "\($0)".contains("The parameters of the tool “t”")
        }
    }

    @Test("intervals and probabilities have known values")
    func statistics() {
        let interval = EvalStatistics.interval(8, of: 10)
        #expect(abs(interval.lowerBound - 0.4902) < 0.0005 && abs(interval.upperBound - 0.9433) < 0.0005)
        #expect(EvalStatistics.interval(0, of: 0) == 0...1)
        #expect(abs(EvalStatistics.signTest(better: 1, worse: 9) - 0.02148) < 0.0001)
        #expect(EvalStatistics.signTest(better: 0, worse: 0) == 1 && EvalStatistics.signTest(better: 3, worse: 3) == 1)
        let paired = EvalStatistics.interval(ofDifferences: [1, 1, -1, 0, 0, 0, 0, 0, 0, 0])
        #expect(abs(paired.lowerBound + 0.2399) < 0.001 && abs(paired.upperBound - 0.4066) < 0.001)
    }

    @Test("runs are compared by sample")
    func comparison() {
        func compare(_ before: [EvalRun.Entry], _ after: [EvalRun.Entry]) -> EvalComparison {
            EvalComparison(with: Self.header, before: before, after: after)
        }
        let simple = compare(
            [entry("a", passes: true), entry("b", passes: false), entry("c", passes: true)],
            [entry("a", passes: true), entry("b", passes: true), entry("d", passes: true)])
        #expect(simple.common == 2 && simple.better == 1 && simple.worse == 0 && simple.passedBefore == 1 && simple.skipped == 1)
        #expect(simple.layerChanges.map(\.before) == ["refusal"] && simple.layerChanges.map(\.after) == ["answered"])
        #expect(simple.heading == "Compared with d with m (s), 2026-01-01 00:00 UTC")
        // Several seeds of a sample are one observation.
        let seeds: [UInt64] = Array(1...8)
        let seeded = compare(
            seeds.map { entry("a", passes: false, seed: $0) }, seeds.map { entry("a", passes: $0 > 1, seed: $0) })
        #expect(seeded.common == 1 && seeded.changes.map(\.id) == ["a"] && seeded.probability == 1)
        #expect(seeded.difference == 0.875)
        // Samples without ids are found again after a line was inserted.
        let moved = compare(
            [entry("line 9", passes: true, prompt: "x"), entry("line 10", passes: false, prompt: "x")],
            [entry("line 10", passes: true, prompt: "x"), entry("line 11", passes: true, prompt: "x")])
        #expect(moved.common == 2 && moved.better == 1 && moved.changes.map(\.id) == ["line 11"])
        // An error before is a result that counts.
        #expect(compare([entry("a", passes: false, layer: .error)], [entry("a", passes: true)]).better == 1)
    }

    @Test("a sample that failed with an error runs again, and is there for comparisons")
    func errors() throws {
        let folder = try Folder()
        let file = folder.url.appending(path: "run.jsonl")
        defer { withExtendedLifetime(folder) {} }
        do {
            let run = try EvalRun(file, Self.header)
            try run.append(entry("1", passes: false, layer: .error))
            try run.append(entry("2", passes: false, layer: .decoding))
        }
        #expect(try EvalRun(file, Self.header).entries.map(\.id) == ["2"])
        #expect(try EvalRun.read(file).1.count == 2)
    }

    @Test("reports are well-formed and complete")
    func reports() throws {
        var entries = [entry("b", passes: false, class: "one"), entry("a", passes: true, class: "one"), entry("c", passes: true)]
        entries[0].calls = [.init(name: "weather", arguments: "{\"city\":\"Rome\"}", output: "sunny")]
        entries[0].instructions = "Be brief."
        let report = EvalReport(
            header: Self.header, entries: entries,
            comparison: EvalComparison(with: Self.header, before: entries, after: entries), risks: "| a <b> |")
        #expect(report.total.passed == 2 && report.classes.map(\.count) == [2] && report.entries.map(\.id) == ["a", "b", "c"])
        #expect(report.text.contains("contains: It does not <contain> it.") && report.text.contains("| a <b> |"))
        #expect(report.text.hasSuffix("\n2 of 3 passed (66.7 %); required: 100 %: failed\n"))
        #expect(try JSONSerialization.jsonObject(with: Data(report.json().utf8)) is [String: Any])
        #expect(try report.json().contains("\"name\" : \"weather\""))
        for text in [report.junit, report.html] {
            #expect(!text.contains("<prompt>") && text.contains("&lt;prompt&gt; &amp; &quot;"))
            #expect(!text.contains("\u{1}") && !text.contains("http"))
        }
        #expect(report.html.contains("called: weather({&quot;city&quot;:&quot;Rome&quot;}) → sunny"))
        #expect(report.junit.contains("tests=\"3\" failures=\"1\""))
        let seeded = EvalReport(header: Self.header, entries: [entry("a", passes: true, seed: 7)])
        #expect(seeded.html.contains("a (seed 7)"))
    }

    @Test("the report shows a few failures of each class, the dangerous ones first, and nothing that controls terminals")
    func failures() {
        let entries =
            (1...12).map { entry("line \($0)", passes: false, class: "colours\u{1B}[31m") }
            + [entry("u", passes: false, class: "unsafe")]
        var lines = EvalReport(header: Self.header, entries: entries).text.split(separator: "\n")
        #expect(!lines.contains { $0.contains("\u{1B}") })
        lines = Array(lines.drop { $0 != "Failed:" }.dropFirst())
        let shown = lines.filter { !$0.hasPrefix("   ") }.prefix(5).map { $0.prefix { $0 != ":" } }
        #expect(
            shown == ["  u", "  line 1", "  line 2", "  line 3", "  … and 9 more in class colours [31m"], "\(shown)")
    }

    @Test("the table of risks is joined with the results of the classes")
    func risks() {
        let table = """
            # Risks

            | harm | tested by |
            |---|---|
            | invents \\| omits | class "one", class "two" |
            | other | a person |

            The end.
            """
        let report = EvalReport(
            header: Self.header, entries: [entry("a", passes: true, class: "one"), entry("b", passes: false, class: "one")],
            risks: table)
        #expect(report.risks?.columns == ["harm", "tested by", "result"])
        #expect(
            report.risks?.rows == [
                [
                    "invents | omits", "class \"one\", class \"two\"", "1 of 2 passed; there is no class “two” in this run",
                ], ["other", "a person", ""],
            ])
        #expect(report.text.contains("# Risks\n\n| harm | tested by | result |\n|---|---|---|\n| invents \\| omits |"))
        #expect(report.html.contains("<th>result") && report.html.contains("The end."))
    }

    @Test("reports that cannot be written, or that would replace a file of the run, are found before the run")
    func outputs() throws {
        let folder = try Folder()
        let data = try folder.write("data.jsonl", "{}").path
        let link = folder.url.appending(path: "link").path
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: data)
        let new = folder.url.appending(path: "new.html").path
        try EvalFile.check(outputs: [new], inputs: [data])
        #expect(!FileManager.default.fileExists(atPath: new))
        for outputs in [[data], [link], [new, new], [folder.url.path], [folder.url.appending(path: "none/a.html").path]] {
            #expect(throws: EvalError.self) { try EvalFile.check(outputs: outputs, inputs: [data]) }
        }
        // A full disk is no wrong usage.
        #expect { try EvalFile.write("x", to: "/dev/full") } throws: { ($0 as? EvalError)?.code == 1 }
        #expect(try EvalFile.text(data) == "{}")
        let marked = try folder.write("marked.jsonl", "\u{FEFF}{\"prompt\": \"a\"}").path
        #expect(try EvalSample.read(EvalFile.data(marked), name: "data").map(\.prompt) == ["a"])
        withExtendedLifetime(folder) {}
    }

    @Test("the run of a model is not continued with another one of the same name and size, nor with another cache")
    func otherModels() throws {
        let folder = try Folder()
        let data = try folder.write("data.jsonl", "{\"prompt\": \"Hello\", \"excludes\": [\"xyzzy\"]}\n").path
        let model = folder.url.appending(path: "mine.gguf")
        func write(seed: UInt64) throws {
            var tiny = TinyModel()
            tiny.seed = seed
            try Data(tiny.builder().bytes()).write(to: model)
        }
        func eval(_ environment: [String: String] = [:]) throws -> CommandTests.Run {
            try CommandTests().fm(
                ["eval", data, "-m", model.path, "--adapter", "none", "--max-tokens", "2"], environment: environment)
        }
        try write(seed: 1)
        let first = try eval()
        #expect(first.status < 2, "\(first)")
        #expect(try eval().error.contains("Complete"))
        let other = try eval(["FM_CACHE_BITS": "8"])
        #expect(other.status == 64 && other.error.contains("different are: settings."), "\(other.error)")
        try write(seed: 2)
        let changed = try eval()
        #expect(changed.status == 64 && changed.error.contains("different are: model."), "\(changed.error)")
        try write(seed: 1)
        #expect(try eval().error.contains("Complete"), "a copy of a model is the same")
        withExtendedLifetime(folder) {}
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
        #expect(
            complete.dropFirst().allSatisfy { $0.contains("\"stopReason\":\"maximumTokens\"") || $0.contains("\"endOfTurn\"") })
        try Data((complete.prefix(4).joined(separator: "\n") + "\n" + complete[4].prefix(50)).utf8).write(to: run)
        let second = try CommandTests().fm([
            "eval", data.path, "--max-tokens", "8", "--html", folder.url.appending(path: "r.html").path,
        ])
        #expect(second.status == 0 && second.output.contains("6 of 6") && second.error.contains("Continuing"))
        #expect(try String(contentsOf: run, encoding: .utf8).split(separator: "\n").count == 7)
        let third = try CommandTests().fm(["eval", data.path, "--max-tokens", "8"])
        #expect(third.error.contains("Complete: results of") && third.error.contains("remove it"))
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
        #expect(try CommandTests().fm(["eval", data.path, "--safety"]).status == 64)
        #expect(try CommandTests().fm(["eval", folder.url.path]).error.contains("is a folder"))
        #expect(try CommandTests().fm(["eval", "--risk-template"]).output.contains("| severity |"))
    }
}
