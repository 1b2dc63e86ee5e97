internal import CKernels  // structures of calls

/// The time of all calls of one kind of operation.
package struct OperationTime: Sendable {
    package var name: String
    package var calls = 0
    package var seconds = 0.0
    /// The bytes of weights that were read.
    package var weightBytes = 0
}

/// One call of an operation.
struct OperationCall {
    var name: String
    var seconds: Double
    /// The matrices that were multiplied, and the rows of activations.
    var matrices: [(data: UnsafeRawPointer?, bytes: Int, weights: Int)] = []
    var rows = 0
}

/// Measures the operations of another back end, for a profile of the forward pass.
final class TimedOperations: Operations {
    private let base: any Operations
    private(set) var times: [OperationTime] = []
    /// All calls in order, if they are recorded.
    private(set) var calls: [OperationCall]?
    /// Called with the input of each product before it is computed.
    private let observe: ((Activations, Matrix) -> Void)?

    init(_ base: any Operations, recordsCalls: Bool = false, observe: ((Activations, Matrix) -> Void)? = nil) {
        self.base = base
        self.observe = observe
        calls = recordsCalls ? [] : nil
    }

    private func measure<Result>(
        _ name: String, weightBytes: Int = 0, rows: Int = 0, _ matrices: @autoclosure () -> [Matrix] = [], _ body: () -> Result
    ) -> Result {
        let start = ContinuousClock.now
        let result = body()
        let seconds = (ContinuousClock.now - start).seconds
        if calls != nil {
            calls?.append(
                OperationCall(
                    name: name, seconds: seconds,
                    matrices: matrices().map { (UnsafeRawPointer($0.data), $0.bytes, Int($0.rows) * Int($0.columns)) }, rows: rows
                ))
        }
        let index = times.firstIndex { $0.name == name } ?? times.count
        if index == times.count { times.append(OperationTime(name: name)) }
        times[index].calls += 1
        times[index].seconds += seconds
        times[index].weightBytes += weightBytes
        return result
    }

    var sumsBlocks: Bool { base.sumsBlocks }

    func multiply(_ input: Activations, _ products: UnsafePointer<Product>, count: Int) {
        if let observe {
            for index in 0..<count { observe(products[index].activations?.pointee ?? input, products[index].matrix) }
        }
        let bytes = (0..<count).reduce(0) { $0 + products[$1].matrix.bytes }
        measure("products", weightBytes: bytes, rows: Int(input.count), (0..<count).map { products[$0].matrix }) {
            base.multiply(input, products, count: count)
        }
    }

    func multiply(_ input: Activations, _ product: UnsafePointer<Product>, rows: [TokenID]) {
        measure("products of some rows") { base.multiply(input, product, rows: rows) }
    }

    func addLowRankProducts(_ terms: [LowRankProduct]) { measure("adapters") { base.addLowRankProducts(terms) } }

    func copyRow(_ row: Int32, of matrix: Matrix, to output: Output) {
        measure("embeddings") { base.copyRow(row, of: matrix, to: output) }
    }

    func normalize(_ x: Input, _ weight: Input?, epsilon: Float, to output: Output, _ rows: Activations, quantizes: Bool) {
        measure("norms") { base.normalize(x, weight, epsilon: epsilon, to: output, rows, quantizes: quantizes) }
    }

    func layerNormalize(
        _ x: Input, _ weight: Input, bias: Input?, epsilon: Float, to output: Output, _ rows: Activations, quantizes: Bool
    ) {
        measure("norms") {
            base.layerNormalize(x, weight, bias: bias, epsilon: epsilon, to: output, rows, quantizes: quantizes)
        }
    }

    func normalizeRow(_ x: Input, _ weight: Input?, epsilon: Float, count: Int, to output: Output) {
        measure("norms") { base.normalizeRow(x, weight, epsilon: epsilon, count: count, to: output) }
    }

    func quantize(_ rows: Activations) { measure("quantization") { base.quantize(rows) } }

    func addToResidual(
        _ x: Output, bias: Input?, norm: Input?, epsilon: Float, scale: Float, to residual: Output, rows: Int, columns: Int
    ) {
        measure("sums") {
            base.addToResidual(
                x, bias: bias, norm: norm, epsilon: epsilon, scale: scale, to: residual, rows: rows, columns: columns)
        }
    }

    func addBias(_ bias: Input, to x: Output, rows: Int, columns: Int) {
        measure("sums") { base.addBias(bias, to: x, rows: rows, columns: columns) }
    }

    func activate(
        _ kind: ModelShape.Activation, _ gate: Output, up: Input?, gateBias: Input?, upBias: Input?, _ rows: Activations,
        quantizes: Bool
    ) {
        measure("activations") {
            base.activate(kind, gate, up: up, gateBias: gateBias, upBias: upBias, rows, quantizes: quantizes)
        }
    }

    func multiplySigmoid(_ x: Output, _ gate: Input, rows: Int, columns: Int) {
        measure("activations") { base.multiplySigmoid(x, gate, rows: rows, columns: columns) }
    }

    func scaleByGate(_ x: Output, rows: Int, columns: Int, input: Input, vector: Input, width: Int) {
        measure("activations") {
            base.scaleByGate(x, rows: rows, columns: columns, input: input, vector: vector, width: width)
        }
    }

    func multiplyElements(_ a: Strided<Input>, _ b: Strided<Input>, to output: Strided<Output>, rows: Int, columns: Int) {
        measure("activations") { base.multiplyElements(a, b, to: output, rows: rows, columns: columns) }
    }

    func copyRows(_ from: Strided<Input>, to output: Strided<Output>, rows: Int, columns: Int) {
        measure("copies") { base.copyRows(from, to: output, rows: rows, columns: columns) }
    }

    func rotateAndStore(_ calls: UnsafePointer<Rotation>, count: Int) {
        measure("keys and values") { base.rotateAndStore(calls, count: count) }
    }

    func attend(_ calls: UnsafePointer<AttentionCall>, count: Int) {
        measure("attention") { base.attend(calls, count: count) }
    }

    func route(_ routing: Routing, _ logits: Output, rows: Int, chosen: UnsafeMutablePointer<Int32>, weights: Output) {
        measure("choice of experts") { base.route(routing, logits, rows: rows, chosen: chosen, weights: weights) }
    }

    func gather(_ from: Activations, _ source: UnsafePointer<Int32>, to output: Activations, quantized: Bool) {
        measure("copies") { base.gather(from, source, to: output, quantized: quantized) }
    }

    func combine(
        _ x: Input, _ place: UnsafePointer<Int32>, _ weights: Input, rows: Int, used: Int, columns: Int, to output: Output
    ) {
        measure("sums") { base.combine(x, place, weights, rows: rows, used: used, columns: columns, to: output) }
    }

    func convolve(
        _ x: Strided<Output>, state: Output, kernel: Input, bias: Input?, rows: Int, channels: Int, width: Int, silu: Bool
    ) {
        measure("convolutions") {
            base.convolve(
                x, state: state, kernel: kernel, bias: bias, rows: rows, channels: channels, width: width, silu: silu)
        }
    }

    func deltaNet(_ call: DeltaNetCall) { measure("recurrent layers") { base.deltaNet(call) } }
    func mambaScan(_ call: MambaCall) { measure("recurrent layers") { base.mambaScan(call) } }
    func softCap(_ x: Output, _ cap: Float, count: Int) { measure("soft cap") { base.softCap(x, cap, count: count) } }
}
