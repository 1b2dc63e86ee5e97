internal import Foundation

/// Writes whole files: under another name, synchronised, then renamed.
enum AtomicFile {
    static func write(_ data: Data, to url: URL) throws(TrainingError) {
        let temporary = url.path + ".\(getpid()).part"
        func failure() -> TrainingError {
            let reason = String(cString: strerror(errno))
            unlink(temporary)
            return .cannotWrite(path: url.path, reason: reason)
        }
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw failure() }
        var error: TrainingError?
        data.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count, error == nil {
                let count = Foundation.write(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done)
                if count > 0 { done += count } else if errno != EINTR { error = failure() }
            }
        }
        if error == nil, fsync(descriptor) != 0 { error = failure() }
        close(descriptor)
        if let error { throw error }
        guard rename(temporary, url.path) == 0 else { throw failure() }
    }
}
