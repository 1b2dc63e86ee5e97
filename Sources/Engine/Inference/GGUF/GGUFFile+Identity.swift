internal import Files
internal import Foundation

/// Whether a file is the same as before, without reading it.
extension GGUFFile {
    /// A hash of the size, modification time and inode of each file of a model: of those that were opened, even if others have replaced
    /// them since.
    var identity: UInt64 { Self.identity(of: [source.state] + laterShards.map(\.source.state)) }

    /// The same for the files that are at some paths now; nil if a file cannot be examined.
    static func identity(of paths: [String]) -> UInt64? {
        var states: [[UInt64]] = []
        for path in paths {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            states.append(state(status))
        }
        return identity(of: states)
    }

    private static func identity(of states: [[UInt64]]) -> UInt64 { Array(states.joined()).withUnsafeBytes { FNV.hash($0) } }

    static func state(_ status: stat) -> [UInt64] {
        [
            UInt64(status.st_size), UInt64(bitPattern: Int64(status.st_mtim.tv_sec)),
            UInt64(bitPattern: Int64(status.st_mtim.tv_nsec)), UInt64(status.st_ino),
        ]
    }

    /// The identity of a model's files, without reading them; nil if one cannot be examined.
    package static func identity(ofModel path: String) -> UInt64? { identity(of: ShardName(path)?.all ?? [path]) }

    /// Identifies the contents of a model: the size, metadata and samples of the data of all its files. Copies of a model have the
    /// same fingerprint.
    package func fingerprint() throws(ModelError) -> String {
        var state = try samples(after: FNV.empty)
        for shard in laterShards { state = try shard.samples(after: state) }
        return String(state ^ UInt64(size), radix: 16)
    }

    /// The hash of the beginning of this file and of samples of the rest.
    private func samples(after start: UInt64) throws(ModelError) -> UInt64 {
        let samples = 64
        let length = min(source.size, 4096)
        var state = FNV.hash(header.bytes.prefix(1 << 20), after: start)
        for index in 0..<samples {
            var sample = [UInt8](repeating: 0, count: length)
            try sample.withUnsafeMutableBufferPointer { buffer throws(ModelError) in
                try source.read(into: UnsafeMutableRawBufferPointer(buffer), at: (source.size - length) / samples * index)
            }
            state = FNV.hash(sample, after: state)
        }
        return state
    }
}
