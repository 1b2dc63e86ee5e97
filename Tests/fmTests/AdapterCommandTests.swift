import Foundation
import Inference
import InstalledModels
import TestSupport
import Testing

/// `fm adapter` as a person or a script uses it, with a tiny model.
struct AdapterCommandTests {
    private let commands = CommandTests()

    /// A folder for data that is removed with this object, and that has its own directory of models.
    private final class Folder {
        let url: URL
        let model: TemporaryFile
        init(_ type: TensorType = .f32) throws {
            var tiny = TinyModel()
            tiny.type = type
            url = FileManager.default.temporaryDirectory.appendingPathComponent("adapter-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            model = try tiny.file()
        }
        deinit { try? FileManager.default.removeItem(at: url) }

        func path(_ name: String) -> String { url.appendingPathComponent(name).path }

        func data(_ count: Int = 40) throws -> String {
            let rows = (0..<count).map { "{\"prompt\": \"number \($0)\", \"completion\": \"the thing\"}" }
            try rows.joined(separator: "\n").write(toFile: path("rows.jsonl"), atomically: true, encoding: .utf8)
            return path("rows.jsonl")
        }

        var environment: [String: String] { ["XDG_DATA_HOME": url.path, "FM_MODEL": model.path] }
    }

    private func fm(_ folder: Folder, _ arguments: String...) throws -> CommandTests.Run {
        try commands.fm(["adapter"] + arguments, environment: folder.environment)
    }

    @Test("[A10] train, info, list, use, and an answer with the adapter") func all() throws {
        let folder = try Folder()
        let data = try folder.data()
        let preview = try fm(folder, "train", data, "--preview")
        #expect(preview.status == 0 && preview.output.contains("⟦the thing<|im_end|>⟧"))
        struct Step: Decodable { var step: Int, steps: Int, loss: Double }
        let trained = try fm(
            folder, "train", data, "--rank", "4", "--steps", "30", "--rate", "0.01", "--json", "--html",
            folder.path("curve.html"),
            "--author", "Ada")
        #expect(trained.status == 0, "\(trained.error)")
        let lines = trained.output.split(separator: "\n")
        let steps = try lines.dropLast().map { try JSONDecoder().decode(Step.self, from: Data($0.utf8)) }
        #expect(steps.map(\.step) == Array(1...30) && (steps.last?.loss ?? 9) < steps[0].loss / 2)
        #expect(lines.last.map(String.init) == folder.path("foundation-models/adapters/rows.fmadapter"))
        let page = try String(contentsOfFile: folder.path("curve.html"), encoding: .utf8)
        #expect(page.contains("<svg") && !page.contains("http"))

        let info = try fm(folder, "info", "rows")
        #expect(info.status == 0 && info.output.contains("tiny") && info.output.contains("rank 4") && info.output.contains("Ada"))
        #expect(try fm(folder, "list").output.contains("rows"))
        #expect(try fm(folder, "use", "rows").status == 0)
        #expect(try fm(folder, "list").output.contains("* rows"))
        let environment = folder.environment.merging(["FM_LOOPS": "1"]) { $1 }
        func answer(_ arguments: String...) throws -> String {
            let run = try commands.fm(
                arguments + ["--greedy", "--max-tokens", "6", "--guardrails", "permissive-content-transformations", "number 7"],
                environment: environment)
            #expect(run.status == 0, "\(run.error)")
            return run.output
        }
        #expect(try answer() == "the thing\n")
        #expect(try answer("--adapter", "none") != "the thing\n")
        try otherCommands(folder)
        #expect(try fm(folder, "use", "none").status == 0)
        #expect(try answer() != "the thing\n")
        #expect(try answer("--adapter", "rows") == "the thing\n")
    }

    /// Tests, data and trials answer with the adapter in use, as other commands do.
    private func otherCommands(_ folder: Folder) throws {
        func run(_ arguments: String...) throws -> CommandTests.Run {
            try commands.fm(arguments, environment: folder.environment)
        }
        try #"{"prompt": "number 7", "contains": ["the thing"]}"#.write(
            toFile: folder.path("eval.jsonl"), atomically: true, encoding: .utf8)
        let (data, first, other) = (folder.path("eval.jsonl"), folder.path("a.run.jsonl"), folder.path("b.run.jsonl"))
        let with = try run("eval", data, "--max-tokens", "6", "--run", first)
        #expect(with.status == 0 && with.output.contains("adapter rows"), "\(with)")
        // The run of another adapter is another one.
        let mixed = try run("eval", data, "--max-tokens", "6", "--run", first, "--adapter", "none")
        #expect(mixed.status == 64 && mixed.error.contains("different are: adapter."), "\(mixed.error)")
        let without = try run("eval", data, "--max-tokens", "6", "--run", other, "--adapter", "none")
        #expect(without.status == 1 && !without.output.contains("adapter rows"), "\(without)")
        #expect(try run("eval", data, "--adapter", "nothing").status == 64)

