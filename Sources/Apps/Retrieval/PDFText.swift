import Waiting
import Foundation
import Subprocess

/// PDF files, through `pdftotext`. Files come from anywhere: the program may use 60 seconds of a processor and 2 GB of memory, and
/// write 64 MB.
enum PDFText {
    private static let maximumBytes = 64 << 20

    /// - Throws: ``RetrievalError/unreadable(file:reason:)``, or `CancellationError` if the task is cancelled. The program, with those that
    ///   it has started, ends then.
    static func extracted(_ url: URL, program: String = "pdftotext") async throws -> ExtractedText {
        var options = PlatformOptions()
        // In a group of their own, so that all of them can be ended.
        options.processGroupID = 0
        options.teardownSequence = [.send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero)]
        // One limit for each command: dash, the shell of Debian, rejects several, and sets none.
        let limits = "ulimit -t 60; ulimit -v 2000000"
        let arguments = ["-c", "\(limits); exec \"$@\"", "sh", program, "-enc", "UTF-8", "-q", url.path, "-"]
        @Sendable func unreadable(_ reason: String) -> RetrievalError { .unreadable(file: url.path, reason: reason) }
        let (status, text) = try await unlessCancelled { [options] in
            do {
                let result = try await run(
                    .name("sh"), arguments: Arguments(arguments), platformOptions: options,
                    output: .bytes(limit: maximumBytes))
                return (result.terminationStatus, result.standardOutput)
            } catch let error as SubprocessError {
                throw unreadable(
                    error.code == .outputLimitExceeded
                        ? "its text has more than \(maximumBytes >> 20) MB" : "pdftotext cannot be run (\(error))")
            }
        }
        switch status {
        case .exited(0): break
        case .exited(127): throw unreadable("PDF files need the program pdftotext (Debian's package poppler-utils)")
        case .exited: throw unreadable("it is damaged or protected by a password")
        case .signaled: throw unreadable("pdftotext needs too much time or memory for it")
        }
        return await onAnotherThread {
            // Each page ends with a form feed.
            let pages = String(decoding: text, as: UTF8.self).split(separator: "\u{0C}", omittingEmptySubsequences: false)
            return ExtractedText(
                blocks: pages.enumerated().flatMap { PlainText.blocks(of: String($0.element), page: $0.offset + 1) })
        }
    }
}

/// Does work that nobody waits for any more once the task is cancelled, because files on some disks and programs that wait for them do not
/// end at once. The work is cancelled too.
func unlessCancelled<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
    try Task.checkCancellation()
    let work = Task.detached { try await body() }
    return try await withTaskCancellationHandler {
        try await work.valueUnlessCancelled
    } onCancel: {
        work.cancel()
    }
}
