internal import CKernels

/// Rows that are `stride` elements apart.
struct Strided<Pointer> {
    var pointer: Pointer
    var stride: Int

    init(_ pointer: Pointer, _ stride: Int) { (self.pointer, self.stride) = (pointer, stride) }
}

extension Strided<UnsafePointer<Float>> {
    init(_ pointer: UnsafeMutablePointer<Float>, _ stride: Int) { self.init(UnsafePointer(pointer), stride) }
}

// The parameters of calls are structures of C, because the kernels read them.

/// A packed matrix of weights.
typealias Matrix = ck_matrix
/// Rows of activations, with their quantized form.
typealias Activations = ck_activations
/// One product of a matrix with rows of activations.
typealias Product = ck_product
/// A product with two low-rank matrices of an adapter.
typealias LowRankProduct = ck_low_rank
typealias Rotation = ck_rotation
typealias AttentionCall = ck_attention
typealias Routing = ck_routing
typealias DeltaNetCall = ck_delta
typealias MambaCall = ck_mamba

extension Matrix {
    /// The size of the packed weights.
    var bytes: Int { (Int(rows) + 15) / 16 * panel_bytes }
    /// The place of its ``MatrixOrigin`` among those of the model.
    var index: Int { Int(identity) }
}

extension AttentionCall {
    /// The number of floats of ``partial`` that calls with up to `capacity` positions use.
    static func partialFloats(heads: Int, valueDimension: Int, capacity: Int) -> Int {
        ck_attention_partial_floats(Int32(heads), Int32(valueDimension), Int32(capacity))
    }
}

extension ModelShape.HeadNorm {
    var callValue: ck_head_norm {
        switch self {
        case .none: CK_NORM_NONE
        case .heads: CK_NORM_HEADS
        case .rotatedHeads: CK_NORM_HEADS_ROTATED
        case .whole: CK_NORM_WHOLE
        }
    }
}

extension ModelShape.Gating {
    var callValue: ck_gating {
        switch self {
        case .softmax: CK_GATE_SOFTMAX
        case .sigmoid: CK_GATE_SIGMOID
        case .softmaxOfChosen: CK_GATE_SOFTMAX_CHOSEN
        }
    }
}

extension ModelShape.Activation {
    var callValue: ck_activation {
        switch self {
        case .silu: CK_SILU
        case .gelu: CK_GELU
        case .exactGelu: CK_GELU_ERF
        case .reluSquared: CK_RELU_SQUARED
        case .swigluOAI: CK_SWIGLU_OAI
        }
    }
}
