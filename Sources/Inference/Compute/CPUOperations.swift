internal import CKernels

/// The operations on the threads of a pool, with the kernels for its instruction set.
final class CPUOperations: Operations {
    private let pool: WorkerPool
    private var handle: OpaquePointer { pool.handle }
    private var kernels: UnsafePointer<ck_kernels> { pool.kernels }

    init(_ pool: WorkerPool) { self.pool = pool }

    var sumsBlocks: Bool { kernels.pointee.sums_blocks }

    // MARK: - Products

    func multiply(_ input: Activations, _ products: UnsafePointer<Product>, count: Int) {
        var input = input
        ck_matmul(handle, kernels, &input, products, Int32(count))
    }

    func multiply(_ input: Activations, _ product: UnsafePointer<Product>, rows: [TokenID]) {
        var input = input
        ck_matmul_rows(kernels, &input, product, rows, Int32(rows.count))
    }

    func addLowRankProducts(_ terms: [LowRankProduct]) { ck_add_low_rank_products(handle, kernels, terms, Int32(terms.count)) }

    func copyRow(_ row: Int32, of matrix: Matrix, to output: Output) {
        var matrix = matrix
        ck_matrix_row(&matrix, row, output)
    }

    // MARK: - Rows

    func normalize(_ x: Input, _ weight: Input?, epsilon: Float, to output: Output, _ rows: Activations, quantizes: Bool) {
        var rows = rows
        ck_normalize(handle, kernels, x, weight, epsilon, output, &rows, quantizes)
    }

    func layerNormalize(
        _ x: Input, _ weight: Input, bias: Input?, epsilon: Float, to output: Output, _ rows: Activations, quantizes: Bool
    ) {
        var rows = rows
        ck_layer_normalize(handle, kernels, x, weight, bias, epsilon, output, &rows, quantizes)
    }

    func normalizeRow(_ x: Input, _ weight: Input?, epsilon: Float, count: Int, to output: Output) {
        kernels.pointee.rmsnorm(x, weight, epsilon, Int32(count), output)
    }

    func quantize(_ rows: Activations) {
        var rows = rows
        ck_quantize(handle, kernels, &rows)
    }

    func addToResidual(
        _ x: Output, bias: Input?, norm: Input?, epsilon: Float, scale: Float, to residual: Output, rows: Int, columns: Int
    ) {
        ck_add_branch(handle, kernels, x, bias, norm, epsilon, scale, residual, Int32(rows), Int32(columns))
    }

    func addBias(_ bias: Input, to x: Output, rows: Int, columns: Int) {
        ck_add_bias(kernels, x, bias, Int32(rows), Int32(columns))
    }

    func activate(
        _ kind: ModelShape.Activation, _ gate: Output, up: Input?, gateBias: Input?, upBias: Input?, _ rows: Activations,
        quantizes: Bool
    ) {
        var rows = rows
        ck_activate(handle, kernels, kind.callValue, gate, up, gateBias, upBias, &rows, quantizes)
    }

    func multiplySigmoid(_ x: Output, _ gate: Input, rows: Int, columns: Int) {
        ck_multiply_sigmoid(handle, x, gate, Int32(rows), Int32(columns))
    }

    func scaleByGate(_ x: Output, rows: Int, columns: Int, input: Input, vector: Input, width: Int) {
        ck_scale_by_gate(x, Int32(rows), Int32(columns), input, vector, Int32(width))
    }

    func multiplyElements(_ a: Strided<Input>, _ b: Strided<Input>, to output: Strided<Output>, rows: Int, columns: Int) {
        ck_multiply(
            a.pointer, Int32(a.stride), b.pointer, Int32(b.stride), output.pointer, Int32(output.stride), Int32(rows),
            Int32(columns))
    }

    func copyRows(_ from: Strided<Input>, to output: Strided<Output>, rows: Int, columns: Int) {
        ck_copy_rows(
            from.pointer, Int32(from.stride), output.pointer, Int32(output.stride), Int32(rows), Int32(columns))
    }

    // MARK: - Attention

    func rotateAndStore(_ calls: UnsafePointer<Rotation>, count: Int) {
        ck_rotate_and_store(handle, kernels, calls, Int32(count))
    }

    func attend(_ calls: UnsafePointer<AttentionCall>, count: Int) { ck_attend(handle, kernels, calls, Int32(count)) }

    // MARK: - Experts

    func route(_ routing: Routing, _ logits: Output, rows: Int, chosen: UnsafeMutablePointer<Int32>, weights: Output) {
        var routing = routing
        ck_route(&routing, logits, Int32(rows), chosen, weights)
    }

    func gather(_ from: Activations, _ source: UnsafePointer<Int32>, to output: Activations, quantized: Bool) {
        var (from, output) = (from, output)
        ck_gather(handle, &from, source, &output, quantized)
    }

    func combine(
        _ x: Input, _ place: UnsafePointer<Int32>, _ weights: Input, rows: Int, used: Int, columns: Int, to output: Output
    ) {
        ck_combine(handle, x, place, weights, Int32(rows), Int32(used), Int32(columns), output)
    }

    // MARK: - Recurrent layers

    func convolve(
        _ x: Strided<Output>, state: Output, kernel: Input, bias: Input?, rows: Int, channels: Int, width: Int, silu: Bool
    ) {
        ck_convolve(
            handle, x.pointer, state, kernel, bias, Int32(rows), Int32(channels), Int32(x.stride), Int32(width), silu)
    }

    func deltaNet(_ call: DeltaNetCall) {
        var call = call
        ck_delta_net(handle, kernels, &call)
    }

    func mambaScan(_ call: MambaCall) {
        var call = call
        ck_mamba_scan(handle, kernels, &call)
    }

    // MARK: - Logits

    func softCap(_ x: Output, _ cap: Float, count: Int) { kernels.pointee.soft_cap(x, cap, Int32(count)) }
}

extension ModelShape.Activation {
    fileprivate var callValue: ck_activation {
        switch self {
        case .silu: CK_SILU
        case .gelu: CK_GELU
        case .exactGelu: CK_GELU_ERF
        case .reluSquared: CK_RELU_SQUARED
        case .swigluOAI: CK_SWIGLU_OAI
        }
    }
}
