/// A metadata value. Numbers of all widths are widened; array elements are decoded from the file on demand.
package enum GGUFValue: Sendable {
    case integer(Int)
    case float(Double)
    case bool(Bool)
    case string(String)
    case array(GGUFArray)
}

/// An array in the file: validated when the file is opened, decoded when it is used.
package struct GGUFArray: Sendable {
    package let elementType: GGUFValueType
    package let count: Int
    let range: Range<Int>
}

package enum GGUFValueType: UInt32, Sendable {
    case uint8, int8, uint16, int16, uint32, int32, float32, bool, string, array, uint64, int64, float64

    /// Bytes of one value; nil for strings and arrays.
    var size: Int? {
        switch self {
        case .uint8, .int8, .bool: 1
        case .uint16, .int16: 2
        case .uint32, .int32, .float32: 4
        case .uint64, .int64, .float64: 8
        case .string, .array: nil
        }
    }
}

/// The key–value pairs of a GGUF file, with accessors that check types and ranges.
package struct GGUFMetadata: Sendable {
    package private(set) var keys: [String] = []
    private var values: [String: GGUFValue] = [:]
    private var ranges: [String: Range<Int>] = [:]
    /// Keys with several entries, of which the first is here: what such a key means is not known, so that reading it is an error.
    package private(set) var repeatedKeys: Set<String> = []

    /// The first value of a key. Use ``value(of:)`` for what the model depends on.
    package subscript(key: String) -> GGUFValue? { values[key] }

    /// The bytes of an entry in the file, with its key.
    func range(of key: String) -> Range<Int>? { ranges[key] }

    init(reader: inout GGUFReader, count: Int) throws(ModelError) {
        for index in 0..<count {
            let start = reader.offset
            let key = try reader.string(field: "the key of metadata entry \(index)")
            guard !key.isEmpty, key.utf8.count <= 65_535 else {
                throw .invalid(field: "the key of metadata entry \(index)", reason: "has \(key.utf8.count) bytes")
            }
            let value = try Self.value(reader: &reader, key: key)
            if ranges[key] != nil {
                repeatedKeys.insert(key)
                continue
            }
            keys.append(key)
            values[key] = value
            ranges[key] = start..<reader.offset
        }
    }

    private static func type(reader: inout GGUFReader, key: String) throws(ModelError) -> GGUFValueType {
        let raw = try reader.integer(UInt32.self, field: "the type of \(key)")
        guard let type = GGUFValueType(rawValue: raw) else {
            throw .invalid(field: "the type of \(key)", reason: "is \(raw), which GGUF does not define")
        }
        return type
    }

    private static func value(reader: inout GGUFReader, key: String) throws(ModelError) -> GGUFValue {
        switch try type(reader: &reader, key: key) {
        case .uint8: return .integer(Int(try reader.integer(UInt8.self, field: key)))
        case .int8: return .integer(Int(try reader.integer(Int8.self, field: key)))
        case .uint16: return .integer(Int(try reader.integer(UInt16.self, field: key)))
        case .int16: return .integer(Int(try reader.integer(Int16.self, field: key)))
        case .uint32: return .integer(Int(try reader.integer(UInt32.self, field: key)))
        case .int32: return .integer(Int(try reader.integer(Int32.self, field: key)))
        case .int64: return .integer(Int(try reader.integer(Int64.self, field: key)))
        case .uint64:
            let value = try reader.integer(UInt64.self, field: key)
            guard let value = Int(exactly: value) else { throw .invalid(field: key, reason: "is \(value), too large") }
            return .integer(value)
        case .float32: return .float(Double(Float(bitPattern: try reader.integer(UInt32.self, field: key))))
        case .float64: return .float(Double(bitPattern: try reader.integer(UInt64.self, field: key)))
        case .bool:
            let value = try reader.integer(UInt8.self, field: key)
            guard value <= 1 else { throw .invalid(field: key, reason: "is a Boolean with the value \(value)") }
            return .bool(value == 1)
        case .string: return .string(try reader.string(field: key))
        case .array: return .array(try array(reader: &reader, key: key))
        }
    }

    private static func array(reader: inout GGUFReader, key: String) throws(ModelError) -> GGUFArray {
        let (elementType, count) = try arrayHead(reader: &reader, key: key)
        let start = reader.offset
        // Nothing uses arrays of arrays. Those that are open are a list, not recursion.
        var open = [(type: elementType, count: count)]
        while let (type, count) = open.popLast() {
            if let size = type.size {
                _ = try reader.bytes(count * size, field: key)
            } else if type == .string {
                try reader.skipStrings(count, field: "an element of \(key)")
            } else if count > 0 {
                guard open.count < maximumDepth else {
                    throw .invalid(field: key, reason: "has arrays that are nested too deeply")
                }
                open.append((type, count - 1))
                open.append(try arrayHead(reader: &reader, key: key))
            }
        }
        return GGUFArray(elementType: elementType, count: count, range: start..<reader.offset)
    }

    private static let maximumDepth = 64

    private static func arrayHead(
        reader: inout GGUFReader, key: String
    ) throws(ModelError) -> (type: GGUFValueType, count: Int) {
        let type = try type(reader: &reader, key: key)
        // A string begins with its length, an array with its type and its length.
        let smallest = type.size ?? (type == .array ? 12 : 8)
        return (type, try reader.count(field: "the length of \(key)", smallestItem: smallest))
    }

    // MARK: - Checked access: returns nil if the key is absent, throws if its value has another type or is out of range

    /// - Throws: ``ModelError/invalid(field:reason:)`` if the key has several entries.
    package func value(of key: String) throws(ModelError) -> GGUFValue? {
        guard !repeatedKeys.contains(key) else { throw .invalid(field: key, reason: "appears twice") }
        return values[key]
    }

    package func integer(_ key: String, in range: ClosedRange<Int>) throws(ModelError) -> Int? {
        guard let value = try value(of: key) else { return nil }
        guard case .integer(let integer) = value else { throw .invalid(field: key, reason: "is not an integer") }
        guard range.contains(integer) else {
            throw .invalid(field: key, reason: "is \(integer), outside \(range.lowerBound)…\(range.upperBound)")
        }
        return integer
    }

    package func float(_ key: String) throws(ModelError) -> Double? {
        switch try value(of: key) {
        case nil: return nil
        case .float(let value) where value.isFinite: return value
        case .integer(let value): return Double(value)
        default: throw .invalid(field: key, reason: "is not a finite number")
        }
    }

    package func float(_ key: String, in range: ClosedRange<Double>) throws(ModelError) -> Double? {
        guard let value = try float(key) else { return nil }
        guard range.contains(value) else {
            throw .invalid(field: key, reason: "is \(value), outside \(range.lowerBound)…\(range.upperBound)")
        }
        return value
    }

    package func string(_ key: String) throws(ModelError) -> String? {
        guard let value = try value(of: key) else { return nil }
        guard case .string(let string) = value else { throw .invalid(field: key, reason: "is not a string") }
        return string
    }

    package func bool(_ key: String) throws(ModelError) -> Bool? {
        guard let value = try value(of: key) else { return nil }
        guard case .bool(let bool) = value else { throw .invalid(field: key, reason: "is not a Boolean") }
        return bool
    }

    package func array(_ key: String, of type: GGUFValueType) throws(ModelError) -> GGUFArray? {
        guard let value = try value(of: key) else { return nil }
        guard case .array(let array) = value, array.elementType == type else {
            throw .invalid(field: key, reason: "is not an array of \(type)")
        }
        return array
    }
}

