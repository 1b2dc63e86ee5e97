import Foundation
import TestSupport
import Testing

@testable import fm

/// `fm decide` with a model of random weights: what it prefers means nothing, but it must be the same each time.
@Suite("fm decide") struct DecideTests {
    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        let model: String

        init() throws {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            var tiny = TinyModel()
            tiny.context = 2_048
            let file = url.appending(path: "tiny.gguf")
            try Data(tiny.builder().bytes()).write(to: file)
            model = file.path
        }

        deinit { try? FileManager.default.removeItem(at: url) }  // the system removes what is left

        func write(_ name: String, _ text: String) throws -> String {
            let file = url.appending(path: name)
            try Data(text.utf8).write(to: file)
            return file.path
        }

        func decide(_ arguments: [String], input: String? = "My parcel has not come.") throws -> CommandTests.Run {
            try CommandTests().fm(["decide", "-m", model] + arguments, input: input)
        }
    }

    /// The fields of the lines of a pipe, the last one as a number.
    private func lines(_ output: String) throws -> [(names: [String], probability: Double)] {
        try output.split(separator: "\n").map { line in
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            let last = try #require(fields.last)
            #expect(last.wholeMatch(of: /[01]\.\d{4}/) != nil, "\(line)")
            return (Array(fields.dropLast()), try #require(Double(last)))
        }
    }

    private func json(_ output: String) throws -> [String: Any] {
        #expect(output.hasSuffix("}\n"))
        return try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
    }

    private func sum(_ probabilities: Any?) -> Double {
        ((probabilities as? [[String: Any]]) ?? []).reduce(0) { $0 + (($1["probability"] as? Double) ?? 0) }
    }

    // MARK: - Arguments

    @Test("arguments that contradict each other are wrong usage, before a model is read") func wrongArguments() throws {
        let nothing = try Folder()
        let questions = try nothing.write("q.json", #"[{"type": "predicate", "instructions": "Is it?"}]"#)
        for (arguments, message) in [
            ([], "no question"), (["-o", "a", "-o", "b"], "no question"), (["--level", "a", "--level", "b"], "no question"),
            (["", "-o", "a", "-o", "b"], "question is empty"), ([" \n"], "question is empty"),
            (["Which?", "-o", "a"], "several answers"), (["Which?", "--level", "a"], "several answers"),
            (["Which?", "-o", "a", "-o", "b", "--level", "x", "--level", "y"], "one of --option, --level"),
            (["Which?", "-o", "a", "-o", "b", "--schema", "{}"], "one of --option, --level"),
            (["--schema", "{}", "--questions", questions], "one of --option, --level"),
            (["Which?", "--questions", questions], "Which?"), (["Is it?", "--minimum", "1.5"], "--minimum"),
            (["Is it?", "--minimum", "-0.1"], "--minimum"), (["Is it?", "--minimum", "nan"], "--minimum"),
            (["Is it?", "--about", "/nowhere.txt"], "/nowhere.txt"),
        ] as [([String], String)] {
            let run = try CommandTests().fm(["decide", "-m", "/nowhere.gguf"] + arguments, input: "A text.")
            #expect(run.status == 64 && run.output.isEmpty && run.error.contains(message), "\(arguments): \(run)")
        }
        withExtendedLifetime(nothing) {}
    }

    @Test("options that cannot be told apart are named") func wrongOptions() throws {
        let folder = try Folder()
        for (options, message) in [
            (["a", "A"], "are the same: “A”"), (["a: one", "a: two"], "are the same: “a”"), (["a", " "], "blank"),
            (["a", "b\u{1}c"], "control characters"),
        ] {
            let run = try folder.decide(["Which?"] + options.flatMap { ["-o", $0] })
            #expect(run.status == 64 && run.error.contains(message) && !run.error.contains(".."), "\(options): \(run)")
        }
        let many = try folder.decide(["Which?"] + (0..<256).flatMap { ["-o", "option \($0)"] })
        #expect(many.status == 64 && many.error.contains("256 options"))
        // A time of day is no name with a description.
        let times = try folder.decide(["When?", "-o", "10:15", "-o", "10:45"])
        #expect(try times.status == 0 && Set(lines(times.output).map { $0.names }) == [["10:15"], ["10:45"]], "\(times)")
    }

    // MARK: - Output

    @Test("a pipe gets lines with the answer and its probability, the most probable one first") func pipes() throws {
        let folder = try Folder()
        let yes = try folder.decide(["Is it late?"])
        #expect(yes.status == 0 && yes.error.isEmpty, "\(yes)")
        #expect(try Set(lines(yes.output).map { $0.names }) == [["yes"], ["no"]])
        let choice = try folder.decide(["Which team?", "-o", "billing", "-o", "support: broken things", "-o", "sales"])
        let level = try folder.decide(["How urgent?", "--level", "can wait", "--level", "today", "--level", "now"])
        #expect(try Set(lines(choice.output).map { $0.names }) == [["billing"], ["support"], ["sales"]])
        #expect(try Set(lines(level.output).map { $0.names }) == [["can wait"], ["today"], ["now"]])
        for run in [yes, choice, level] {
            let probabilities = try lines(run.output).map { $0.probability }
            #expect(probabilities == probabilities.sorted(by: >) && abs(probabilities.reduce(0, +) - 1) < 0.001)
        }
        // The text is standard input or a file, and it counts.
        let file = try folder.write("mail.txt", "My parcel has not come.")
        #expect(try folder.decide(["Is it late?", "--about", file], input: nil).output == yes.output)
        let other = try folder.decide(["Is it late?", "--json"], input: "Thank you!")
        let none = try folder.decide(["Is it late?", "--json"], input: nil)
        let plain = try folder.decide(["Is it late?", "--json"])
        let strict = try folder.decide(["Is it late?", "--json", "-i", "Be strict."])
        #expect(Set([other, none, plain, strict].map(\.output)).count == 4)
        let averaged = try folder.decide(["Which team?", "-o", "billing", "-o", "support", "--average-orders"])
        #expect(try averaged.status == 0 && lines(averaged.output).count == 2)
    }

    @Test("JSON has every probability, with the values as they were given") func jsonOutput() throws {
        let folder = try Folder()
        let questions = try folder.write(
            "q.json",
            """
            {"questions": [{"type": "predicate", "name": "late", "instructions": "Is it late?"},
             {"type": "choice", "instructions": "Which?", "choices": [{"value": true, "description": "so"}, "true", "other"]},
             {"type": "score", "instructions": "How urgent?", "levels": ["low", "middle", "high"]}]}
            """)
        let run = try folder.decide(["--questions", questions, "--json"])
        #expect(run.status == 0, "\(run)")
        let object = try json(run.output)
        #expect((object["prompt_tokens"] as? Int ?? 0) > 0 && object["model"] as? String != nil)
        let answers = try #require(object["answers"] as? [[String: Any]])
        try #require(answers.count == 3)
        #expect(Set(answers[0].keys) == ["type", "name", "question", "probability", "confidence", "mass"])
        #expect(answers[0]["type"] as? String == "predicate" && answers[0]["name"] as? String == "late")
        #expect(Set(answers[1].keys) == ["type", "question", "choice", "probabilities", "confidence", "mass"])
        let choices = try #require(answers[1]["probabilities"] as? [[String: Any]])
        // The text of the output shows what the values are: a number is not true.
        #expect(choices.count == 3 && run.output.contains("\"value\": true,") && run.output.contains("\"value\": \"true\","))
        #expect(Set(answers[2].keys) == ["type", "question", "score", "level", "probabilities", "confidence", "mass"])
        for answer in answers.dropFirst() { #expect(abs(sum(answer["probabilities"]) - 1) < 1e-9) }
        let levels = try #require(answers[2]["probabilities"] as? [[String: Any]]).compactMap { $0["probability"] as? Double }
        let score = try #require(answers[2]["score"] as? Double)
        #expect(abs(score - levels[1] - 2 * levels[2]) < 1e-9)
        // The same question alone, as an argument.
        let alone = try json(folder.decide(["Is it late?", "--json"]).output)
        let answer = try #require((alone["answers"] as? [[String: Any]])?.first)
        #expect(answer["probability"] as? Double == answers[0]["probability"] as? Double && answer["name"] == nil)
        // Lines of several questions begin with their names, or with the questions.
        let titles = try lines(folder.decide(["--questions", questions]).output).map { $0.names[0] }
        #expect(titles == ["late", "late", "Which?", "Which?", "Which?"] + [String](repeating: "How urgent?", count: 3))
    }

    @Test("with --minimum, the exit code says whether the answer is as probable") func minimum() throws {
        let folder = try Folder()
        #expect(try folder.decide(["Is it late?", "--minimum", "0"]).status == 0)
        let unsure = try folder.decide(["Is it late?", "--minimum", "1"])
        #expect(unsure.status == 1 && unsure.error.isEmpty && !unsure.output.isEmpty, "the answer is written all the same")
        // Yes counts of a predicate, and the best option of others.
        let object = try json(folder.decide(["Is it late?", "--json"]).output)
        let answer = try #require((object["answers"] as? [[String: Any]])?.first)
        let probability = try #require(answer["probability"] as? Double)
        for (limit, status) in [(probability * 0.99, 0), (min(1, probability * 1.01), 1)] as [(Double, Int32)] {
            #expect(try folder.decide(["Is it late?", "--minimum", "\(limit)"]).status == status, "\(probability), \(limit)")
        }
        #expect(try folder.decide(["Which?", "-o", "a", "-o", "b", "-o", "c", "--minimum", "0.333"]).status == 0)
    }

    // MARK: - Schemas

    private static let schema = """
        {"type": "object", "properties": {"team": {"enum": ["billing", "sales"]}, "version": {"const": 2},
         "sender": {"type": "object", "properties": {"isKnown": {"type": "boolean"}}, "required": ["isKnown"]},
         "stars": {"type": "integer", "minimum": 1, "maximum": 3}}, "required": ["team", "version", "sender", "stars"]}
        """

    @Test("a schema is decided part by part") func schemas() throws {
        let folder = try Folder()
        let file = try folder.write("ticket.json", Self.schema)
        let run = try folder.decide(["--schema", file])
        #expect(run.status == 0, "\(run)")
        let rows = try lines(run.output)
        #expect(rows.map { $0.names.first } == ["team", "team", "sender.isKnown", "sender.isKnown", "stars", "stars", "stars"])
        #expect(
            Set(rows.map { $0.names.joined(separator: "=") }).isSuperset(of: ["team=billing", "sender.isKnown=true", "stars=3"]))
        let object = try json(folder.decide(["--schema", Self.schema, "--json"]).output)
        let content = try #require(object["content"] as? [String: Any])
        #expect(Set(content.keys) == ["team", "version", "sender", "stars"] && content["version"] as? Int == 2)
        let fields = try #require(object["fields"] as? [[String: Any]])
        #expect(fields.map { $0["pointer"] as? String } == ["/team", "/sender/isKnown", "/stars"])
        for field in fields {
            #expect(Set(field.keys) == ["pointer", "probability", "confidence", "probabilities"])
            #expect(abs(sum(field["probabilities"]) - 1) < 1e-9)
        }
        #expect(content["team"] as? String == rows[0].names[1], "what is written is the most probable value")
        // A single value has no name.
        let single = try folder.decide(["Is it late?", "--schema", #"{"type": "boolean"}"#])
        #expect(try Set(lines(single.output).map { $0.names }) == [["true"], ["false"]])
        #expect(try folder.decide(["--schema", file, "--minimum", "1"]).status == 1)
        #expect(try folder.decide(["--schema", file, "--minimum", "0"]).status == 0)
    }

    @Test("what a schema leaves open is named") func openSchemas() throws {
        let folder = try Folder()
        let open = #"{"properties": {"ok": {"type": "boolean"}, "note": {"type": "string"}}}"#
        let run = try folder.decide(["--schema", open])
        #expect(run.status != 0 && run.output.isEmpty && run.error.contains("“/note”"), "\(run)")
        #expect(try folder.decide(["--schema", "{\"type\": "]).status == 5)
        #expect(try folder.decide(["--schema", "/nowhere.json"]).status == 5)
    }

    // MARK: - Files of questions

    @Test("what is wrong with a file of questions is said with its place") func questionFiles() throws {
        let folder = try Folder()
        for (text, message) in [
            ("[]", "questions: "), ("5", "questions: "), ("{\"a\": 5}", "questions.a: "),
            (#"[{"type": "choice", "instructions": "a", "choices": ["a", 5]}]"#, "questions[0].choices[1].value: "),
            (#"{"questions": [{"type": "predicate"}]}"#, "questions[0].instructions: "), ("[", "line 1"), ("", "line 1"),
            (#"[{"type": "choice", "instructions": "a", "choices": ["a", "A"]}]"#, "questions[0]: "),
        ] {
            let run = try folder.decide(["--questions", folder.write("q.json", text)])
            #expect(run.status == 64 && run.output.isEmpty, "\(text): \(run)")
            #expect(run.error.contains("q.json") && run.error.contains(message) && !run.error.contains(".."), "\(run.error)")
        }
        #expect(try folder.decide(["--questions", "/nowhere.json"]).status == 64)
        // The form of System One is one too.
        let named = try folder.write(
            "named.json",
            #"{"late": {"type": "noul", "instructions": "Is it late?"}, "mood": {"type": "score", "criteria": ["calm", "angry"]}}"#
        )
        let rows = try lines(folder.decide(["--questions", named]).output)
        #expect(rows.map { $0.names[0] } == ["late", "late", "mood", "mood"])
    }

    @Test("a text that does not fit the window has the exit code of others") func tooLong() throws {
        let folder = try Folder()
        let run = try folder.decide(["Is it late?"], input: String(repeating: "one two three ", count: 400))
        #expect(run.status == 4 && run.output.isEmpty && run.error.contains("2048"), "\(run)")
    }

    // MARK: - Calibration

    @Test("“fm eval --fit” writes temperatures that “fm decide --calibration” uses") func calibration() throws {
        let folder = try Folder()
        let lines = (0..<8).map { number in
            """
            {"id": "n\(number)", "prompt": "Parcel \(number)", "decision": {"type": "choice", "instructions": "Which?", \
            "choices": ["a", "b", "c"]}, "expected": "\(number % 2 == 0 ? "a" : "b")"}
            """
        }
        let data = try folder.write("data.jsonl", lines.joined(separator: "\n") + "\n")
        let fitted = folder.url.appending(path: "fitted.json").path
        let eval = try CommandTests().fm([
            "eval", data, "-m", folder.model, "--adapter", "none", "--fit", fitted, "--minimum", "0",
        ])
        #expect(eval.status == 0 && eval.output.contains("Decisions:") && eval.error.contains("temperatures from 8"), "\(eval)")
        let file = try json(String(contentsOfFile: fitted, encoding: .utf8))
        #expect(file["model"] as? String != nil)
        let entries = try #require(file["entries"] as? [[String: Any]])
        #expect(Set(entries.compactMap { $0["kind"] as? String }) == ["choice"] && entries.count == 3)
        let cold = try folder.write("cold.json", #"{"entries": [\#(Self.entry(0.25))]}"#)
        let warm = try folder.write("warm.json", #"{"entries": [\#(Self.entry(8))]}"#)
        func best(_ path: String?) throws -> Double {
            let run = try folder.decide(
                ["Which?", "-o", "a", "-o", "b", "-o", "c"] + (path.map { ["--calibration", $0] } ?? []))
            #expect(run.status == 0, "\(run)")
            return try #require(try self.lines(run.output).first).probability
        }
        #expect(try best(warm) < best(cold) && best(fitted) > 0)
        for text in ["{", "[]", #"{"entries": 5}"#] {
            let run = try folder.decide(["Is it?", "--calibration", folder.write("wrong.json", text)])
            #expect(run.status == 64 && run.error.contains("wrong.json"), "\(run)")
        }
        #expect(try folder.decide(["Is it?", "--calibration", "/nowhere.json"]).status == 64)
        // Nothing can be fitted to answers.
        let answers = try folder.write("answers.jsonl", "{\"prompt\": \"Hello\", \"excludes\": [\"xyzzy\"]}\n")
        let none = try CommandTests().fm([
            "eval", answers, "-m", folder.model, "--adapter", "none", "--max-tokens", "2", "--fit", fitted,
        ])
        #expect(none.status == 64 && none.error.contains("nothing to fit"), "\(none)")
    }

    private static func entry(_ temperature: Double) -> String {
        #"{"kind": "choice", "minimumOptions": 2, "maximumOptions": 255, "temperature": \#(temperature), "bias": 0, "samples": 9}"#
    }
}
