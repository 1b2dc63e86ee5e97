import Foundation

/// Runs the commands that install models (`curl`, `python3`, `sha256sum`) and that build Swift files.
enum Subprocess {
    struct Result {
        /// The exit status; nil if the command does not exist.
        var status: Int32?
        var output: String
    }

    /// Runs a command and waits until it ends. Its standard output is returned; its standard error is passed through
    /// unless `isQuiet`.
    static func run(
        _ command: [String], input: String? = nil, isQuiet: Bool = false, environment: [String: String]? = nil
    ) -> Result {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        if let environment { process.environment = environment }
        process.standardOutput = output
        process.standardError = isQuiet ? FileHandle.nullDevice : FileHandle.standardError
        let pipe = Pipe()
        process.standardInput = input == nil ? FileHandle.nullDevice : pipe
        guard (try? process.run()) != nil else { return Result(status: nil, output: "") }  // env itself is missing
        if let input {
            // If a command ends before it has read everything, only its exit status counts.
            try? pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
            try? pipe.fileHandleForWriting.close()
        }
        let data = (try? output.fileHandleForReading.readToEnd()) ?? Data()  // nothing was written
        process.waitUntilExit()
        return Result(
            status: process.terminationStatus == 127 ? nil : process.terminationStatus,
            output: String(decoding: data, as: UTF8.self))
    }
}

/// Messages to people, on standard error.
enum Message {
    /// Writes a message to standard error. It may quote text of files and models.
    static func say(_ text: String, terminator: String = "\n") {
        FileHandle.standardError.write(Data((TerminalText.safe(text) + terminator).utf8))
    }
}

/// Shows the progress of long work as a bar on a terminal. Prints nothing elsewhere.
final class ProgressLine: Sendable {
    private let total: Int
    private let title: String
    private let start = ContinuousClock.now
    private let startBytes: Int
    private let isShown = isatty(STDERR_FILENO) == 1

    init(_ title: String, total: Int, done: Int = 0) {
        self.title = title
        self.total = max(1, total)
        startBytes = done
    }

    /// - Parameter text: what is done; nil for megabytes.
    func show(_ done: Int, text: String? = nil) {
        guard isShown else { return }
        let share = min(1, Double(done) / Double(total))
        let filled = Int(share * 24)
        let seconds = Double((ContinuousClock.now - start).components.seconds)
        let rate = seconds > 0 ? Double(done - startBytes) / seconds : 0
        let left = rate > 0 ? Int(Double(total - done) / rate) : nil
        let time = left.map { String(format: ", %d:%02d left", $0 / 60, $0 % 60) } ?? ""
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 24 - filled)
        let text = text ?? String(format: "%d of %d MB", done / 1_000_000, total / 1_000_000)
        let line = TerminalText.line("\(title) \(bar) \(Int(share * 100)) % (\(text)\(time))")
        // A line that the terminal breaks is not removed by the next one. After the last column, some terminals break it.
        let columns = TerminalText.columns(of: STDERR_FILENO) ?? 80
        FileHandle.standardError.write(Data("\r\(TerminalText.prefix(line, cells: columns - 1))\u{1B}[K".utf8))
    }

    func end() { if isShown { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) } }
}
