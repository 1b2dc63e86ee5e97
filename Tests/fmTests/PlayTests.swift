import Foundation
import Testing

@testable import fm

@Suite("fm play") struct PlayTests {
    @Test("blocks become constants on the same lines, except in comments and strings") func instrumented() {
        let source = """
            import FoundationModels
            import Playgrounds  // for the blocks
            /* #Playground { }
            /* nested */
            #Playground { }
            */
            let text = \"\"\"
            #Playground { }
            \"\"\"
            let quote = "/* \\" \\"\\"\\" //"
            #Playground("A \\"name\\"") { print(1) }
            // #Playground { }
            #PlaygroundLike {}
              #Playground{
                print(2)
              }
            """
        let (code, blocks) = PlaygroundProgram.instrumented(source, file: "/a/b.swift", firstBlock: 3)
        let lines = code.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == source.split(separator: "\n", omittingEmptySubsequences: false).count)
        #expect(lines[1] == "")
        #expect(lines[10] == "let playgroundBlock3 = PlaygroundBlock(\"A \\\"name\\\"\") { print(1) }")
        #expect(lines[13] == "let playgroundBlock4 = PlaygroundBlock{")
        #expect(code.contains("#PlaygroundLike") && code.components(separatedBy: "playgroundBlock").count == 3)
        #expect(blocks.map(\.line) == [11, 14])
        #expect(blocks[0].name == "A \\\"name\\\"" && blocks[1].name == nil)
        #expect(blocks[1].title == "(b.swift:14)")
    }

    @Test("prompts are separated by lines, with instructions of their own") func prompts() throws {
        let text = "@instructions Be brief.\nOne\nline\n---\n\n---\nTwo\n"
        #expect(
            try PlayPrompt.read(Data(text.utf8), name: "prompts.txt") == [
                PlayPrompt(instructions: "Be brief.", text: "One\nline"), PlayPrompt(instructions: nil, text: "Two"),
            ])
        #expect {
            try PlayPrompt.read(Data("---\n".utf8), name: "prompts.txt")
        } throws: { ($0 as? CommandFailure)?.code == .wrongUsage }
    }

    @Test("answers are side by side if the terminal is wide enough") func table() {
        let cells = ["a", "b"].map { AnswerTable.Cell(title: $0, text: "some words\n\($0)", facts: "1 s") }
        let wide = AnswerTable.lines(cells, width: 80)
        #expect(wide.contains { $0.hasPrefix("some words") && $0.hasSuffix("some words" + String(repeating: " ", count: 28)) })
        #expect(AnswerTable.lines(cells, width: 40).filter { $0 == "some words" }.count == 2)
        #expect(AnswerTable.wrapped("  indented text that is long", 14) == ["  indented", "text that is", "long"])
    }

    /// A package in place of this one, which builds in seconds. Its session records requests as ours does.
    private static func library(in folder: URL) throws -> URL {
        let library = folder.appending(path: "library")
        let sources = library.appending(path: "Sources/FoundationModels")
        try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
        try Data(
            """
            // swift-tools-version: 6.2
            import PackageDescription
            let package = Package(
                name: "library", products: [.library(name: "FoundationModels", targets: ["FoundationModels"])],
                traits: ["Macros"], targets: [.target(name: "FoundationModels")])
            """.utf8
        ).write(to: library.appending(path: "Package.swift"))
        try Data(
            ##"""
            import Foundation
            public func request(_ prompt: String) throws -> String {
                let environment = ProcessInfo.processInfo.environment
                let model = environment["FM_MODEL"] ?? ""
                guard environment["FM_TRACE_TEXT"] == "1", let trace = environment["FM_TRACE"] else { return "untraced" }
                let response = "\(prompt) of \(URL(filePath: model).lastPathComponent)"
                let line = #"{"kind":"request","start":1,"seconds":0.5,"inputTokens":7,"outputTokens":3,"prompt":"\#(prompt)","response":"\#(response)"}"#
                try Data((line + "\n").utf8).write(to: URL(filePath: trace))
                return response
            }
            """##.utf8
        ).write(to: sources.appending(path: "Request.swift"))
        let script = library.appending(path: "scripts/build")
        try FileManager.default.createDirectory(at: script.deletingLastPathComponent(), withIntermediateDirectories: true)
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        try FileManager.default.copyItem(at: root.appending(path: "scripts/build"), to: script)
        return library
    }

    @Test("[H4] blocks of Swift files are built and run, with each model; errors and crashes do not affect other blocks")
    func swiftFiles() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let library = try Self.library(in: folder)
        let file = folder.appending(path: "Try.swift")
        func write(_ last: String) throws {
            try Data(
                """
                import FoundationModels
                import Playgrounds

                struct Failure: Error {}
                #Playground("Request") { print(try request("An answer")) }
                #Playground("Failure") { throw Failure() }
                #Playground("Crash") {
                    print("before")
                    print([1, 2][number()])
                }
                #Playground { \(last) }
                """.utf8
            ).write(to: file)
        }
        let helper = folder.appending(path: "Helper.swift")
        try Data("func number() -> Int { 7 }\n".utf8).write(to: helper)
        for name in ["a.gguf", "b.gguf"] { try Data().write(to: folder.appending(path: name)) }
        func play() throws -> CommandTests.Run {
            try CommandTests().fm(
                [
                    "play", file.path, helper.path, "--once", "-m", folder.appending(path: "a.gguf").path, "-m",
                    folder.appending(path: "b.gguf").path,
                ], environment: ["FM_PACKAGE": library.path, "XDG_CACHE_HOME": folder.path])
        }
        try write("print(\"only printed\")")
        let run = try play()
        #expect(run.status == 0, "\(run.error)")
        #expect(run.output.contains("Request  (Try.swift:5)") && run.output.contains("(Try.swift:11)"))
        #expect(run.output.contains("An answer of a.gguf") && run.output.contains("An answer of b.gguf"))
        #expect(run.output.contains("7 + 3 tokens, 0.5 s") && !run.output.contains("printed:"))
        #expect(run.output.contains("error: Failure()") && run.output.contains("(failed)"))
        #expect(run.output.contains("before") && run.output.contains("crashed (signal"))
        #expect(run.output.contains("only printed"))
        // The compiler's errors name the lines of the original file.
        try write("let x: Int = request(\"x\")")
        let broken = try play()
        #expect(broken.status == 1 && broken.error.contains("Try.swift:11:"), "\(broken.error)")
        try FileManager.default.removeItem(at: helper)
        #expect(try play().status == 64)
    }
}
