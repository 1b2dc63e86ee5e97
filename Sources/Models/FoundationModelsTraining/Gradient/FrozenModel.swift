internal import CKernels
internal import Foundation
package import Inference

/// A matrix of a model as it is in the file: rows of quantised blocks.
struct FrozenMatrix {
    let name: String
    let rows: Int
    let columns: Int
    let type: ck_type
    let rowBytes: Int
    let data: UnsafePointer<UInt8>
    /// The factor of products, which some files have for each matrix.
    var scale: Float = 1

    /// One row, decoded.
    func decode(row: Int, to output: UnsafeMutablePointer<Float>) {
        ck_dequantize(type, data + row * rowBytes, columns, output)
    }
}

/// The weights of a model for training: as they are in the file, and never changed. They are read into memory, not mapped: a file that
/// shrinks during a run of hours would end the process. Only families whose layers consist of attention and a dense
/// feed-forward network are supported.
package final class FrozenModel: @unchecked Sendable {  // Nothing is written after `init`.
    /// A matrix with its bias, and the outputs that it has in a buffer with the outputs of other matrices.
    struct Projection {
        var matrix: FrozenMatrix
        var bias: [Float]?
        /// The first column of its outputs.
        var offset: Int
    }

    struct Layer {
        var attention: ModelShape.Attention
        var dense: ModelShape.Dense
        var activation: ck_activation
        var mixerNorm: [Float]?
        var mixerPostNorm: [Float]?
        var queryNorm: [Float]?
        var keyNorm: [Float]?
        /// Queries, keys and values, in this order, as one matrix or three.
        var inputs: [Projection]
        var output: Projection
        var denseNorm: [Float]?
        var densePostNorm: [Float]?
        /// The gate and the input that it multiplies, as one matrix or two; without a gate, the input only.
        var gates: [Projection]
        var down: Projection

        var projections: [Projection] { inputs + [output] + gates + [down] }
        var queryWidth: Int { attention.heads * attention.keyDimension }
        var keyWidth: Int { attention.kvHeads * attention.keyDimension }
        var valueWidth: Int { attention.kvHeads * attention.valueDimension }
        var inputWidth: Int { queryWidth + keyWidth + valueWidth }
        var attendedWidth: Int { attention.heads * attention.valueDimension }
        var gateWidth: Int { dense.isGated ? 2 * dense.width : dense.width }
    }

    package let shape: ModelShape
    let file: GGUFFile
    let embedding: FrozenMatrix
    let head: FrozenMatrix
    let headBias: [Float]?
    let outputNorm: [Float]?
    let layers: [Layer]
    let rotaries: [RotaryTable]
    private let memory: [Memory]

    /// All matrices that are multiplied.
    var matrices: [FrozenMatrix] { layers.flatMap { $0.projections.map(\.matrix) } + [head] }

    /// - Throws: ``TrainingError/unsupportedModel(_:)`` for a family that cannot be trained, ``TrainingError/damagedModel(_:)`` if a tensor
    ///   is missing or has another shape.
    package convenience init(path: String) throws(TrainingError) {
        do {
            try self.init(opening: path)
        } catch let error as TrainingError {
            throw error
        } catch {
            throw .damagedModel("\(error)")
        }
    }

    private init(opening path: String) throws {
        let file = try GGUFFile(path: path)
        let shape = try ModelShape(file: file)
        try Self.check(shape)
        self.file = file
        self.shape = shape
        var memory: [Memory] = []

        func vector(_ name: String, count: Int) throws -> [Float]? {
            guard let tensor = file.tensors[name] else { return nil }
            guard tensor.elementCount == count else {
                throw ModelError.invalid(field: "tensor \(name)", reason: "has \(tensor.elementCount) numbers, not \(count)")
            }
            return try file.values(of: tensor)
        }
        func matrix(_ name: String, rows: Int, columns: Int) throws -> FrozenMatrix {
            guard let tensor = file.tensors[name] else { throw ModelError.missing("tensor \(name)") }
            guard tensor.shape == [columns, rows] else {
                throw ModelError.invalid(field: "tensor \(name)", reason: "has the shape \(tensor.shape), not \([columns, rows])")
            }
            let data = try file.memory(of: tensor)
            memory.append(data)
            let scale = try vector(name.replacingOccurrences(of: ".weight", with: ".scale"), count: 1)
            return FrozenMatrix(
                name: name, rows: rows, columns: columns, type: ck_type(rawValue: tensor.type.rawValue),
                rowBytes: columns / tensor.type.blockElements * tensor.type.blockBytes,
                data: UnsafePointer(data.base.assumingMemoryBound(to: UInt8.self)),
                scale: scale?.first ?? 1)
        }
        func required(_ name: String, count: Int) throws -> [Float] {
            guard let values = try vector(name, count: count) else { throw ModelError.missing("tensor \(name)") }
            return values
        }
        let width = shape.width
        embedding = try matrix(TensorName.tokenEmbedding.weight, rows: shape.vocabularySize, columns: width)
        head =
            file.tensors[TensorName.output.weight] == nil
            ? embedding : try matrix(TensorName.output.weight, rows: shape.vocabularySize, columns: width)
        headBias = try vector(TensorName.output.bias, count: shape.vocabularySize)
        outputNorm = try shape.outputNorm.map { try required($0.weight, count: width) }
        rotaries = try shape.rotaries.map { rotary in
            func factors(_ name: TensorName?) throws -> [Float]? {
                guard let name, let tensor = file.tensors[name.weight] else { return nil }
                return try file.values(of: tensor)
            }
            return RotaryTable(rotary, factors: try factors(rotary.factors), longFactors: try factors(rotary.longFactors))
        }
        layers = try shape.layers.enumerated().map { index, described in
            guard case .attention(let a) = described.mixer, let f = described.feedForward, let dense = f.dense,
                let activation = dense.activation.trainingValue
            else {
                throw TrainingError.unsupportedModel("layer \(index) is not attention and a dense feed-forward network")
            }
            let names = LayerNames(index)
            func projection(
                _ name: TensorName, rows: Int, columns: Int, offset: Int = 0, hasBias: Bool = true
            ) throws -> Projection {
                Projection(
                    matrix: try matrix(names(name), rows: rows, columns: columns),
                    bias: hasBias ? try vector(names(name, .bias), count: rows) : nil, offset: offset)
            }
            func norm(_ name: TensorName?, count: Int) throws -> [Float]? {
                try name.map { try required(names($0), count: count) }
            }
            let (queries, keys, values) = (
                a.heads * a.keyDimension, a.kvHeads * a.keyDimension, a.kvHeads * a.valueDimension
            )
            var inputs: [Projection]
            if file.tensors[names(.queryKeyValue)] != nil {
                inputs = [try projection(.queryKeyValue, rows: queries + keys + values, columns: width)]
            } else {
                inputs = [
                    try projection(.query, rows: queries, columns: width),
                    try projection(.key, rows: keys, columns: width, offset: queries),
                    try projection(.value, rows: values, columns: width, offset: queries + keys),
                ]
            }
            var gates: [Projection]
            if !dense.isGated {
                gates = [try projection(.up, rows: dense.width, columns: width)]
            } else if file.tensors[names(.gate)] == nil {
                gates = [try projection(.up, rows: 2 * dense.width, columns: width)]
            } else {
                gates = [
                    try projection(.gate, rows: dense.width, columns: width),
                    try projection(.up, rows: dense.width, columns: width, offset: dense.width),
                ]
            }
            let isWhole = a.headNorm == .whole
            return Layer(
                attention: a, dense: dense, activation: activation, mixerNorm: try norm(described.mixerNorm, count: width),
                mixerPostNorm: try norm(described.mixerPostNorm, count: width),
                queryNorm: a.headNorm == .none
                    ? nil : try norm(.queryNorm, count: isWhole ? queries : a.keyDimension),
                keyNorm: a.headNorm == .none ? nil : try norm(.keyNorm, count: isWhole ? keys : a.keyDimension),
                inputs: inputs,
                output: try projection(
                    .attentionOutput, rows: width, columns: a.heads * a.valueDimension,
                    hasBias: !shape.ignoresOutputBias),
                denseNorm: try norm(f.norm, count: width), densePostNorm: try norm(f.postNorm, count: width), gates: gates,
                down: try projection(.down, rows: width, columns: dense.width))
        }
        self.memory = memory
    }

    /// What the gradient does not support, by name.
    private static func check(_ shape: ModelShape) throws(TrainingError) {
        func refuse(_ what: String) throws(TrainingError) -> Never {
            throw .unsupportedModel("\(shape.architecture) models have \(what)")
        }
        if shape.isEncoder { try refuse("no output head") }
        if shape.norm != .rms { try refuse("layer norms") }
        if shape.perLayerWidth > 0 { try refuse("embeddings for each layer") }
        for layer in shape.layers {
            guard case .attention(let a) = layer.mixer else { try refuse("layers that are not attention") }
            if layer.feedForward?.experts != nil { try refuse("experts") }
            guard let f = layer.feedForward, let dense = f.dense else { try refuse("layers without a feed-forward network") }
            if a.hasSinks { try refuse("attention sinks") }
            if a.isGated { try refuse("gated attention") }
            if a.normalizesValues || a.valuesAreKeys || a.sharedLayer != nil { try refuse("shared or normalised values") }
            if dense.outputGate != nil || dense.postNorm != nil || dense.isShared { try refuse("shared experts") }
            if layer.outputScale != nil { try refuse("scaled layers") }
            if layer.mixerResidualNorm != nil || f.residualNorm != nil { try refuse("norms of the residual stream") }
            if dense.activation.trainingValue == nil { try refuse("another activation function") }
        }
    }
}

extension ModelShape.Activation {
    /// Nil for functions whose gradients the kernels do not have: models with them are refused before they are trained.
    var trainingValue: ck_activation? {
        switch self {
        case .silu: CK_SILU
        case .gelu: CK_GELU
        case .reluSquared: CK_RELU_SQUARED
        case .exactGelu, .swigluOAI: nil
        }
    }
}
