import Foundation
import FoundationModels
import TestSupport
import Testing

@testable import fm

@Suite("what commands write") struct AnswerOutputTests {
    /// What is written of an answer that grows, and whether it came to an end.
    private func written(
        _ snapshots: [String], _ end: String, isLive: Bool, isDocument: Bool
    ) throws -> (text: String, isWhole: Bool) {
        var text = ""
        var output = AnswerOutput(isLive: isLive, isDocument: isDocument) { text += $0 }
        for snapshot in snapshots { try output.show(snapshot) }
        do { try output.finish(end) } catch is CommandFailure {
            try output.abandon()
            return (text, false)
        }
        return (text, true)
    }

    @Test("a text is written as it grows, or at the end, and ends with one line end") func texts() throws {
        for isLive in [true, false] {
            #expect(try written(["Hé", "Hé 日"], "Hé 日本", isLive: isLive, isDocument: false) == ("Hé 日本\n", true))
            #expect(try written([], "Hello\n", isLive: isLive, isDocument: false) == ("Hello\n", true))
        }
    }

    @Test("a part of a value does not reach a pipe, and what a terminal shows of it is not taken back") func values() throws {
        let part = #"["neutral", "neutral"#
        #expect(try written([part], part, isLive: false, isDocument: true) == ("", false))
        #expect(try written([part], part, isLive: true, isDocument: true) == (part + "\n", false))
        #expect(try written([part], #"["neutral"]"#, isLive: false, isDocument: true) == ("[\"neutral\"]\n", true))
        #expect(try written([part], #"["neutral"]"#, isLive: true, isDocument: true) == (part + "\n[\"neutral\"]\n", true))
        #expect(try written([part], part + "\"]", isLive: true, isDocument: true) == (part + "\"]\n", true))
    }

    @Test("a value that does not fit is an error without output") func valueThatDoesNotFit() throws {
        let tiny = try TinyModel().file()
        let schema = #"{"type": "object", "properties": {"n": {"type": "string", "minLength": 40}}, "required": ["n"]}"#
        for flags in [[], ["--json"], ["--no-stream"]] {
            let run = try CommandTests().fm(
                ["-g", "--model", tiny.path, "--no-describe", "--max-tokens", "4", "--schema", schema, "x"] + flags)
            #expect(run.status == 4 && run.output.isEmpty, "\(run)")
        }
    }

    @Test("an answer that was ended because it repeated itself has an exit code of its own") func stops() throws {
        func usage(_ reason: String) -> LanguageModelSession.Usage {
            .init(
                input: .init(totalTokenCount: 1, cachedTokenCount: 0), output: .init(totalTokenCount: 1, reasoningTokenCount: 0),
                metadata: ["stopReason": reason])
        }
        for reason in ["loop", "grammarLimit"] { #expect(CommandFailure.ofEnd(usage(reason))?.code == .endless, "\(reason)") }
        for reason in ["maximumTokens", "endOfTurn"] { #expect(CommandFailure.ofEnd(usage(reason)) == nil, "\(reason)") }
        #expect(CommandFailure.ofEnd(nil) == nil)
        for command in ["respond", "eval"] {
            let help = try CommandTests().fm([command, "--help"]).output.split(whereSeparator: \.isWhitespace).joined(
                separator: " ")
            #expect(help.contains("endOfTurn, stopString, maximumTokens, loop, contextFull and grammarLimit"))
        }
    }

    @Test("an answer of a chat that ends at the usual maximum is said to be cut") func cutInChat() throws {
        var tiny = TinyModel()
        tiny.context = 4_096
        let file = try tiny.file()
        let run = try CommandTests().fm(
            ["chat", "-g", "--model", file.path], input: "Hello\n", environment: ["FM_LOOPS": "1"])
        #expect(run.status == 0 && run.error.contains("Stopped after 1500 tokens; --max-tokens allows more."), "\(run.error)")
        let chosen = try CommandTests().fm(["chat", "-g", "--model", file.path, "--max-tokens", "3"], input: "Hello\n")
        #expect(chosen.status == 0 && chosen.error.isEmpty, "\(chosen.error)")
    }

    @Test("a private file is replaced in one step, through links, and leaves nothing else") func privateFiles() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // otherwise the system removes it
        func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
        func text(_ name: String) throws -> String { try String(contentsOfFile: path(name), encoding: .utf8) }
        try Data("old".utf8).write(to: URL(filePath: path("talk.json")))
        // Another name of the old contents, which a program that empties the file would change.
        try FileManager.default.linkItem(atPath: path("talk.json"), toPath: path("old.json"))
        try FileManager.default.createSymbolicLink(atPath: path("link.json"), withDestinationPath: path("talk.json"))
        try OutputFile.write(Data("new".utf8), to: path("link.json"), mode: 0o600)
        #expect(try text("talk.json") == "new" && text("old.json") == "old")
        #expect(try FileManager.default.attributesOfItem(atPath: path("talk.json"))[.posixPermissions] as? Int == 0o600)
        try OutputFile.write(Data("new".utf8), to: path("talk.json"))
        #expect(try FileManager.default.attributesOfItem(atPath: path("talk.json"))[.posixPermissions] as? Int == 0o600)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path("link.json")) == path("talk.json"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 3)
        #expect(throws: CommandFailure.self) { try OutputFile.write(Data("x".utf8), to: "/dev/full", mode: 0o600) }
        #expect(throws: CommandFailure.self) { try OutputFile.write(Data(), to: path("none/talk.json"), mode: 0o600) }
    }

    @Test("a private file is written in place where its folder may not be written") func privateFileInPlace() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appendingPathComponent("talk.json").path
        try Data("a longer old text".utf8).write(to: URL(filePath: file))
        chmod(file, 0o666)
        chmod(folder.path, 0o555)
        defer {
            chmod(folder.path, 0o755)
            try? FileManager.default.removeItem(at: folder)  // otherwise the system removes it
        }
        // Root may write in every folder: this thread accesses files as another user then, until the end.
        typealias SetUser = @convention(c) (UInt32) -> Int32
        let symbol = try #require(dlsym(nil, "setfsuid"))
        let setUser = unsafeBitCast(symbol, to: SetUser.self)
        let user = geteuid()
        if user == 0 { _ = setUser(65_534) }
        defer { if user == 0 { _ = setUser(0) } }
        try OutputFile.write(Data("new".utf8), to: file, mode: 0o600)
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "new")
        #expect(throws: CommandFailure.self) {
            try OutputFile.write(Data(), to: folder.appendingPathComponent("other").path, mode: 0o600)
        }
    }

    @Test("a full disk is no wrong usage") func fullDisk() throws {
        let tiny = try TinyModel().file()
        let run = try CommandTests().fm(
            ["-g", "--model", tiny.path, "--max-tokens", "2", "--save-transcript", "/dev/full", "Hello"])
        #expect(run.status == 1 && run.error.contains("cannot be written"), "\(run)")
    }
}
