import Waiting
public import Foundation
import TextSearch

/// The text of a document, in the blocks that it consists of: paragraphs, list items, blocks of code.
public struct ExtractedText: Sendable {
    /// A part of the text that is not cut if it fits into a chunk.
    public struct Block: Sendable {
        /// The text, without markup.
        public var text: String
        /// The headings above it, the outermost first.
        public var headings: [String]
        /// The line at which it begins, from 1; in a PDF, the line of its page.
        public var line: Int
        /// The line at which it ends, if the lines of the text are not those of the document, as in HTML; else nil.
        public var lastLine: Int?
        /// The page, from 1; nil for documents without pages.
        public var page: Int?
        /// Whether it is a row of a table, which stands in the line after the row before it.
        var isRow = false

        /// What stands between it and the block after it: the rows of a table are lines of one text.
        func separator(before next: Block) -> String { isRow && next.isRow ? "\n" : "\n\n" }

        /// Creates a block.
        public init(text: String, headings: [String] = [], line: Int = 1, lastLine: Int? = nil, page: Int? = nil) {
            self.lastLine = lastLine
            self.text = text
            self.headings = headings
            self.line = line
            self.page = page
        }
    }

    /// The title, if the document has one.
    public var title: String?
    /// The blocks in order.
    public var blocks: [Block]

    /// Creates a text from blocks.
    public init(title: String? = nil, blocks: [Block]) {
        self.title = title
        self.blocks = blocks
    }

    /// The kinds of documents.
    public enum Format: String, Sendable, Codable, CaseIterable {
        /// Paragraphs, separated by empty lines.
        case plain
        case markdown
        case html
        /// Needs the program `pdftotext` of poppler.
        case pdf
        /// Source code and other text whose lines matter.
        case code

        /// The format of a file by the extension of its name; nil for files that are not documents.
        public init?(fileName: String) {
            let suffix = fileName.split(separator: ".").last.map { $0.lowercased() } ?? ""
            switch suffix {
            case "txt", "text", "rst", "org", "tex", "log", "srt", "vtt", "eml": self = .plain
            case "md", "markdown", "mdx", "mdown": self = .markdown
            case "html", "htm", "xhtml": self = .html
            case "pdf": self = .pdf
            case "swift", "c", "h", "cc", "cpp", "hpp", "m", "mm", "rs", "go", "java", "kt", "scala", "py", "rb", "js", "ts",
                "jsx",
                "tsx", "php", "pl", "lua", "sh", "bash", "zsh", "sql", "r", "jl", "cs", "fs", "hs", "ml", "ex", "exs", "erl",
                "clj",
                "dart", "css", "scss", "json", "jsonl", "yaml", "yml", "toml", "ini", "cfg", "xml", "csv", "tsv", "proto",
                "cmake",
                "gradle", "vue", "svelte", "zig", "nim", "asm", "s", "el", "vim", "tf":
                self = .code
            default: return nil
            }
        }
    }

    /// Reads a text in memory. A PDF is read from its file.
    public init(_ text: String, format: Format) {
        switch format {
        case .plain, .pdf: self = PlainText.extracted(text)
        case .markdown: self = MarkdownText.extracted(text)
        case .html: self = HTMLText.extracted(text)
        case .code: self = CodeText.extracted(text)
        }
    }

    /// The whole text, with empty lines between the blocks.
    public var text: String {
        zip(blocks, blocks.dropFirst()).map { $0.text + $0.separator(before: $1) }.joined() + (blocks.last?.text ?? "")
    }

    /// Whether there is no text: the document is empty, or consists of pictures or scripts. ``RetrievalError/noText(file:format:)``
    /// says so to people.
    public var isEmpty: Bool { blocks.isEmpty }

    /// Reads a file on a thread of its own. If the task is cancelled, the program that reads a PDF ends.
    ///
    /// - Throws: ``RetrievalError/unreadable(file:reason:)`` if it cannot be read, or its format is unknown; `CancellationError`.
    public init(contentsOf url: URL) async throws {
        guard let format = Format(fileName: url.lastPathComponent) else {
            throw RetrievalError.unreadable(file: url.path, reason: "its kind is not known")
        }
        if format == .pdf {
            self = try await PDFText.extracted(url)
            return
        }
        self = try await unlessCancelled {
            try await onAnotherThread { try ExtractedText(data: Self.data(of: url), format: format, file: url.path) }
        }
    }

    /// The contents of a file.
    ///
    /// - Parameter name: The name of the file in errors; nil for its path.
    static func data(of url: URL, name: String? = nil) throws -> Data {
        do { return try Data(contentsOf: url) } catch {
            throw RetrievalError.unreadable(file: name ?? url.path, reason: error.localizedDescription)
        }
    }

