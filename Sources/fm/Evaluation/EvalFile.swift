import EvaluationCore
import Foundation

/// Files that a run reads and writes.
enum EvalFile {
    /// The text of a file as UTF-8, or of standard input for “-”.
    ///
    /// - Throws: ``CommandFailure`` with the reason.
    static func data(_ path: String) throws -> Data { try reading { try TextFile.data(path) } }

    /// - Throws: ``CommandFailure`` with the reason.
    static func text(_ path: String) throws -> String { try reading { try TextFile.read(path) } }

    /// All bytes of a file.
    ///
    /// - Throws: ``CommandFailure`` with the reason.
    static func bytes(_ path: String) throws -> Data { try reading { try TextFile.bytes(path) } }

    private static func reading<Value>(_ body: () throws -> Value) throws -> Value {
        // Not with the usage of the command.
        do { return try body() } catch { throw CommandFailure(error) }
    }

    /// Checks before a run whether its reports can be written, and that none replaces a file that the run reads.
    ///
    /// - Throws: ``CommandFailure`` with the reason.
    static func check(outputs: [String], inputs: [String]) throws {
        var used = Set(inputs.map(identity))
        for path in outputs {
            if !used.insert(identity(path)).inserted {
                throw CommandFailure("“\(path)” is used twice. Give another file for the report.", code: .wrongUsage)
            }
            if isFolder(path) { throw CommandFailure("“\(path)” is a folder. Give a file for the report.", code: .wrongUsage) }
            let folder = URL(filePath: path).deletingLastPathComponent().path
            if access(access(path, F_OK) == 0 ? path : folder, W_OK) != 0 {
                throw CommandFailure("“\(path)” cannot be written: \(reason).")
            }
        }
    }

    private static func identity(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().standardized.path }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private static var reason: String { String(cString: strerror(errno)) }
}

extension CommandFailure {
    /// What is wrong with a data set or a run, with the options of “fm eval”.
    init(_ error: EvaluationDataError) {
        let names = ["screening": "guardrail or language identification", "program": "version of fm"]
        let text =
            switch error {
            case .otherRun(let url, let earlier, let differences):
                "\(url.path) contains another run (\(earlier)); different are: "
                    + "\(differences.map { names[$0] ?? $0 }.joined(separator: ", ")). Give another --run, or remove it."
            case .runWithoutFingerprints(let url):
                "\(url.path) is a run of an earlier version, which did not note which file the model was. It is there for --compare; "
                    + "to run again, give another --run, or remove it."
            case .inUse(let url): "Another “fm eval” is writing \(url.path). Give another --run."
            case .notARun(let url): "\(url.path) does not contain a run of “fm eval”."
            default: error.description
            }
        let code: Code =
            switch error {
            case .unwritable: .failed
            // A file that is not there is a mistake in the arguments.
            case .unreadable(let url, _): FileManager.default.fileExists(atPath: url.path) ? .failed : .wrongUsage
            default: .wrongUsage
            }
        self.init(text, code: code)
    }
}
