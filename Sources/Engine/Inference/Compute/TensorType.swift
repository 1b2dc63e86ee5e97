package import CKernels

/// A tensor type of GGUF: a line of the table of types in `CKernels` (tensor_types.h), which has all that is known of it.
package struct TensorType: RawRepresentable, Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// The number in the file.
    package let rawValue: UInt32

    /// Nil for a number that no type of the table has.
    package init?(rawValue: UInt32) {
        guard ck_type_name(ck_type(rawValue: rawValue)) != nil else { return nil }
        self.rawValue = rawValue
    }

    private init(_ type: ck_type) { rawValue = type.rawValue }

    package static let allCases: [TensorType] = (0..<ck_type_count()).map { TensorType(ck_type_at($0)) }

    // The types that are named in Swift.
    package static let f32 = TensorType(CK_TYPE_F32), f16 = TensorType(CK_TYPE_F16), bf16 = TensorType(CK_TYPE_BF16)
    package static let q4_0 = TensorType(CK_TYPE_Q4_0), q4_1 = TensorType(CK_TYPE_Q4_1)
    package static let q5_0 = TensorType(CK_TYPE_Q5_0), q5_1 = TensorType(CK_TYPE_Q5_1), q8_0 = TensorType(CK_TYPE_Q8_0)
    package static let q2_K = TensorType(CK_TYPE_Q2_K), q3_K = TensorType(CK_TYPE_Q3_K), q4_K = TensorType(CK_TYPE_Q4_K)
    package static let q5_K = TensorType(CK_TYPE_Q5_K), q6_K = TensorType(CK_TYPE_Q6_K)
    package static let iq2_XXS = TensorType(CK_TYPE_IQ2_XXS), iq2_XS = TensorType(CK_TYPE_IQ2_XS)
    package static let iq2_S = TensorType(CK_TYPE_IQ2_S)
    package static let iq3_XXS = TensorType(CK_TYPE_IQ3_XXS), iq3_S = TensorType(CK_TYPE_IQ3_S)
    package static let iq4_NL = TensorType(CK_TYPE_IQ4_NL), iq4_XS = TensorType(CK_TYPE_IQ4_XS)
    package static let mxfp4 = TensorType(CK_TYPE_MXFP4)

    package var kernelType: ck_type { ck_type(rawValue: rawValue) }

    /// The usual name, such as `Q4_K`.
    package var name: String { String(cString: ck_type_name(kernelType)) }
    package var description: String { name }

    /// Whether this type has its own kernels. Rows of other types are decoded each time they are used.
    package var isFast: Bool { ck_type_layout(kernelType) != CK_ROWS }
    /// Whether elements share a scale; else they are numbers of 16 or 32 bits.
    package var isQuantized: Bool { blockElements > 1 }
    /// Whether files can be written with this type.
    package var isWritable: Bool { ck_can_encode(kernelType) }
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

    /// The blocks of numbers, for the types that are writable.
    package func encode(_ values: [Float]) -> [UInt8] {
        precondition(isWritable, "no file is written with \(name)")
        var bytes = [UInt8](repeating: 0, count: values.count / blockElements * blockBytes)
        ck_encode(kernelType, values, values.count, nil, &bytes)
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
