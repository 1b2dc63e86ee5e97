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
        guard let identity = identity(with: adapter) else { return 0 }
        let found = try memory.withLongestPrefix(
            of: InputRows(tokens), model: contents, user: ObjectIdentifier(engine), where: { $0.isOf(format, adapter) }
        ) { cache, count throws(ModelError) in
            // The copy shares the pages, so that the sequence can be used again immediately.
            let copy = try model.makeMemory(capacity: cache.capacity, format: format, adapter: adapter)
            let bytes = copy.bytesToCopy(count)
            guard let room = memory.reserve(bytes) else { throw .outOfMemory(bytes: bytes) }
            try copy.copyPrefix(of: cache, count: count, in: room)
            return copy
        }
        guard let found, !found.tokens.isEmpty else { return 0 }
        nonisolated(unsafe) let copy = found  // nobody else knows it
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
        return try await EngineExecutor().run { [memory, contents] in
            do {
                let cache = try file.read(for: model, format: format, adapter: adapter) { bytes in
                    guard let room = memory.reserve(bytes) else { throw NoRoom() }
                    return room
                }
                memory.keep(cache, model: contents)
                return cache.tokens.count
            } catch is NoRoom {
                return 0
            }
        }
    }

    /// The cache of a file is larger than what can be kept.
    private struct NoRoom: Error {}

    private nonisolated func identity(with adapter: LowRankAdapter?) -> UInt64? {
        identity.map { $0 &* 31 &+ (adapter?.identity ?? 0) }
    }
}
