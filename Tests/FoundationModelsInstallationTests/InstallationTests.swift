import Foundation
import FoundationModelsInstallation
import InstalledModels
import TestSupport
import Testing

/// What an installation knows, without any download.
struct InstallationTests {
    private let installation = ModelInstallation(
        directory: FileManager.default.temporaryDirectory.appendingPathComponent("models-\(UUID().uuidString)"))

    private func write(_ path: String, _ bytes: [UInt8] = Array("GGUF".utf8)) throws {
        let file = installation.directory.appendingPathComponent(path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: file)
    }

    private func removeFolder() throws { try FileManager.default.removeItem(at: installation.directory) }

    @Test func `the default installation is the folder that the system model uses`() {
        #expect(ModelInstallation.default.folder.models == ModelStore.directory)
        #expect(ModelInstallation.default.directory.lastPathComponent == "foundation-models")
    }

    @Test func `a folder that does not exist has no models`() {
        #expect(installation.models.isEmpty && installation.adapters.isEmpty)
        #expect(installation.current == nil && installation.chosen == nil && installation.chosenAdapter == nil)
        #expect(installation.catalogue.contains { $0.name == "qwen3-4b" && $0.languages.contains("en") && $0.memory > $0.bytes })
        #expect(installation.catalogue.last?.kind == .embedding)
    }

    @Test func `models are listed, chosen and removed`() throws {
        try write("models/mine.gguf")
        try write("models/large.gguf", [UInt8](repeating: 0, count: 1_000))
        try write("models/\(ModelCatalogue.small.fileName)")
        try write("models/half.gguf.part")
        try write("embedders/vectors.gguf")
        #expect(Set(installation.models.map(\.name)) == ["mine", "large", "small", "vectors"])
        #expect(installation.current?.name == "large")  // the largest one
        let mine = try #require(installation.model(named: "mine"))
        #expect(installation.model(named: "mine.gguf") == mine && installation.model(named: "mini") == nil)
        #expect(installation.model(named: "small")?.title == "SmolLM2 135M Instruct")
        try installation.choose(mine)
        #expect(installation.chosen == mine && installation.current == mine)
        // Another value with the same folder is the same installation.
        #expect(ModelInstallation(directory: installation.directory).chosen == mine)
        try installation.remove(mine)
        #expect(installation.chosen == nil && installation.current?.name == "large")
        #expect(!installation.models.contains(mine))
        try installation.choose(installation.model(named: "small"))
        try installation.choose(nil)
        #expect(installation.current?.name == "large")
        let vectors = try #require(installation.model(named: "vectors"))
        #expect(vectors.kind == .embedding)
        #expect(throws: InstallationError.self) { try installation.choose(vectors) }
        try removeFolder()
    }

    @Test func `damaged adapters are listed with the reason, and are neither added nor chosen`() throws {
        try write("adapters/broken.fmadapter", Array("no adapter".utf8))
        let broken = try #require(installation.adapters.first)
        #expect(broken.name == "broken" && broken.problem != nil)
        #expect(throws: InstallationError.self) { try installation.choose(adapter: broken) }
        try write("models/tiny.gguf", TinyModel().builder().bytes())
        let model = try #require(installation.current)
        #expect(installation.adapters(for: model).isEmpty)
        #expect(throws: InstallationError.self) { try installation.choose(adapter: broken) }
        let file = try TemporaryFile(Array("no adapter".utf8), suffix: ".fmadapter")
        #expect(throws: InstallationError.self) { try installation.add(adapterAt: URL(filePath: file.path)) }
        try installation.remove(broken)
        #expect(installation.adapters.isEmpty)
        try removeFolder()
    }

    private struct Identity: Equatable { var number: Int, bytes: Data }

