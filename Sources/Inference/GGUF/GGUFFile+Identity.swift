internal import Foundation

/// Whether a file is the same as before, without reading it.
extension GGUFFile {
    /// A hash of the size, modification time and inode of each file of a model; nil if a file cannot be examined.
    var identity: UInt64? { Self.identity(of: paths) }

    static func identity(of paths: [String]) -> UInt64? {
        var state: [UInt64] = []
        for path in paths {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            state += [
                UInt64(status.st_size), UInt64(bitPattern: Int64(status.st_mtim.tv_sec)),
                UInt64(bitPattern: Int64(status.st_mtim.tv_nsec)), UInt64(status.st_ino),
            ]
        }
        return state.withUnsafeBytes(hash)
    }

    /// The identity of a model's files, without reading them; nil if one cannot be examined.
    package static func identity(ofModel path: String) -> UInt64? { identity(of: ShardName(path)?.all ?? [path]) }

    /// FNV-1a.
    package static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// Identifies the contents of a model: its size, all metadata, and samples of its data. Copies of a file have the same
    /// fingerprint.
    package func fingerprint() throws(ModelError) -> String {
        let samples = 64
        let length = min(source.size, 4096)
        var bytes = [UInt8](header.bytes.prefix(1 << 20))
        for index in 0..<samples {
            var sample = [UInt8](repeating: 0, count: length)
            try sample.withUnsafeMutableBufferPointer { buffer throws(ModelError) in
                try source.read(into: UnsafeMutableRawBufferPointer(buffer), at: (source.size - length) / samples * index)
            }
            bytes += sample
        }
        return String(Self.hash(bytes) ^ UInt64(size), radix: 16)
    }
}
