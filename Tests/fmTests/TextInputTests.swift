import Foundation
import TestSupport
import Testing

@testable import fm

@Suite("text that commands are given") struct TextInputTests {
    private let commands = CommandTests()

    @Test("a byte order mark is no part of a text, and texts in UTF-16 are read like others")
    func marks() throws {
        let marked = try TemporaryFile([0xEF, 0xBB, 0xBF] + Array("{\"type\": \"null\"}".utf8), suffix: ".json")
        #expect(try TextFile.read(marked.path) == "{\"type\": \"null\"}")
        #expect(try TextFile.data(marked.path).first == UInt8(ascii: "{"))
        let units = Array("\u{FEFF}{\"const\": \"Grüße 🙂\"}".utf16)
        for bytes in [
            units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }, units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] },
        ] {
            let file = try TemporaryFile(bytes, suffix: ".json")
            #expect(try TextFile.read(file.path) == "{\"const\": \"Grüße 🙂\"}")
            #expect(try EvalFile.data(file.path) == TextFile.data(file.path) && EvalFile.bytes(file.path) == Data(bytes))
            #expect(try commands.fm(["schema", "check", file.path]).status == 0)
        }
        for bytes: [UInt8] in [[0x41, 0xFF], [0xFF, 0xFE, 0x41], [0, 0, 0xFE, 0xFF, 0, 0, 0, 0x41]] {
            let binary = try TemporaryFile(bytes, suffix: ".txt")
            #expect { try TextFile.read(binary.path) } throws: { "\($0)".contains("not text") && $0 is CommandFailure }
        }
        #expect(try commands.fm(["schema", "check", marked.path]).status == 0)
    }

    @Test("pipes with a byte order mark are read as without it") func markedPipes() throws {
        let tiny = try TinyModel().file()
        let arguments = ["tokens", "--total", "--model", tiny.path]
        let plain = try commands.fm(arguments, input: "Hello")
        #expect(try plain.status == 0 && commands.fm(arguments, input: "\u{FEFF}Hello").output == plain.output)
        let chat = try commands.fm(["chat", "--model", tiny.path], input: "\u{FEFF}/help\n")
        #expect(chat.status == 0 && chat.output.contains("/compact"), "\(chat)")
    }

    @Test("a name that is no file is a wrong argument; a file that cannot be used is not") func kindsOfProblems() throws {
        #expect { try TextFile.data("/nowhere/x") } throws: { !($0 is CommandFailure) }
        #expect { try TextFile.data("/tmp") } throws: { !($0 is CommandFailure) && "\($0)".contains("folder") }
        let file = try TemporaryFile(Array("[]".utf8), suffix: ".json")
        #expect(try commands.fm(["tokens", "--transcript", "/nowhere.json"]).status == 64)
        #expect(try commands.fm(["tokens", "--transcript", file.path]).status == 1)
        #expect(try commands.fm(["--load-transcript", file.path, "Hello"]).status == 1)
        #expect { try EvalFile.text("/nowhere/x") } throws: { ($0 as? CommandFailure)?.code == .wrongUsage }
        #expect { try EvalFile.check(outputs: ["/nowhere/x"], inputs: []) } throws: { ($0 as? CommandFailure)?.code == .failed }
    }

    @Test("an empty text is not sent to a model") func emptyTexts() throws {
        for (arguments, sentence) in [
            ([""], "The prompt is empty."), ([" \n"], "The prompt is empty."),
            (["ask", "--in", "/nowhere/x", ""], "The question is empty."), (["read", "-", ""], "The task is empty."),
        ] {
            let run = try commands.fm(arguments)
            #expect(run.status == 64 && run.error.contains(sentence) && run.output.isEmpty, "\(arguments) \(run)")
        }
        let file = try TemporaryFile(Array(" \n\n".utf8), suffix: ".txt")
        for task in [[], ["What?"], ["List the names."]] {
            let run = try commands.fm(["read", file.path] + task)
            #expect(run.status == 64 && run.error.contains("“\(file.path)” has no text."), "\(run)")
        }
    }

    @Test("an empty pipe beside an argument is said") func emptyPipe() throws {
        let tiny = try TinyModel().file()
        let arguments = ["tokens", "--total", "--model", tiny.path, "Hello"]
        let (alone, piped) = (try commands.fm(arguments), try commands.fm(arguments, input: ""))
        #expect(alone.status == 0 && alone.error.isEmpty && alone.output == piped.output)
        #expect(piped.error == "Standard input is empty: the prompt is the argument alone.\n")
    }

    @Test("flags that change probabilities have limits, in all commands that answer") func samplingFlags() throws {
        let commandsThatAnswer = [
            ["respond", "Hello"], ["chat"], ["ask", "--in", "/nowhere/x", "Who?"], ["read", "/nowhere.txt"],
        ]
        for command in commandsThatAnswer {
            let run = try commands.fm(command + ["--min-p", "2"])
            #expect(run.status == 64 && run.error.contains("--min-p must be"), "\(run)")
        }
        for command in commandsThatAnswer + [["play", "/nowhere.txt"], ["eval", "--safety"]] {
            let checks = try commands.fm(command + ["--guardrails", "none"])
            #expect(checks.status == 64 && checks.error.contains("permissive-content-transformations"), "\(checks)")
        }
        for flags in [
            ["--repetition-penalty", "0"], ["--presence-penalty", "-3"], ["--frequency-penalty", "2.1"], ["--min-p", "nan"],
            ["--dry=-1"], ["--dry", "1", "--dry-base", "0.5"], ["--dry", "1", "--dry-allowed-length", "0"],
            ["--dry-base", "2"],
            ["--greedy", "--min-p", "0.1"],
        ] {
            let run = try commands.fm(flags + ["Hello"])
            #expect(run.status == 64 && !run.error.contains("Unknown option"), "\(flags) \(run)")
        }
        let tiny = try TinyModel().file()
        let flags = [
            "--repetition-penalty", "1.1", "--presence-penalty", "-1", "--frequency-penalty", "0.5", "--min-p", "0.1", "--dry",
            "0.8", "--dry-base", "1.75", "--dry-allowed-length", "2",
        ]
        #expect(try commands.fm(["chat", "--model", tiny.path] + flags, input: "").status == 0)
    }

    @Test("with permissive guardrails, commands answer what they reject without") func permissive() throws {
        var tiny = TinyModel()
        tiny.context = 4_096
        let model = try tiny.file()
        let text = "I will kill you, you stupid bitch"
        let file = try TemporaryFile(Array(text.utf8), suffix: ".txt")
        let data = try TemporaryFile(Array("{\"prompt\": \"\(text)\", \"excludes\": [\"xyzzy\"]}\n".utf8), suffix: ".jsonl")
        let schema =
            #"{"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": false}"#
        for (command, input) in [
            (["chat", "-g", "--max-tokens", "2"], text + "\n"),
            // Here the command sends the schema.
            (["read", "-g", file.path, "--schema", schema], ""), (["play", "--once", "--max-tokens", "2", file.path], ""),
            (["eval", "--max-tokens", "2", "--run", data.path + ".run", data.path], ""),
        ] {
            defer { unlink(data.path + ".run") }
            let rejected = try commands.fm(command + ["--model", model.path], input: input)
            #expect((rejected.error + rejected.output).contains("unsafe"), "\(command) \(rejected)")
            unlink(data.path + ".run")
            let run = try commands.fm(
                command + ["--model", model.path, "--guardrails", "permissive-content-transformations"], input: input)
            #expect(run.status == 0 && !(run.error + run.output).contains("unsafe"), "\(command) \(run)")
        }
    }

    @Test("a chat with a window of its own size uses the adapter") func adapterAndContext() throws {
        let tiny = try TinyModel().file()
        let damaged = try TemporaryFile(Array("no adapter".utf8), suffix: ".fmadapter")
        let arguments = ["chat", "-g", "--max-tokens", "2", "--model", tiny.path, "--context", "256", "--adapter"]
        #expect(try commands.fm(arguments + ["none"], input: "Hello\n").status == 0)
        let run = try commands.fm(arguments + [damaged.path], input: "Hello\n")
        #expect(run.status == 3 && run.output.isEmpty, "\(run)")
    }

    @Test("a message that is too long for a chat ends with 4 and names the command for long texts") func longMessage() throws {
        let tiny = try TinyModel().file()
        let run = try commands.fm(
            ["chat", "-g", "--max-tokens", "2", "--model", tiny.path], input: String(repeating: "word ", count: 600) + "\n")
        #expect(run.status == 4 && run.error.contains("fm read FILE") && !run.error.contains("LongDocument"), "\(run)")
    }
}
