import CZlib
import Foundation
import TestSupport
import Testing

@testable import FoundationModelsInstallation

/// Archives as Python writes them, and damaged ones.
struct ZIPArchiveTests {
    private static let text = Array(String(repeating: "A text that repeats itself. ", count: 20_000).utf8)

    private static func contents(_ archive: [UInt8], _ name: String = "data/part.bin") throws -> [UInt8] {
        let file = try TemporaryFile(archive, suffix: ".whl")
        var bytes: [UInt8] = []
        try ZIPArchive(URL(filePath: file.path)).extract(name) { bytes += $0 }
        return bytes
    }

    @Test(arguments: [false, true], [false, true])
    func `stored and deflated members are read, also with 64-bit fields`(isDeflated: Bool, isLarge: Bool) throws {
        var archive = ZIPBuilder()
        archive.isLarge = isLarge
        archive.add("data/other.bin", [1, 2, 3], isDeflated: false)
        archive.add("data/part.bin", Self.text, isDeflated: isDeflated)
        archive.add("data/empty.bin", [], isDeflated: false)
        #expect(try Self.contents(archive.bytes()) == Self.text)
        #expect(try Self.contents(archive.bytes(comment: "A comment"), "data/other.bin") == [1, 2, 3])
        #expect(try Self.contents(archive.bytes(), "data/empty.bin") == [])
        #expect(throws: ZIPArchive.Failure.self) { try Self.contents(archive.bytes(), "data/none.bin") }
    }

    @Test func `a damaged archive is an error`() throws {
        var archive = ZIPBuilder()
        archive.add("data/part.bin", Self.text, isDeflated: true)
        let bytes = archive.bytes()
        #expect(throws: ZIPArchive.Failure.self) { try Self.contents([]) }
        #expect(throws: ZIPArchive.Failure.self) { try Self.contents(Array(bytes.dropLast(30))) }
        #expect(throws: ZIPArchive.Failure.self) { try Self.contents(Array(bytes.dropFirst(100))) }
        var wrong = bytes
        wrong[100] ^= 1
        #expect(throws: ZIPArchive.Failure.self) { try Self.contents(wrong) }
    }

    /// Whatever bytes an archive has, it is read, or an error; it never asks for more memory than it has itself.
    @Test func `no byte of the directory leads out of the archive`() throws {
        var archive = ZIPBuilder()
        archive.add("data/part.bin", Array(Self.text.prefix(500)), isDeflated: true)
        let bytes = archive.bytes()
        for position in bytes.indices {
            for value in [0, 0x7F, 0xFF] as [UInt8] {
                var changed = bytes
                changed[position] = value
                do { _ = try Self.contents(changed) } catch is ZIPArchive.Failure {}  // either is right
            }
        }
    }
}

/// Writes ZIP archives.
struct ZIPBuilder {
    /// Writes sizes and positions in the 64-bit fields.
    var isLarge = false
    private var content: [UInt8] = []
    private var directory: [UInt8] = []
    private var count = 0

    mutating func add(_ name: String, _ bytes: [UInt8], isDeflated: Bool) {
        let data = isDeflated ? Self.deflated(bytes) : bytes
        let offset = content.count
        func common(_ size: Int, _ compressed: Int) -> [UInt8] {
            Self.number(0, 2) + Self.number(isDeflated ? 8 : 0, 2) + Self.number(0, 4)
                + Self.number(Int(crc32(0, bytes, UInt32(bytes.count))), 4) + Self.number(compressed, 4) + Self.number(size, 4)
                + Self.number(name.utf8.count, 2)
        }
        content +=
            Self.number(0x0403_4B50, 4) + Self.number(45, 2) + common(bytes.count, data.count) + Self.number(0, 2)
            + Array(name.utf8) + data
        let extra =
            isLarge
            ? Self.number(1, 2) + Self.number(24, 2) + Self.number(bytes.count, 8) + Self.number(data.count, 8)
                + Self.number(offset, 8) : []
        directory +=
            Self.number(0x0201_4B50, 4) + Self.number(45, 2) + Self.number(45, 2)
            + (isLarge ? common(0xFFFF_FFFF, 0xFFFF_FFFF) : common(bytes.count, data.count)) + Self.number(extra.count, 2)
            + Self.number(0, 10) + Self.number(isLarge ? 0xFFFF_FFFF : offset, 4) + Array(name.utf8) + extra
        count += 1
    }

    func bytes(comment: String = "") -> [UInt8] {
        let (start, end) = (content.count, content.count + directory.count)
        let large =
            Self.number(0x0606_4B50, 4) + Self.number(44, 8) + Self.number(45, 2) + Self.number(45, 2) + Self.number(0, 8)
            + Self.number(count, 8) + Self.number(count, 8) + Self.number(directory.count, 8) + Self.number(start, 8)
            + Self.number(0x0706_4B50, 4) + Self.number(0, 4) + Self.number(end, 8) + Self.number(1, 4)
        return content + directory + (isLarge ? large : [])
            + Self.number(0x0605_4B50, 4) + Self.number(0, 4) + Self.number(count, 2) + Self.number(count, 2)
            + Self.number(isLarge ? 0xFFFF_FFFF : directory.count, 4) + Self.number(isLarge ? 0xFFFF_FFFF : start, 4)
            + Self.number(comment.utf8.count, 2) + Array(comment.utf8)
    }

    private static func number(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { $0 < 8 ? UInt8(truncatingIfNeeded: value >> (8 * $0)) : 0 }
    }

    private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var stream = z_stream()
        guard
            deflateInit2_(
                &stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { return [] }
        defer { deflateEnd(&stream) }
        var (input, output) = (bytes, [UInt8](repeating: 0, count: bytes.count + 1_000))
        let capacity = output.count
        let rest = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
                (stream.next_out, stream.avail_out) = (output.baseAddress, UInt32(output.count))
                deflate(&stream, Z_FINISH)
                return Int(stream.avail_out)
            }
        }
        return Array(output.prefix(capacity - rest))
    }
}
