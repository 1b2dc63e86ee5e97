package import CKernels

/// The blocks of each tensor type, and conversions between them and binary32.
extension TensorType {
    package var kernelType: ck_type { ck_type(rawValue: rawValue) }

    /// Whether this type has its own kernels. Rows of other types are decoded each time they are used.
    package var isFast: Bool { ck_type_layout(kernelType) != CK_ROWS }
    /// Elements of one block.
    package var blockElements: Int { Int(ck_type_block(kernelType)) }
    /// Bytes of one block.
    package var blockBytes: Int { Int(ck_type_bytes(kernelType)) }

    /// The first `count` numbers of whole blocks.
    package func decode(_ bytes: [UInt8], count: Int) -> [Float] {
        var values = [Float](repeating: 0, count: count)
        ck_dequantize(kernelType, bytes, count, &values)
        return values
    }

    /// The blocks of numbers, for the types that files are written with: Q8_0, binary16, bfloat16 and binary32.
    package func encode(_ values: [Float]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: values.count / blockElements * blockBytes)
        switch self {
        case .q8_0: ck_quantize_q8_0(values, values.count, &bytes)
        case .f16:
            bytes.withUnsafeMutableBytes { buffer in
                guard let start = buffer.bindMemory(to: UInt16.self).baseAddress else { return }
                ck_kernels_best().pointee.to_half(values, Int32(values.count), start)
            }
        case .bf16:
            bytes.withUnsafeMutableBytes { buffer in
                for (index, value) in values.enumerated() {
                    // Rounded to the nearest, ties to even; adding to a NaN could make it a number.
                    let bits = value.bitPattern
                    let rounded = value.isNaN ? bits | 0x40_0000 : bits &+ 0x7FFF &+ (bits >> 16 & 1)
                    buffer.storeBytes(of: UInt16(rounded >> 16).littleEndian, toByteOffset: 2 * index, as: UInt16.self)
                }
            }
        case .f32: values.withUnsafeBytes { source in bytes.withUnsafeMutableBytes { $0.copyMemory(from: source) } }
        default: preconditionFailure("no file is written with \(name)")
        }
        return bytes
    }
}

enum WeightMerge {
    /// weights `[rows][columns]` += scale · b `[rows][rank]` · a `[rank][columns]`
    static func add(
        _ b: [Float], _ a: [Float], rank: Int, scale: Float, to weights: inout [Float], rows: Int, columns: Int
    ) {
        ck_add_low_rank(&weights, b, a, Int32(rows), Int32(rank), Int32(columns), scale)
    }
}