    /// - Parameter file: The path, for errors.
    init(data: Data, format: Format, file: String) throws {
        var (text, reason) = (TextDecoder.text(of: data), "it is not UTF-8 text")
        if text == nil, format == .html, let encoding = HTMLEncoding.declared(in: data) {
            if Windows1252.names.contains(encoding) {
                text = Windows1252.text(of: data)
            } else {
                reason = "its encoding is \(encoding.debugDescription), or it is damaged; convert it to UTF-8"
            }
        }
        guard let text, !text.utf8.contains(0) else { throw RetrievalError.unreadable(file: file, reason: reason) }
        self.init(text, format: format)
    }
}

/// Numbered lines of a text.
struct Lines: Sequence {
    let text: Substring

    init(_ text: String) { self.text = Substring(text) }

    func makeIterator() -> AnyIterator<(number: Int, text: Substring)> {
        var rest = text.utf8[...]
        var number = 0
        var isAtEnd = text.isEmpty
        return AnyIterator {
            if isAtEnd { return nil }
            number += 1
            let end = rest.firstIndex(of: 0x0A)
            var line = Substring(rest[..<(end ?? rest.endIndex)])
            if line.utf8.last == 0x0D { line = Substring(line.utf8.dropLast()) }
            if let end {
                rest = rest[rest.index(after: end)...]
                isAtEnd = rest.isEmpty
            } else {
                isAtEnd = true
            }
            return (number, line)
        }
    }
}

extension StringProtocol {
    var isBlank: Bool { utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D || $0 == 0x0C } }
}

/// Paragraphs, separated by empty lines.
enum PlainText {
    static func extracted(_ text: String) -> ExtractedText { ExtractedText(blocks: blocks(of: text, page: nil)) }

    static func blocks(of text: String, page: Int?) -> [ExtractedText.Block] {
        var blocks: [ExtractedText.Block] = []
        var lines: [Substring] = []
        var first = 1
        func end() {
            if !lines.isEmpty { blocks.append(.init(text: lines.joined(separator: "\n"), line: first, page: page)) }
            lines = []
        }
        for (number, line) in Lines(text) {
            if line.isBlank {
                end()
                continue
            }
            if lines.isEmpty { first = number }
            lines.append(line)
        }
        end()
        return blocks
    }
}

/// Blocks of code between empty lines; comments stay with the code that follows.
enum CodeText {
    static func extracted(_ text: String) -> ExtractedText {
        // Short blocks are joined by the chunker, so nothing else needs to be known about the language.
        ExtractedText(blocks: PlainText.blocks(of: text, page: nil))
    }
}

/// Markdown (CommonMark): headings give the structure; code between fences is one block.
enum MarkdownText {
    static func extracted(_ text: String) -> ExtractedText {
        var result = ExtractedText(blocks: [])
        var headings: [(level: Int, text: String)] = []
        var lines: [Substring] = []
        var first = 1
        // A heading without text below it is a text of its own.
        var (hasText, headingLine) = (true, 1)
        var fence: Substring?
        func end() {
            if !lines.isEmpty {
                hasText = true
                result.blocks.append(.init(text: lines.joined(separator: "\n"), headings: headings.map(\.text), line: first))
            }
            lines = []
        }
        func endHeading() {
            if !hasText, let last = headings.last {
                result.blocks.append(.init(text: last.text, headings: headings.dropLast().map(\.text), line: headingLine))
            }
            hasText = true
        }
        func begin(_ level: Int, _ title: String, at line: Int) {
            end()
            if headings.last.map({ $0.level >= level }) ?? false { endHeading() }
            (hasText, headingLine) = (false, line)
            headings.removeAll { $0.level >= level }
            headings.append((level, title))
            if result.title == nil { result.title = title }
        }
        for (number, line) in Lines(text) {
            let content = line.drop { $0 == " " }
            if let open = fence {
                lines.append(line)
                if content.hasPrefix(open), content.drop(while: { $0 == open.first }).isBlank {
                    fence = nil
                    end()
                }
                continue
            }
            let marksCode = content.hasPrefix("```") && !content.drop(while: { $0 == "`" }).contains("`")
            if marksCode || content.hasPrefix("~~~") {
                end()
                first = number
                fence = content.prefix { $0 == content.first }
                lines.append(line)
                continue
            }
            if line.isBlank {
                end()
                continue
            }
            let marks = content.prefix { $0 == "#" }.count
            if (1...6).contains(marks), line.count - content.count < 4, content.dropFirst(marks).first.map({ $0 == " " }) ?? true
            {
                let title = content.dropFirst(marks).trimmingCharacters(in: .whitespaces)
                begin(marks, String(title.replacing(/(^|[ \t])#+$/, with: "")).trimmingCharacters(in: .whitespaces), at: number)
                continue
            }
            // A line of “===” or “---” under a paragraph makes it a heading.
            if lines.count == 1, content.count >= 2, content.allSatisfy({ $0 == "=" }) || content.allSatisfy({ $0 == "-" }) {
                let title = String(lines[0]).trimmingCharacters(in: .whitespaces)
                lines = []
                begin(content.first == "=" ? 1 : 2, title, at: first)
                continue
            }
            if lines.isEmpty { first = number }
            lines.append(line)
        }
        end()
        endHeading()
        return result
    }
}
