internal import Files
internal import Foundation

/// Why a file of keys and values cannot be written or used.
package enum CacheFileError: Error, Equatable, CustomStringConvertible {
    case unwritable(path: String, reason: String)
    /// The file is damaged, incomplete, or of another model.
    case unusable(path: String, reason: String)

    package var description: String {
        switch self {
        case .unwritable(let path, let reason): "Cannot write the cache file \(path): \(reason)."
        case .unusable(let path, let reason): "The cache file \(path) is not used: \(reason)."
        }
    }
}

/// A file with the contents of a KV cache, so that a later process need not compute them again.
///
/// The file has a header, what the rows are, the memory of the cache and a checksum of all of it, in the byte order of the machine.
/// It is written under a temporary name, synchronized and renamed: a process that is killed leaves no file that looks
/// complete. A file is used only if its checksum is right and it was written with the same model file.
struct CacheFile {
    let url: URL
    /// Identifies the model file and the adapter.
    let model: UInt64

    /// Increment whenever the format or the layout of keys and values changes.
    private static let version = 2
    private static let magic = 0x4543_4143_5645_594B

    /// Writes the contents of a cache that nobody changes meanwhile. Blocks until the data is on the disk.
    func write(_ cache: any SequenceMemory) throws(CacheFileError) {
        do {
            let file = try FileWriter(url.path, mode: 0o600)
            var checksum = Checksum()
            func append(_ bytes: UnsafeRawBufferPointer) throws {
                checksum.add(bytes)
                try file.write(bytes)
            }
            let (positions, rows) = (cache.checkpointPositions, cache.rows)
            let start = [Self.magic, Self.version, Int(truncatingIfNeeded: model)]
            let counts = [cache.capacity, rows.count, positions.count, rows.words.count]
            // The parts are those that are read.
            for words in [start + counts, cache.layout.words, positions, rows.words] {
                try words.withUnsafeBytes { try append($0) }
            }
            try rows.ids.withUnsafeBytes { try append($0) }
            try cache.forEachPart { try append(UnsafeRawBufferPointer($0)) }
            try withUnsafeBytes(of: checksum.value) { try append($0) }
            try file.finish()
        } catch {
            throw .unwritable(path: url.path, reason: (error as? FileError)?.reason ?? "\(error)")
        }
    }

    /// Reads the file into a new cache.
    ///
    /// - Parameter reserve: receives the bytes of its memory; nil if nobody counts them.
    /// - Throws: ``CacheFileError/unusable(path:reason:)``, ``ModelError/outOfMemory(bytes:)``, or an error of `reserve`.
    func read(
        for model: any TokenModel, format: CacheFormat = .binary16, adapter: LowRankAdapter? = nil,
        reserve: (Int) throws -> MemoryReservation? = { _ in nil }
    ) throws -> any SequenceMemory {
        let file: SourceFile
        do { file = try SourceFile(path: url.path) } catch { throw unusable(error) }
        var offset = 0
        var checksum = Checksum()
        func fill(_ buffer: UnsafeMutableRawBufferPointer) throws {
            guard buffer.count <= file.size - offset else { throw unusable("it is incomplete") }
            do { try file.read(into: buffer, at: offset) } catch { throw unusable(error) }
            offset += buffer.count
            checksum.add(UnsafeRawBufferPointer(buffer))
        }
        func words(_ count: Int) throws -> [Int] {
            var words = [Int](repeating: 0, count: count)
            try words.withUnsafeMutableBytes { try fill($0) }
            return words
        }
        let start = try words(7)
        guard start[0] == Self.magic, start[1] == Self.version else { throw unusable("it has another format") }
        guard start[2] == Int(truncatingIfNeeded: self.model) else { throw unusable("it was written with another model") }
        let (capacity, count, checkpoints, rowWordCount) = (start[3], start[4], start[5], start[6])
        guard capacity > 0, capacity <= model.limits.contextLength + 16, count > 0, count <= capacity,
            (0...KVCache.maximumCheckpoints).contains(checkpoints), (0...InputRows.maximumWords(count)).contains(rowWordCount)
        else { throw unusable("its sizes are not possible") }
        let cache = try model.makeMemory(capacity: capacity, format: format, adapter: adapter)
        let layout = cache.layout.words
        guard cache.capacity == capacity, try words(layout.count) == layout else {
            throw unusable("its sizes are not those of the model")
        }
        let positions = try words(checkpoints)
        guard positions.allSatisfy({ (0...count).contains($0) }), zip(positions, positions.dropFirst()).allSatisfy(<) else {
            throw unusable("its sizes are not possible")
        }
        let rowWords = try words(rowWordCount)
        var tokens = [TokenID](repeating: 0, count: count)
        try tokens.withUnsafeMutableBytes { try fill($0) }
        guard tokens.allSatisfy({ (InputRows.embedded..<TokenID(model.limits.vocabularySize)).contains($0) }) else {
            throw unusable("it is damaged")
        }
        guard let rows = InputRows(ids: tokens, words: rowWords), positions.allSatisfy({ rows.undivided($0) == $0 }) else {
            throw unusable("it is damaged")
        }
        try cache.begin(rows, checkpoints: positions, reserve: reserve)
        try cache.forEachPart { try fill($0) }
        let expected = checksum.value
        guard try words(1) == [Int(truncatingIfNeeded: expected)], offset == file.size else { throw unusable("it is damaged") }
        return cache
    }

    private func unusable(_ reason: String) -> CacheFileError { .unusable(path: url.path, reason: reason) }

    private func unusable(_ error: ModelError) -> CacheFileError {
        if case .unreadable(_, let reason) = error { unusable(reason) } else { unusable("\(error)") }
    }
}

/// A checksum that recognizes accidental damage, eight bytes at a time.
private struct Checksum {
    private var state: UInt64 = 0x9E37_79B9_7F4A_7C15

    /// Equal bytes have equal checksums only if they were added in the same parts.
    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        var hash = state
        let whole = bytes.count / 8 * 8
        for offset in stride(from: 0, to: whole, by: 8) {
            hash = (hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) &* 0xFF51_AFD7_ED55_8CCD
            hash ^= hash >> 32
        }
        for byte in bytes[whole...] { hash = (hash ^ UInt64(byte)) &* 0xFF51_AFD7_ED55_8CCD }
        state = hash ^ UInt64(bytes.count)
    }

    var value: UInt64 { state }
}
