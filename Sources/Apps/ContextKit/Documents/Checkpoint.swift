import Foundation
import FoundationModels

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

    /// A text that the model has rejected.
    struct Rejected: Codable {
        enum Reason: Codable { case guardrailViolation, refusal, language(String) }

        /// As in ``LongDocument/Rejection``.
        var chunk: Int?
        var text: String
        var reason: Reason
        /// The words of the error.
        var message: String

        /// - Returns: Nil for an error that does not concern the text alone.
        init?(_ error: any Error, chunk: Int?, _ text: String) {
            switch error as? LanguageModelError {
            case .guardrailViolation(let details): (reason, message) = (.guardrailViolation, details.debugDescription)
            case .refusal(let details): (reason, message) = (.refusal, details.debugDescription)
            case .unsupportedLanguageOrLocale(let details):
                (reason, message) = (.language(details.languageCode.identifier), details.debugDescription)
            default: return nil
            }
            (self.chunk, self.text) = (chunk, text)
        }

        var error: LanguageModelError {
            switch reason {
            case .guardrailViolation: .guardrailViolation(.init(debugDescription: message))
            case .refusal: .refusal(.init(explanation: message, debugDescription: message))
            case .language(let code):
                .unsupportedLanguageOrLocale(.init(languageCode: .init(code), debugDescription: message))
            }
        }
    }

    var work: Work
    /// Number of processed chunks.
    var chunks = 0
    /// Number of tokens of the processed chunks.
    var tokens = 0
    var parts: [Part] = []
    /// The texts that were left out; nil if there are none.
    private(set) var rejected: [Rejected]?

    init(work: Work) { self.work = work }

    /// What was done before; nothing if there is no file yet. Texts that were left out are told again: who resumes the work may not know
    /// of them.
    ///
    /// - Throws: ``LongDocumentError/checkpoint(reason:)`` if the file is damaged or belongs to different work; the error of a text that
    ///   was left out, if nobody is told.
    static func read(_ url: URL?, _ work: Work, _ notice: Notice?) throws -> Checkpoint {
        guard let url, FileManager.default.fileExists(atPath: url.path) else { return Checkpoint(work: work) }
        let stored: Checkpoint
        do {
            stored = try JSONDecoder().decode(Checkpoint.self, from: Data(contentsOf: url))
        } catch {
            throw LongDocumentError.checkpoint(reason: "\(url.path) is damaged.")
        }
        guard stored.work == work else { throw LongDocumentError.checkpoint(reason: "\(url.path) belongs to different work.") }
        for text in stored.rejected ?? [] {
            guard let notice else { throw text.error }
            notice(.rejected(.init(chunk: text.chunk, text: text.text, error: text.error)))
        }
        return stored
    }

    typealias Notice = @Sendable (LongDocument.Notice) -> Void

    /// Tells of a text that the model rejects, and goes on without it.
    ///
    /// - Throws: The error, if nobody is told, or if it does not concern this text alone.
    mutating func leaveOut(_ text: String, chunk: Int?, _ error: any Error, _ notice: Notice?) throws {
        guard let notice, let failure = error as? LanguageModelError, let left = Rejected(failure, chunk: chunk, text) else {
            throw error
        }
        rejected = (rejected ?? []) + [left]
        notice(.rejected(.init(chunk: chunk, text: text, error: failure)))
    }

    /// - Throws: The last error, if nothing is left because all texts were left out.
    func checkResult() throws {
        if parts.isEmpty, let last = rejected?.last { throw last.error }
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
