/// Reads little-endian fields sequentially; throws ``ModelError/truncated(field:offset:)`` at the end of the file.
struct GGUFReader {
    let bytes: UnsafeRawBufferPointer
    private(set) var offset = 0
    /// The file whose bytes are read from the disk when they are needed; nil if all are in memory.
    private let header: FileHeader?
    /// The number of bytes that are in memory.
    private var available: Int

    init(bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        header = nil
        available = bytes.count
    }

    init(header: FileHeader) {
        bytes = header.bytes
        self.header = header
        available = 0
    }

    var remaining: Int { bytes.count - offset }

    mutating func bytes(_ count: Int, field: @autoclosure () -> String) throws(ModelError) -> UnsafeRawBufferPointer {
        guard count >= 0, count <= remaining else { throw .truncated(field: field(), offset: bytes.count) }
        if offset + count > available { try load(upTo: offset + count) }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    }

    private mutating func load(upTo end: Int) throws(ModelError) {
        guard let header else { return }
        available = try header.load(upTo: end)
    }

    mutating func integer<Value: FixedWidthInteger>(
        _ type: Value.Type, field: @autoclosure () -> String
    ) throws(ModelError) -> Value {
        Value(littleEndian: try bytes(MemoryLayout<Value>.size, field: field()).loadUnaligned(as: Value.self))
    }

    /// Reads a 64-bit count of items that have at least `smallestItem` bytes each.
    mutating func count(field: @autoclosure () -> String, smallestItem: Int) throws(ModelError) -> Int {
        let value = try integer(UInt64.self, field: field())
        guard value <= UInt64(remaining / smallestItem) else {
            throw .invalid(field: field(), reason: "is \(value), more than the file could hold")
        }
        return Int(value)
    }

    /// Reads the bytes of a string, which are preceded by a 64-bit length.
    mutating func stringBytes(field: @autoclosure () -> String) throws(ModelError) -> UnsafeRawBufferPointer {
        let length = try integer(UInt64.self, field: "the length of \(field())")
        guard length <= UInt64(remaining) else { throw .truncated(field: field(), offset: bytes.count) }
        return try bytes(Int(length), field: field())
    }

    /// Skips strings. A vocabulary has hundreds of thousands of them.
    mutating func skipStrings(_ count: Int, field: @autoclosure () -> String) throws(ModelError) {
        for _ in 0..<count {
            guard remaining >= 8 else { throw .truncated(field: field(), offset: bytes.count) }
            if offset + 8 > available { try load(upTo: offset + 8) }
            let length = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            guard length <= UInt64(remaining - 8) else { throw .truncated(field: field(), offset: bytes.count) }
            offset += 8 + Int(length)
        }
        if offset > available { try load(upTo: offset) }
    }

    /// Reads a string, which must be valid UTF-8.
    mutating func string(field: @autoclosure () -> String) throws(ModelError) -> String {
        guard let string = String(validating: try stringBytes(field: field()), as: UTF8.self) else {
            throw .invalid(field: field(), reason: "is not valid UTF-8")
        }
        return string
    }
}
