import Foundation
import FoundationModelsInstallation
import TestSupport
import Testing

/// What happens when a connection, a server, a disk or a task does not hold until the end.
struct InterruptionTests {
    private let folder: InstallationFolder
    private let bytes: [UInt8]

    init() throws {
        folder = try InstallationFolder()
        bytes = folder.model.bytes()
    }

    private func isWhole(_ name: String = "tiny-Q8_0.gguf") throws -> Bool {
        try folder.names == [name] && Data(contentsOf: folder.file(name)) == Data(bytes)
    }

    @Test func `a connection that is cut is made again where it ended`() async throws {
        try folder.publish("cut/model/tiny-Q8_0.gguf")
        try await folder.install("cut/model")
        #expect(try isWhole())
        #expect(try folder.requests.contains { $0.contains("range=bytes=100000-") })
    }

    @Test func `a server that sends nothing is given up`() async throws {
        try folder.publish("stuck/model/tiny-Q8_0.gguf")
        #expect(try await folder.failure(of: "stuck/model").contains("the connection was cut"))
        #expect(try folder.names.allSatisfy { $0.hasSuffix(".part") })
        #expect(try folder.requests.count { $0.hasPrefix("cdn") } == 3)
    }

    @Test func `a server that fails once is asked again`() async throws {
        try folder.publish("failing/model/tiny-Q8_0.gguf")
        try await folder.install("failing/model")
        #expect(try isWhole())
    }

    @Test(arguments: ["good", "whole"]) func `an interrupted download is continued by the next one`(owner: String) async throws {
        try folder.publish("\(owner)/model/tiny-Q8_0.gguf")
        try folder.write(bytes.prefix(150_000), to: "tiny-Q8_0.gguf.part")
        try await folder.install("\(owner)/model")
        #expect(try isWhole())
        #expect(try folder.requests.contains { $0.contains("range=bytes=150000-") })
    }

