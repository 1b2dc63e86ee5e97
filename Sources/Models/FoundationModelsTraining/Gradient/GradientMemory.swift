internal import CKernels
internal import Foundation
internal import Inference

/// What a layer computes between its input and its output.
final class LayerState {
    let normed, attentionInput, raw, attended, lse, attentionOutput, middle, denseInput, gates, hidden, denseOutput: Buffer
    /// x · Aᵀ of each matrix.
    let low: [Buffer]

    init(_ size: LayerSize, rows: Int, rank: Int) throws(TrainingError) {
        normed = try Buffer(rows * size.width)
        attentionInput = try Buffer(rows * size.input)
        raw = try Buffer(rows * size.raw)
        attended = try Buffer(rows * size.attended)
        lse = try Buffer(rows * size.heads)
        attentionOutput = try Buffer(rows * size.mixerOutput)
        middle = try Buffer(rows * size.width)
        denseInput = try Buffer(rows * size.width)
        gates = try Buffer(rows * size.gates)
        hidden = try Buffer(rows * size.dense)
        denseOutput = try Buffer(rows * size.denseOutput)
        var low: [Buffer] = []
        for _ in 0..<size.projections { low.append(try Buffer(rows * rank)) }
        self.low = low
    }
}

/// The numbers of columns that a layer computes.
struct LayerSize {
    var width, input, raw, attended, heads, mixerOutput, gates, dense, denseOutput, projections: Int

    init(_ layer: FrozenModel.Layer, width: Int) {
        self.width = width
        input = layer.inputWidth
        raw = layer.attention.headNorm == .none ? 0 : layer.inputWidth
        attended = layer.attendedWidth
        heads = layer.attention.heads
        mixerOutput = layer.mixerPostNorm == nil ? 0 : width
        gates = layer.gateWidth
        dense = layer.dense.width
        denseOutput = layer.densePostNorm == nil ? 0 : width
        projections = layer.projections.count
    }

    /// Enough for both: layers of a model may differ.
    mutating func cover(_ other: LayerSize) {
        input = max(input, other.input)
        raw = max(raw, other.raw)
        attended = max(attended, other.attended)
        heads = max(heads, other.heads)
        mixerOutput = max(mixerOutput, other.mixerOutput)
        gates = max(gates, other.gates)
        dense = max(dense, other.dense)
        denseOutput = max(denseOutput, other.denseOutput)
        projections = max(projections, other.projections)
    }

    static func largest(of layers: ArraySlice<FrozenModel.Layer>, width: Int) -> LayerSize? {
        var size: LayerSize?
        for layer in layers {
            let own = LayerSize(layer, width: width)
            size?.cover(own)
            if size == nil { size = own }
        }
        return size
    }

    func floats(rows: Int, rank: Int) -> Int {
        rows * (3 * width + input + raw + attended + heads + mixerOutput + gates + dense + denseOutput + projections * rank)
    }
}

/// Memory for products and gradients within a layer.
final class Workspace {
    let operand: UnsafeMutableRawPointer
    let small: UnsafeMutableRawPointer
    let low, wide, other, branch: Buffer
    var attention: Buffer
    /// Nil if no product has operands of 8 bits.
    let quantized: QuantizedRows?

    init(_ model: FrozenModel, rows: Int, rank: Int, quantizes pool: WorkerPool?) throws(TrainingError) {
        let widest = Self.widest(model)
        func bytes(_ count: Int, _ k: Int) -> Int { ck_training_panel_bytes(Int32(count), Int32(k), false) }
        operand = .allocate(
            byteCount: max(64, bytes(rows, widest), bytes(GradientPass.headChunk(model), model.shape.width)), alignment: 64)
        small = .allocate(byteCount: max(64, bytes(rows, rank), bytes(rank, rows)), alignment: 64)
        low = try Buffer(rows * rank)
        wide = try Buffer(max(rows * widest, GradientPass.headChunk(model) * 256))
        other = try Buffer(rows * widest)
        branch = try Buffer(rows * model.shape.width)
        attention = try Buffer(0)
        let elements = max(
            min(rows, GradientPass.integerRows) * widest, GradientPass.headChunk(model) * model.shape.vocabularySize)
        do { quantized = try pool.map { try QuantizedRows(elements: elements, pool: $0) } } catch {
            throw .outOfMemory(bytes: QuantizedRows.bytes(elements: elements))
        }
    }

    /// The largest number of columns that a product of any layer has.
    private static func widest(_ model: FrozenModel) -> Int {
        model.layers.reduce(model.shape.width) { max($0, $1.gateWidth, $1.inputWidth, $1.dense.width, $1.attendedWidth) }
    }

    deinit {
        operand.deallocate()
        small.deallocate()
    }

    static func floats(_ model: FrozenModel, rows: Int, rank: Int) -> Int {
        let widest = Self.widest(model)
        return rows * (3 * widest + model.shape.width + 3 * rank)
    }
}
