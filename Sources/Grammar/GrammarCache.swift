internal import Dispatch
internal import Synchronization

/// Compiled grammars by what they were made of: asking twice for the same one compiles it once.
package final class GrammarCache: Sendable {
    package static let shared = GrammarCache(capacity: 32)

    private struct Key: Hashable {
        var source: [UInt8]
        var options: GrammarOptions
        var vocabulary: ObjectIdentifier
    }

    private struct Entry {
        var task: Task<Grammar, any Error>
        var lastUse: Int
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var uses = 0
    }

    private let state = Mutex(State())
    private let capacity: Int

    /// - Parameter capacity: Grammars to keep; those that were not used for longest go first.
    package init(capacity: Int) { self.capacity = capacity }

    /// The grammar, compiled now if it is not known. Compiling takes a thread of its own, not one that tasks share.
    ///
    /// - Throws: ``SchemaError``.
    package func grammar(
        _ source: GrammarSource, vocabulary: TokenVocabulary, options: GrammarOptions = GrammarOptions()
    ) async throws -> Grammar {
        let key = Key(source: source.bytes, options: options, vocabulary: ObjectIdentifier(vocabulary))
        let task = state.withLock { state -> Task<Grammar, any Error> in
            state.uses += 1
            if var entry = state.entries[key] {
                entry.lastUse = state.uses
                state.entries[key] = entry
                return entry.task
            }
            let task = Task.detached { try await Self.compile(source, vocabulary, options) }
            state.entries[key] = Entry(task: task, lastUse: state.uses)
            if state.entries.count > capacity, let oldest = state.entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
                state.entries[oldest.key] = nil
            }
            return task
        }
        do { return try await task.value } catch {
            // Errors are cheap to find again and not worth a place.
            state.withLock { if $0.entries[key]?.task == task { $0.entries[key] = nil } }
            throw error
        }
    }

    private static func compile(
        _ source: GrammarSource, _ vocabulary: TokenVocabulary, _ options: GrammarOptions
    ) async throws -> Grammar {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try Grammar(source, vocabulary: vocabulary, options: options) })
            }
        }
    }
}
