import Foundation

/// Files that a run reads and writes.
enum EvalFile {
    /// The text of a file as UTF-8, or of standard input for “-”.
    ///
    /// - Throws: ``EvalError`` with the reason.
    static func data(_ path: String) throws -> Data { try reading { try TextFile.data(path) } }

    /// - Throws: ``EvalError`` with the reason.
    static func text(_ path: String) throws -> String { try reading { try TextFile.read(path) } }

    /// All bytes of a file.
    ///
    /// - Throws: ``EvalError`` with the reason.
    static func bytes(_ path: String) throws -> Data { try reading { try TextFile.bytes(path) } }

    private static func reading<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch { throw EvalError("\(error)", code: error is CommandError ? 1 : 64) }
    }

    /// Where the text of a file begins: after its byte order mark, if it has one.
    static func start(of data: Data) -> Data.Index {
        data.startIndex + (data.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0)
    }

    /// Checks before a run whether its reports can be written, and that none replaces a file that the run reads.
    ///
    /// - Throws: ``EvalError`` with the reason.
    static func check(outputs: [String], inputs: [String]) throws {
        var used = Set(inputs.map(identity))
        for path in outputs {
            if !used.insert(identity(path)).inserted {
                throw EvalError("“\(path)” is used twice. Give another file for the report.")
            }
            if isFolder(path) { throw EvalError("“\(path)” is a folder. Give a file for the report.") }
            let folder = URL(filePath: path).deletingLastPathComponent().path
            if access(access(path, F_OK) == 0 ? path : folder, W_OK) != 0 {
                throw EvalError("“\(path)” cannot be written: \(reason).", code: 1)
            }
        }
    }

    /// - Throws: ``EvalError`` with the reason.
    static func write(_ text: String, to path: String) throws {
        // Not by way of another file: the path may be a link or a device.
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw EvalError("“\(path)” cannot be written: \(reason).", code: 1) }
        do { try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).write(contentsOf: Data(text.utf8)) } catch {
            throw EvalError("“\(path)” cannot be written: \(error.localizedDescription)", code: 1)
        }
    }

    private static func identity(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().standardized.path }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
