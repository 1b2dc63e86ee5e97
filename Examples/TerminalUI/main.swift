/// TerminalUI: a chat that fills the terminal, in two files and without a library for user interfaces.
///
///     swift run --traits Macros,SQLite TerminalUI
///
/// Answers appear while they are written; Escape stops one, Ctrl-C ends the program. The line at the bottom shows how full the window of the
/// model is: the conversation never ends for lack of space in it, because ContextKit moves old turns to an archive.

import ContextKit
import Foundation
import FoundationModels

guard let screen = Screen() else {
    print("TerminalUI needs a terminal.")
    exit(1)
}

/// Everything that is shown.
@MainActor final class Chat {
    private let screen: Screen
    private let conversation: Conversation
    private var lines: [(isUser: Bool, text: String)] = []
    private var input = ""
    private var status = "Enter sends, Escape stops, Ctrl-C quits"
    private var answer: Task<Void, Never>?

    init(_ screen: Screen) async throws {
        self.screen = screen
        conversation = try await Conversation(instructions: "Answer briefly.")
    }

    func run() async {
        draw()
        var pending: [UInt8] = []
        for await byte in screen.keys() {
            switch byte {
            case 0x03: return
            case 0x1B: answer?.cancel()
            case 0x0D: send()
            case 0x7F: _ = input.popLast()
            case 0x20...:
                // Characters of several bytes come one byte at a time.
                pending.append(byte)
                if let text = String(validating: pending, as: UTF8.self) {
                    input += text
                    pending = []
                }
            default: break
            }
            draw()
        }
    }

    private func send() {
        let text = input.trimmingCharacters(in: .whitespaces)
        guard !text.isEmpty, answer == nil else { return }
        input = ""
        lines += [(true, text), (false, "")]
        answer = Task {
            do {
                for try await snapshot in conversation.streamResponse(to: text) { show(snapshot.content) }
            } catch is CancellationError {} catch { show("(\(error.localizedDescription))") }
            answer = nil
            // The old status stays if the tokens cannot be counted: the answer is already there.
            if let count = try? await conversation.tokenCount() {
                status = "\(count) of \(await conversation.contextSize) tokens of the window are used"
            }
            draw()
        }
    }

    private func show(_ text: String) {
        lines[lines.count - 1].text = text
        draw()
    }

    private func draw() {
        let (height, width) = screen.size
        let rows = lines.flatMap { line in
            (line.text.isEmpty ? ["…"] : line.text.wrapped(width - 2)).map { row in
                line.isUser ? "\u{1B}[1;36m› \(row)" : "  \(row)"
            } + [""]
        }
        let room = max(1, height - 3)
        var shown = Array(rows.suffix(room))
        shown += [String](repeating: "", count: room - shown.count)
        let typed = String(input.suffix(width - 3))
        shown += ["\u{1B}[2m" + String(repeating: "─", count: width), "› " + typed, "\u{1B}[2m" + String(status.prefix(width))]
        screen.draw(shown, cursor: (height - 2, 2 + typed.count))
    }
}

do {
    try await Chat(screen).run()
    screen.close()
} catch {
    screen.close()
    print(error.localizedDescription)
    exit(1)
}
exit(0)
