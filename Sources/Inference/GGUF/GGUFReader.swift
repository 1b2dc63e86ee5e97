/// Reads little-endian fields one after the other and throws ``ModelError/truncated(field:offset:)`` at the end of the file.
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

    /// A 64-bit count of items that take at least `smallestItem` bytes each.
    mutating func count(field: @autoclosure () -> String, smallestItem: Int) throws(ModelError) -> Int {
        let value = try integer(UInt64.self, field: field())
        guard value <= UInt64(remaining / smallestItem) else {
            throw .invalid(field: field(), reason: "is \(value), more than the file could hold")
        }
        return Int(value)
    }

    /// The bytes of a string: a 64-bit length and as many bytes.
    mutating func stringBytes(field: @autoclosure () -> String) throws(ModelError) -> UnsafeRawBufferPointer {
        let length = try integer(UInt64.self, field: "the length of \(field())")
        guard length <= UInt64(remaining) else { throw .truncated(field: field(), offset: bytes.count) }
        return try bytes(Int(length), field: field())
    }

    /// A string that must be valid UTF-8.
    mutating func string(field: @autoclosure () -> String) throws(ModelError) -> String {
        guard let string = String(validating: try stringBytes(field: field()), as: UTF8.self) else {
            throw .invalid(field: field(), reason: "is not valid UTF-8")
        }
        return string
    }
}
