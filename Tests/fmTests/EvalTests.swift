import EvaluationCore
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

    @Test("what is wrong with a run is said with the options of the command")
    func messages() {
        let file = URL(filePath: "/tmp/a.run.jsonl")
        let other = CommandFailure(
            EvaluationDataError.otherRun(file, earlier: "d with m (s)", differences: ["model", "program", "screening"]))
        #expect(other.code == .wrongUsage)
        #expect(
            other.description == "/tmp/a.run.jsonl contains another run (d with m (s)); different are: model, version of fm, "
                + "guardrail or language identification. Give another --run, or remove it.")
        let unnamed = CommandFailure(EvaluationDataError.runWithoutFingerprints(file))
        #expect(unnamed.description.contains("of an earlier version") && unnamed.description.contains("--compare"))
        #expect(CommandFailure(EvaluationDataError.inUse(file)).description.contains("Another “fm eval”"))
        // A full disk is no wrong usage, and neither is a file without permission; a missing one is.
        #expect(CommandFailure(EvaluationDataError.unwritable(file, reason: "It is full.")).code == .failed)
        #expect(CommandFailure(EvaluationDataError.unreadable(URL(filePath: "/dev/null"), reason: "")).code == .failed)
        #expect(CommandFailure(EvaluationDataError.unreadable(URL(filePath: "/nowhere"), reason: "")).code == .wrongUsage)
        let error: any Error = EvaluationDataError.invalidDataSet(reason: "d, line 2: “prompt” is missing.")
        #expect(CommandFailure(error) == CommandFailure("d, line 2: “prompt” is missing.", code: .wrongUsage))
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
            #expect(throws: CommandFailure.self) { try EvalFile.check(outputs: outputs, inputs: [data]) }
        }
        // A full disk is no wrong usage.
        #expect { try OutputFile.write(Data("x".utf8), to: "/dev/full") } throws: { ($0 as? CommandFailure)?.code == .failed }
        #expect(try EvalFile.text(data) == "{}")
        let marked = try folder.write("marked.jsonl", "\u{FEFF}{\"prompt\": \"a\"}").path
        #expect(try EvaluationDataSet(EvalFile.data(marked), name: "data").samples.map(\.prompt) == ["a"])
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
