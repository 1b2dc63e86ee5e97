import Foundation
import Inference
import Synchronization
import TestSupport
import Testing

/// Tests `fm model pull` with a local server that implements the hub's interface (Tests/Tools/hub_server.py).
final class HubTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hub-\(UUID().uuidString)")
    private let home = FileManager.default.temporaryDirectory.appendingPathComponent("home-\(UUID().uuidString)")
    private let server = Process()
    private let lifeline = Pipe()
    private let endpoint: String
    /// The address of the server that the hub redirects to.
    private let files: String
    private let fm = CommandTests()
    /// A model of about 400 KB, which is more than the server sends before it interrupts a connection.
    private let model = TinyModel().builder()

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let output = Pipe()
        server.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        server.arguments = ["python3", "Tests/Tools/hub_server.py", folder.path]
        server.standardInput = lifeline
        server.standardOutput = output
        try server.run()
        // The server prints its ports when it is ready.
        var text = ""
        while !text.hasSuffix("\n"), case let data = output.fileHandleForReading.availableData, !data.isEmpty {
            text += String(decoding: data, as: UTF8.self)
        }
        let ports = text.split(whereSeparator: \.isWhitespace)
        try #require(ports.count == 2)
        (endpoint, files) = ("http://127.0.0.1:\(ports[0])", "http://127.0.0.1:\(ports[1])")
    }

    deinit {
        try? lifeline.fileHandleForWriting.close()  // the server ends when its input is closed
        server.waitUntilExit()
        for directory in [folder, home] { try? FileManager.default.removeItem(at: directory) }  // not made by every test
    }

    // MARK: - Helpers

    private func publish(_ path: String, _ bytes: [UInt8]? = nil) throws {
        let file = folder.appendingPathComponent(path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes ?? model.bytes()).write(to: file)
    }

    private func environment(_ extra: [String: String] = [:]) -> [String: String] {
        ["XDG_DATA_HOME": home.path, "HF_ENDPOINT": endpoint, "HF_TOKEN": "", "FM_MODEL": ""].merging(extra) { $1 }
    }

    private func pull(_ name: String, _ extra: [String: String] = [:]) throws -> CommandTests.Run {
        try fm.fm(["model", "pull", name], environment: environment(extra))
    }

    /// The names of the files in the directory of models.
    private var installed: [String] {
        get throws {
            let directory = home.appendingPathComponent("foundation-models/models")
            guard FileManager.default.fileExists(atPath: directory.path) else { return [] }
            return try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        }
    }

    private var requests: [String] {
        get throws {
            try String(contentsOf: folder.appendingPathComponent("requests.txt"), encoding: .utf8).split(separator: "\n").map(
                String.init)
        }
    }

    /// Whether no file could be mistaken for a model.
    private func nothingIsInstalled() throws -> Bool { try installed.allSatisfy { $0.hasSuffix(".part") } }

    // MARK: - Successful downloads

    @Test func theQuantisationIsChosen() throws {
        for name in ["tiny-Q8_0.gguf", "tiny-q4_k_m.gguf", "tiny-UD-Q2_K.gguf", "mmproj-F16.gguf", "README.md"] {
            try publish("good/model/\(name)")
        }
        let usual = try pull("good/model")
        #expect(usual.status == 0, "\(usual.error)")
        #expect(try installed == ["tiny-q4_k_m.gguf"])
        #expect(try pull("good/model:Q8_0").status == 0)
        #expect(try installed == ["tiny-Q8_0.gguf", "tiny-q4_k_m.gguf"])
        #expect(try pull("good/model:ud-q2_k").status == 0)
        let unknown = try pull("good/model:Q5_K_M")
        #expect(unknown.status == 3)
        #expect(unknown.error.contains("It has: Q4_K_M, Q8_0, UD-Q2_K."), "\(unknown.error)")
        #expect(try pull("good/model").output.contains("intact"))
        // Files are downloaded at the listed revision, because a branch may change.
        #expect(try requests.contains { $0.contains("/resolve/0123456789abcdef0123456789abcdef01234567/tiny-q4_k_m.gguf") })
        let answer = try fm.fm(["--model", "tiny-q4_k_m", "-g", "--max-tokens", "4", "Hello"], environment: environment())
        #expect(answer.status == 0, "\(answer.error)")
    }

    /// A repository in the Hugging Face form is downloaded, converted and removed again; a cut connection is continued.
    @Test("[H1]", arguments: ["good", "cut"]) func repositoriesAreImported(owner: String) throws {
        let golden = URL(filePath: "Tests/InferenceTests/Golden/Import/qwen2")
        for name in ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"] {
            try publish("\(owner)/tiny/\(name)", Array(Data(contentsOf: golden.appendingPathComponent(name))))
        }
        try publish("\(owner)/tiny/pytorch_model.bin", [1, 2, 3])
        let run = try fm.fm(["model", "import", "\(owner)/tiny", "--type", "f16"], environment: environment())
        #expect(run.status == 0 && run.output.contains("Imported tiny"), "\(run.error)")
        #expect(try installed == ["tiny.gguf"])
        #expect(try !requests.contains { $0.contains("pytorch_model") })
        let imports = home.appendingPathComponent("foundation-models/imports")
        #expect(try FileManager.default.contentsOfDirectory(atPath: imports.path).isEmpty)
    }

    @Test("[H1] what cannot be imported is said before the weights are downloaded") func repositoriesWithoutAModel() throws {
        try publish("good/notes/README.md", [1])
        let run = try fm.fm(["model", "import", "good/notes"], environment: environment())
        #expect(run.status == 3 && run.error.contains("config.json"), "\(run.error)")
        let missing = try fm.fm(["model", "import", "good/nothing"], environment: environment())
        #expect(missing.status == 3 && missing.error.contains("no such repository"), "\(missing.error)")
    }

    @Test func modelsInSeveralFiles() throws {
        for (index, shard) in model.shards(3).enumerated() {
            try publish("good/model/Q8_0/tiny-Q8_0-0000\(index + 1)-of-00003.gguf", shard.bytes())
        }
        try publish("good/model/Q4_0/tiny-Q4_0.gguf")
        let run = try pull("good/model:Q8_0")
        #expect(run.status == 0, "\(run.error)")
        #expect(try installed == (1...3).map { "tiny-Q8_0-0000\($0)-of-00003.gguf" })
        let list = try fm.fm(["model", "list"], environment: environment()).output
        #expect(list.contains("tiny-Q8_0-00001-of-00003") && !list.contains("tiny-Q8_0-00002"))
        #expect(try pull("good/model:Q4_0").status == 0)
        let texts = try ["tiny-Q8_0-00001-of-00003", "tiny-Q4_0"].map {
            try fm.fm(["--model", $0, "-g", "--max-tokens", "8", "Hello"], environment: environment()).output
        }
        #expect(texts[0] == texts[1] && texts[0].count > 1)
        #expect(try fm.fm(["model", "rm", "tiny-Q8_0-00001-of-00003"], environment: environment()).status == 0)
        #expect(try installed == ["tiny-Q4_0.gguf"])
    }

    @Test func addresses() throws {
        try publish("good/model/tiny-Q8_0.gguf")
        try publish("good/model/page.gguf", Array("<html>Not what you asked for</html>".utf8))
        let shown = try pull("\(endpoint)/good/model/blob/main/tiny-Q8_0.gguf?download=true")
        #expect(shown.status == 0, "\(shown.error)")
        #expect(try installed == ["tiny-Q8_0.gguf"])
        #expect(try pull("\(endpoint)/good/model/resolve/main/none.gguf").error.contains("no file none.gguf"))
        // The size and checksum at another address are unknown, but the file must be a model.
        #expect(try pull("\(files)/good/model/page.gguf").error.contains("not a GGUF file"))
        #expect(try pull("\(files)/good/model/tiny-Q8_0.txt").status == 64)
        #expect(try installed == ["tiny-Q8_0.gguf"])
    }

    @Test("two sources with files of one name neither replace nor continue each other") func equalNames() throws {
        for owner in ["one", "other"] { try publish("\(owner)/model/tiny-Q8_0.gguf") }
        var different = TinyModel()
        different.seed = 9
        try publish("other/model/tiny-Q8_0.gguf", different.builder().bytes())
        #expect(try pull("one/model").status == 0)
        let known = try Data(contentsOf: home.appendingPathComponent("foundation-models/models/tiny-Q8_0.gguf"))
        let other = try pull("other/model")
        #expect(
            other.status == 3 && other.error.contains("Another file is installed") && other.error.contains("one/model"),
            "\(other)")
        // Without a published content, a file is the one that was downloaded from the same address.
        #expect(try pull("\(files)/other/model/tiny-Q8_0.gguf").status == 3)
        #expect(try Data(contentsOf: home.appendingPathComponent("foundation-models/models/tiny-Q8_0.gguf")) == known)
        #expect(try pull("one/model").output.contains("intact"))
        #expect(try fm.fm(["model", "rm", "tiny-Q8_0"], environment: environment()).status == 0)
        // What is left of another download is not continued.
        try Data("GGUF and nothing".utf8).write(to: home.appendingPathComponent("foundation-models/models/tiny-Q8_0.gguf.part"))
        let fresh = try pull("\(files)/other/model/tiny-Q8_0.gguf")
        #expect(fresh.status == 0, "\(fresh)")
        #expect(try pull("\(files)/other/model/tiny-Q8_0.gguf").output.contains("intact"))
        let bytes = try Data(contentsOf: home.appendingPathComponent("foundation-models/models/tiny-Q8_0.gguf"))
        #expect(try bytes == Data(contentsOf: folder.appendingPathComponent("other/model/tiny-Q8_0.gguf")))
    }

    @Test("several programs install one model: the first one downloads it, the others wait and find it") func severalPrograms()
        throws
    {
        try publish("good/model/tiny-Q8_0.gguf")
        let runs = Mutex<[CommandTests.Run]>([])
        let failures = Mutex<[any Error]>([])
        let environment = environment()
        DispatchQueue.concurrentPerform(iterations: 3) { _ in
            do {
                let run = try CommandTests().fm(["model", "pull", "good/model"], environment: environment)
                runs.withLock { $0.append(run) }
            } catch {
                failures.withLock { $0.append(error) }
            }
        }
        #expect(failures.withLock { $0.isEmpty })
        let all = runs.withLock { $0 }
        #expect(all.count == 3 && all.allSatisfy { $0.status == 0 }, "\(all)")
        #expect(all.count { $0.output.contains("intact") } == 2, "\(all)")
        #expect(try installed == ["tiny-Q8_0.gguf"])
        #expect(try requests.count { $0.contains("/resolve/") && $0.contains("tiny-Q8_0.gguf") } == 1)
    }

    @Test("an address of the hub that is none is an error") func badEndpoint() throws {
        let run = try pull("good/model", ["HF_ENDPOINT": "-ox"])
        #expect(run.status == 3 && run.error.contains("HF_ENDPOINT"), "\(run)")
    }

    @Test func tokensAreForTheHubOnly() throws {
        try publish("private/model/tiny-Q8_0.gguf")
        let refused = try pull("private/model")
        #expect(refused.status == 3)
        #expect(refused.error.contains("private/model") && refused.error.contains("set HF_TOKEN"), "\(refused.error)")
        let wrong = try pull("private/model", ["HF_TOKEN": "guess"])
        #expect(wrong.error.contains("HF_TOKEN is not valid"), "\(wrong.error)")
        #expect(try pull("private/model", ["HF_TOKEN": "secret"]).status == 0)
        #expect(try installed == ["tiny-Q8_0.gguf"])
        #expect(try requests.contains { $0.hasPrefix("hub") && $0.hasSuffix("authorization=Bearer secret") })
        #expect(try requests.filter { $0.hasPrefix("cdn") }.allSatisfy { $0.hasSuffix("authorization=None") })
    }

    // MARK: - Errors

    @Test func aConnectionThatIsCutIsMadeAgain() throws {
        try publish("cut/model/tiny-Q8_0.gguf")
        let run = try pull("cut/model")
        #expect(run.status == 0, "\(run.error)")
        #expect(try installed == ["tiny-Q8_0.gguf"])
        #expect(try requests.contains { $0.contains("range=bytes=100000-") })
    }

    @Test func aServerThatSendsNothingIsGivenUp() throws {
        try publish("stuck/model/tiny-Q8_0.gguf")
        let run = try pull("stuck/model")
        #expect(run.status == 3 && run.error.contains("the connection was cut"), "\(run.error)")
        #expect(try nothingIsInstalled())
    }

    @Test(arguments: ["good", "whole"]) func anInterruptedDownloadGoesOn(owner: String) throws {
        let bytes = model.bytes()
        try publish("\(owner)/model/tiny-Q8_0.gguf", bytes)
        let models = home.appendingPathComponent("foundation-models/models")
        try FileManager.default.createDirectory(at: models, withIntermediateDirectories: true)
        try Data(bytes.prefix(150_000)).write(to: models.appendingPathComponent("tiny-Q8_0.gguf.part"))
        let run = try pull("\(owner)/model")
        #expect(run.status == 0, "\(run.error)")
        #expect(try Data(contentsOf: models.appendingPathComponent("tiny-Q8_0.gguf")) == Data(bytes))
        #expect(try installed == ["tiny-Q8_0.gguf"])
        #expect(try requests.contains { $0.contains("range=bytes=150000-") })
    }

    @Test func otherBytesThanPromised() throws {
        try publish("wrong/model/tiny-Q8_0.gguf")
        let run = try pull("wrong/model")
        #expect(run.status == 3 && run.error.contains("SHA-256"), "\(run.error)")
        #expect(try installed.isEmpty)
    }

    @Test func fullDisks() throws {
        try publish("huge/model/tiny-Q8_0.gguf")
        let known = try pull("huge/model")
        #expect(known.status == 3 && known.error.contains("MB are free"), "\(known.error)")
        #expect(try installed.isEmpty)
        // The disk is full during the download: the size of a file is limited to 100 KB.
        try publish("good/model/tiny-Q8_0.gguf")
        let limited = try fm.run(
            "/bin/sh", ["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" model pull good/model", CommandTests.binary.path],
            environment: environment())
        #expect(limited.status == 3 && limited.error.contains("is the disk full?"), "\(limited.error)")
        #expect(try nothingIsInstalled())
    }

    @Test(arguments: [
        ("none/model", "there is no such repository"), ("limited/model", "too many requests"),
        ("gated/model", "accept its terms"), ("broken/model", "could not be read"), ("empty/model", "no GGUF file"),
        ("not a name", "OWNER/REPO"),
    ]) func plainWords(name: String, words: String) throws {
        for owner in ["gated", "broken"] { try publish("\(owner)/model/tiny-Q8_0.gguf") }
        try publish("empty/model/README.md", Array("# A model".utf8))
        let run = try pull(name)
        // What is no name at all is a wrong argument.
        #expect(run.status == (name.contains("/") ? 3 : 64) && run.output.isEmpty)
        #expect(run.error.contains(words), "\(run.error)")
        #expect(try installed.isEmpty)
    }

    @Test func noServer() throws {
        let run = try pull("good/model", ["HF_ENDPOINT": "http://127.0.0.1:1"])
        #expect(run.status == 3 && run.error.contains("could not be reached"), "\(run.error)")
    }
}
