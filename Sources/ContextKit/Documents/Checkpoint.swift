import Foundation

/// What has been done of a long document, in a file.
struct Checkpoint: Codable {
    /// What the work is: another document's or another question's results are of no use.
    struct Work: Codable, Equatable {
        var document: String
        var model: String
        var kind: String
        var strategy: String
        var limit: Int
        var room: Int
        var instructions: String
    }

    struct Part: Codable {
        /// How often it was put together from others.
        var level: Int
        var text: String
    }

    var work: Work
    /// Chunks that are done.
    var chunks = 0
    /// Tokens of them.
    var tokens = 0
    var parts: [Part] = []

    init(work: Work) { self.work = work }

    /// - Returns: Nil if there is no file yet.
    /// - Throws: ``LongDocumentError/checkpoint(reason:)`` if the file is of other work.
    static func read(_ url: URL?, _ work: Work) throws -> Checkpoint? {
        guard let url, FileManager.default.fileExists(atPath: url.path) else { return nil }
        let found: Checkpoint
        do {
            found = try JSONDecoder().decode(Checkpoint.self, from: Data(contentsOf: url))
        } catch {
            throw LongDocumentError.checkpoint(reason: "\(url.path) is damaged.")
        }
        guard found.work == work else { throw LongDocumentError.checkpoint(reason: "\(url.path) belongs to other work.") }
        return found
    }

    func write(_ url: URL?) throws {
        guard let url else { return }
        try JSONEncoder().encode(self).write(to: url, options: .atomic)
    }

    static func remove(_ url: URL?) {
        guard let url else { return }
        try? FileManager.default.removeItem(at: url)  // a leftover is refused or overwritten by the next run
    }
}
