public import Foundation
import Logging

/// Stores conversations in a database: every turn, verbatim, whether or not it is still in a context.
///
/// Written data survives when the process is killed. A turn is written before it is sent to the model and again when it
/// is answered, so that at most the answer in progress is lost. Each turn has a checksum: a damaged turn is reported
/// and left out, and all others stay usable; a table or an index of which a page is damaged is replaced by one with everything that
/// can be read. Several processes may use one archive and take turns in one conversation.
///
/// The database is SQLite, which needs the trait `SQLite` of this package. The product `FoundationModelsPostgreSQL` opens archives on a
/// PostgreSQL server, which many machines may use.
public final class ConversationArchive: Sendable {
    let store: any ArchiveStore
    /// The vectors of conversations that were searched by meaning.
    let vectors = VectorMemory()
    /// Whether the archive was opened for reading only.
    public var isReadOnly: Bool { store.isReadOnly }

    /// Creates an archive in memory.
    ///
    /// - Throws: ``ConversationError/archive(_:)`` if the package was built without the trait `SQLite`.
    public convenience init() throws {
        #if SQLite
        self.init(store: try SQLiteArchiveStore())
        #else
        throw Self.withoutSQLite
        #endif
    }

    /// Opens the archive in a file. The file is created if it does not exist.
    ///
    /// - Parameter isReadOnly: Opens a file that must not or cannot be changed, such as one on a read-only disk. Its
    ///   conversations can be read but not continued.
    /// - Throws: ``ConversationError/archive(_:)`` if the file cannot be used or is not an archive, or if the package was built without
    ///   the trait `SQLite`.
    public convenience init(url: URL, isReadOnly: Bool = false) throws {
        #if SQLite
        self.init(store: try SQLiteArchiveStore(url: url, isReadOnly: isReadOnly, maximumPageCount: nil))
        #else
        throw Self.withoutSQLite
        #endif
    }

    #if !SQLite
    private static var withoutSQLite: ConversationError {
        var failure = ConversationError.ArchiveFailure("this program was built without SQLite.")
        failure.advice = "Build it with the trait SQLite of swift-foundation-models."
        return .archive(failure)
    }
    #endif

    /// Opens the archive in another database.
    package init(store: any ArchiveStore) { self.store = store }

    /// A conversation in the archive.
    public struct Summary: Sendable, Codable, Identifiable {
        public var id: String
        /// When the conversation began.
        public var created: Date
        /// The first 80 characters of its first prompt.
        public var title: String
        /// Number of answered turns.
        public var turnCount: Int

        package init(id: String, created: Date, title: String, turnCount: Int) {
            self.id = id
            self.created = created
            self.title = title
            self.turnCount = turnCount
        }
    }

    /// All conversations, newest first.
    public func conversations() throws -> [Summary] { try store.conversations() }

    /// All turns of a conversation that can be read, oldest first, answered or not. Turns that cannot be read are left
    /// out; see ``damage(in:)``.
    public func turns(of conversation: String) throws -> [Turn] { try turns(of: conversation, from: .min).turns }

    /// The parts of a conversation that cannot be read. This reads all of its turns.
    public func damage(in conversation: String) throws -> [Damage] {
        let context = try context(of: conversation)?.damage.map { [$0] } ?? []
        return context + (try turns(of: conversation, from: .min).damage)
    }

    /// The compactions of a conversation, oldest first. Records that cannot be read are left out: they are for
    /// information only.
    public func compactions(of conversation: String) throws -> [Compaction] {
        try store.compactions(of: conversation).compactMap { record in
            try? JSONDecoder().decode(Compaction.self, from: record)  // see above
        }
    }

    /// Deletes a conversation: its turns, its context, its vectors and the file with the model's computations. A program that
    /// continues it at this moment gets an error with its next prompt.
    ///
    /// Does nothing if there is no such conversation. The thread waits for the database.
    /// - Throws: ``ConversationError/archive(_:)`` if it cannot be deleted.
    public func delete(_ conversation: String) throws {
        try writable().remove(conversation)
        vectors.forget(conversation)
        guard let file = cacheFile(of: conversation) else { return }
        do { try FileManager.default.removeItem(at: file) } catch CocoaError.fileNoSuchFile {
            // Nothing was written for it.
        } catch {
            Logger.contextKit.warning("The model's computations of a removed conversation cannot be removed: \(error)")
        }
    }

    /// Copies a conversation to another archive, for example one in memory to a file. Turns that cannot be read are left out.
    ///
    /// The thread waits for both databases.
    /// - Throws: ``ConversationError/archive(_:)`` if the conversation does not exist, if the other archive has one of this name, or
    ///   if something cannot be read or written; then nothing is left in the other archive.
    public func copy(_ conversation: String, to other: ConversationArchive, as name: String) throws {
        guard let stored = try context(of: conversation) else {
            throw ConversationError.archive(.init("there is no conversation “\(conversation)”."))
        }
        guard try other.begin(name, stored.context) else {
            throw ConversationError.archive(.init("there is a conversation “\(name)” already."))
        }
        do {
            for turn in try turns(of: conversation) {
                guard try other.recordPrompt(turn.prompt, number: turn.number, date: turn.date, in: name) else {
                    throw ConversationError.archive(.init("another program writes to the conversation “\(name)”."))
                }
                if !turn.entries.isEmpty { try other.recordAnswer(turn, in: name) }
            }
            _ = try other.save(stored.context, compactions(of: conversation), revision: 0, in: name)
        } catch {
            let failure = error
            do { try other.delete(name) } catch {
                Logger.contextKit.warning("The incomplete copy “\(name)” of a conversation cannot be removed: \(error)")
            }
            throw failure
        }
    }

    /// The store, if it can be written.
    func writable() throws -> any ArchiveStore {
        if isReadOnly { throw ConversationError.archive(.init("the archive was opened for reading only.")) }
        return store
    }
}
