import ArgumentParser
import Foundation
import FoundationModels
import Inference
import InstalledModels
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

    /// A folder of models with a tiny one and an adapter beside it.
    private static func folderWithAdapter() throws -> (url: URL, model: String) {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("assistant-\(UUID().uuidString)")
        let model = url.appendingPathComponent("foundation-models/models/tiny.gguf")
        try FileManager.default.createDirectory(at: model.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(TinyModel().builder().bytes()).write(to: model)
        var adapter = TinyModel().adapter(seed: 3)
        adapter.metadata.append(("base_fingerprint", .string(try GGUFFile(path: model.path).fingerprint())))
        try Data(adapter.bytes()).write(to: URL(filePath: AdapterUse.assistant.path(beside: model.path)))
        return (url, model.path)
    }

    @Test("the adapter beside a model is used and named, unless it is turned off") func installedAdapter() throws {
        let folder = try Self.folderWithAdapter()
        defer { try? FileManager.default.removeItem(at: folder.url) }  // otherwise the system removes it
        func fm(_ arguments: String..., setting: String = "") throws -> String {
            let run = try commands.fm(
                arguments, environment: ["XDG_DATA_HOME": folder.url.path, "FM_MODEL": "tiny", "FM_ADAPTER": setting])
            #expect(run.status == 0 && run.error.isEmpty, "\(run)")
            return run.output
        }
        let (plain, adapted) = ("The model is available: tiny\n", "The model is available: tiny, with its adapter “assistant”\n")
        #expect(try fm("available") == adapted)
        #expect(try fm("available", "--adapter", "none") == plain)
        #expect(try fm("available", setting: "none") == plain)
        #expect(try fm("model", "info").contains("assistant: used by default"))
        #expect(try fm("model", "info", setting: "none").contains("assistant: not used, because FM_ADAPTER is none"))
        #expect(try !fm("model", "list").contains("fmadapter"))
        #expect(try fm("adapter", "list").hasPrefix("There are no adapters"))
        #expect(try !fm("model", "rm", "tiny").isEmpty)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: folder.url.path).allSatisfy { !$0.contains("tiny") })
    }

    @Test("what identifies a model says with which adapters it answers") func identity() throws {
        let folder = try Self.folderWithAdapter()
        defer { try? FileManager.default.removeItem(at: folder.url) }  // otherwise the system removes it
        let own = try TemporaryFile(TinyModel().adapter(seed: 4).bytes())
        var based = TinyModel().adapter(seed: 4)
        based.metadata.append(("base_adapter", .string("a")))
        let onTop = try TemporaryFile(based.bytes())
        func identity(_ adapter: String?) throws -> [String] { try ModelChoice(model: folder.model, adapter: adapter).identity() }
        let identities = try [nil, "none", own.path, onTop.path].map { try identity($0) }
        #expect(identities.map(\.count) == [2, 1, 2, 3] && Set(identities).count == 4)
        #expect(Array(identities[3].prefix(2)) == identities[0])
        #expect(try ModelChoice(model: folder.model).systemModel().localModel.usesInstalledAdapter)
        #expect(try !ModelChoice(model: folder.model, adapter: "none").systemModel().localModel.usesInstalledAdapter)
    }

    @Test("a model that is installed already gets its adapters, and where they cannot be written, it is used without them")
    func earlierVersions() throws {
        let small = ModelStore.path(of: ModelCatalogue.small.name)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earlier-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }  // otherwise the system removes it
        let models = folder.appendingPathComponent("foundation-models/models")
        try FileManager.default.createDirectory(at: models, withIntermediateDirectories: true)
        let model = models.appendingPathComponent(URL(filePath: small).lastPathComponent).path
        try FileManager.default.createSymbolicLink(atPath: model, withDestinationPath: small)
        let adapter = AdapterUse.tagging.path(beside: model)
        func available(_ flags: String...) throws -> CommandTests.Run {
            try commands.fm(["available"] + flags, environment: ["XDG_DATA_HOME": folder.path, "FM_ADAPTER": ""])
        }
        #expect(try available("--adapter", "none").status == 0 && !FileManager.default.fileExists(atPath: adapter))
        // A folder in its place, because a folder without permissions does not stop the superuser.
        try FileManager.default.createDirectory(atPath: adapter, withIntermediateDirectories: true)
        let refused = try available()
        #expect(refused.status == 0 && refused.error.contains("without the adapters") && refused.error.contains(adapter))
        try FileManager.default.removeItem(atPath: adapter)
        let written = try available()
        #expect(written.status == 0 && written.error.isEmpty, "\(written)")
        #expect(AdapterUse.tagging.installed(beside: model) == adapter)
    }
}
