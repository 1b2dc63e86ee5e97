import Foundation
import Testing

/// `fm chat` on a pseudo terminal.
struct TerminalTests {
    @Test("[F] what is typed during an answer is not part of the output, and is in the line editor afterwards")
    func typedAhead() throws {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Tools/chat_terminal.py")
        let run = try CommandTests().run("/usr/bin/env", ["python3", script.path, CommandTests.binary.path], environment: [:])
        let lines = run.output.components(separatedBy: "\u{1B}[K> ")
        let question = try #require(lines.lastIndex { $0.hasPrefix("Write about the sea.\r\n") })
        #expect(!lines[question].contains("typed"), "\(run.output)")
        #expect(lines[(question + 1)...].contains { $0.hasPrefix("typed ahead") }, "\(run.output)")
        #expect(run.output.hasSuffix("exit code 0, echo on\n"), "\(run.output)")
    }
}
