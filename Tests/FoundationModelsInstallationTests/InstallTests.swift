import Foundation
import FoundationModels
import FoundationModelsInstallation
import InstalledModels
import TestSupport
import Testing

/// Installs models from a local server with the interface of the hub.
struct InstallTests {
    private let folder: InstallationFolder

    init() throws { folder = try InstallationFolder() }

    @Test func `a usual quantisation is installed, or the one that is named`() async throws {
        for name in ["tiny-Q8_0.gguf", "tiny-q4_k_m.gguf", "tiny-UD-Q2_K.gguf", "mmproj-F16.gguf", "README.md"] {
            try folder.publish("good/model/\(name)")
        }
        let usual = try await folder.install("good/model")
        #expect(usual.name == "tiny-q4_k_m" && usual.bytes == folder.model.bytes().count && usual.kind == .language)
        #expect(try folder.names == ["tiny-q4_k_m.gguf"])
        try await folder.install("good/model:Q8_0")
        try await folder.install("good/model:ud-q2_k")
        #expect(try folder.names == ["tiny-Q8_0.gguf", "tiny-UD-Q2_K.gguf", "tiny-q4_k_m.gguf"])
        #expect(try await folder.failure(of: "good/model:Q5_K_M").contains("only: Q4_K_M, Q8_0, UD-Q2_K"))
        // Files are downloaded at the listed revision, because a branch may change.
        #expect(
            try folder.requests.contains {
                $0.contains("/resolve/0123456789abcdef0123456789abcdef01234567/tiny-q4_k_m.gguf")
            })
        let answer = try await LanguageModelSession(model: usual.languageModel).respond(
            to: "Hello", options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 2))
        #expect(!answer.content.isEmpty)
    }

    @Test func `a model is installed with its adapters, also one that is there already`() async throws {
        try folder.publish("good/model/tiny-Q8_0.gguf")
        var installation = folder.installation()
        installation.modelAdapter = { _, use in Data(use.rawValue.utf8) }
        let names = ["tiny-Q8_0.assistant.fmadapter", "tiny-Q8_0.gguf", "tiny-Q8_0.tagging.fmadapter"]
        let model = try await installation.install(folder.request("good/model"))
        #expect(try folder.names == names && Data(contentsOf: folder.file(names[0])) == Data("assistant".utf8))
        try FileManager.default.removeItem(at: folder.file(names[2]))
        try await installation.install(folder.request("good/model"))
        #expect(try folder.names == names)
        try installation.remove(model)
        #expect(try folder.names == [])
    }

    @Test func `a model in several files is one model`() async throws {
        for (index, shard) in folder.model.shards(3).enumerated() {
            try folder.publish("good/model/Q8_0/tiny-Q8_0-0000\(index + 1)-of-00003.gguf", shard.bytes())
        }
        try folder.publish("good/model/Q4_0/tiny-Q4_0.gguf")
        let model = try await folder.install("good/model:Q8_0")
        #expect(model.name == "tiny-Q8_0-00001-of-00003" && model.files.count == 3)
        #expect(try folder.names == (1...3).map { "tiny-Q8_0-0000\($0)-of-00003.gguf" })
        #expect(folder.installation().models == [model])
        try await folder.install("good/model:Q4_0")
        try folder.installation().remove(model)
        #expect(try folder.names == ["tiny-Q4_0.gguf"])
    }

    @Test func `models come from addresses of the hub and of other servers, and from files`() async throws {
        try folder.publish("good/model/tiny-Q8_0.gguf")
        try folder.publish("good/model/page.gguf", Array("<html>Not what you asked for</html>".utf8))
        let blob = folder.address("good/model/blob/main/tiny-Q8_0.gguf?download=true", isRedirected: false)
        try await folder.install(blob)
        #expect(try folder.names == ["tiny-Q8_0.gguf"])
        let missing = folder.address("good/model/resolve/main/none.gguf", isRedirected: false)
        #expect(try await folder.failure(of: missing).contains("no file none.gguf"))
        // The size and checksum at another address are unknown, but the file must be a model.
        #expect(try await folder.failure(of: folder.address("good/model/page.gguf")).contains("not a GGUF file"))
        // What arrives faster than it is written is in memory: not the whole of a large file.
        #expect(try folder.requests.contains { $0.contains("page.gguf range=bytes=0-268435455") })
        #expect(throws: InstallationError.self) { try folder.request("http://example.org/model.txt") }
        #expect(try folder.names == ["tiny-Q8_0.gguf"])
        let own = try TemporaryFile(folder.model.bytes())
        let copy = try await folder.installation().install(.url(URL(filePath: own.path)))
        #expect(try Data(contentsOf: copy.url) == Data(folder.model.bytes()))
        await #expect(throws: InstallationError.self) {
            try await folder.installation().install(.url(URL(filePath: "/none/none.gguf")))
        }
    }

    @Test func `slashes in the name of a file lead to no other folder`() async throws {
        for name in ["tiny-Q8_0.gguf", "other/tiny.gguf"] { try folder.publish("good/model/\(name)") }
        let model = try await folder.install(folder.address("good/model/other%2F..%2Ftiny-Q8_0.gguf"))
        #expect(model.url.path == folder.file("tiny-Q8_0.gguf").path)
        #expect(try folder.names == ["tiny-Q8_0.gguf"])
    }

    /// The time limit is for a search whose time grows with the square of the length.
    @Test(.timeLimit(.minutes(1))) func `what a server says of the next page is read in one go`() async throws {
        try folder.publish("links/model/tiny-Q8_0.gguf")
        try await folder.install("links/model")
        #expect(try folder.names == ["tiny-Q8_0.gguf"])
    }

    @Test func `two sources with files of one name neither replace nor continue each other`() async throws {
        try folder.publish("one/model/tiny-Q8_0.gguf")
        var different = TinyModel()
        different.seed = 9
        let other = different.builder().bytes()
        try folder.publish("other/model/tiny-Q8_0.gguf", other)
        let address = folder.address("other/model/tiny-Q8_0.gguf")
        let model = try await folder.install("one/model")
        let failure = try await folder.failure(of: "other/model")
        #expect(failure.contains("Another file is installed") && failure.contains("one/model"), "\(failure)")
        // Without a published content, a file is the one that was downloaded from the same address.
        #expect(try await folder.failure(of: address).contains("Another file is installed"))
        #expect(try Data(contentsOf: model.url) == Data(folder.model.bytes()))
        let count = try folder.requests.count
        try await folder.install("one/model")
        #expect(try folder.requests.dropFirst(count).allSatisfy { !$0.contains("/resolve/") })
        try folder.installation().remove(model)
        // What is left of another download is not continued.
        try folder.write(Array("GGUF and nothing".utf8), to: "tiny-Q8_0.gguf.part")
        let fresh = try await folder.install(address)
        #expect(try Data(contentsOf: fresh.url) == Data(other) && fresh.source == address)
    }

    @Test func `of several installations at once, one downloads the model, and the others find it`() async throws {
        try folder.publish("good/model/tiny-Q8_0.gguf")
        let results = try await withThrowingTaskGroup(of: (model: InstalledModel, isNew: Bool).self) { group in
            for _ in 0..<3 {
                group.addTask {
                    let isNew = Flag()
                    let model = try await folder.installation().install(folder.request("good/model")) {
                        if $0.phase == .downloading { isNew.set() }
                    }
                    return (model, isNew.isSet)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(results.map(\.model)).count == 1 && results.count(where: \.isNew) == 1)
        #expect(try folder.requests.count { $0.hasPrefix("cdn") } == 1)
    }

    @Test func `the token is for the hub only`() async throws {
        try folder.publish("private/model/tiny-Q8_0.gguf")
        let refused = try await folder.failure(of: "private/model")
        #expect(refused.contains("private/model") && refused.contains("set HF_TOKEN"), "\(refused)")
        #expect(try await folder.failure(of: "private/model", token: "guess").contains("HF_TOKEN is not valid"))
        try await folder.install("private/model", token: "secret\n")
        #expect(try folder.names == ["tiny-Q8_0.gguf"])
        #expect(try folder.requests.contains { $0.hasPrefix("hub") && $0.hasSuffix("authorization=Bearer secret") })
        #expect(try folder.requests.filter { $0.hasPrefix("cdn") }.allSatisfy { $0.hasSuffix("authorization=None") })
    }

    @Test func `progress is complete and never decreases`() async throws {
        for (index, shard) in folder.model.shards(2).enumerated() {
            try folder.publish("cut/model/tiny-Q8_0-0000\(index + 1)-of-00002.gguf", shard.bytes())
        }
        let request = try folder.request("cut/model")
        var installed: InstalledModel?
        var events: [InstallationProgress] = []
        for try await event in folder.installation().installing(request) {
            switch event {
            case .progress(let progress): events.append(progress)
            case .installed(let model): installed = model
            }
        }
        let counts = events.filter { $0.phase == .downloading }.map(\.completedBytes)
        #expect(counts == counts.sorted() && counts.last == installed?.bytes)
        #expect(events.last?.totalBytes == installed?.bytes && events.last?.fraction == 1)
        #expect(events.allSatisfy { $0.model.hasPrefix("cut/model-") })
        // The second time, the files are only read.
        var again: [InstallationProgress.Phase] = []
        for try await case .progress(let progress) in folder.installation().installing(request) {
            again.append(progress.phase)
        }
        #expect(Set(again) == [.verifying])
    }

    @Test(arguments: [
        ("none/model", "there is no such file or repository"), ("limited/model", "too many requests"),
        ("gated/model", "accept its terms"), ("broken/model", "could not be read"), ("empty/model", "no GGUF file"),
        ("endless/model", "there is no such file or repository"), ("many/model", "more than 100000 files"),
    ]) func `errors say what is wrong`(name: String, words: String) async throws {
        for owner in ["gated", "broken", "many"] { try folder.publish("\(owner)/model/tiny-Q8_0.gguf") }
        try folder.publish("empty/model/README.md", Array("# A model".utf8))
        #expect(try await folder.failure(of: name).contains(words))
        #expect(try folder.names.allSatisfy { !$0.hasSuffix(".gguf") })
    }

    @Test func `what is no name of a model is told apart`() async throws {
        #expect(throws: InstallationError.unknownModel("not a name")) { try ModelRequest("not a name") }
        #expect(throws: InstallationError.unknownModel("a/b:")) { try ModelRequest("a/b:") }
        #expect(try ModelRequest("a/b:Q8_0") == .repository("a/b", quantisation: "Q8_0"))
        #expect(try ModelRequest("QWEN3-4b") == .named("QWEN3-4b"))
        await #expect(throws: InstallationError.unknownModel("nothing")) {
            try await folder.installation().install(.named("nothing"))
        }
    }

    @Test(arguments: ["http://127.0.0.1:1", "-ox", "ftp://example.org"])
    func `a hub that cannot be reached, or is none`(address: String) async throws {
        let hub = try #require(URL(string: address))
        let installation = ModelInstallation(directory: folder.url, configuration: .init(hub: hub))
        let error = try #require(
            await #expect(throws: InstallationError.self) { try await installation.install(folder.request("good/model")) })
        let words = address.hasPrefix("http:") ? "could not be reached" : "HF_ENDPOINT"
        #expect(error.errorDescription?.contains(words) == true, "\(error)")
    }
}