    @Test func `adapters of a model are written beside it, and again only where they are missing or others`() throws {
        try write("models/tiny.gguf", TinyModel().builder().bytes())
        try write("models/other.gguf", Array("GGUF and nothing".utf8))
        let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        var installation = installation
        installation.modelAdapter = { $0.isEmpty || $1 != .assistant ? nil : bytes }
        let model = try #require(installation.model(named: "tiny"))
        let path = AdapterUse.assistant.path(beside: model.url.path)
        #expect(path.hasSuffix("/models/tiny.assistant.fmadapter"))
        func file() throws -> Identity {
            let number = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
            return Identity(number: try #require(number), bytes: try Data(contentsOf: URL(filePath: path)))
        }
        try installation.ensureAdapters(of: model)
        let first = try file()
        #expect(first.bytes == bytes)
        try installation.ensureAdapters(of: model)
        #expect(try file() == first, "it was not written again")
        for place in [0, bytes.count - 1] {
            var other = bytes
            other[place] = 255
            try other.write(to: URL(filePath: path))
            try installation.ensureAdapters(of: model)
            #expect(try file().bytes == bytes)
        }
        // They are no models, no adapters of the user, and no part of the model's size.
        #expect(installation.models.map(\.name) == ["other", "tiny"] && installation.models[1] == model)
        #expect(installation.adapters.isEmpty)
        for url in installation.models.map(\.url) + [URL(filePath: "/none/none.gguf")] {
            try installation.ensureAdapters(ofModelAt: url.path)
        }
        let elsewhere = try TinyModel().file()
        try installation.ensureAdapters(ofModelAt: elsewhere.path)
        #expect(!FileManager.default.fileExists(atPath: AdapterUse.assistant.path(beside: elsewhere.path)))
        try installation.remove(model)
        #expect(try FileManager.default.contentsOfDirectory(atPath: installation.folder.models.path) == ["other.gguf"])
        try removeFolder()
    }

    @Test func `an adapter that cannot be written is an error, and leaves nothing`() throws {
        try write("models/tiny.gguf", TinyModel().builder().bytes())
        var installation = installation
        installation.modelAdapter = { _, use in use == .tagging ? Data("adapter".utf8) : nil }
        let model = try #require(installation.model(named: "tiny"))
        let path = AdapterUse.tagging.path(beside: model.url.path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        #expect {
            try installation.ensureAdapters(of: model)
        } throws: { error in
            guard case InstallationError.cannotWrite(let url, _) = error else { return false }
            return url.path == path
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: installation.folder.models.path).count == 2)
        try removeFolder()
    }

    @Test func `the package contains the adapters of its models, by their fingerprints`() {
        let small = "29c947167a0d71b7"
        #expect(installation.modelAdapter(small, .tagging)?.isEmpty == false)
        #expect(installation.modelAdapter(small, .assistant) != installation.modelAdapter(small, .tagging))
        #expect(AdapterUse.allCases.allSatisfy { installation.modelAdapter("0", $0) == nil })
    }

    @Test func `the advice is for the machine`() {
        func best(_ gigabytes: Int, _ rate: Double) -> String {
            ModelAdvice(memory: gigabytes << 30, freeMemory: nil, bytesPerSecond: rate, isMeasured: true).best.model.name
        }
        #expect(best(32, 50e9) == "qwen3-4b-2507")
        #expect(best(32, 12e9) == "qwen3.5-2b")
        #expect(best(32, 1e9) == ModelCatalogue.standard.name)
        #expect(best(2, 50e9) == ModelCatalogue.small.name)
        let advice = ModelAdvice(memory: 8 << 30, freeMemory: nil, bytesPerSecond: 10e9, isMeasured: false)
        #expect(advice.candidates.first?.model.name == "qwen3-4b-2507" && advice.candidates.last?.model.name == "small")
        #expect(advice.candidates.last?.fits == true)
    }

    @Test func `errors say what to do, and name no command`() {
        let errors: [InstallationError] = [
            .notEnoughSpace(needed: 2_000_000, free: 1_000_000, directory: installation.directory),
            .diskFull(needed: 5_000_000, directory: installation.directory),
            .cannotWrite(installation.directory, reason: "it is a file"), .notDownloaded(name: "a", reasons: ["b: c"]),
            .repository(name: "a/b", reason: "it is private"), .address("-x", reason: "is not an address"),
            .nameTaken(name: "a", directory: installation.directory, source: "b"), .unknownModel("a"), .notInstalled("a"),
            .unusable(name: "a", reason: "it is damaged"),
        ]
        for error in errors {
            let text = [error.errorDescription, error.recoverySuggestion].compactMap(\.self).joined(separator: " ")
            #expect(error.errorDescription != nil && !text.contains("fm ") && !text.contains("“fm"), "\(text)")
        }
        #expect(errors[1].errorDescription?.contains("5 MB more are needed") == true)
        let question = InstallationError.repository(name: "a/b", reason: "it was not found; is there a network?")
        #expect(question.errorDescription == "a/b: it was not found; is there a network?")
        #expect(errors[4].errorDescription == "a/b: it is private.")
    }
}
