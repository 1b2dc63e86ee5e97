import Foundation
import Synchronization
import ProcessSettings

/// The file named by `FM_TRACE`, to which several threads and processes append complete lines of JSON. Only its owner can read it.
///
/// Texts of prompts, responses and earlier turns are recorded only if `FM_TRACE_TEXT` is 1, because they may be private: whoever
/// writes a record leaves them out otherwise (``recordsText``).
public final class TraceFile: Sendable {
    /// The file; nil if `FM_TRACE` is not set or cannot be opened.
    public static let shared: TraceFile? = Setting.trace.value.flatMap { TraceFile(path: $0) }

    /// Whether records may contain texts.
    public static let recordsText = Setting.traceText.value == "1"

    private let handle: Mutex<FileHandle>

    private init?(path: String) {
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            FileHandle.standardError.write(Data("FM_TRACE: \(path) cannot be opened for writing.\n".utf8))
            return nil
        }
        // A file that exists already may be readable by others. Those of other users cannot be changed, and devices need not be.
        var status = stat()
        if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG { fchmod(descriptor, 0o600) }
        handle = Mutex(FileHandle(fileDescriptor: descriptor, closeOnDealloc: true))
    }

    /// Appends a record as one line. A full disk must not fail requests: only the record is lost.
    public func write(_ record: some Encodable) {
        guard var line = try? JSONEncoder().encode(record) else { return }  // see above
        line.append(0x0A)
        handle.withLock { try? $0.write(contentsOf: line) }  // see above
    }

    /// What a record says of an error: its description, which may quote texts, or the names of its type and case.
    public static func description(of error: any Error) -> String {
        if recordsText { return "\(error)" }
        let name = Mirror(reflecting: error).children.first?.label
        return "\(type(of: error))" + (name.map { ".\($0)" } ?? "")
    }
}
