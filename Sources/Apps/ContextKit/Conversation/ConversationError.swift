public import Foundation

#if SQLite
import GRDB
#endif

/// An error of a conversation. Unless stated otherwise, the conversation has not changed.
public enum ConversationError: LocalizedError {
    /// The prompt does not fit, even into a context with only the instructions and pinned facts.
    case promptTooLarge(PromptTooLarge)
    /// An attachment of the prompt cannot be read, or is too large for the archive. Nothing was sent.
    case attachment(AttachmentFailure)
    /// The archive cannot be read or written.
    case archive(ArchiveFailure)

    /// The prompt was answered, but the answer could not be written to the archive. The conversation keeps it in memory
    /// and writes it with the next turn. It is lost if the program ends before that.
    case unsaved(UnsavedAnswer)

    /// An answer that is in the conversation and not in the archive.
    public struct UnsavedAnswer: Sendable {
        /// The model's text.
        public var content: String
        /// Why it could not be written.
        public var reason: String
    }

    /// The token counts of a prompt that is too large.
    public struct PromptTooLarge: Sendable {
        /// Size of the window in tokens.
        public var contextSize: Int
        /// Tokens of instructions, tools and pinned facts.
        public var fixedTokens: Int
        /// Tokens of the prompt, including its schema.
        public var promptTokens: Int
        /// Tokens reserved for the response.
        public var responseReserve: Int

        /// Number of tokens above the limit.
        public var excess: Int { fixedTokens + promptTokens + responseReserve - contextSize }
    }

    /// What is wrong with an attachment.
    public struct AttachmentFailure: Sendable {
        /// The label of the attachment; nil if it has none.
        public var label: String?
        /// Why it cannot be used.
        public var reason: String
    }

    /// What is wrong with the archive.
    public struct ArchiveFailure: Sendable {
        /// The error message of the database.
        public var reason: String

        /// Whether the file is damaged, as opposed to locked or on a full disk. For a damaged index, SQLite also
        /// reports that the table cannot be constructed (`SQLITE_ERROR`, which is not specific) or that a row already
        /// exists (`SQLITE_CONSTRAINT`).
        let isDamage: Bool
        /// Whether there is no space left on the disk.
        let isFull: Bool
        /// What can be done; nil for what helps with most archives.
        var advice: String?

        init(_ error: any Error) {
            #if SQLite
            if let error = error as? DatabaseError {
                let code = error.resultCode.primaryResultCode
                reason = error.message ?? "\(error)"
                isDamage = code == .SQLITE_CORRUPT || code == .SQLITE_ERROR || code == .SQLITE_CONSTRAINT
                isFull = code == .SQLITE_FULL
                return
            }
            #endif
            (reason, isDamage, isFull) = ("\(error)", false, false)
        }

        package init(_ reason: String) { (self.reason, isDamage, isFull) = (reason, false, false) }
    }

    init(archive error: any Error) { self = error as? ConversationError ?? .archive(.init(error)) }

    public var errorDescription: String? {
        switch self {
        case .promptTooLarge(let size):
            """
            The prompt has \(size.promptTokens) tokens. With \(size.fixedTokens) for instructions, tools and pinned facts, and \
            \(size.responseReserve) kept for the response, that is \(size.excess) more than the window of \(size.contextSize).
            """
        case .attachment(let failure):
            "The attachment\(failure.label.map { " “\($0)”" } ?? "") cannot be sent: \(failure.reason)"
        case .archive(let failure): "The conversation cannot be saved or read: \(failure.reason)"
        case .unsaved(let answer): "The answer could not be saved: \(answer.reason)"
        }
    }

    public var recoverySuggestion: String? {
        switch self {
        case .promptTooLarge(let size):
            "Shorten the prompt by \(size.excess) tokens, split it (LongDocument), or leave out tools and pinned facts."
        case .attachment: "Attach a file that exists and can be read, or a smaller one."
        case .unsaved: "Free some disk space and go on: the answer is kept in memory and saved with the next one."
        case .archive(let failure):
            failure.advice
                ?? "Free some disk space, or check that the file or server is available and may be written; an archive that may only be read is opened with isReadOnly."
        }
    }
}
