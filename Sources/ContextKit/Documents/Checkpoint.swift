import Foundation

/// The intermediate results for a long document, stored in a file.
struct Checkpoint: Codable {
    /// Identifies the work. Results for a different document, model or question cannot be used.
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
        /// How many times it was merged: 0 for the result of a chunk.
        var level: Int
        var text: String
    }

    var work: Work
    /// Number of processed chunks.
    var chunks = 0
    /// Number of tokens of the processed chunks.
    var tokens = 0
    var parts: [Part] = []

    init(work: Work) { self.work = work }

    /// - Returns: Nil if there is no file yet.
    /// - Throws: ``LongDocumentError/checkpoint(reason:)`` if the file is damaged or belongs to different work.
    static func read(_ url: URL?, _ work: Work) throws -> Checkpoint? {
        guard let url, FileManager.default.fileExists(atPath: url.path) else { return nil }
        let found: Checkpoint
        do {
            found = try JSONDecoder().decode(Checkpoint.self, from: Data(contentsOf: url))
        } catch {
            throw LongDocumentError.checkpoint(reason: "\(url.path) is damaged.")
        }
        guard found.work == work else { throw LongDocumentError.checkpoint(reason: "\(url.path) belongs to different work.") }
        return found
    }

    func write(_ url: URL?) throws {
        guard let url else { return }
        try JSONEncoder().encode(self).write(to: url, options: .atomic)
    }

    static func remove(_ url: URL?) {
        guard let url else { return }
        try? FileManager.default.removeItem(at: url)  // the next run rejects or overwrites a remaining file
    }
}
