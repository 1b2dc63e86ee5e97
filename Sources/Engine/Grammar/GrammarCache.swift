internal import Waiting
internal import Synchronization

/// A cache of compiled grammars of one vocabulary, by source and options: equal requests compile a grammar once.
package final class GrammarCache: Sendable {
    private struct Key: Hashable {
        var source: [UInt8]
        var options: GrammarOptions
    }

    private struct Entry {
        var task: Task<Grammar, any Error>
        /// The grammar, once it is there.
        var grammar: Grammar?
        var lastUse: Int
        /// Those who wait for it.
        var waiters = 0
        /// Approximate number of bytes of the grammar.
        var size = 0
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var uses = 0

        mutating func use(_ key: Key) -> Entry? {
            uses += 1
            // Compiled again on a thread where nobody waits for it but this request.
            if entries[key]?.grammar?.isWorn == true { entries[key] = nil }
            if let size = entries[key]?.grammar?.size { entries[key]?.size = size }
            entries[key]?.lastUse = uses
            return entries[key]
        }

        /// Keeps the compiled grammar of an entry. The least recently used others are removed if all of them are too large.
        mutating func keep(_ grammar: Grammar, _ key: Key, maximumBytes: Int) {
            entries[key]?.grammar = grammar
            entries[key]?.size = grammar.size ?? 0
            while entries.values.reduce(0, { $0 + $1.size }) > maximumBytes {
                let others = entries.filter { $0.key != key && $0.value.size > 0 }
                guard let oldest = others.min(by: { $0.value.lastUse < $1.value.lastUse }) else { return }
                entries[oldest.key] = nil
            }
        }

        /// Adds a grammar; the least recently used one is removed if there are too many.
        mutating func add(_ task: Task<Grammar, any Error>, _ key: Key, _ capacity: Int) {
            entries[key] = Entry(task: task, lastUse: uses)
            if entries.count > capacity, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
                entries[oldest.key] = nil
            }
        }
    }

    private let state = Mutex(State())
    private let capacity: Int
    private let maximumBytes: Int

    /// - Parameters:
    ///   - capacity: Maximum number of grammars; the least recently used one is removed first.
    ///   - maximumBytes: Maximum size of all of them, approximately. One grammar is kept, whatever its size.
    package init(capacity: Int, maximumBytes: Int = 512 << 20) { (self.capacity, self.maximumBytes) = (capacity, maximumBytes) }

    /// The cached grammar, compiled and prepared now if necessary; see ``SchemaCompiler``.
    ///
    /// - Throws: ``SchemaError``.
    package func grammar(
        _ source: GrammarSource, vocabulary: TokenVocabulary, options: GrammarOptions = GrammarOptions()
    ) async throws -> Grammar {
        try await grammar(source, vocabulary, options, isPrepared: true)
    }

    private func grammar(
        _ source: GrammarSource, _ vocabulary: TokenVocabulary, _ options: GrammarOptions, isPrepared: Bool
    ) async throws -> Grammar {
        let key = Key(source: source.bytes, options: options)
        let task = state.withLock { state -> Task<Grammar, any Error> in
            defer { state.entries[key]?.waiters += 1 }
            if let task = state.use(key)?.task { return task }
            let task = Task.detached { try await Self.compile(source, vocabulary, options, isPrepared) }
            state.add(task, key, capacity)
            return task
        }
        defer { state.withLock { if $0.entries[key]?.task == task { $0.entries[key]?.waiters -= 1 } } }
        do {
            let grammar = try await task.valueUnlessCancelled
            state.withLock { if $0.entries[key]?.task == task { $0.keep(grammar, key, maximumBytes: maximumBytes) } }
            return grammar
        } catch let error as CancellationError {
            // Nobody else may wait for the grammar: then nobody needs it.
            state.withLock { state in
                guard let entry = state.entries[key], entry.task == task, entry.waiters == 1, entry.grammar == nil else { return }
                entry.task.cancel()
                state.entries[key] = nil
            }
            throw error
        } catch {
            // Do not cache errors: computing them again is cheap.
            state.withLock { if $0.entries[key]?.task == task { $0.entries[key] = nil } }
            throw error
        }
    }

    /// The grammar, if it has been compiled already.
    package func known(_ source: GrammarSource, options: GrammarOptions = GrammarOptions()) -> Grammar? {
        state.withLock { $0.use(Key(source: source.bytes, options: options))?.grammar }
    }

    /// The same without preparing masks, which are computed when they are needed: for grammars that write a few tokens.
    ///
    /// - Throws: ``SchemaError``.
    package func unpreparedGrammar(
        _ source: GrammarSource, vocabulary: TokenVocabulary, options: GrammarOptions = GrammarOptions()
    ) async throws -> Grammar {
        try await grammar(source, vocabulary, options, isPrepared: false)
    }

    private static func compile(
        _ source: GrammarSource, _ vocabulary: TokenVocabulary, _ options: GrammarOptions, _ isPrepared: Bool
    ) async throws -> Grammar {
        let grammar = try await SchemaCompiler.run { (fuel) throws(SchemaError) in
            try Grammar(source, vocabulary: vocabulary, options: options, fuel: fuel)
        }
        if isPrepared { await onAnotherThread { grammar.prepareMasks() } }
        return grammar
    }
}
