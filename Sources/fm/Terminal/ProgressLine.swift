import Foundation
import Reports

/// Shows the progress of long work as a bar on a terminal. Prints nothing elsewhere.
final class ProgressLine: Sendable {
    private let total: Int
    private let title: String
    private let start = ContinuousClock.now
    private let startBytes: Int
    private let isShown = Terminal.movesCursor(STDERR_FILENO)

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
        let columns = Terminal.columns(of: STDERR_FILENO) ?? 80
        FileHandle.standardError.write(Data("\r\(TerminalText.prefix(line, cells: columns - 1))\u{1B}[K".utf8))
    }

    func end() { if isShown { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) } }
}
