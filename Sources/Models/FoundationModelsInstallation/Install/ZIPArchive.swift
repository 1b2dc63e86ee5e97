internal import CZlib
internal import Foundation

/// Reads members of a ZIP archive, such as a Python wheel. The archive is not trusted: all positions and sizes are checked, and names of
/// members are compared, never used as paths.
///
/// Format: PKWARE, APPNOTE.TXT; members are stored or deflated, also with the 64-bit fields.
final class ZIPArchive {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private struct Member {
        var method: Int
        var compressedSize: Int
        var size: Int
        var checksum: UInt32
        var offset: Int
    }

    private let handle: FileHandle
    private let size: Int
    private let directory: [UInt8]
    private let directoryOffset: Int

    /// The directory of a wheel is much smaller.
    private static let maximumDirectoryBytes = 64 << 20

    init(_ url: URL) throws {
        let handle = try FileHandle(forReadingFrom: url)
        let size = Int(try handle.seekToEnd())
        (self.handle, self.size) = (handle, size)
        // The end of the directory is followed by a comment of at most 65,535 bytes.
        let tail = try Self.read(handle, size, from: max(0, size - 65_557), count: min(size, 65_557))
        guard
            let end = stride(from: tail.count - 22, through: 0, by: -1).first(where: {
                tail.number(4, at: $0) == 0x0605_4B50 && $0 + 22 + tail.number(2, at: $0 + 20) == tail.count
            })
        else { throw Failure(description: "it is no ZIP archive") }
        var (count, offset) = (tail.number(4, at: end + 12), tail.number(4, at: end + 16))
        let locator = size - tail.count + end - 20
        if offset == 0xFFFF_FFFF || count == 0xFFFF_FFFF, locator >= 0 {
            let place = try Self.read(handle, size, from: locator, count: 20)
            guard place.number(4, at: 0) == 0x0706_4B50 else { throw Self.damaged }
            let record = try Self.read(handle, size, from: place.number(8, at: 8), count: 56)
            guard record.number(4, at: 0) == 0x0606_4B50 else { throw Self.damaged }
            (count, offset) = (record.number(8, at: 40), record.number(8, at: 48))
        }
        guard (0...Self.maximumDirectoryBytes).contains(count) else { throw Self.damaged }
        directory = try Self.read(handle, size, from: offset, count: count)
        directoryOffset = offset
    }

    deinit { try? handle.close() }  // nothing was written to it

    private static var damaged: Failure { Failure(description: "the archive is damaged") }

    private static func read(_ handle: FileHandle, _ size: Int, from offset: Int, count: Int) throws -> [UInt8] {
        guard offset >= 0, count >= 0, offset <= size, count <= size - offset else { throw damaged }
        try handle.seek(toOffset: UInt64(offset))
        let data = try handle.read(upToCount: count) ?? Data()
        guard data.count == count else { throw damaged }
        return Array(data)
    }

    /// Reads a member.
    ///
    /// - Parameter receive: Called with the parts of its contents, which are complete and correct only if this function returns.
    func extract(_ name: String, receive: (UnsafeRawBufferPointer) throws -> Void) throws {
        let member = try member(name)
        let header = try Self.read(handle, size, from: member.offset, count: 30)
        guard header.number(4, at: 0) == 0x0403_4B50 else { throw Self.damaged }
        let start = member.offset + 30 + header.number(2, at: 26) + header.number(2, at: 28)
        guard start <= directoryOffset, member.compressedSize <= directoryOffset - start else { throw Self.damaged }
        var checksum = crc32(0, nil, 0)
        var count = 0
        func pass(_ bytes: UnsafeRawBufferPointer) throws {
            count += bytes.count
            guard count <= member.size else { throw Self.damaged }
            checksum = crc32(checksum, bytes.bindMemory(to: UInt8.self).baseAddress, UInt32(bytes.count))
            if !bytes.isEmpty { try receive(bytes) }
        }
        switch member.method {
        case 0: try forEachPart(from: start, count: member.compressedSize) { try pass($0) }
        case 8: try inflate(from: start, count: member.compressedSize, pass: pass)
        default: throw Failure(description: "the archive has an unknown compression")
        }
        guard count == member.size, UInt32(truncatingIfNeeded: checksum) == member.checksum else { throw Self.damaged }
    }

