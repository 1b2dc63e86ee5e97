internal import Waiting
import Embeddings
import Foundation
import Synchronization
import TextSearch

/// The vectors of an archive's conversations that were searched last, in memory.
final class VectorMemory: Sendable {
    /// Held while vectors are computed.
    let lock = AsyncLock()

    private struct Key: Hashable {
        /// Not the identifier: a conversation that was removed and begun again has another number.
        var conversation: Int64
        var model: String
    }

    private struct Entry {
        var table: VectorTable
        var lastRow: Int64 = 0
        var lastUse = 0
    }

    /// The name of the vectors of a model in the archive. The number counts the ways in which turns are cut into parts.
    static func name(_ info: EmbeddingModelInfo) -> String { "\(info.identifier)#2" }

    // The key of a vector is the turn's number, a bit for the side, and seven bits for the part; part 0 is the whole.

    /// Twice the turn's number, plus 1 for the model's side.
    static func utterance(of key: Int64) -> Int { Int(key >> 7) }
    static func isWhole(_ key: Int64) -> Bool { key & 0x7F == 0 }

    private static func key(_ turn: Int, part: Int, ofUser count: Int) -> Int64 {
        Int64(turn) << 8 | Int64(part < count ? part : 0x80 | (part - count))
    }

    /// The maximum number of conversations. A long one takes some megabytes.
    private static let maximumEntries = 16

    private let entries = Mutex<(entries: [Key: Entry], uses: Int)>(([:], 0))

    private static let maximumPrepared = 4_096
    private struct PreparedKey: Hashable { var conversation: String, model: String }
    private let prepared = Mutex<[PreparedKey: Int]>([:])

    /// All answered turns before this one have vectors, so that a search for turns without vectors need not read a long conversation
    /// after each answer.
    func firstUnprepared(in conversation: String, model: String) -> Int {
        prepared.withLock { $0[PreparedKey(conversation: conversation, model: model)] ?? 0 }
    }

    func setFirstUnprepared(_ number: Int, in conversation: String, model: String) {
        prepared.withLock { state in
            // Without an entry, a search for turns without vectors reads the conversation once more.
            if state.count >= Self.maximumPrepared { state = [:] }
            state[PreparedKey(conversation: conversation, model: model)] = max(0, number)
        }
    }

    /// Forgets what is known of a conversation that was deleted: another one may get its name.
    func forget(_ conversation: String) {
        prepared.withLock { state in
            for key in state.keys where key.conversation == conversation { state[key] = nil }
        }
    }

    /// All vectors of a conversation. Only those that are new since the last search are read.
    func table(of conversation: String, in archive: ConversationArchive, _ info: EmbeddingModelInfo) throws -> VectorTable {
        guard let number = try archive.store.number(of: conversation) else { return VectorTable(dimension: info.dimension) }
        let key = Key(conversation: number, model: Self.name(info))
        // Taken out while rows are added, so that the table is not copied and others need not wait. If two searches of one
        // conversation do this at the same time, the second reads all rows.
        var entry =
            entries.withLock { $0.entries.removeValue(forKey: key) } ?? Entry(table: VectorTable(dimension: info.dimension))
        let size = info.dimension + 4
        for record in try archive.vectors(in: conversation, model: Self.name(info), after: entry.lastRow) {
            record.vectors.withUnsafeBytes { bytes in
                // Damaged data is ignored: the turn is still found by its words.
                guard let ofUser = bytes.first, ofUser < 0x80 else { return }
                for part in 0..<min(0x80 + Int(ofUser), (bytes.count - 1) / size) {
                    _ = entry.table.append(
                        Self.key(record.turn, part: part, ofUser: Int(ofUser)),
                        encoded: UnsafeRawBufferPointer(rebasing: bytes[1 + part * size..<1 + (part + 1) * size]))
                }
            }
            entry.lastRow = record.row
        }
        entries.withLock { state in
            state.uses += 1
            entry.lastUse = state.uses
            state.entries[key] = entry
            if state.entries.count > Self.maximumEntries,
                let oldest = state.entries.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                state.entries[oldest.key] = nil
            }
        }
        return entry.table
    }
}
