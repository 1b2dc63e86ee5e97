internal import Files
public import Foundation
import TextSearch

/// Reads a text in pieces, so that only one piece is in memory.
struct DocumentReader: Sendable {
    enum Source: Sendable {
        case text(String)
        case file(URL)
    }

    private let source: Source
    private static let pieceSize = 1 << 16

    init(_ source: Source) { self.source = source }

    /// Identifies the document: a file by its path, size and date, a text by its length and hash.
    var identity: String {
        switch source {
        case .text(let text):
            return "\(text.utf8.count) bytes, \(FNV.hash(text.utf8))"
        case .file(let url):
            // A missing file is reported when it is read.
            let values = try? FileManager.default.attributesOfItem(atPath: url.path)
            let date = (values?[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0
            return "\(url.path), \(values?[.size] ?? 0) bytes, \(date)"
        }
    }

    /// Calls the closure with pieces of the text that end between paragraphs, or at least between sentences, if
    /// possible.
    func forEachPiece(_ body: (String) async throws -> Void) async throws {
        switch source {
        case .text(let text):
            // A byte order mark is no part of the text.
            var rest = text.hasPrefix("\u{FEFF}") ? text.dropFirst() : text[...]
            while !rest.isEmpty {
                let end = rest.utf8.index(rest.startIndex, offsetBy: Self.pieceSize, limitedBy: rest.endIndex) ?? rest.endIndex
                let piece = rest[..<(end == rest.endIndex ? end : Self.boundary(in: rest[..<Self.whole(end, rest)]))]
                try await body(String(piece))
                rest = rest[piece.endIndex...]
            }
        case .file(let url):
            let file: FileHandle
            do { file = try FileHandle(forReadingFrom: url) } catch {
                throw LongDocumentError.unreadable(reason: "\(url.path): \(error.localizedDescription)")
            }
            defer { try? file.close() }  // the file was only read
            var decoder = TextDecoder()
            var rest = ""
            var isLast = false
            while !isLast {
                let data = try file.read(upToCount: Self.pieceSize) ?? Data()
                isLast = data.isEmpty
                guard let text = decoder.text(of: data, isLast: isLast) else {
                    throw LongDocumentError.unreadable(reason: "\(url.path) is not UTF-8 text.")
                }
                rest += text
                let piece = rest[..<(isLast ? rest.endIndex : Self.boundary(in: rest[...]))]
                if !piece.isEmpty { try await body(String(piece)) }
                rest = String(rest[piece.endIndex...])
            }
        }
    }

    /// The character boundary at or before a position; the end of the text if there is none after its start.
    private static func whole(_ index: Substring.Index, _ text: Substring) -> Substring.Index {
        var index = index
        while index > text.startIndex, String.Index(index, within: text) == nil {
            index = text.utf8.index(before: index)
        }
        return index > text.startIndex ? index : text.endIndex
    }

    /// The best position for a cut: after the last empty line, else after the last line, else before the last sentence,
    /// else at the end.
    private static func boundary(in text: Substring) -> Substring.Index {
        var lastLine: Substring.Index?
        var index = text.endIndex
        var isAfterNewline = false
        // Bytes, backwards: a byte of another character is never a newline.
        while index > text.startIndex {
            let before = text.utf8.index(before: index)
            let isNewline = text.utf8[before] == UInt8(ascii: "\n")
            if isNewline, isAfterNewline { return text.utf8.index(after: index) }
            if isNewline, lastLine == nil { lastLine = index }
            isAfterNewline = isNewline
            index = before
        }
        if let lastLine { return lastLine }
        let sentences = TextUnits.sentences(of: text)
        if sentences.count > 1, let last = sentences.last { return last.startIndex }
        return text.endIndex
    }
}

/// An error in processing a long document.
public enum LongDocumentError: LocalizedError {
    /// The file is missing or is not UTF-8 text.
    case unreadable(reason: String)
    /// The window is too small for a chunk in addition to instructions, carried text and the response.
    case windowTooSmall(contextSize: Int, needed: Int)
    /// The checkpoint file belongs to different work, or is damaged.
    case checkpoint(reason: String)

    public var errorDescription: String? {
        switch self {
        case .unreadable(let reason): "The document cannot be read. \(reason)"
        case .windowTooSmall(let size, let needed):
            "The window of \(size) tokens is too small: instructions, notes, a piece of the text and the response need \(needed)."
        case .checkpoint(let reason): "The unfinished work cannot be resumed: \(reason)"
        }
    }

    public var recoverySuggestion: String? {
        switch self {
        case .unreadable: "Give a file with UTF-8 text."
        case .windowTooSmall: "Ask for a shorter result, shorten the instructions, or use a model with a larger window."
        case .checkpoint: "Remove the file to start again."
        }
    }
}