    @Test func `a task that is cancelled keeps what it has, and the next one continues it`() async throws {
        try folder.publish("held/model/tiny-Q8_0.gguf")
        let hasData = Flag()
        let task = Task {
            try await folder.installation().install(folder.request("held/model")) {
                if $0.completedBytes > 0 { hasData.set() }
            }
        }
        await eventually { hasData.isSet }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try folder.names == ["tiny-Q8_0.gguf.part"])
        try await folder.install("held/model")
        #expect(try isWhole())
        let ranges = try folder.requests.filter { $0.hasPrefix("cdn") }.map { $0.contains("range=bytes=") }
        #expect(ranges == [false, true])
    }

    @Test func `a task that waits for another installation can be cancelled`() async throws {
        try folder.publish("held/model/tiny-Q8_0.gguf")
        let hasData = Flag()
        let isWaiting = Flag()
        let first = Task {
            try await folder.installation().install(folder.request("held/model")) {
                if $0.completedBytes > 0 { hasData.set() }
            }
        }
        await eventually { hasData.isSet }
        let second = Task {
            try await folder.installation().install(folder.request("held/model")) {
                if $0.phase == .waiting { isWaiting.set() }
            }
        }
        await eventually { isWaiting.isSet }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
    }

    @Test(arguments: ["wrong", "longer"]) func `other bytes than published are not installed`(owner: String) async throws {
        try folder.publish("\(owner)/model/tiny-Q8_0.gguf")
        let failure = try await folder.failure(of: "\(owner)/model")
        #expect(failure.contains(owner == "wrong" ? "SHA-256" : "more than the \(bytes.count) bytes"), "\(failure)")
        #expect(try folder.names.allSatisfy { !$0.hasSuffix(".gguf") })
    }

    /// Of such a file, nobody knows the content: parts of two versions would make a file that is none of them.
    @Test func `a file without a published content is continued only in the same version`() async throws {
        try folder.publish("fresh/model/tiny-Q8_0.gguf")
        try await folder.install(folder.address("fresh/model/tiny-Q8_0.gguf"))
        let installed = try Data(contentsOf: folder.file("tiny-Q8_0.gguf"))
        #expect(installed == Data(bytes.dropLast() + [2]))
    }

    @Test func `a beginning of unknown version is downloaded again`() async throws {
        try folder.publish("unnamed/model/tiny-Q8_0.gguf")
        let address = folder.address("unnamed/model/tiny-Q8_0.gguf")
        try folder.write(bytes.prefix(1_000).map { $0 ^ 1 }, to: "tiny-Q8_0.gguf.part")
        let sources = folder.url.appendingPathComponent("sources")
        try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
        try Data(address.utf8).write(to: sources.appendingPathComponent("tiny-Q8_0.gguf.part"))
        try await folder.install(address)
        #expect(try isWhole())
    }

    @Test func `a copy of a file begins again, because the file may have changed`() async throws {
        let original = try TemporaryFile(bytes)
        let url = URL(filePath: original.path)
        let name = url.lastPathComponent + ".part"
        try folder.write(bytes.prefix(4) + bytes[4..<1_000].map { $0 ^ 1 }, to: name)
        let sources = folder.url.appendingPathComponent("sources")
        try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
        try Data(url.absoluteString.utf8).write(to: sources.appendingPathComponent(name))
        try await folder.installation().install(.url(url))
        #expect(try isWhole(url.lastPathComponent))
    }

    /// The program may end while a complete file is written to the disk.
    @Test func `weights that only lack their name are completed`() async throws {
        let golden = URL(filePath: "Tests/InferenceTests/Golden/Import/qwen2")
        for name in ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"] {
            try folder.publish("good/model/\(name)", Array(Data(contentsOf: golden.appendingPathComponent(name))))
        }
        guard case .repository(let repository, _) = try folder.request("good/model") else { throw CancellationError() }
        let download = try await HubFolder(repository: repository, in: folder.installation())
        let weights = try Data(contentsOf: golden.appendingPathComponent("model.safetensors"))
        try FileManager.default.createDirectory(at: download.url, withIntermediateDirectories: true)
        try weights.write(to: download.url.appendingPathComponent("model.safetensors.part"))
        try await download.download { _ in }
        #expect(try Data(contentsOf: download.url.appendingPathComponent("model.safetensors")) == weights)
    }

    // MARK: - Disks

    @Test func `a disk that is too small is told before the download`() async throws {
        try folder.publish("huge/model/tiny-Q8_0.gguf")
        await #expect {
            try await folder.install("huge/model")
        } throws: { error in
            guard case .notEnoughSpace(let needed, let free, _)? = error as? InstallationError else { return false }
            return needed > 60_000_000_000_000 && free < needed
        }
        #expect(try folder.names.isEmpty)
    }

    @Test func `a disk that becomes full keeps what was written, and the next download continues it`() async throws {
        try folder.publish("good/model/tiny-Q8_0.gguf")
        var installation = folder.installation()
        installation.writeCheck = { $0 > 200_000 ? ENOSPC : nil }
        let error = try #require(
            await #expect(throws: InstallationError.self) { try await installation.install(folder.request("good/model")) })
        let part = try Data(contentsOf: folder.file("tiny-Q8_0.gguf.part"))
        #expect(part.count > 0 && part.count <= 200_000)
        guard case .diskFull(let needed, _) = error else { throw error }
        #expect(needed == bytes.count - part.count)
        installation.writeCheck = { _ in nil }
        try await installation.install(folder.request("good/model"))
        #expect(try isWhole())
        #expect(try folder.requests.contains { $0.contains("range=bytes=\(part.count)-") })
    }

    @Test func `a folder that cannot be written is named`() async throws {
        try folder.publish("good/model/tiny-Q8_0.gguf")
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
        try Data().write(to: folder.url.appendingPathComponent("models"))
        #expect(try await folder.failure(of: "good/model").contains("Cannot write \(folder.models.path)"))
    }
}
