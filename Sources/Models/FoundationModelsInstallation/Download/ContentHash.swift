internal import Foundation
internal import SHA256

/// SHA-256 of contents that come in parts.
struct ContentHash: Sendable {
    private var context = sha256_context()

    init() { sha256_begin(&context) }

    mutating func add(_ bytes: UnsafeRawBufferPointer) { sha256_add(&context, bytes.baseAddress, bytes.count) }

    /// The hash of what was added so far, in hexadecimal.
    var text: String {
        var end = context
        var digest = [UInt8](repeating: 0, count: 32)
        sha256_end(&end, &digest)
        return digest.map { byte in
            let text = String(byte, radix: 16)
            return byte < 16 ? "0" + text : text
        }.joined()
    }

    /// Reads the beginning of a file. Takes long for large files.
    ///
    /// - Parameters:
    ///   - limit: How many bytes to read at most.
    ///   - visit: Called with the number of bytes that were read so far.
    /// - Returns: The number of bytes that were read.
    mutating func add(_ file: URL, limit: Int = .max, visit: (Int) throws -> Void) throws -> Int {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }  // nothing was written to it
        var count = 0
        while count < limit, let data = try handle.read(upToCount: min(1 << 20, limit - count)), !data.isEmpty {
            data.withUnsafeBytes { add($0) }
            count += data.count
            try visit(count)
        }
        return count
    }
}
