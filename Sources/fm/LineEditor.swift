import Foundation

/// Reads a line from the terminal and supports the usual keys: arrows, Home and End, Ctrl-A/E/K/U/W/L, history.
///
/// The terminal is in raw mode only while a line is read, and is always restored afterwards.
struct LineEditor {
    let prompt: String
    private var history: [String] = []

    init(prompt: String) { self.prompt = prompt }

    private enum Key: Equatable {
        case character(Character)
        case enter, backspace, delete, left, right, up, down, home, end
        case control(UInt8)
        case endOfInput
    }

    /// The next line; nil at the end of input (Ctrl-D on an empty line).
    mutating func readLine() -> String? {
        var saved = termios()
        guard tcgetattr(STDIN_FILENO, &saved) == 0 else { return Swift.readLine() }
        var raw = saved
        cfmakeraw(&raw)
        raw.c_oflag |= tcflag_t(OPOST)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)
        defer { tcsetattr(STDIN_FILENO, TCSADRAIN, &saved) }

        var line: [Character] = []
        var cursor = 0
        var recalled = history.count
        func recall(_ index: Int) {
            recalled = index
            line = index < history.count ? Array(history[index]) : []
            cursor = line.count
        }
        while true {
            draw(line, cursor)
            switch readKey() {
            case .enter:
                draw(line, line.count)
                write("\n")
                let text = String(line)
                if !text.isEmpty, history.last != text { history.append(text) }
                return text
            case .endOfInput:
                write("\n")
                return nil
            case .control(4):  // Ctrl-D
                if line.isEmpty {
                    write("\n")
                    return nil
                }
                if cursor < line.count { line.remove(at: cursor) }
            case .control(3):  // Ctrl-C: a new line
                write("^C\n")
                line = []
                cursor = 0
            case .character(let character):
                line.insert(character, at: cursor)
                cursor += 1
            case .backspace where cursor > 0:
                cursor -= 1
                line.remove(at: cursor)
            case .delete where cursor < line.count: line.remove(at: cursor)
            case .left: cursor = max(0, cursor - 1)
            case .right: cursor = min(line.count, cursor + 1)
            case .home, .control(1): cursor = 0
            case .end, .control(5): cursor = line.count
            case .control(11): line.removeSubrange(cursor...)
            case .control(21):
                line.removeSubrange(..<cursor)
                cursor = 0
            case .control(23):
                var start = cursor
                while start > 0, line[start - 1] == " " { start -= 1 }
                while start > 0, line[start - 1] != " " { start -= 1 }
                line.removeSubrange(start..<cursor)
                cursor = start
            case .control(12): write("\u{1B}[H\u{1B}[2J")
            case .up where recalled > 0: recall(recalled - 1)
            case .down where recalled < history.count: recall(recalled + 1)
            default: break
            }
        }
    }

    /// Draws the line, scrolled horizontally so that the cursor is visible.
    private func draw(_ line: [Character], _ cursor: Int) {
        let columns = TerminalText.columns(of: STDOUT_FILENO).flatMap { $0 > 10 ? $0 : nil } ?? 80
        let room = columns - prompt.count - 1
        var start = 0
        while line[start..<cursor].reduce(0, { $0 + TerminalText.width($1) }) > room { start += 1 }
        var end = start
        var used = 0
        while end < line.count, used + TerminalText.width(line[end]) <= room {
            used += TerminalText.width(line[end])
            end += 1
        }
        let back = line[cursor..<max(cursor, end)].reduce(0) { $0 + TerminalText.width($1) }
        write("\r\u{1B}[K" + prompt + String(line[start..<end]) + (back > 0 ? "\u{1B}[\(back)D" : ""))
    }

    private func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }

    private func readByte() -> UInt8? {
        var byte: UInt8 = 0
        while true {
            let count = read(STDIN_FILENO, &byte, 1)
            if count == 1 { return byte }
            if count < 0, errno == EINTR { continue }
            return nil
        }
    }

    private func readKey() -> Key {
        guard let byte = readByte() else { return .endOfInput }
        switch byte {
        case 13, 10: return .enter
        case 127, 8: return .backspace
        case 27: return escapeSequence()
        case 0..<32: return .control(byte)
        default:
            // The rest of a UTF-8 sequence.
            let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            var bytes = [byte]
            while bytes.count < length, let next = readByte() { bytes.append(next) }
            return .character(String(decoding: bytes, as: UTF8.self).first ?? "\u{FFFD}")
        }
    }

    private func escapeSequence() -> Key {
        guard let second = readByte(), second == UInt8(ascii: "[") || second == UInt8(ascii: "O") else { return .control(27) }
        var parameter = ""
        while let byte = readByte() {
            switch byte {
            case UInt8(ascii: "A"): return .up
            case UInt8(ascii: "B"): return .down
            case UInt8(ascii: "C"): return .right
            case UInt8(ascii: "D"): return .left
            case UInt8(ascii: "H"): return .home
            case UInt8(ascii: "F"): return .end
            case UInt8(ascii: "~"):
                return parameter == "3"
                    ? .delete : ["1", "7"].contains(parameter) ? .home : ["4", "8"].contains(parameter) ? .end : .control(27)
            case 0x40...0x7E: return .control(27)
            default: parameter.unicodeScalars.append(Unicode.Scalar(byte))
            }
        }
        return .endOfInput
    }
}