    private func member(_ name: String) throws -> Member {
        var position = 0
        while position + 46 <= directory.count, directory.number(4, at: position) == 0x0201_4B50 {
            let nameLength = directory.number(2, at: position + 28)
            let extraLength = directory.number(2, at: position + 30)
            let next = position + 46 + nameLength + extraLength + directory.number(2, at: position + 32)
            guard next <= directory.count else { throw Self.damaged }
            if directory[position + 46..<position + 46 + nameLength].elementsEqual(name.utf8) {
                guard directory.number(2, at: position + 8) & 1 == 0 else {
                    throw Failure(description: "the archive is encrypted")
                }
                var member = Member(
                    method: directory.number(2, at: position + 10), compressedSize: directory.number(4, at: position + 20),
                    size: directory.number(4, at: position + 24), checksum: UInt32(directory.number(4, at: position + 16)),
                    offset: directory.number(4, at: position + 42))
                let extra = position + 46 + nameLength
                try widen(&member, Array(directory[extra..<extra + extraLength]))
                guard member.size >= 0, member.compressedSize >= 0, member.offset >= 0 else { throw Self.damaged }
                return member
            }
            position = next
        }
        throw Failure(description: "the archive has no \(name)")
    }

    /// Reads the 64-bit values of a member, which are in this order, and there only for fields that are too small.
    private func widen(_ member: inout Member, _ extra: [UInt8]) throws {
        var position = 0
        while position + 4 <= extra.count {
            let end = position + 4 + extra.number(2, at: position + 2)
            guard end <= extra.count else { throw Self.damaged }
            if extra.number(2, at: position) == 1 {
                var field = position + 4
                func next(_ value: Int) throws -> Int {
                    guard value == 0xFFFF_FFFF else { return value }
                    guard field + 8 <= end else { throw Self.damaged }
                    defer { field += 8 }
                    return extra.number(8, at: field)
                }
                member.size = try next(member.size)
                member.compressedSize = try next(member.compressedSize)
                member.offset = try next(member.offset)
            }
            position = end
        }
    }

    private func forEachPart(from start: Int, count: Int, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var done = 0
        while done < count {
            let part = try Self.read(handle, size, from: start + done, count: min(1 << 20, count - done))
            try part.withUnsafeBytes { try body($0) }
            done += part.count
        }
    }

    private func inflate(from start: Int, count: Int, pass: (UnsafeRawBufferPointer) throws -> Void) throws {
        var stream = z_stream()
        // Negative: the data has no header of zlib.
        guard inflateInit2_(&stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw Failure(description: "there is not enough memory")
        }
        defer { inflateEnd(&stream) }
        var output = [UInt8](repeating: 0, count: 1 << 18)
        var status = Z_OK
        try forEachPart(from: start, count: count) { part in
            guard status == Z_OK else { throw Self.damaged }
            stream.next_in = UnsafeMutablePointer(mutating: part.bindMemory(to: UInt8.self).baseAddress)
            stream.avail_in = UInt32(part.count)
            repeat {
                let produced = output.withUnsafeMutableBufferPointer { buffer in
                    stream.next_out = buffer.baseAddress
                    stream.avail_out = UInt32(buffer.count)
                    status = CZlib.inflate(&stream, Z_NO_FLUSH)
                    return buffer.count - Int(stream.avail_out)
                }
                guard status == Z_OK || status == Z_STREAM_END || (status == Z_BUF_ERROR && stream.avail_in == 0) else {
                    throw Self.damaged
                }
                try output.withUnsafeBytes { try pass(UnsafeRawBufferPointer(rebasing: $0[..<produced])) }
            } while status == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0)
            if status == Z_BUF_ERROR { status = Z_OK }
        }
        guard status == Z_STREAM_END else { throw Self.damaged }
    }
}

extension [UInt8] {
    /// An unsigned number of little-endian bytes, which must be there; -1 if it is too large.
    fileprivate func number(_ count: Int, at position: Int) -> Int {
        let value = self[position..<position + count].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(exactly: value) ?? -1
    }
}
