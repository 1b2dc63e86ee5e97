import Foundation
import TestSupport
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

    /// A folder with a script in place of the program that reads PDF files.
    private func program(_ body: String, in folder: TemporaryFolder) throws -> String {
        let name = UUID().uuidString
        try folder.write(name, "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n\(body)\n")
        let path = folder.url.appendingPathComponent(name).path
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        return path
    }

    @Test("a PDF file whose text is too large, or that needs too much, is an error") func hostilePDF() async throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("a.pdf")
        func text(_ body: String) async throws -> ExtractedText {
            try await PDFText.extracted(file, program: program(body, in: folder))
        }
        func reason(_ body: String) async throws -> String {
            let error = await #expect(throws: RetrievalError.self) { try await text(body) }
            guard case .unreadable(file.path, let reason)? = error else { return "\(error as Any)" }
            return reason
        }
        let pages = try await text("printf 'Hello.\\fSecond page.\\f'").blocks
        #expect(pages.map(\.text) == ["Hello.", "Second page."] && pages.map(\.page) == [1, 2])
        #expect(try await reason("exec cat /dev/zero").contains("64 MB"))
        #expect(try await reason("kill -KILL $$").contains("time or memory"))
        #expect(try await reason("exit 3").contains("damaged"))
        #expect(try await text("ulimit -t; ulimit -v").blocks.map(\.text) == ["60\n2000000"])
        let missing = await #expect(throws: RetrievalError.self) {
            try await PDFText.extracted(file, program: "/nowhere/pdftotext")
        }
        #expect(missing?.description.contains("poppler-utils") == true)
        #expect(try await text("true").isEmpty)
    }

    @Test("programs that read PDF files and never end block no other task, and end with theirs", .timeLimit(.minutes(1)))
    func endlessPDF() async throws {
        let folder = try TemporaryFolder()
        // The second process has the pipe too.
        let program = try program("echo >$$.pid\nsleep 100000\n:", in: folder)
        let file = folder.url.appendingPathComponent("a.pdf")
        // More than there are threads for tasks.
        let count = ProcessInfo.processInfo.activeProcessorCount + 1
        let tasks = (0..<count).map { _ in Task.detached { try await PDFText.extracted(file, program: program) } }
        defer { for task in tasks { task.cancel() } }
        func started() throws -> [pid_t] {
            try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter { $0.hasSuffix(".pid") }
                .compactMap { pid_t($0.dropLast(4)) }
        }
        try await eventually { try started().count == count }
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        for process in try started() { await eventually { kill(process, 0) != 0 } }
    }

    @Test("a program is not started for a task that was cancelled before") func cancelledPDF() async throws {
        let folder = try TemporaryFolder()
        let program = try program("echo >begun", in: folder)
        let file = folder.url.appendingPathComponent("a.pdf")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await PDFText.extracted(file, program: program)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(!FileManager.default.fileExists(atPath: folder.url.appendingPathComponent("begun").path))
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

    @Test("the text of pages of many structures", arguments: HTMLPage.all) func page(page: HTMLPage) {
        let document = ExtractedText(page.page, format: .html)
        var lines = document.title.map { ["title: \($0)"] } ?? []
        var headings: [String] = []
        for block in document.blocks {
            if block.headings != headings { lines.append("[\(block.headings.joined(separator: " › "))]") }
            headings = block.headings
            lines.append(block.text.replacing("\n", with: "⏎"))
        }
        #expect(lines.joined(separator: "\n") == page.text)
    }

    @Test("all names of characters in the HTML standard are known") func names() {
        #expect(HTMLEntities.counts == (2_125, 106))
        func text(_ reference: String, isAttribute: Bool = false) -> String? {
            HTMLEntities.reference(in: Array(reference.utf8), at: 0, isAttribute: isAttribute)?.text
        }
        #expect(text("CounterClockwiseContourIntegral;") == "∳" && text("zwnj;") == "\u{200C}" && text("NotEqualTilde;") == "≂̸")
        #expect(text("aacute") == "á" && text("aacute=", isAttribute: true) == nil && text("alefsym") == nil)
    }

    @Test("a table has its lines, and its rows are lines of a passage") func rows() async throws {
        let page = "<table>\n<tr><td>Bread<td>2.10\n<tr>\n<td>Milk<td>1.05</table>\n<p>After"
        let document = ExtractedText(page, format: .html)
        #expect(document.blocks.map(\.line) == [2, 4, 5] && document.blocks.map(\.lastLine) == [2, 4, 5])
        let chunker = DocumentChunker(limit: 100, overlap: 0, model: WordEmbedder())
        let text = "| Bread | 2.10 |\n| Milk | 1.05 |\n\nAfter"
        #expect(try await chunker.chunks(of: document).map(\.text) == [text] && document.text == text)
    }

    @Test("files in UTF-16 and with byte order marks, and pages that declare windows-1252") func encodings() throws {
        func text(_ bytes: [UInt8], _ format: ExtractedText.Format = .plain) throws -> [String] {
            try ExtractedText(data: Data(bytes), format: format, file: "a").blocks.map(\.text)
        }
        func utf16(_ text: String, isBig: Bool) -> [UInt8] {
            "\u{FEFF}\(text)".utf16.flatMap { isBig ? [UInt8($0 >> 8), UInt8($0 & 0xFF)] : [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        }
        #expect(try text([0xEF, 0xBB, 0xBF] + Array("# Title".utf8), .markdown) == ["Title"])
        #expect(try text(utf16("Grüße 🙂", isBig: false)) == ["Grüße 🙂"] && text(utf16("Grüße 🙂", isBig: true)) == ["Grüße 🙂"])
        let unreadable = RetrievalError.unreadable(file: "a", reason: "it is not UTF-8 text")
        // Half a character, and one that is none.
        #expect(throws: unreadable) { try text([0xFF, 0xFE, 0x41]) }
        #expect(throws: unreadable) { try text([0xFF, 0xFE, 0x00, 0xD8]) }
        #expect(throws: unreadable) { try text([0xFF, 0xFE, 0x00, 0x00]) }
        let latin: [UInt8] = Array("<p>Caf".utf8) + [0xE9, 0x20, 0x80, 0x35]
        for declaration in [
            "<meta charset=ISO-8859-1>", "<META HTTP-EQUIV='Content-Type' CONTENT='text/html; charset=windows-1252'>",
            "<?xml version=\"1.0\" encoding=\"latin1\"?>",
            "<!-- <meta charset=utf-8> --><title><meta charset=x></title><meta charset='L1'>",
        ] {
            #expect(try text(Array(declaration.utf8) + latin, .html) == ["Café €5"], "\(declaration)")
        }
        #expect(throws: unreadable) { try text(latin, .html) }
        #expect(throws: unreadable) { try text(Array("<meta charset=latin1>".utf8) + latin) }
        let japanese = #expect(throws: RetrievalError.self) {
            try text(Array("<meta charset=Shift_JIS>".utf8) + [0x82, 0xA0], .html)
        }
        #expect(japanese?.description.contains("\"shift_jis\"") ?? false)
        // What is UTF-8 is read as UTF-8, whatever it declares.
        #expect(try text(Array("<meta charset=latin1><p>Café".utf8), .html) == ["Café"])
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

    @Test("a page is read to a depth that browsers have too, and what is deeper is text of the last element") func deepHTML() {
        let deep = String(repeating: "<div>", count: 600) + "<p>one</p><h2>two</h2><p>th<b>r</b>ee<button>four</button></p>"
        let document = ExtractedText(deep + String(repeating: "</div>", count: 600) + "<p>five</p>", format: .html)
        #expect(document.blocks.map(\.text) == ["one", "two", "three four", "five"])
        let end = ExtractedText("<h1>Top</h1>" + String(repeating: "<b>", count: 100_000) + "text", format: .html)
        #expect(end.blocks.map(\.text) == ["text"] && end.blocks.map(\.headings) == [["Top"]])
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

    @Test func unreadable() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
        let binary = folder.appendingPathComponent("a.txt")
        try Data([0x61, 0, 0x62]).write(to: binary)
        await #expect(throws: RetrievalError.unreadable(file: binary.path, reason: "it is not UTF-8 text")) {
            try await ExtractedText(contentsOf: binary)
        }
        for name in ["b.bin", "missing.md"] {
            await #expect(throws: RetrievalError.self) {
                try await ExtractedText(contentsOf: folder.appendingPathComponent(name))
            }
        }
    }
}
