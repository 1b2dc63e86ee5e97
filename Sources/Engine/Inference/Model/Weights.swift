internal import CKernels  // structures of calls

/// A model's tensors and their memory.
final class Weights {
    let tensors: ModelTensors
    /// One table for each of the shape's rotary embeddings.
    let rotaries: [RotaryTable]
    /// Whether any matrix requires activations quantised to 8 bits.
    let wantsQuantizedActivations: Bool
    /// Whether any matrix has integer scales for 256 columns.
    let hasBlockScales: Bool
    /// The size of the packed weights in bytes.
    var bytes: Int { memory.count }
    /// The number of bytes of matrices that one generated token reads: all except the embedding table, unless it is
    /// also the output head; of experts, only the share in use.
    let bytesPerToken: Int
    /// Whether the packed weights were read from the cache.
    let wasCached: Bool

    private let memory: PackedMemory
    /// Of a prediction head: those of the model, some of which it uses.
    private let model: Weights?
    /// Where the matrices come from, by their `identity`.
    let origins: [MatrixOrigin]

    /// - Parameter cache: the cache of packed weights; nil for private memory. Not used with an adapter.
    convenience init(
        file: GGUFFile, shape: ModelShape, pool: WorkerPool, adapter: AdapterFile? = nil, cache: PackedCache? = nil,
        isCancelled: @escaping () -> Bool = { false }
    ) throws(ModelError) {
        try adapter?.check(file)
        let bytes = try Self.check(file, shape, pool, adapter)
        let cached = adapter == nil ? cache?.memory(for: file, bytes: bytes) : nil
        let memory = if let cached { cached } else { try PackedMemory(bytes: bytes) }
        var packer = TensorPacker(
            file: file, adapter: adapter, pool: pool, base: memory.base, isPacked: memory.isFilled,
            isCancelled: isCancelled)
        try self.init(file, shape, ModelTensors(shape, &packer), packer, memory, after: nil)
    }

    /// The weights of a prediction head, which is a layer of the file.
    convenience init(
        predicting shape: ModelShape, layer: Int, after model: Weights, file: GGUFFile, pool: WorkerPool
    ) throws(ModelError) {
        var packer = TensorPacker(file: file, adapter: nil, pool: pool)
        _ = try ModelTensors(predicting: shape, layer: layer, after: model.tensors, &packer)
        let memory = try PackedMemory(bytes: packer.bytes)
        packer = TensorPacker(file: file, adapter: nil, pool: pool, base: memory.base)
        let tensors = try ModelTensors(predicting: shape, layer: layer, after: model.tensors, &packer)
        try self.init(file, shape, tensors, packer, memory, after: model)
    }

    private init(
        _ file: GGUFFile, _ shape: ModelShape, _ tensors: ModelTensors, _ packer: TensorPacker, _ memory: PackedMemory,
        after model: Weights?
    ) throws(ModelError) {
        (self.memory, self.tensors, self.model) = (memory, tensors, model)
        wasCached = memory.isFilled
        origins = packer.origins
        memory.finish()
        wantsQuantizedActivations = packer.hasIntegerMatrices || model?.wantsQuantizedActivations == true
        hasBlockScales = packer.hasBlockScales || model?.hasBlockScales == true
        bytesPerToken = Self.bytesPerToken(shape, tensors)
        func values(_ name: TensorName?) throws(ModelError) -> [Float]? {
            guard let name, let tensor = file.tensors[name.weight] else { return nil }
            return try file.values(of: tensor)
        }
        var rotaries: [RotaryTable] = []
        for rotary in shape.rotaries {
            rotaries.append(
                RotaryTable(rotary, factors: try values(rotary.factors), longFactors: try values(rotary.longFactors)))
        }
        self.rotaries = rotaries
    }

    /// Checks that a file has all tensors of its architecture, with the right shapes, and no others. Returns the bytes of the packed weights.
    @discardableResult
    static func check(_ file: GGUFFile, _ shape: ModelShape, _ pool: WorkerPool, _ adapter: AdapterFile? = nil) throws(ModelError)
        -> Int
    {
        var measuring = TensorPacker(file: file, adapter: adapter, pool: pool)
        _ = try ModelTensors(shape, &measuring)
        try measuring.checkAllUsed(layers: shape.layers.count, architecture: shape.architecture)
        return measuring.bytes
    }

    /// The same for a model that is not loaded.
    static func bytesPerToken(file: GGUFFile, shape: ModelShape, pool: WorkerPool) throws(ModelError) -> Int {
        var measuring = TensorPacker(file: file, adapter: nil, pool: pool)
        return bytesPerToken(shape, try ModelTensors(shape, &measuring))
    }

    private static func bytesPerToken(_ shape: ModelShape, _ tensors: ModelTensors) -> Int {
        func size(_ matrix: Matrix?) -> Int { matrix?.bytes ?? 0 }
        func size(_ matrices: [Matrix]) -> Int { matrices.reduce(0) { $0 + size($1) } }
        var bytes = size(tensors.head) + size(tensors.perLayerInput?.projection) + size(tensors.prediction?.input)
        for (layer, described) in zip(tensors.layers, shape.layers) {
            switch layer.mixer {
            case .attention(let a): bytes += size([a.query, a.output]) + size(a.gate) + size(a.key) + size(a.value)
            case .latent(let a):
                bytes += size([a.query, a.keyValueDown, a.output]) + size(a.queryDown) + size(a.keyUp) + size(a.valueUp)
            case .delta(let d): bytes += size([d.mixed, d.gate, d.beta, d.alpha, d.output])
            case .mamba(let m): bytes += size([m.input, m.output])
            case .convolution(let c): bytes += size([c.input, c.output])
            case nil: break
            }
            if let dense = layer.dense { bytes += size(dense.gate) + size([dense.up, dense.down]) }
            if let experts = layer.experts, let e = described.feedForward?.experts {
                bytes += size(experts.router) + (size(experts.gate) + size(experts.up) + size(experts.down)) * e.used / e.count
            }
            bytes += size(layer.perLayer?.gate) + size(layer.perLayer?.projection)
        }
        return bytes
    }
}