        try "\u{FEFF}number 7\n".write(toFile: folder.path("play.txt"), atomically: true, encoding: .utf8)
        let prompts = folder.path("play.txt")
        #expect(try run("play", prompts, "--once", "--max-tokens", "6").output.contains("the thing"))
        #expect(try !run("play", prompts, "--once", "--max-tokens", "6", "--adapter", "none").output.contains("the thing"))
        #expect(try run("play", "x.swift", "--adapter", "rows").status == 64)

        for window in [[], ["--context", "256"]] {
            let chat = try commands.fm(
                ["chat", "-g", "--max-tokens", "6"] + window, input: "number 7\n", environment: folder.environment)
            #expect(chat.output.contains("the thing"), "\(chat)")
        }

        let rows = folder.path("learned.jsonl")
        #expect(try fm(folder, "distill", prompts, "--max-tokens", "6", "--out", rows).status == 0)
        #expect(try String(contentsOfFile: rows, encoding: .utf8).contains(#""number 7"}"#))
        #expect(try String(contentsOfFile: rows, encoding: .utf8).contains(#""the thing"}"#))
        let otherTeacher = try fm(folder, "distill", prompts, "--max-tokens", "6", "--out", rows, "--adapter", "none")
        #expect(otherTeacher.status == 64 && otherTeacher.error.contains("another teacher"), "\(otherTeacher.error)")
    }

    @Test("[A10] export, import and merge") func conversions() throws {
        let folder = try Folder(.q8_0)
        let out = folder.path("a.fmadapter")
        #expect(try fm(folder, "train", folder.data(), "--rank", "2", "--steps", "3", "--samples", "0", "--out", out).status == 0)
        #expect(try fm(folder, "export", out, "--gguf", folder.path("a.gguf")).status == 0)
        #expect(try fm(folder, "export", out, "--peft", folder.path("peft")).status == 0)
        #expect(try fm(folder, "import", folder.path("peft"), "--out", folder.path("b.fmadapter")).status == 0)
        #expect(try fm(folder, "import", folder.path("a.gguf"), "--out", folder.path("c.fmadapter")).status == 0)
        let merged = try fm(folder, "merge", out, "--out", folder.path("merged.gguf"))
        #expect(merged.status == 0 && merged.error.contains("perplexity"))
        let file = try GGUFFile(path: folder.path("merged.gguf"))
        #expect(file.tensors["blk.0.attn_q.weight"]?.type == .f16 && file.tensors["token_embd.weight"]?.type == .q8_0)
        #expect(try fm(folder, "merge", out, "--out", folder.model.path).status == 64)
        #expect(FileManager.default.fileExists(atPath: folder.model.path))
        #expect(try fm(folder, "export", out).status == 64)
        #expect(try fm(folder, "import", folder.path("nothing"), "--out", folder.path("d.fmadapter")).status == 1)
        #expect(try fm(folder, "info", "nothing").status == 64)
    }

    @Test("[A10] a run that is killed at any time continues") func killed() throws {
        let folder = try Folder()
        let data = try folder.data()
        let out = folder.path("a.fmadapter")
        let arguments = [
            "adapter", "train", data, "--rank", "4", "--epochs", "30", "--patience", "0", "--samples", "0", "--out", out,
        ]
        var finished = false
        for round in 0..<20 {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: CommandTests.binary.path)
            process.arguments = arguments + (round == 0 ? [] : ["--resume"]) + ["--json"]
            process.environment = ProcessInfo.processInfo.environment.merging(folder.environment) { $1 }
            let output = Pipe()
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
            // After some lines of progress, at a different place each time.
            var lines = 0
            while lines <= round, let byte = try output.fileHandleForReading.read(upToCount: 1), let first = byte.first {
                if first == 0x0A { lines += 1 }
            }
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            if process.terminationReason == .exit, process.terminationStatus == 0 {
                finished = true
                break
            }
        }
        if !finished { #expect(try commands.fm(arguments + ["--resume"], environment: folder.environment).status == 0) }
        #expect(try fm(folder, "info", out).status == 0)
        #expect(!FileManager.default.fileExists(atPath: out + ".checkpoint"))
    }

