internal import CKernels

/// The arithmetic of the forward pass: the functions of `CKernels` with Swift's types, on the threads of a pool and with the kernels for
/// its instruction set. Matrices are packed in their order by ``TensorPacker``.
///
/// A call returns when its results are there; one call at a time. Dimensions are in comments as `[rows][columns]`; the C header explains
/// each call in full.
final class CPUKernels {
    typealias Input = UnsafePointer<Float>
    typealias Output = UnsafeMutablePointer<Float>

    private let pool: WorkerPool
    private var handle: OpaquePointer { pool.handle }
    private var kernels: UnsafePointer<ck_kernels> { pool.kernels }
    /// Sees all operations while a model is being measured; otherwise nil.
    var observer: OperationObserver?

    init(_ pool: WorkerPool) { self.pool = pool }

    /// Whether products with matrices whose scales are integers use a common unit of the scales of 256 activations, where rows have
    /// memory for it (``RowBuffer``).
    var sumsBlocks: Bool { kernels.pointee.sums_blocks }

    @inline(__always) private func operation(_ name: String, _ body: () -> Void) {
        if let observer { observer.measure(name, body) } else { body() }
    }

    // MARK: - Products

    /// Computes the products, of `input` unless they have their own, in one parallel region.
    func multiply(_ input: Activations, _ products: UnsafePointer<Product>, count: Int) {
        var input = input
        if let observer {
            observer.measure(input, UnsafeBufferPointer(start: products, count: count)) {
                ck_matmul(handle, kernels, &input, products, Int32(count))
            }
        } else {
            ck_matmul(handle, kernels, &input, products, Int32(count))
        }
    }

    /// Computes the products with some rows of a matrix, in ascending order.
    func multiply(_ input: Activations, _ product: UnsafePointer<Product>, rows: [TokenID]) {
        var input = input
        operation("products of some rows") { ck_matmul_rows(kernels, &input, product, rows, Int32(rows.count)) }
    }

    /// Adds the products with low-rank matrices of adapters.
    func addLowRankProducts(_ terms: [LowRankProduct]) {
        operation("adapters") { ck_add_low_rank_products(handle, kernels, terms, Int32(terms.count)) }
    }

    /// Decodes one row of a matrix.
    func copyRow(_ row: Int32, of matrix: Matrix, to output: Output) {
        var matrix = matrix
        operation("embeddings") { ck_matrix_row(&matrix, row, output) }
    }

    // MARK: - Rows

    /// The RMS norm of rows; without a weight, a copy. If `quantizes`, the rows of `rows` are quantized too.
    func normalize(_ x: Input, _ weight: Input?, epsilon: Float, to output: Output, _ rows: Activations, quantizes: Bool) {
        var rows = rows
        operation("norms") { ck_normalize(handle, kernels, x, weight, epsilon, output, &rows, quantizes) }
    }

    /// The same with the mean removed.
    func layerNormalize(
        _ x: Input, _ weight: Input, bias: Input?, epsilon: Float, to output: Output, _ rows: Activations, quantizes: Bool
    ) {
        var rows = rows
        operation("norms") { ck_layer_normalize(handle, kernels, x, weight, bias, epsilon, output, &rows, quantizes) }
    }

    /// The RMS norm of one row. A nil weight stands for ones.
    func normalizeRow(_ x: Input, _ weight: Input?, epsilon: Float, count: Int, to output: Output) {
        operation("norms") { kernels.pointee.rmsnorm(x, weight, epsilon, Int32(count), output) }
    }

    /// Quantizes rows for products with integer matrices.
    func quantize(_ rows: Activations) {
        var rows = rows
        operation("quantization") { ck_quantize(handle, kernels, &rows) }
    }

    /// residual += scale · norm(x + bias); overwrites `x`.
    func addToResidual(
        _ x: Output, bias: Input?, norm: Input?, epsilon: Float, scale: Float, to residual: Output, rows: Int, columns: Int
    ) {
        operation("sums") {
            ck_add_branch(handle, kernels, x, bias, norm, epsilon, scale, residual, Int32(rows), Int32(columns))
        }
    }

    func addBias(_ bias: Input, to x: Output, rows: Int, columns: Int) {
        operation("sums") { ck_add_bias(kernels, x, bias, Int32(rows), Int32(columns)) }
    }

