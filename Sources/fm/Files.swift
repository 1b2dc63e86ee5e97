import ArgumentParser
import Foundation
import Inference

/// Files that commands write after long work.
enum OutputFile {
    /// Checks beforehand what would fail only after the work: the folder, and that no input is overwritten.
    static func check(_ path: String, inputs: [String]) throws {
        if inputs.contains(where: { FileIdentity($0) != nil && FileIdentity($0) == FileIdentity(path) }) {
            throw ValidationError("\(path) is an input: write to another file.")
        }
        let folder = URL(filePath: path).deletingLastPathComponent().path
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isDirectory), isDirectory.boolValue,
            FileManager.default.isWritableFile(atPath: folder)
        else { throw ValidationError("\(path) cannot be written: there is no folder \(folder) that can be written to.") }
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue {
            throw ValidationError("\(path) is a folder: give the name of a file.")
        }
    }
}

/// The size of a file in bytes; nil if there is none.
func fileSize(_ file: URL) -> Int? {
    var status = stat()
    return stat(file.path, &status) == 0 ? Int(status.st_size) : nil
}

/// Text files that commands are given.
enum TextFile {
    static func read(_ path: String) throws -> String {
        let data: Data
        do { data = try Data(contentsOf: URL(filePath: path)) } catch {
            throw ModelError.unreadable(path: path, reason: error.localizedDescription)
        }
        guard let text = String(bytes: data, encoding: .utf8) else {
            throw ModelError.unreadable(path: path, reason: "it is not UTF-8")
        }
        return text
    }
}