    @Test("[A10] bad data is named by its line") func badData() throws {
        let folder = try Folder()
        try "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": 7}\n".write(
            toFile: folder.path("bad.jsonl"), atomically: true, encoding: .utf8)
        let run = try fm(folder, "train", folder.path("bad.jsonl"))
        #expect(run.status == 64 && run.error.contains("Line 2"))
        #expect(try fm(folder, "train", folder.path("missing.jsonl")).status == 64)
        let data = try folder.data()
        #expect(try fm(folder, "train", data, "--rank", "0").status == 64)
        for option in [["--epochs", "9223372036854775807"], ["--steps", "9223372036854775807"], ["--weight-decay", "inf"]] {
            let run = try commands.fm(["adapter", "train", data] + option, environment: folder.environment)
            #expect(run.status == 64 && !run.error.isEmpty, "\(option)")
        }
        #expect(try fm(folder, "train", data, "--out", data).status == 64)
        #expect(try fm(folder, "train", data, "--out", folder.url.path).status == 64)
        #expect(try fm(folder, "train", data, "--html", folder.path("none/x.html")).status == 64)
    }

    @Test("[A10] a teacher writes rows, and continues where it stopped") func distill() throws {
        let folder = try Folder()
        try "Say hello.\r\n{\"prompt\": \"Name a colour.\"}\n{\"messages\": [{\"role\": \"user\", \"content\": \"Count.\"}]}\n"
            .write(
                toFile: folder.path("prompts.txt"), atomically: true, encoding: .utf8)
        let schema = folder.path("schema.json")
        try #"{"type":"object","properties":{"n":{"enum":[1,2]}},"required":["n"],"additionalProperties":false}"#.write(
            toFile: schema, atomically: true, encoding: .utf8)
        let out = folder.path("data.jsonl")
        let run = try fm(folder, "distill", folder.path("prompts.txt"), "--schema", schema, "-i", "Answer.", "--out", out)
        #expect(run.status == 0, "\(run.error)")
        let rows = try String(contentsOfFile: out, encoding: .utf8).split(separator: "\n")
        #expect(rows.count == 3 && rows.allSatisfy { $0.contains("\\\"n\\\"") && $0.contains("Answer.") })
        #expect(
            try fm(folder, "distill", folder.path("prompts.txt"), "--schema", schema, "-i", "Answer.", "--out", out).status == 0)
        #expect(try String(contentsOfFile: out, encoding: .utf8).split(separator: "\n").count == 3)
        // What a process leaves that was killed before a row was written, or while it was.
        let whole = try Data(contentsOf: URL(filePath: out))
        for missing in [rows[2].utf8.count + 1, 9] {
            try whole.dropLast(missing).write(to: URL(filePath: out))
            #expect(
                try fm(folder, "distill", folder.path("prompts.txt"), "--schema", schema, "-i", "Answer.", "--out", out).status
                    == 0)
            #expect(try Data(contentsOf: URL(filePath: out)) == whole)
        }
        #expect(try fm(folder, "train", out, "--preview").status == 0)
        // What the schema says counts, not the name of its file.
        let (prompts, other) = (folder.path("prompts.txt"), folder.path("other.json"))
        try FileManager.default.copyItem(atPath: schema, toPath: other)
        #expect(try fm(folder, "distill", prompts, "--schema", other, "-i", "Answer.", "--out", out).status == 0)
        let pretty = try fm(folder, "distill", prompts, "--schema", other, "--pretty", "-i", "Answer.", "--out", out)
        #expect(pretty.status == 64 && pretty.error.contains("other prompts or options"), "\(pretty)")
        try "{\"const\": 1}".write(toFile: other, atomically: true, encoding: .utf8)
        #expect(try fm(folder, "distill", prompts, "--schema", other, "-i", "Answer.", "--out", out).status == 64)
        #expect(try Data(contentsOf: URL(filePath: out)) == whole)
        // A place that cannot be written is no wrong usage.
        #expect(try fm(folder, "distill", prompts, "--out", folder.path("none/data.jsonl")).status == 1)
        // Answers that do not pass are left out.
        for (filter, count) in [(#"{"contains": ["n"]}"#, 3), (#"{"excludes": ["n"]}"#, 0)] {
            let filtered = try fm(
                folder, "distill", folder.path("prompts.txt"), "--schema", schema, "--filter", filter, "--out",
                folder.path("filtered\(count).jsonl"))
            #expect(filtered.status == 0 && filtered.error.contains("\(count) of 3"), "\(filtered.error)")
        }
        for filter in ["x", #"{"expected": 1}"#, #"{"regex": "("}"#] {
            #expect(
                try fm(folder, "distill", folder.path("prompts.txt"), "--filter", filter, "--out", folder.path("x.jsonl")).status
                    == 64)
        }
    }

    @Test("[A10] an adapter is trained on top of the one that was installed with the model, unless there is to be none")
    func onTop()
        throws
    {
        let folder = try Folder()
        let data = try folder.data()
        let model = folder.path("tiny.gguf")
        try FileManager.default.copyItem(atPath: folder.model.path, toPath: model)
        var installed = TinyModel().adapter(seed: 3)
        installed.metadata.append(("base_fingerprint", .string(try GGUFFile(path: model).fingerprint())))
        try Data(installed.bytes()).write(to: URL(filePath: AdapterUse.assistant.path(beside: model)))
        func train(_ name: String, _ flags: String...) throws -> AdapterFile {
            let run = try commands.fm(
                [
                    "adapter", "train", data, "--model", model, "--rank", "4", "--steps", "1", "--samples", "1", "--out",
                    folder.path(name),
                ]
                    + flags, environment: folder.environment)
            #expect(run.status == 0 && !run.error.contains("Sample answers failed"), "\(run)")
            return try AdapterFile(path: folder.path(name))
        }
        #expect(try train("a.fmadapter").texts["base_adapter"] != nil)
        #expect(try train("b.fmadapter", "--base", "none").texts["base_adapter"] == nil)
        let info = try commands.fm(["adapter", "info", folder.path("a.fmadapter")], environment: folder.environment)
        #expect(info.output.contains("the adapter that was installed with the model"), "\(info)")
    }
}
