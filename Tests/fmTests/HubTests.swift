import Foundation
import TestSupport
import Testing

/// The commands that install models, with a local server that implements the hub's interface (Tests/Tools/hub_server.py).
final class HubTests {
    private let home = FileManager.default.temporaryDirectory.appendingPathComponent("home-\(UUID().uuidString)")
    private let server: HubServer
    private let fm = CommandTests()
    private let model = TinyModel().builder()

    init() throws { server = try HubServer() }

    deinit { try? FileManager.default.removeItem(at: home) }  // not made by every test

    private func environment(_ extra: [String: String] = [:]) -> [String: String] {
        ["XDG_DATA_HOME": home.path, "HF_ENDPOINT": "\(server.endpoint)", "HF_TOKEN": "", "FM_MODEL": ""].merging(extra) { $1 }
    }

    private func run(_ arguments: String..., extra: [String: String] = [:]) throws -> CommandTests.Run {
        try fm.fm(["model"] + arguments, environment: environment(extra))
    }

    /// The names of the files in the directory of models.
    private var installed: [String] {
        get throws {
            let directory = home.appendingPathComponent("foundation-models/models")
            guard FileManager.default.fileExists(atPath: directory.path) else { return [] }
            return try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        }
    }

    @Test func `a model is downloaded, used, listed and removed`() throws {
        for (index, shard) in model.shards(2).enumerated() {
            try server.publish("good/model/tiny-Q8_0-0000\(index + 1)-of-00002.gguf", shard.bytes())
        }
        let pulled = try run("pull", "good/model")
        #expect(pulled.status == 0 && pulled.output.contains("Installed") && pulled.error.contains("Downloading"), "\(pulled)")
        let again = try run("pull", "good/model")
        #expect(again.status == 0 && again.output.contains("intact") && again.error.isEmpty, "\(again)")
        #expect(try run("pull", "good/model", "--quiet").output.isEmpty)
        let list = try run("list").output
        #expect(list.contains("tiny-Q8_0-00001-of-00002") && !list.contains("tiny-Q8_0-00002"))
        let name = "tiny-Q8_0-00001-of-00002"
        let answer = try fm.fm(["--model", name, "-g", "--max-tokens", "4", "Hello"], environment: environment())
        #expect(answer.status == 0, "\(answer.error)")
        #expect(try run("rm", name).output.split(separator: "\n").count == 2)
        #expect(try installed.isEmpty)
    }

    @Test(arguments: [
        ("none/model", 3 as Int32, "there is no such file or repository"), ("private/model", 3, "set HF_TOKEN"),
        ("not a name", 64, "OWNER/REPO"), ("https://example.org/model.txt", 64, "not the address of a GGUF file"),
    ]) func `errors have their exit codes`(name: String, status: Int32, words: String) throws {
        try server.publish("private/model/tiny-Q8_0.gguf", model.bytes())
        let failed = try run("pull", name)
        #expect(failed.status == status && failed.error.contains(words) && failed.output.isEmpty, "\(failed)")
        #expect(try installed.isEmpty)
    }

    @Test func `another file of the same name is told with the command that removes it`() throws {
        for owner in ["one", "other"] {
            try server.publish("\(owner)/model/tiny-Q8_0.gguf", model.bytes() + [owner == "one" ? 1 : 2])
        }
        #expect(try run("pull", "one/model").status == 0)
        let failed = try run("pull", "other/model")
        #expect(failed.status == 3 && failed.error.contains("“fm model rm tiny-Q8_0.gguf”"), "\(failed)")
    }

    /// The size of a file is limited to 100 KB.
    @Test func `a file that cannot be written is not a model`() throws {
        try server.publish("good/model/tiny-Q8_0.gguf", model.bytes())
        let limited = try fm.run(
            "/bin/sh", ["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" model pull good/model", CommandTests.binary.path],
            environment: environment())
        #expect(limited.status == 3 && limited.error.contains("Cannot write"), "\(limited.error)")
        #expect(try installed.allSatisfy { $0.hasSuffix(".part") })
    }

    @Test func `requests go through the proxy of the environment`() throws {
        try server.publish("good/model/tiny-Q8_0.gguf", model.bytes())
        // No name server knows the hub: only the proxy, which is the test server, can answer for it.
        let pulled = try run(
            "pull", "good/model",
            extra: ["HF_ENDPOINT": "http://hub.invalid", "http_proxy": "\(server.endpoint)", "no_proxy": "127.0.0.1"])
        #expect(pulled.status == 0, "\(pulled.error)")
        #expect(try server.requests.contains { $0.hasPrefix("hub http://hub.invalid/api/models/good/model ") })
    }

    /// A repository in the Hugging Face form is downloaded, converted and removed again; a cut connection is continued.
    @Test("[H1]", arguments: ["good", "cut"]) func repositoriesAreImported(owner: String) throws {
        let golden = URL(filePath: "Tests/InferenceTests/Golden/Import/qwen2")
        for name in ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"] {
            try server.publish("\(owner)/tiny/\(name)", Array(Data(contentsOf: golden.appendingPathComponent(name))))
        }
        try server.publish("\(owner)/tiny/pytorch_model.bin", [1, 2, 3])
        let imported = try run("import", "\(owner)/tiny", "--type", "f16")
        #expect(imported.status == 0 && imported.output.contains("Imported tiny"), "\(imported.error)")
        #expect(try installed == ["tiny.gguf"])
        #expect(try !server.requests.contains { $0.contains("pytorch_model") })
        let imports = home.appendingPathComponent("foundation-models/imports")
        #expect(try FileManager.default.contentsOfDirectory(atPath: imports.path).isEmpty)
    }

    @Test("[H1] what cannot be imported is said before the weights are downloaded") func repositoriesWithoutAModel() throws {
        try server.publish("good/notes/README.md", [1])
        let failed = try run("import", "good/notes")
        #expect(failed.status == 3 && failed.error.contains("config.json"), "\(failed.error)")
        let missing = try run("import", "good/nothing")
        #expect(missing.status == 3 && missing.error.contains("no such file or repository"), "\(missing.error)")
    }
}
