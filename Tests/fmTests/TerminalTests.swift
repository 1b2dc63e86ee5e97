import Foundation
import TestSupport
import Testing

@testable import fm

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
        #expect(lines.contains { $0.hasPrefix("Write about↵the hills.\r\n") }, "\(run.output)")
        #expect(run.output.hasSuffix("exit code 0, echo on\n"), "\(run.output)")
    }

    @Test("text of files does not control a terminal, and reaches a pipe as it is")
    func controls() throws {
        let event =
            #"{"kind":"request","id":"a","start":1,"seconds":1,"model":"m","toolCalls":["\u001b]0;evil\u0007"],"parts":{}}"#
        let trace = try TemporaryFile(Array((event + "\n").utf8), suffix: ".jsonl")
        let piped = try CommandTests().fm(["trace", trace.path])
        #expect(piped.status == 0 && piped.output.contains("\u{1B}]0;evil"), "\(piped)")
        let shown = try CommandTests().run(
            "/usr/bin/env",
            ["python3", "-c", "import pty, sys; pty.spawn(sys.argv[1:])", CommandTests.binary.path, "trace", trace.path],
            environment: [:])
        #expect(shown.output.contains("]0;evil") && !shown.output.contains("\u{1B}"), "\(shown)")
    }

    @Test("colours are for terminals that have them and whose users want them")
    func colours() throws {
        for (environment, isAllowed) in [
            ([:], true), (["NO_COLOR": ""], true), (["NO_COLOR": "0"], false), (["CLICOLOR": "1", "TERM": "xterm"], true),
            (["CLICOLOR": "0"], false), (["TERM": "dumb"], false),
        ] {
            #expect(Terminal.allowsColors(environment) == isAllowed, "\(environment)")
        }
        let tiny = try TinyModel().file()
        let rows = try TemporaryFile(Array(#"{"prompt": "a", "completion": "the thing"}"#.utf8), suffix: ".jsonl")
        for (command, part) in [
            (["tokens", "--model", "small", "Hello"], "free"), (["adapter", "train", rows.path, "--preview"], "⟦the thing"),
        ] {
            func shown(_ variable: String, _ value: String) throws -> String {
                let terminal = ["python3", "-c", "import pty, sys; pty.spawn(sys.argv[1:])", CommandTests.binary.path]
                let environment = ["TERM": "xterm", "NO_COLOR": "", "CLICOLOR": "", "FM_MODEL": tiny.path]
                return try CommandTests().run(
                    "/usr/bin/env", terminal + command, environment: environment.merging([variable: value]) { $1 }
                ).output
            }
            #expect(try shown("NO_COLOR", "").contains("\u{1B}["))
            for (variable, value) in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
                let text = try shown(variable, value)
                #expect(text.contains(part) && !text.contains("\u{1B}"), "\(variable): \(text)")
            }
        }
    }

    @Test("Ctrl-C stays handled as long as one handler is in effect")
    func interrupts() {
        let (outer, inner) = (Interrupt {}, Interrupt {})
        inner.stop()
        var action = sigaction()
        sigaction(SIGINT, nil, &action)
        // Nil is the default: it ends the process.
        #expect(action.__sigaction_handler.sa_handler != nil)
        outer.stop()
    }
}
