import Foundation
import Reports

/// A line that is being edited: what the keys of a terminal do to it. It reads and writes nothing.
///
/// The work of a key does not depend on the length of the line, except where text in the middle is moved.
struct EditedLine {
    enum Key: Equatable {
        case character(Character)
        /// Text that was pasted: line ends in it do not send the message.
        case paste(String)
        case enter, newline, backspace, delete, left, right, up, down, home, end
        case control(UInt8)
        case endOfInput
    }

    /// What the reader of the line does after a key.
    enum Effect: Equatable {
        case draw, clearScreen, abandon
        case finish(String?)
    }

    private(set) var characters: [Character] = []
    private(set) var cursor = 0
    /// The first character that is shown.
    private var first = 0
    private let history: [String]
    private var recalled: Int

    /// - Parameter text: What is in the line at the beginning.
    init(history: [String] = [], text: String = "") {
        self.history = history
        recalled = history.count
        characters = Array(text)
        cursor = characters.count
    }

    var text: String { String(characters) }

    mutating func apply(_ key: Key) -> Effect {
        switch key {
        case .enter: return .finish(text)
        case .endOfInput: return .finish(nil)
        case .control(4):  // Ctrl-D
            if characters.isEmpty { return .finish(nil) }
            if cursor < characters.count { characters.remove(at: cursor) }
        case .control(3):  // Ctrl-C: a new line
            (characters, cursor, first) = ([], 0, 0)
            return .abandon
        case .character(let character): insert([character])
        case .newline: insert(["\n"])
        case .paste(let text): insert(Self.pasted(text))
        case .backspace where cursor > 0:
            cursor -= 1
            characters.remove(at: cursor)
        case .delete where cursor < characters.count: characters.remove(at: cursor)
        case .left: cursor = max(0, cursor - 1)
        case .right: cursor = min(characters.count, cursor + 1)
        case .home, .control(1): cursor = 0
        case .end, .control(5): cursor = characters.count
        case .control(11): characters.removeSubrange(cursor...)
        case .control(21):
            characters.removeSubrange(..<cursor)
            cursor = 0
        case .control(23):
            var start = cursor
            while start > 0, characters[start - 1].isWhitespace { start -= 1 }
            while start > 0, !characters[start - 1].isWhitespace { start -= 1 }
            characters.removeSubrange(start..<cursor)
            cursor = start
        case .control(12): return .clearScreen
        case .up where recalled > 0: recall(recalled - 1)
        case .down where recalled < history.count: recall(recalled + 1)
        default: break
        }
        return .draw
    }

    private mutating func insert(_ new: [Character]) {
        characters.insert(contentsOf: new, at: cursor)
        cursor += new.count
    }

    private mutating func recall(_ index: Int) {
        recalled = index
        characters = index < history.count ? Array(history[index]) : []
        cursor = characters.count
    }

    /// Pasted text with plain line ends, without control characters and without the line end after its last line.
    private static func pasted(_ text: String) -> [Character] {
        var lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        if lines.last?.isEmpty == true { lines.removeLast() }
        return Array(TerminalText.safe(lines.joined(separator: "\n")))
    }

    /// The part of the line that is shown, scrolled so that the cursor is visible, and the number of cells after the cursor.
    mutating func visible(cells: Int) -> (text: String, after: Int) {
        first = min(first, cursor)
        // The furthest left that the part may begin for the cursor to be in it.
        var start = cursor
        var used = 0
        while start > first, used + Self.cells(characters[start - 1]) <= cells {
            start -= 1
            used += Self.cells(characters[start])
        }
        first = start
        var text = String(characters[start..<cursor].map(Self.shown))
        var (after, end) = (0, cursor)
        while end < characters.count, used + Self.cells(characters[end]) <= cells {
            used += Self.cells(characters[end])
            after += Self.cells(characters[end])
            text.append(Self.shown(characters[end]))
            end += 1
        }
        return (text, after)
    }

    private static func shown(_ character: Character) -> Character {
        character.isNewline ? "↵" : character == "\t" ? " " : character
    }

    private static func cells(_ character: Character) -> Int { TerminalText.width(shown(character)) }
}

