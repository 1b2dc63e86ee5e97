import ArgumentParser
import Foundation
import FoundationModels
import TestSupport
import Testing

@testable import fm

/// The model and the adapter of a command are a value that it makes from its flags.
struct ModelChoiceTests {
    private let commands = CommandTests()

    @Test("--model and --adapter of each command choose the model that answers") func flags() throws {
        let model = try TinyModel().file()
        let adapter = try TemporaryFile(TinyModel().adapter(seed: 3).bytes())
        let flags = ["--model", model.path, "--adapter", adapter.path]
        let expected = try ModelChoice(model: model.path, adapter: adapter.path)
        #expect(expected.path == model.path && expected.adapter == adapter.path)
        let local = expected.systemModel(contextSize: 128).localModel
        #expect(local.path == model.path && local.adapter == adapter.path && local.maximumContext == 128)
        let choices: [(String, ModelChoice)] = [
            ("respond", try Respond.parse(flags + ["Hi"]).flags.modelFlags.choice()),
            ("chat", try Chat.parse(flags).flags.modelFlags.choice()),
            ("ask", try Ask.parse(flags + ["--in", "docs.index", "Who?"]).flags.modelFlags.choice()),
            ("read", try Read.parse(flags + ["book.txt"]).flags.modelFlags.choice()),
            ("tokens", try Tokens.parse(flags + ["Hi"]).modelFlags.choice()),
            ("count-tokens", try CountTokens.parse(flags + ["Hi"]).tokens().modelFlags.choice()),
            ("available", try Available.parse(flags).modelFlags.choice()),
            ("bench", try Bench.parse(flags).modelFlags.choice()),
            ("states", try States.parse(flags + ["p.jsonl", "--layer", "1", "--out", "p.bin"]).choice()),
        ]
        for (command, choice) in choices { #expect(choice == expected, "\(command)") }
        #expect(try ModelChoice(model: model.path, adapter: "none").adapter == nil)
    }

    /// An adapter of another architecture shows that it reaches the model, without a trained one.
    @Test("each command says that an adapter does not fit the model") func unfit() throws {
        let model = try TinyModel().file()
        let adapter = try TemporaryFile(TinyModel().adapter(seed: 3, architecture: "gemma").bytes())
        let text = try TemporaryFile(Array("Hello".utf8), suffix: ".txt")
        let data = try TemporaryFile(Array(#"{"prompt": "Hello", "contains": ["x"]}"#.utf8), suffix: ".jsonl")
        for command in [
            ["Hello"], ["chat"], ["chat", "--context", "256"], ["read", text.path], ["tokens", "Hello"],
            ["count-tokens", "Hello"],
            ["available"], ["bench", "--repeat", "1"], ["bench", "--concurrency", "1"], ["bench", "--lookup"],
            ["eval", data.path, "--run", data.path + ".run"],
        ] {
            let run = try commands.fm(command + ["--model", model.path, "--adapter", adapter.path], input: "Hello\n")
            #expect(run.status == 3 && run.error.contains("gemma"), "\(command) \(run)")
        }
        let trial = try commands.fm(["play", text.path, "--once", "--model", model.path, "--adapter", adapter.path])
        #expect(trial.output.contains("gemma"), "\(trial)")
    }

    @Test("a named model comes before that of the environment, and saying whether it is available writes nothing")
    func precedence() throws {
        var named = TinyModel().builder()
        named.metadata[1].1 = .string("the other one")
        let (model, other) = (try TinyModel().file(), try TemporaryFile(named.bytes()))
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("choice-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }  // otherwise the system removes it
        let environment = ["FM_MODEL": model.path, "XDG_CACHE_HOME": folder.path, "XDG_DATA_HOME": folder.path]
        let first = try commands.fm(["available"], environment: environment)
        #expect(first.output == "The model is available: tiny\n", "\(first)")
        let second = try commands.fm(["available", "-m", other.path], environment: environment)
        #expect(second.output == "The model is available: the other one\n", "\(second)")
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }
}
