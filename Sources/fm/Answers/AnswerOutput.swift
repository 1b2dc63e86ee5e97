import Foundation
internal import JSON

/// Writes an answer while it grows.
///
/// What is written cannot be taken back, and a part of a value is not a value: where a program may read it, a value is written when it is
/// whole, or not at all.
struct AnswerOutput {
    /// Whether the answer is written while it grows.
    let isLive: Bool
    /// Whether the answer is a JSON document.
    let isDocument: Bool
    let write: (String) throws -> Void
    private(set) var written = ""

    init(isLive: Bool, isDocument: Bool, write: @escaping (String) throws -> Void = { try Output().write($0) }) {
        self.isLive = isLive
        self.isDocument = isDocument
        self.write = write
    }

    /// - Parameter content: All of the answer so far.
    mutating func show(_ content: String) throws { if isLive { try add(content) } }

    /// - Throws: ``CommandFailure`` if the answer should be a document and is not a whole one, which is then not written.
    mutating func finish(_ content: String) throws {
        try check(content)
        if !content.utf8.starts(with: written.utf8), isDocument {
            try write("\n")
            written = ""
        }
        try add(content)
        if !content.hasSuffix("\n") { try write("\n") }
    }

    /// Ends the line of an answer that did not come to its end.
    func abandon() throws { if !written.isEmpty { try write("\n") } }

    /// - Throws: ``CommandFailure`` if the answer should be a document and is not a whole one.
    func check(_ content: String) throws {
        guard isDocument else { return }
        do { _ = try JSONParser.parse(content) } catch {
            throw CommandFailure("The answer was ended before the JSON document was whole. \(error)")
        }
    }

    private mutating func add(_ content: String) throws {
        guard content.utf8.count > written.utf8.count else { return }
        try write(String(Substring(content.utf8.dropFirst(written.utf8.count))))
        written = content
    }
}
