import ArgumentParser
import Files
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

    /// Replaces a file in one step, so that whatever happens, there is the old file or the new one. Devices and pipes have no old contents
    /// and stay what they are. A file that may be written in a folder that may not is written in place.
    ///
    /// - Parameter mode: Who may read a new file. One that fewer people may read stays so.
    static func write(_ data: Data, to path: String, mode: mode_t = 0o644) throws {
        var status = stat()
        let exists = stat(path, &status) == 0
        do {
            if exists, status.st_mode & S_IFMT != S_IFREG { return try overwrite(path, data) }
            // A link stays a link to the new file.
            let target = URL(filePath: path).resolvingSymlinksInPath().path
            do { try FileWriter.write(data, to: target, mode: exists ? status.st_mode & mode : mode) } catch {
                guard exists, isForbidden(error.code) else { throw error }
                try overwrite(path, data)
            }
        } catch let error as FileError {
            throw CommandFailure("“\(path)” cannot be written: \(error.reason).")
        } catch {
            throw CommandFailure("“\(path)” cannot be written: \(error.localizedDescription)")
        }
    }

    private static func isForbidden(_ code: Int32) -> Bool { code == EACCES || code == EPERM || code == EROFS }

    private static func overwrite(_ path: String, _ data: Data) throws {
        let descriptor = open(path, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError(path) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try file.write(contentsOf: data)
        // What is longer in the old file goes last. Devices have no length.
        if ftruncate(descriptor, off_t(data.count)) != 0, errno != EINVAL { throw FileError(path) }
    }
}

/// The size of a file in bytes; nil if there is none.
func fileSize(_ file: URL) -> Int? {
    var status = stat()
    return stat(file.path, &status) == 0 ? Int(status.st_size) : nil
}
