internal import Files
package import Foundation
internal import Inference

/// Writes a GGUF file, one tensor after the other, so that a model of any size needs little memory.
///
/// The file is written under a temporary name and renamed when it is complete.
package struct GGUFWriter {
    package enum Value: Sendable {
        case uint32(UInt32), float32(Float), bool(Bool), string(String), strings([String]), int32s([Int32]), float32s([Float])
        case bools([Bool]), bytes([UInt8])
    }

    /// A tensor and the function that reads a range of its numbers.
    package struct Tensor {
        var name: String
        /// Dimensions, fastest-varying first.
        var shape: [Int]
        var type: TensorType
        /// The blocks of a range of numbers.
        var blocks: (Range<Int>) throws -> [UInt8]

        var count: Int { shape.reduce(1, *) }
        var bytes: Int { count / type.blockElements * type.blockBytes }

        init(name: String, shape: [Int], type: TensorType, blocks: @escaping (Range<Int>) throws -> [UInt8]) {
            (self.name, self.shape, self.type, self.blocks) = (name, shape, type, blocks)
        }

        /// - Parameter type: F32, F16, BF16 or Q8_0.
        init(name: String, shape: [Int], type: TensorType, values: @escaping (Range<Int>) throws -> [Float]) {
            self.init(
                name: name, shape: shape, type: type,
                blocks: { (range) throws -> [UInt8] in
                    let values = try values(range)
                    guard values.allSatisfy(\.isFinite) else {
                        throw ModelError.invalid(field: name, reason: "has numbers that are not finite")
                    }
                    guard type != .f16 || values.allSatisfy({ !(abs($0) > 65_504) }) else {
                        throw ModelError.invalid(field: name, reason: "has numbers that are too large for F16: use BF16 or F32")
                    }
                    return type.encode(values)
                })
        }
    }

    var metadata: [(String, Value)] = []
    var tensors: [Tensor] = []

    private static let alignment = 32

    /// Numbers that are in memory at the same time; whole blocks of every type.
    private static let partCount = 1 << 20

    /// - Parameters:
    ///   - source: what the numbers are read from. If writing is cancelled, the next call with the same source continues it; nil if
    ///     nothing is continued.
    ///   - progress: called with the share of the work that is done, from 0 to 1.
    ///   - check: receives the path of the complete file under its temporary name. If it throws, the file is removed.
    func write(
        to url: URL, source: String? = nil, progress: (Double) throws -> Void = { _ in },
        check: (String) throws -> Void = { _ in }
    ) throws {
        let header = header()
        var file = try PartFile(url, identity: source.map { "\(FNV.hash(header)) \($0)" })
        do {
            try write(header, to: &file, progress)
            try file.finish(check)
        } catch is CancellationError where source != nil {
            try file.record()
            throw CancellationError()
        } catch {
            file.remove()
            throw error
        }
    }

    private func write(_ header: Data, to file: inout PartFile, _ progress: (Double) throws -> Void) throws {
        if file.written < header.count { try file.write(header.dropFirst(file.written)) }
        let total = Double(max(1, tensors.reduce(0) { $0 + $1.bytes }))
        var (done, place) = (0, header.count)
        for tensor in tensors {
            for start in stride(from: 0, to: tensor.count, by: Self.partCount) {
                let part = start..<min(start + Self.partCount, tensor.count)
                let bytes = part.count / tensor.type.blockElements * tensor.type.blockBytes
                // A part that is there as a whole is not computed again.
                if file.written < place + bytes {
                    try file.write(Data(tensor.blocks(part)).dropFirst(max(0, file.written - place)))
                }
                (done, place) = (done + bytes, place + bytes)
                try progress(Double(done) / total)
            }
            let padding = Self.padding(after: tensor.bytes)
            place += padding.count
            if file.written < place { try file.write(Data(count: place - file.written)) }
        }
    }

    private func header() -> Data {
        var out = Data("GGUF".utf8)
        out.put(UInt32(3))
        out.put(UInt64(tensors.count))
        out.put(UInt64(metadata.count))
        for (key, value) in metadata { out += value.encoded(key: key) }
        var offset = 0
        for tensor in tensors {
            out.put(tensor.name)
            out.put(UInt32(tensor.shape.count))
            for size in tensor.shape { out.put(UInt64(size)) }
            out.put(tensor.type.rawValue)
            out.put(UInt64(offset))
            offset += (tensor.bytes + Self.alignment - 1) / Self.alignment * Self.alignment
        }
        return out + Self.padding(after: out.count)
    }

    private static func padding(after count: Int) -> Data { Data(count: (alignment - count % alignment) % alignment) }
}

/// Parts of GGUF files.
extension Data {
    mutating func put(_ value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }

    mutating func put(_ string: String) {
        put(UInt64(string.utf8.count))
        append(contentsOf: string.utf8)
    }
}

extension GGUFWriter.Value {
    /// An entry of a file's metadata.
    func encoded(key: String) -> Data {
        var out = Data()
        out.put(key)
        func put(_ type: GGUFValueType) { out.put(type.rawValue) }
        func putArray<Element>(_ type: GGUFValueType, _ values: [Element], _ write: (Element) -> Void) {
            put(.array)
            put(type)
            out.put(UInt64(values.count))
            for value in values { write(value) }
        }
        switch self {
        case .uint32(let value): put(.uint32); out.put(value)
        case .float32(let value): put(.float32); out.put(value.bitPattern)
        case .bool(let value): put(.bool); out.put(UInt8(value ? 1 : 0))
        case .string(let value): put(.string); out.put(value)
        case .strings(let values): putArray(.string, values) { out.put($0) }
        case .int32s(let values): putArray(.int32, values) { out.put($0) }
        case .float32s(let values): putArray(.float32, values) { out.put($0.bitPattern) }
        case .bools(let values): putArray(.bool, values) { out.put(UInt8($0 ? 1 : 0)) }
        case .bytes(let values): putArray(.uint8, values) { out.put($0) }
        }
        return out
    }
}

extension GGUFWriter {
    /// Writes a low-rank adapter, as llama.cpp reads it: for each matrix a `[rank][columns]` and b `[rows][rank]`.
    package static func writeAdapter(
        to url: URL, architecture: String, name: String, alpha: Float,
        pairs: [(name: String, rank: Int, rows: Int, columns: Int, a: [Float], b: [Float])]
    ) throws {
        var writer = GGUFWriter()
        writer.metadata = [
            ("general.architecture", .string(architecture)), ("general.type", .string("adapter")),
            ("general.name", .string(name)),
            ("adapter.type", .string("lora")), ("adapter.lora.alpha", .float32(alpha)),
        ]
        for pair in pairs {
            var (a, aShape) = (pair.a, [pair.columns, pair.rank])
            var (b, bShape) = (pair.b, [pair.rank, pair.rows])
            // Rows of embeddings are looked up, not multiplied: llama.cpp looks up rows of a, which is B, and multiplies them by b, which is Aᵀ.
            if pair.name == TensorName.tokenEmbedding.weight {
                (a, aShape) = (pair.b, [pair.rank, pair.rows])
                (b, bShape) = (AdapterFile.transposed(pair.a, rows: pair.rank, columns: pair.columns), [pair.rank, pair.columns])
            }
            writer.tensors.append(Tensor(name: pair.name + ".lora_a", shape: aShape, type: .f32) { [a] in Array(a[$0]) })
            writer.tensors.append(Tensor(name: pair.name + ".lora_b", shape: bShape, type: .f32) { [b] in Array(b[$0]) })
        }
        try writer.write(to: url)
    }
}
