package import Foundation

/// The tensors of one or several safetensors files. Their contents are not trusted: every offset is checked against the
/// file's size.
///
/// Format: https://github.com/huggingface/safetensors#format
package struct Safetensors: Sendable {
    package struct Tensor: Sendable {
        var source: SourceFile
        /// The type that holds the numbers: of those with 8 bits (E4M3) a larger one.
        package var type: TensorType
        package let isFloat8: Bool
        /// Dimensions, slowest-varying first.
        package var shape: [Int]
        /// The byte range of the data in the file.
        var range: Range<Int>

        package var count: Int { shape.reduce(1, *) }

        init(source: SourceFile, type: TensorType, isFloat8: Bool, shape: [Int], range: Range<Int>) {
            (self.source, self.type, self.isFloat8, self.shape, self.range) = (source, type, isFloat8, shape, range)
        }

        /// Some of the tensor's numbers, in the order of the file.
        package func values(_ part: Range<Int>) throws(ModelError) -> [Float] {
            if isFloat8 { return try bytes(part).map { Safetensors.float8[Int($0)] } }
            let size = type.blockBytes
            return type.decode(try bytes(part.lowerBound * size..<part.upperBound * size), count: part.count)
        }

        /// Some of the tensor's bytes, as they are in the file.
        package func bytes(_ part: Range<Int>) throws(ModelError) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: part.count)
            try bytes.withUnsafeMutableBufferPointer { buffer throws(ModelError) in
                try source.read(into: UnsafeMutableRawBufferPointer(buffer), at: range.lowerBound + part.lowerBound)
            }
            return bytes
        }
    }

    package private(set) var tensors: [String: Tensor] = [:]
    /// Tensors of bytes, such as blocks of MXFP4.
    package private(set) var bytes: [String: Tensor] = [:]
    /// Tensors of signed integers of 8 bits.
    package private(set) var integers: [String: Tensor] = [:]
    /// The names of tensors of other integers, which are not read.
    package private(set) var skipped: [String] = []
    package private(set) var paths: [String] = []
    /// The values of `__metadata__`.
    package private(set) var metadata: [String: String] = [:]

    package init(file: URL) throws { try add(SourceFile(path: file.path)) }

    init(_ source: SourceFile) throws { try add(source) }

    /// Reads several files as one.
    package init(files: [URL]) throws { for file in files { try add(SourceFile(path: file.path)) } }

    /// The numbers of E4M3: a sign, 4 bits of the exponent with a bias of 7, 3 bits of the fraction; no infinity
    /// (https://arxiv.org/abs/2209.05433).
    private static let float8: [Float] = (0..<256).map { bits in
        let (exponent, fraction) = (bits >> 3 & 15, Float(bits & 7))
        if bits & 127 == 127 { return .nan }
        let size =
            exponent == 0
            ? fraction / 8 * Float(sign: .plus, exponent: -6, significand: 1)
            : Float(sign: .plus, exponent: exponent - 7, significand: 1 + fraction / 8)
        return bits > 127 ? -size : size
    }

    private static let maximumHeader = 100 << 20

    private mutating func add(_ source: SourceFile) throws {
        paths.append(source.path)
        let fileName = URL(filePath: source.path).lastPathComponent
        guard source.size >= 8 else {
            throw ModelError.truncated(field: "the header of \(fileName)", offset: source.size)
        }
        var length: UInt64 = 0
        try withUnsafeMutableBytes(of: &length) { try source.read(into: $0, at: 0) }
        length = UInt64(littleEndian: length)
        guard length <= UInt64(min(Self.maximumHeader, source.size - 8)) else {
            throw ModelError.invalid(
                field: "the header of \(fileName)", reason: "has a length of \(length) bytes")
        }
        var header = Data(count: Int(length))
        try header.withUnsafeMutableBytes { try source.read(into: $0, at: 8) }
        let start = 8 + Int(length)
        var total = 0
        let entries: [String: Entry]
        do { entries = try JSONDecoder().decode([String: Entry].self, from: header) } catch {
            throw ModelError.invalid(field: fileName, reason: "is not valid JSON of the expected form")
        }
        for (name, entry) in entries {
            if name == "__metadata__" {
                metadata.merge(entry.texts) { first, _ in first }
                continue
            }
            let field = "tensor \(name)"
            guard let kind = entry.dtype, let shape = entry.shape, let offsets = entry.data_offsets, offsets.count == 2 else {
                throw ModelError.invalid(field: field, reason: "has no type, shape or offsets")
            }
            let isFloat8 = kind == "F8_E4M3"
            let hasBytes = isFloat8 || kind == "U8" || kind == "I8"
            let type: TensorType? = hasBytes ? .bf16 : ["F32": .f32, "F16": .f16, "BF16": .bf16][kind]
            guard let type else {
                if kind.hasPrefix("I") || kind.hasPrefix("U") || kind == "BOOL" {  // indices, such as position_ids
                    skipped.append(name)
                    continue
                }
                throw ModelError.unsupported(field: field, value: kind, supported: "F32, F16, BF16, F8_E4M3")
            }
            var count = 1
            for size in shape {
                guard size > 0, case let (product, overflow) = count.multipliedReportingOverflow(by: size), !overflow,
                    product < 1 << 40, shape.count <= 5
                else { throw ModelError.invalid(field: field, reason: "has the shape \(shape)") }
                count = product
            }
            let range = offsets[0]...max(offsets[0], offsets[1])
            guard offsets[0] >= 0, offsets[1] >= offsets[0], offsets[1] <= source.size - start,
                range.count - 1 == count * (hasBytes ? 1 : type.blockBytes)
            else { throw ModelError.invalid(field: field, reason: "has the offsets \(offsets)") }
            // Tensors that overlap could ask for any amount of memory.
            total += range.count - 1
            guard total <= source.size else { throw ModelError.invalid(field: field, reason: "overlaps with others") }
            let tensor = Tensor(
                source: source, type: type, isFloat8: isFloat8, shape: shape, range: start + offsets[0]..<start + offsets[1])
            guard tensors[name] == nil, bytes[name] == nil, integers[name] == nil else {
                throw ModelError.invalid(field: field, reason: "is in two files")
            }
            switch kind {
            case "U8": bytes[name] = tensor
            case "I8": integers[name] = tensor
            default: tensors[name] = tensor
            }
        }
    }

    private struct Entry: Decodable {
        var dtype: String?
        var shape: [Int]?
        var data_offsets: [Int]?
        /// All values that are text.
        var texts: [String: String] = [:]

        struct Key: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            // Entries of another form are reported where they are used.
            dtype = try? container.decode(String.self, forKey: Key(stringValue: "dtype"))
            shape = try? container.decode([Int].self, forKey: Key(stringValue: "shape"))
            data_offsets = try? container.decode([Int].self, forKey: Key(stringValue: "data_offsets"))
            if dtype != nil, shape != nil { return }
            for key in container.allKeys { texts[key.stringValue] = try? container.decode(String.self, forKey: key) }
        }
    }
}
