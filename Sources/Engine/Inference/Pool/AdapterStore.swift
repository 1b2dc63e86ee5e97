internal import Synchronization

/// The adapters that are used beside the weights of models: each list of files is read once for each model. An adapter stays in memory while a
/// sequence uses it, and the one that was used last stays too.
final class AdapterStore: Sendable {
    /// An adapter belongs to the contents of a model, not to the model in memory: it is used again when the model was loaded again.
    private struct Key: Hashable {
        let model: UInt64
        let file: UInt64
    }

    private struct Loaded {
        weak var adapter: LowRankAdapter?
    }

    private struct State {
        var loaded: [Key: Loaded] = [:]
        /// The one that was used last, so that counting tokens does not read it again.
        var last: LowRankAdapter?
    }

    private let state = Mutex(State())

    /// An adapter for a model, from one file or several; read with `read` if it is not in memory.
    ///
    /// - Returns: nil if `read` returns nil.
    func adapter(
        paths: [String], model: UInt64, read: @escaping @Sendable () throws -> LowRankAdapter?
    ) async throws -> LowRankAdapter? {
        // A file that was replaced is read again: sequences continue with the one that they began with.
        if let file = GGUFFile.identity(of: paths),
            let known = state.withLock({ $0.loaded[Key(model: model, file: file)]?.adapter })
        {
            return keep(known)
        }
        guard let made = try await EngineExecutor().run(read) else { return nil }
        let key = Key(model: model, file: made.identity)
        return keep(
            state.withLock { state in
                state.loaded = state.loaded.filter { $0.value.adapter != nil }
                if let known = state.loaded[key]?.adapter { return known }
                state.loaded[key] = Loaded(adapter: made)
                return made
            })
    }

    /// Frees the adapter that was used last, unless a sequence uses it.
    func releaseLast() { keep(nil) }

    @discardableResult private func keep(_ adapter: LowRankAdapter?) -> LowRankAdapter? {
        let before = state.withLock { state in
            defer { state.last = adapter }
            return state.last
        }
        _ = before  // freed outside the lock
        return adapter
    }
}
