import Foundation

/// A terminal as a screen: raw keys, an alternate buffer that leaves the scrollback alone, and rows that are drawn only when they change.
///
/// No library is needed: terminals understand a few sequences (ECMA-48), and termios turns off the line editing of the system.
final class Screen {
    private var saved = termios()
    private var shown: [String] = []

    var size: (rows: Int, columns: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (24, 80) }
        return (Int(size.ws_row), Int(size.ws_col))
    }

    /// - Returns: nil if this is no terminal.
    init?() {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &saved) == 0 else { return nil }
        var raw = saved
        cfmakeraw(&raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &raw)
        write("\u{1B}[?1049h\u{1B}[2J")
    }

    func close() {
        write("\u{1B}[?1049l\u{1B}[?25h")
        tcsetattr(STDIN_FILENO, TCSANOW, &saved)
    }

    /// Shows rows, from the top. A row that is shown already is not written again.
    func draw(_ rows: [String], cursor: (row: Int, column: Int)) {
        let (height, width) = size
        var output = "\u{1B}[?25l"
        for row in 0..<height {
            let text = row < rows.count ? rows[row] : ""
            if row < shown.count, shown[row] == text, shown.count == height { continue }
            output += "\u{1B}[\(row + 1);1H\(text)\u{1B}[0m\u{1B}[K"
        }
        shown = (0..<height).map { $0 < rows.count ? rows[$0] : "" }
        write(output + "\u{1B}[\(cursor.row + 1);\(min(width, cursor.column + 1))H\u{1B}[?25h")
    }

    /// The bytes of the keys that are pressed. Waiting for them needs a thread of its own.
    func keys() -> AsyncStream<UInt8> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                var byte: UInt8 = 0
                while read(STDIN_FILENO, &byte, 1) == 1 { continuation.yield(byte) }
                continuation.finish()
            }
        }
    }

    private func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }
}

extension String {
    /// The text in lines of at most a number of characters, divided at spaces. Control characters of models do not reach the terminal.
    func wrapped(_ width: Int) -> [String] {
        var lines: [String] = []
        for paragraph in split(separator: "\n", omittingEmptySubsequences: false) {
            var line = ""
            let words = paragraph.filter { !$0.unicodeScalars.contains { $0.properties.generalCategory == .control } }.split(
                separator: " ", omittingEmptySubsequences: false)
            for word in words {
                if !line.isEmpty, line.count + 1 + word.count > width {
                    lines.append(line)
                    line = ""
                }
                line += (line.isEmpty ? "" : " ") + word
                while line.count > width {
                    lines.append(String(line.prefix(width)))
                    line = String(line.dropFirst(width))
                }
            }
            lines.append(line)
        }
        return lines
    }
}
