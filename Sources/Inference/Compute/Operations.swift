internal import CKernels

/// The arithmetic of the forward pass. ``CPUOperations`` computes it with the kernels of `CKernels`,
/// ``TimedOperations`` measures it. Another back end implements these operations, and packs matrices in its own order, as
/// ``TensorPacker`` does for the CPU.
///
/// Arrays are in memory that both the decoder and the back end can address. A call returns when its results are there; one
/// call at a time. Dimensions are in comments as `[rows][columns]`; the C header explains each call in full.
protocol Operations: AnyObject {
    typealias Input = UnsafePointer<Float>
    typealias Output = UnsafeMutablePointer<Float>

    // MARK: Products

    /// Whether products with matrices whose scales are integers use a common unit of the scales of 256 activations, where rows have
    /// memory for it (``RowBuffer``).
    var sumsBlocks: Bool { get }
    /// Computes the products, of `input` unless they have their own, in one parallel region.
    func multiply(_ input: Activations, _ products: UnsafePointer<Product>, count: Int)
    /// Computes the products with some rows of a matrix, in ascending order.
    func multiply(_ input: Activations, _ product: UnsafePointer<Product>, rows: [TokenID])
    /// Adds the products with low-rank matrices of adapters.
    func addLowRankProducts(_ terms: [LowRankProduct])
    /// Decodes one row of a matrix.
    func copyRow(_ row: Int32, of matrix: Matrix, to output: Output)

    // MARK: Rows

    /// The RMS norm of rows; without a weight, a copy. If `quantizes`, the rows of `rows` are quantized too.
    func normalize(_ x: Input, _ weight: Input?, epsilon: Float, to output: Output, _ rows: Activations, quantizes: Bool)
    /// The same with the mean removed.
    func layerNormalize(
        _ x: Input, _ weight: Input, bias: Input?, epsilon: Float, to output: Output, _ rows: Activations, quantizes: Bool)
    /// The RMS norm of one row. A nil weight stands for ones.
    func normalizeRow(_ x: Input, _ weight: Input?, epsilon: Float, count: Int, to output: Output)
    /// Quantizes rows for products with integer matrices.
    func quantize(_ rows: Activations)
    /// residual += scale · norm(x + bias); overwrites `x`.
    func addToResidual(
        _ x: Output, bias: Input?, norm: Input?, epsilon: Float, scale: Float, to residual: Output, rows: Int, columns: Int)
    func addBias(_ bias: Input, to x: Output, rows: Int, columns: Int)
    /// gate = activation(gate + gateBias) · (up + upBias)
    func activate(
        _ kind: ModelShape.Activation, _ gate: Output, up: Input?, gateBias: Input?, upBias: Input?, _ rows: Activations,
        quantizes: Bool)
    /// x = x · σ(gate)
    func multiplySigmoid(_ x: Output, _ gate: Input, rows: Int, columns: Int)
    /// Multiplies each row by σ(input row · vector).
    func scaleByGate(_ x: Output, rows: Int, columns: Int, input: Input, vector: Input, width: Int)
    /// out = a · b, element by element; arrays with a stride.
    func multiplyElements(
        _ a: Strided<Input>, _ b: Strided<Input>, to output: Strided<Output>, rows: Int, columns: Int)
    func copyRows(_ from: Strided<Input>, to output: Strided<Output>, rows: Int, columns: Int)

    // MARK: Attention

    /// Biases, norms and rotation of queries and keys; writes keys and values to the KV cache.
    func rotateAndStore(_ calls: UnsafePointer<Rotation>, count: Int)
    func attend(_ calls: UnsafePointer<AttentionCall>, count: Int)

    // MARK: Experts

    /// Chooses the experts of each row: `chosen` and `weights` are `[rows][used]`. Overwrites the logits.
    func route(_ routing: Routing, _ logits: Output, rows: Int, chosen: UnsafeMutablePointer<Int32>, weights: Output)
    /// Copies row `source[i]` to row i.
    func gather(_ from: Activations, _ source: UnsafePointer<Int32>, to output: Activations, quantized: Bool)
    /// Adds the weighted outputs of the experts of each row.
    func combine(
        _ x: Input, _ place: UnsafePointer<Int32>, _ weights: Input, rows: Int, used: Int, columns: Int, to output: Output)

    // MARK: Recurrent layers

    /// A causal convolution of each channel, in place.
    func convolve(
        _ x: Strided<Output>, state: Output, kernel: Input, bias: Input?, rows: Int, channels: Int, width: Int, silu: Bool)
    func deltaNet(_ call: DeltaNetCall)
    func mambaScan(_ call: MambaCall)

    // MARK: Logits

    /// x = cap · tanh(x / cap)
    func softCap(_ x: Output, _ cap: Float, count: Int)
}

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
}

/// The sizes that calls are limited to.
enum OperationLimits {
    /// Sequences of one batch.
    static let segments = Int(CK_MAX_SEGMENTS)
    /// The rank of an adapter beside the weights.
    static let rank = Int(CK_MAX_RANK)
    /// Positions of one page of a KV cache.
    static let pagePositions = Int(CK_PAGE)

    /// The size of ``AttentionCall/partial``.
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
