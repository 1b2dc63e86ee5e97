internal import Foundation
package import Inference

/// Writes GGUF files for tests, with any metadata and tensors.
package struct GGUFBuilder {
    package enum Value {
        case uint32(UInt32), float32(Float), bool(Bool), string(String), strings([String]), int32s([Int32]), uint32s([UInt32])
        case float32s([Float]), bools([Bool]), bytes([UInt8]), arrays([[UInt32]])
    }

    package var metadata: [(String, Value)] = []
    package var tensors: [(name: String, type: TensorType, shape: [Int], data: [UInt8])] = []
    package var version: UInt32 = 3

    package init() {}

    /// The same model split into several files; the first one contains all metadata.
    package func shards(_ count: Int) -> [GGUFBuilder] {
        (0..<count).map { number in
            var shard = self
            if number > 0 { shard.metadata = [] }
            shard.metadata += [
                ("split.no", .uint32(UInt32(number))), ("split.count", .uint32(UInt32(count))),
                ("split.tensors.count", .uint32(UInt32(tensors.count))),
            ]
            shard.tensors = tensors.enumerated().filter { $0.offset * count / tensors.count == number }.map(\.element)
            return shard
        }
    }

    package func bytes() -> [UInt8] {
        var out: [UInt8] = Array("GGUF".utf8)
        func put<Value: FixedWidthInteger>(_ value: Value) { withUnsafeBytes(of: value.littleEndian) { out += $0 } }
        func put(_ string: String) {
            put(UInt64(string.utf8.count))
            out += Array(string.utf8)
        }
        put(version)
        put(UInt64(tensors.count))
        put(UInt64(metadata.count))
        for (key, value) in metadata {
            put(key)
            switch value {
            case .uint32(let value): put(UInt32(4)); put(value)
            case .float32(let value): put(UInt32(6)); put(value.bitPattern)
            case .bool(let value): put(UInt32(7)); put(UInt8(value ? 1 : 0))
            case .string(let value): put(UInt32(8)); put(value)
            case .strings(let values):
                put(UInt32(9)); put(UInt32(8)); put(UInt64(values.count))
                for value in values { put(value) }
            case .int32s(let values):
                put(UInt32(9)); put(UInt32(5)); put(UInt64(values.count))
                for value in values { put(value) }
            case .uint32s(let values):
                put(UInt32(9)); put(UInt32(4)); put(UInt64(values.count))
                for value in values { put(value) }
            case .float32s(let values):
                put(UInt32(9)); put(UInt32(6)); put(UInt64(values.count))
                for value in values { put(value.bitPattern) }
            case .bytes(let values):
                put(UInt32(9)); put(UInt32(0)); put(UInt64(values.count))
                out += values
            case .arrays(let values):
                put(UInt32(9)); put(UInt32(9)); put(UInt64(values.count))
                for inner in values {
                    put(UInt32(4)); put(UInt64(inner.count))
                    for value in inner { put(value) }
                }
            case .bools(let values):
                put(UInt32(9)); put(UInt32(7)); put(UInt64(values.count))
                for value in values { put(UInt8(value ? 1 : 0)) }
            }
        }
        var offset = 0
        for tensor in tensors {
            put(tensor.name)
            put(UInt32(tensor.shape.count))
            for size in tensor.shape { put(UInt64(size)) }
            put(tensor.type.rawValue)
            put(UInt64(offset))
            offset += (tensor.data.count + 31) / 32 * 32
        }
        func pad() { while out.count % 32 != 0 { out.append(0) } }
        pad()
        for tensor in tensors {
            out += tensor.data
            pad()
        }
        return out
    }
}

/// A temporary file that is deleted with the value.
package final class TemporaryFile {
    package let path: String

    package init(_ bytes: [UInt8], suffix: String = ".gguf") throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + suffix).path
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    deinit { unlink(path) }
}

/// A deterministic random number generator for tests.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    package init(_ seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return (state ^ state >> 33) &* 0xFF51_AFD7_ED55_8CCD
    }

    package mutating func uniform(_ range: ClosedRange<Float>) -> Float { Float.random(in: range, using: &self) }
}
