import Foundation
import Testing

@testable import Retrieval

struct ExtractedTextTests {
    @Test func markdown() {
        let text = """
            Intro line.

            # Guide
            First paragraph
            goes on.

            ## Install ##
            ```sh
            # not a heading

            make
            ```
            Other
            =====
            Last.
            """
        let document = ExtractedText(text, format: .markdown)
        #expect(document.title == "Guide")
        #expect(
            document.blocks.map(\.text) == [
                "Intro line.", "First paragraph\ngoes on.", "```sh\n# not a heading\n\nmake\n```", "Last.",
            ])
        #expect(document.blocks.map(\.headings) == [[], ["Guide"], ["Guide", "Install"], ["Other"]])
        #expect(document.blocks.map(\.line) == [1, 4, 8, 15])
    }

    @Test("a PDF file whose text is too large, or that needs too much, is an error") func hostilePDF() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
        func program(_ body: String) throws -> String {
            let file = folder.appendingPathComponent(UUID().uuidString)
            try Data("#!/bin/sh\n\(body)\n".utf8).write(to: file)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.path)
            return file.path
        }
        let file = folder.appendingPathComponent("a.pdf")
        #expect(try PDFText.extracted(file, program: program("echo Hello.")).blocks.map(\.text) == ["Hello."])
        #expect(throws: RetrievalError.self) { try PDFText.extracted(file, program: program("exec cat /dev/zero")) }
        #expect(throws: RetrievalError.self) { try PDFText.extracted(file, program: program("kill -KILL $$")) }
        #expect(throws: RetrievalError.self) { try PDFText.extracted(file, program: program("exit 3")) }
    }

    @Test func html() {
        let text = """
            <!DOCTYPE html><html><head><title>A &amp; B</title><style>p { color: red }</style></head>
            <body><script>if (a < b) { alert("<p>no</p>") }</script>
            <h1>Top</h1><p>One <b>bold</b> word, 2 &lt; 3,
            caf&eacute; &#233; &#x1F600;.</p><!-- <p>hidden</p> -->
            <h2 title="a > b">Sub</h2><ul><li>first<li>second</ul><pre>a
              b</pre>5 < 6 & more
            """
        let document = ExtractedText(text, format: .html)
        #expect(document.title == "A & B")
        #expect(
            document.blocks.map(\.text) == [
                "One bold word, 2 < 3, café é 😀.", "first", "second", "a\n  b", "5 < 6 & more",
            ])
        #expect(document.blocks.map(\.headings) == [["Top"], ["Top", "Sub"], ["Top", "Sub"], ["Top", "Sub"], ["Top", "Sub"]])
        #expect(document.blocks[0].line == 3)
    }

    /// Any bytes give some text and never a trap: cut-off tags, entities and comments.
    @Test func damagedHTML() {
        for text in [
            "<", "<a", "<a href='", "&", "&#", "&#x110000;", "<!--", "<script>", "</", "<h1", "<title>", "<p>x</p", "a<b",
        ] {
            _ = ExtractedText(text, format: .html)
        }
        #expect(ExtractedText("a<1", format: .html).blocks.map(\.text) == ["a<1"])
    }

    /// Structure that common files have: byte order marks, code between backticks in a line, names that end in “#”, headings
    /// without text.
    @Test func markdownOfManyKinds() {
        func blocks(_ text: String) -> [String] { ExtractedText(text, format: .markdown).blocks.map(\.text) }
        #expect(blocks("```fm index``` is a command\n\n# Second\n\nText.") == ["```fm index``` is a command", "Text."])
        #expect(ExtractedText("# C#\n\nText.", format: .markdown).title == "C#")
        let headings = ExtractedText("# Glossary\n\n## Pterodactyl\n\n## Stegosaur\n\nAn animal.\n\n## Last\n", format: .markdown)
        #expect(headings.blocks.map(\.text) == ["Pterodactyl", "An animal.", "Last"])
        #expect(headings.blocks.map(\.headings) == [["Glossary"], ["Glossary", "Stegosaur"], ["Glossary"]])
        #expect(headings.blocks.map(\.line) == [3, 7, 9])
        #expect(blocks("# Only") == ["Only"])
    }

    @Test func htmlOfManyKinds() {
        func blocks(_ text: String) -> [String] { ExtractedText(text, format: .html).blocks.map(\.text) }
        #expect(blocks("<script src='a.js'/><p>one</p><svg/><p>two</p>") == ["one", "two"])
        #expect(blocks("<p>a &#0; b &#xD800; c</p>") == ["a \u{FFFD} b \u{FFFD} c"])
        #expect(blocks("<h1>Clavichord</h1>") == ["Clavichord"])
        let lines = ExtractedText("<p>a<br>b\nc\nd</p>", format: .html).blocks[0]
        #expect(lines.line == 1 && lines.lastLine == 3)
    }

    @Test func plain() {
        let document = ExtractedText("one\r\ntwo\r\n\r\n\r\nthree", format: .plain)
        #expect(document.blocks.map(\.text) == ["one\ntwo", "three"])
        #expect(document.blocks.map(\.line) == [1, 5])
        #expect(ExtractedText("", format: .plain).blocks.isEmpty)
    }

    @Test func unreadable() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
        let binary = folder.appendingPathComponent("a.txt")
        try Data([0x61, 0, 0x62]).write(to: binary)
        #expect(throws: RetrievalError.unreadable(file: binary.path, reason: "it is not UTF-8 text")) {
            try ExtractedText(contentsOf: binary)
        }
        #expect(throws: RetrievalError.self) { try ExtractedText(contentsOf: folder.appendingPathComponent("b.bin")) }
        #expect(throws: RetrievalError.self) { try ExtractedText(contentsOf: folder.appendingPathComponent("missing.md")) }
    }
}
