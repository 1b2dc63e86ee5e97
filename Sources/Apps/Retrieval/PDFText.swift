import AsyncLocks
import Foundation
import Synchronization

/// PDF files, through `pdftotext`. Files come from anywhere: the program may use 60 seconds of a processor and 2 GB of memory, and
/// write 64 MB.
enum PDFText {
    private static let maximumBytes = 64 << 20

    static func extracted(_ url: URL, program: String = "pdftotext", reader: ReadingProgram) throws -> ExtractedText {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = [
            "-c", "ulimit -t 60 -v 2000000; exec \"$@\"", "sh", program, "-enc", "UTF-8", "-q", url.path, "-",
        ]
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        do { try reader.start(process) } catch let error as CancellationError { throw error } catch {
            throw RetrievalError.unreadable(file: url.path, reason: "pdftotext cannot be started")
        }
        var data = Data()
        while let more = try output.fileHandleForReading.read(upToCount: 1 << 20), !more.isEmpty {
            data += more
            if data.count > maximumBytes {
                reader.end()
                process.waitUntilExit()
                throw RetrievalError.unreadable(file: url.path, reason: "its text has more than \(maximumBytes >> 20) MB")
            }
        }
        // The number of a process that has ended may be that of another one: it is not killed any more.
        let end = Result { try reader.finish() }
        process.waitUntilExit()
        try end.get()
        if process.terminationReason == .uncaughtSignal {
            throw RetrievalError.unreadable(file: url.path, reason: "pdftotext needs too much time or memory for it")
        }
        switch process.terminationStatus {
        case 0: break
        case 127:
            throw RetrievalError.unreadable(
                file: url.path, reason: "PDF files need the program pdftotext (Debian's package poppler-utils)")
        default: throw RetrievalError.unreadable(file: url.path, reason: "it is damaged or protected by a password")
        }
        // Each page ends with a form feed.
        let pages = String(decoding: data, as: UTF8.self).split(separator: "\u{0C}", omittingEmptySubsequences: false)
        return ExtractedText(
            blocks: pages.enumerated().flatMap { PlainText.blocks(of: String($0.element), page: $0.offset + 1) })
    }
}

/// The program that reads a document, which ends when nobody waits for the document any more.
final class ReadingProgram: Sendable {
    private enum State {
        case created
        case running(pid_t)
        /// Nobody waits for the document.
        case ended
    }

    private let state = Mutex(State.created)

    /// Whether the program would be killed.
    var isRunning: Bool { state.withLock { if case .running = $0 { true } else { false } } }

    /// Reads documents on a thread that may wait. If the task is cancelled, the program is killed, and the task does not wait for it: a
    /// program that waits for a disk does not end at once.
    static func run<Value: Sendable>(_ body: @escaping @Sendable (ReadingProgram) throws -> Value) async throws -> Value {
        let program = ReadingProgram()
        let work = Task.detached { try await onAnotherThread { try body(program) } }
        return try await withTaskCancellationHandler {
            try await work.valueUnlessCancelled
        } onCancel: {
            program.end()
        }
    }

    /// - Throws: `CancellationError` if nobody waits any more, or the error of the start.
    func start(_ process: Process) throws {
        try state.withLock { state in
            if case .ended = state { throw CancellationError() }
            try process.run()
            state = .running(process.processIdentifier)
        }
    }

    /// Kills the program, with those that it has started.
    func end() {
        state.withLock { state in
            if case .running(let process) = state {
                // Foundation starts each program in a group of its own. Other signals may be blocked in the threads of this program,
                // and so in the programs that it starts.
                kill(-process, SIGKILL)
                kill(process, SIGKILL)
            }
            state = .ended
        }
    }

    /// Records that the program has written everything, and ends by itself.
    ///
    /// - Throws: `CancellationError` if nobody waits any more.
    func finish() throws {
        try state.withLock { state in
            if case .ended = state { throw CancellationError() }
            state = .created
        }
    }
}