/// Reads a line from the terminal and supports the usual keys: arrows, Home and End, Ctrl-A/E/K/U/W/L, history. Alt-Enter or Ctrl-J
/// begins a new line within the message; pasted text, which terminals mark (“bracketed paste”), may have several lines.
///
/// The terminal is in raw mode only while a line is read, and is always restored afterwards.
struct LineEditor {
    let prompt: String
    private var history: [String] = []

    init(prompt: String) { self.prompt = prompt }

    /// The next line; nil at the end of input (Ctrl-D on an empty line).
    ///
    /// - Parameter text: What is in the line at the beginning.
    mutating func readLine(_ text: String = "") -> String? {
        var saved = termios()
        guard !Terminal.isDumb, tcgetattr(STDIN_FILENO, &saved) == 0 else {
            write(prompt)
            return StandardInput.line()
        }
        var raw = saved
        cfmakeraw(&raw)
        raw.c_oflag |= tcflag_t(OPOST)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)
        write("\u{1B}[?2004h")
        defer {
            write("\u{1B}[?2004l")
            tcsetattr(STDIN_FILENO, TCSADRAIN, &saved)
        }

        var line = EditedLine(history: history, text: text)
        draw(&line)
        while true {
            switch line.apply(readKey()) {
            case .draw: break
            case .clearScreen: write("\u{1B}[H\u{1B}[2J")
            case .abandon: write("^C\n")
            case .finish(let text):
                _ = line.apply(.end)
                draw(&line)
                write("\n")
                if let text, !text.isEmpty, history.last != text { history.append(text) }
                return text
            }
            // Terminals that do not mark pasted text send it as keys: the line is drawn when they have been read.
            if !isInputWaiting { draw(&line) }
        }
    }

    private func draw(_ line: inout EditedLine) {
        let columns = Terminal.columns(of: STDOUT_FILENO).flatMap { $0 > 10 ? $0 : nil } ?? 80
        let (text, after) = line.visible(cells: columns - prompt.count - 1)
        write("\r\u{1B}[K" + prompt + text + (after > 0 ? "\u{1B}[\(after)D" : ""))
    }

    private func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }

    // MARK: - Keys

    private var isInputWaiting: Bool {
        var request = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        return poll(&request, 1, 0) > 0
    }

    private func readByte() -> UInt8? {
        var byte: UInt8 = 0
        while true {
            let count = read(STDIN_FILENO, &byte, 1)
            if count == 1 { return byte }
            if count < 0, errno == EINTR { continue }
            return nil
        }
    }

    private func readKey() -> EditedLine.Key {
        guard let byte = readByte() else { return .endOfInput }
        switch byte {
        case 13: return .enter
        case 10: return .newline
        case 127, 8: return .backspace
        case 27: return escapeSequence()
        case 9: return .character("\t")
        case 0..<32: return .control(byte)
        default:
            // The rest of a UTF-8 sequence.
            let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            var bytes = [byte]
            while bytes.count < length, let next = readByte() { bytes.append(next) }
            return .character(String(decoding: bytes, as: UTF8.self).first ?? "\u{FFFD}")
        }
    }

    private func escapeSequence() -> EditedLine.Key {
        guard let second = readByte() else { return .endOfInput }
        if second == 13 || second == 10 { return .newline }  // Alt-Enter
        guard second == UInt8(ascii: "[") || second == UInt8(ascii: "O") else { return .control(27) }
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
                switch parameter {
                case "3": return .delete
                case "1", "7": return .home
                case "4", "8": return .end
                case "200": return pastedText()
                default: return .control(27)
                }
            case 0x40...0x7E: return .control(27)
            default: parameter.unicodeScalars.append(Unicode.Scalar(byte))
            }
        }
        return .endOfInput
    }

    /// The text up to the mark at the end of pasted text.
    private func pastedText() -> EditedLine.Key {
        let end = Array("\u{1B}[201~".utf8)
        var bytes: [UInt8] = []
        while !bytes.suffix(end.count).elementsEqual(end) {
            guard let byte = readByte() else { return .endOfInput }
            bytes.append(byte)
        }
        return .paste(String(decoding: bytes.dropLast(end.count), as: UTF8.self))
    }
}
