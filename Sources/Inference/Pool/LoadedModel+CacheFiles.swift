package import Foundation

/// Files with the keys and values of the model's sequences.
extension LoadedModel {
    /// Writes the keys and values of the longest prefix of `tokens` that any sequence of the model has in its cache. Other
    /// requests are processed meanwhile.
    ///
    /// - Returns: the number of tokens of this prefix; 0 if there is none, and then no file is written.
    /// - Throws: ``CacheFileError``, or ``ModelError/outOfMemory(bytes:)``.
    package func writeCache(
        for tokens: [TokenID], format: CacheFormat = .binary16, adapter: LowRankAdapter? = nil, to url: URL
    ) async throws -> Int {
        guard let identity = identity(with: adapter),
            let (cache, count) = caches.longestPrefix(of: tokens, where: { $0.isOf(format, adapter) })
        else { return 0 }
        // The copy shares the pages, so that the sequence can be used again immediately.
        nonisolated(unsafe) let copy = try model.makeMemory(capacity: cache.capacity, format: format, adapter: adapter)
        try copy.copyPrefix(of: cache, count: count)
        if copy.tokens.isEmpty { return 0 }
        let file = CacheFile(url: url, model: identity)
        // Waiting for the disk must block neither the engine nor a thread of the cooperative pool.
        return try await EngineExecutor().run {
            try file.write(copy)
            return copy.tokens.count
        }
    }

    /// Reads the keys and values of a file, for the next sequence whose tokens begin in the same way.
    ///
    /// - Returns: the number of tokens; 0 if the cache is larger than all that are kept without a sequence.
    /// - Throws: ``CacheFileError`` if the file is damaged or was written with another model, or
    ///   ``ModelError/outOfMemory(bytes:)``.
    package nonisolated func readCache(
        from url: URL, format: CacheFormat = .binary16, adapter: LowRankAdapter? = nil
    ) async throws -> Int {
        guard let identity = identity(with: adapter) else { return 0 }
        let file = CacheFile(url: url, model: identity)
        nonisolated(unsafe) let model = model
        return try await EngineExecutor().run { [caches] in
            let cache = try file.read(for: model, format: format, adapter: adapter)
            return caches.release(cache) ? cache.tokens.count : 0
        }
    }

    private nonisolated func identity(with adapter: LowRankAdapter?) -> UInt64? {
        identity.map { $0 &* 31 &+ (adapter?.identity ?? 0) }
    }
}
