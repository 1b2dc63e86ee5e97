internal import AsyncLocks
internal import Synchronization

/// A cache of compiled grammars by source, options and vocabulary: equal requests compile a grammar once.
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

    /// - Parameter capacity: Maximum number of grammars; the least recently used one is removed first.
    package init(capacity: Int) { self.capacity = capacity }

    /// The cached grammar, compiled and prepared now if necessary. This runs on a dispatch queue, because it would block a
    /// thread of the Swift concurrency pool.
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
        do { return try await task.valueUnlessCancelled } catch let error as CancellationError {
            // Others may wait for the grammar.
            throw error
        } catch {
            // Do not cache errors: computing them again is cheap.
            state.withLock { if $0.entries[key]?.task == task { $0.entries[key] = nil } }
            throw error
        }
    }

    private static func compile(
        _ source: GrammarSource, _ vocabulary: TokenVocabulary, _ options: GrammarOptions
    ) async throws -> Grammar {
        try await onAnotherThread {
            let grammar = try Grammar(source, vocabulary: vocabulary, options: options)
            grammar.prepareMasks()
            return grammar
        }
    }
}