    /// gate = activation(gate + gateBias) · (up + upBias)
    func activate(
        _ kind: ModelShape.Activation, _ gate: Output, up: Input?, gateBias: Input?, upBias: Input?, _ rows: Activations,
        quantizes: Bool
    ) {
        var rows = rows
        operation("activations") { ck_activate(handle, kernels, kind.callValue, gate, up, gateBias, upBias, &rows, quantizes) }
    }

    /// x = x · σ(gate)
    func multiplySigmoid(_ x: Output, _ gate: Input, rows: Int, columns: Int) {
        operation("activations") { ck_multiply_sigmoid(handle, x, gate, Int32(rows), Int32(columns)) }
    }

    /// Multiplies each row by σ(input row · vector).
    func scaleByGate(_ x: Output, rows: Int, columns: Int, input: Input, vector: Input, width: Int) {
        operation("activations") { ck_scale_by_gate(x, Int32(rows), Int32(columns), input, vector, Int32(width)) }
    }

    /// out = a · b, element by element; arrays with a stride.
    func multiplyElements(_ a: Strided<Input>, _ b: Strided<Input>, to output: Strided<Output>, rows: Int, columns: Int) {
        operation("activations") {
            ck_multiply(
                a.pointer, Int32(a.stride), b.pointer, Int32(b.stride), output.pointer, Int32(output.stride), Int32(rows),
                Int32(columns))
        }
    }

    func copyRows(_ from: Strided<Input>, to output: Strided<Output>, rows: Int, columns: Int) {
        operation("copies") {
            ck_copy_rows(
                from.pointer, Int32(from.stride), output.pointer, Int32(output.stride), Int32(rows), Int32(columns))
        }
    }

    // MARK: - Attention

    /// Biases, norms and rotation of queries and keys; writes keys and values to the KV cache.
    func rotateAndStore(_ calls: UnsafePointer<Rotation>, count: Int) {
        operation("keys and values") { ck_rotate_and_store(handle, kernels, calls, Int32(count)) }
    }

    func attend(_ calls: UnsafePointer<AttentionCall>, count: Int) {
        operation("attention") { ck_attend(handle, kernels, calls, Int32(count)) }
    }

    // MARK: - Experts

    /// Chooses the experts of each row: `chosen` and `weights` are `[rows][used]`. Overwrites the logits.
    func route(_ routing: Routing, _ logits: Output, rows: Int, chosen: UnsafeMutablePointer<Int32>, weights: Output) {
        var routing = routing
        operation("choice of experts") { ck_route(&routing, logits, Int32(rows), chosen, weights) }
    }

    /// Copies row `source[i]` to row i.
    func gather(_ from: Activations, _ source: UnsafePointer<Int32>, to output: Activations, quantized: Bool) {
        var (from, output) = (from, output)
        operation("copies") { ck_gather(handle, &from, source, &output, quantized) }
    }

    /// Adds the weighted outputs of the experts of each row.
    func combine(
        _ x: Input, _ place: UnsafePointer<Int32>, _ weights: Input, rows: Int, used: Int, columns: Int, to output: Output
    ) {
        operation("sums") { ck_combine(handle, x, place, weights, Int32(rows), Int32(used), Int32(columns), output) }
    }

    // MARK: - Recurrent layers

    /// A causal convolution of each channel, in place.
    func convolve(
        _ x: Strided<Output>, state: Output, kernel: Input, bias: Input?, rows: Int, channels: Int, width: Int, silu: Bool
    ) {
        operation("convolutions") {
            ck_convolve(
                handle, x.pointer, state, kernel, bias, Int32(rows), Int32(channels), Int32(x.stride), Int32(width), silu)
        }
    }

    func deltaNet(_ call: DeltaNetCall) {
        var call = call
        operation("recurrent layers") { ck_delta_net(handle, kernels, &call) }
    }

    func mambaScan(_ call: MambaCall) {
        var call = call
        operation("recurrent layers") { ck_mamba_scan(handle, kernels, &call) }
    }

    // MARK: - Logits

    /// x = cap · tanh(x / cap)
    func softCap(_ x: Output, _ cap: Float, count: Int) {
        operation("soft cap") { kernels.pointee.soft_cap(x, cap, Int32(count)) }
    }
}
