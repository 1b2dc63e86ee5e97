internal import AsyncLocks
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

    /// The maximum number of conversations. A long one takes some megabytes.
    private static let maximumEntries = 16

    private let entries = Mutex<(entries: [Key: Entry], uses: Int)>(([:], 0))

    private struct PreparedKey: Hashable { var conversation: String, model: String }
    private let prepared = Mutex<[PreparedKey: Int]>([:])

    /// All answered turns before this one have vectors, so that a search for turns without vectors need not read a long conversation
    /// after each answer.
    func firstUnprepared(in conversation: String, model: String) -> Int {
        prepared.withLock { $0[PreparedKey(conversation: conversation, model: model)] ?? 0 }
    }

    func setFirstUnprepared(_ number: Int, in conversation: String, model: String) {
        prepared.withLock { $0[PreparedKey(conversation: conversation, model: model)] = max(0, number) }
    }

    /// All vectors of a conversation. Only those that are new since the last search are read.
    func table(of conversation: String, in archive: ConversationArchive, _ info: EmbeddingModelInfo) throws -> VectorTable {
        guard let number = try archive.store.number(of: conversation) else { return VectorTable(dimension: info.dimension) }
        let key = Key(conversation: number, model: info.identifier)
        // Taken out while rows are added, so that the table is not copied and others need not wait. If two searches of one
        // conversation do this at the same time, the second reads all rows.
        var entry =
            entries.withLock { $0.entries.removeValue(forKey: key) } ?? Entry(table: VectorTable(dimension: info.dimension))
        let size = info.dimension + 4
        for record in try archive.vectors(in: conversation, model: info.identifier, after: entry.lastRow) {
            record.vectors.withUnsafeBytes { bytes in
                // Damaged data is ignored: the turn is still found by its words.
                for part in 0..<min(256, bytes.count / size) {
                    _ = entry.table.append(
                        Int64(record.turn) << 8 | Int64(part),
                        encoded: UnsafeRawBufferPointer(rebasing: bytes[part * size..<(part + 1) * size]))
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