extension GGUFFile {
    /// Calls `body` with the index and bytes of each element of a string array of this file.
    package func forEachString(
        in array: GGUFArray, _ body: (Int, UnsafeRawBufferPointer) throws(ModelError) -> Void
    ) throws(ModelError) {
        var reader = GGUFReader(bytes: UnsafeRawBufferPointer(rebasing: header.bytes[array.range]))
        for index in 0..<array.count {
            try body(index, try reader.stringBytes(field: "a string"))
        }
    }

    /// The bytes of a metadata entry, with its key; nil if there is none.
    package func bytes(ofEntry key: String) -> Slice<UnsafeRawBufferPointer>? { metadata.range(of: key).map { header.bytes[$0] } }

    package func bytes(of array: GGUFArray) -> Slice<UnsafeRawBufferPointer> { header.bytes[array.range] }

    /// The elements of a numeric array of this file, whose element type has the size of `Value`.
    func values<Value: BitwiseCopyable>(of array: GGUFArray, as type: Value.Type) -> [Value] {
        let bytes = UnsafeRawBufferPointer(rebasing: header.bytes[array.range])
        return (0..<array.count).map {
            bytes.loadUnaligned(fromByteOffset: $0 * MemoryLayout<Value>.size, as: Value.self)
        }
    }
}
