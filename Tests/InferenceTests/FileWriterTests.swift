import Files
import Foundation
import Testing

struct FileWriterTests {
    private final class Folder {
        let path: String
        init() throws {
            path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        deinit { try? FileManager.default.removeItem(atPath: path) }  // the system removes what remains
        var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() } }
        func contents(_ name: String) -> Data? { FileManager.default.contents(atPath: path + "/" + name) }
    }

    @Test("FNV-1a has its published values, also of bytes in parts and in any sequence") func hash() {
        #expect(FNV.hash([]) == 0xCBF2_9CE4_8422_2325)
        #expect(FNV.hash("a".utf8) == 0xAF63_DC4C_8601_EC8C)
        #expect(FNV.hash("foobar".utf8) == 0x8594_4171_F739_67E8)
        #expect(FNV.hash("bar".utf8, after: FNV.hash(Data("foo".utf8))) == 0x8594_4171_F739_67E8)
        #expect(FNV.hash("foobar".utf8.lazy.map { $0 }) == 0x8594_4171_F739_67E8)
    }

    @Test("a file has its old contents until the new ones are complete") func replaces() throws {
        let folder = try Folder()
        let path = folder.path + "/a"
        try FileWriter.write(Data("old".utf8), to: path, mode: 0o600)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        let file = try FileWriter(path)
        try file.write(Data("new".utf8))
        #expect(folder.contents("a") == Data("old".utf8))
        try file.write(Data(count: 3_000))
        try file.finish()
        #expect(folder.contents("a") == Data("new".utf8) + Data(count: 3_000))
        #expect(try folder.names == ["a"])
    }

    @Test("a file that is not finished leaves nothing") func removesUnfinished() throws {
        let folder = try Folder()
        func begin() throws {
            let file = try FileWriter(folder.path + "/a")
            try file.write(Data("some".utf8))
            let names = try folder.names
            // Which process writes it is the extension before the last one.
            #expect(names.count == 1 && names[0].hasPrefix("a.") && names[0].hasSuffix(".\(getpid()).part"))
            throw CancellationError()
        }
        #expect(throws: CancellationError.self) { try begin() }
        #expect(try folder.names.isEmpty)
    }

    @Test("an unfinished file with a name of its own is kept, and only one writer has it") func continues() throws {
        let folder = try Folder()
        let (path, part) = (folder.path + "/a", folder.path + "/a.partial")
        func begin() throws {
            let file = try FileWriter(path, continuing: part)
            #expect(file.existingBytes == 0)
            try file.write(Data("begun, more".utf8))
            #expect(throws: FileError(part, code: EWOULDBLOCK, reason: "another process is writing it")) {
                try FileWriter(path, continuing: part)
            }
        }
        try begin()
        let file = try FileWriter(path, continuing: part)
        #expect(file.existingBytes == 11)
        try file.keep(5)
        try file.write(Data("!".utf8))
        try file.finish()
        #expect(folder.contents("a") == Data("begun!".utf8))
        #expect(try folder.names == ["a"])
    }

    @Test("a full disk and a missing folder are errors that say so") func errors() throws {
        let folder = try Folder()
        let path = folder.path + "/none/a"
        let missing = #expect(throws: FileError.self) { try FileWriter(path) }
        #expect("\(try #require(missing))" == "Cannot write \(path): No such file or directory.")
        #expect("\(FileError("x", code: ENOSPC))".hasPrefix("Cannot write x: the disk is full: "))
        #if os(Linux)
        // Every write to this device ends as on a full disk.
        let full = try FileWriter(folder.path + "/a", continuing: "/dev/full")
        let error = #expect(throws: FileError.self) { try full.write(Data(count: 100)) }
        #expect(error?.code == ENOSPC)
        #endif
        #expect(try folder.names.isEmpty)
    }
}
