/// Reads little-endian fields sequentially; throws ``ModelError/truncated(field:offset:)`` at the end of the file.
struct GGUFReader {
    let bytes: UnsafeRawBufferPointer
    private(set) var offset = 0

    init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var remaining: Int { bytes.count - offset }

    mutating func bytes(_ count: Int, field: @autoclosure () -> String) throws(ModelError) -> UnsafeRawBufferPointer {
        guard count >= 0, count <= remaining else { throw .truncated(field: field(), offset: bytes.count) }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
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

    /// Reads a string, which must be valid UTF-8.
    mutating func string(field: @autoclosure () -> String) throws(ModelError) -> String {
        guard let string = String(validating: try stringBytes(field: field()), as: UTF8.self) else {
            throw .invalid(field: field(), reason: "is not valid UTF-8")
        }
        return string
    }
}
