internal import CKernels

/// The tensors of a model, packed for the kernels in one block of memory.
///
/// Matrices are copied out of the file into interleaved panels (see `ck_layout`): 16 rows side by side make a
/// matrix–vector product several times faster than the file's row order. The file's pages are released as the copying
/// goes on, so that memory peaks at one copy of the model.
final class Weights {
    struct Layer {
        var attentionNorm: UnsafePointer<Float>
        var query: ck_matrix
        var key: ck_matrix
        var value: ck_matrix
        var output: ck_matrix
        var feedForwardNorm: UnsafePointer<Float>
        var gate: ck_matrix
        var up: ck_matrix
        var down: ck_matrix
    }

    /// [vocabulary][width]
    private(set) var embedding: ck_matrix
    /// [vocabulary][width]; the embedding where the file ties them.
    private(set) var head: ck_matrix
    private(set) var outputNorm: UnsafePointer<Float>
    private(set) var layers: [Layer] = []
    /// `rope_freqs.weight`, per rotated pair.
    private(set) var rotaryFactors: [Float]?
    /// Whether any matrix wants its activations as bytes.
    var wantsQuantizedActivations: Bool {
        ([embedding, head] + layers.flatMap { [$0.query, $0.key, $0.value, $0.output, $0.gate, $0.up, $0.down] })
            .contains { $0.layout.rawValue < CK_F16.rawValue }
    }
    /// Bytes of packed weights.
    var bytes: Int { memory.count }
    /// Bytes of weights that one generated token reads: all but the embedding table, unless that is the head too.
    private(set) var bytesPerToken = 0

    private let memory: Memory

    init(
        file: GGUFFile, configuration: ModelConfiguration, pool: WorkerPool, adapter: AdapterFile? = nil
    ) throws(ModelError) {
        var packer = try TensorPacker(file: file, adapter: adapter)
        memory = try Memory(bytes: packer.bytes, hugePages: true)
        packer.destination = memory.base
        let c = configuration
        let attentionWidth = c.heads * c.headDimension
        let kvWidth = c.kvHeads * c.headDimension
        embedding = try packer.matrix("token_embd.weight", rows: c.vocabularySize, columns: c.width, pool)
        if file.tensors["output.weight"] == nil {
            head = embedding
        } else {
            head = try packer.matrix("output.weight", rows: c.vocabularySize, columns: c.width, pool)
        }
        outputNorm = try packer.vector("output_norm.weight", count: c.width)
        if let factors = file.tensors["rope_freqs.weight"], factors.elementCount <= c.headDimension {
            rotaryFactors = try Array(
                UnsafeBufferPointer(
                    start: packer.vector("rope_freqs.weight", count: factors.elementCount), count: factors.elementCount))
        }
        layers.reserveCapacity(c.layers)
        for index in 0..<c.layers {
            func name(_ part: String) -> String { "blk.\(index).\(part)" }
            layers.append(
                Layer(
                    attentionNorm: try packer.vector(name("attn_norm.weight"), count: c.width),
                    query: try packer.matrix(name("attn_q.weight"), rows: attentionWidth, columns: c.width, pool),
                    key: try packer.matrix(name("attn_k.weight"), rows: kvWidth, columns: c.width, pool),
                    value: try packer.matrix(name("attn_v.weight"), rows: kvWidth, columns: c.width, pool),
                    output: try packer.matrix(name("attn_output.weight"), rows: c.width, columns: attentionWidth, pool),
                    feedForwardNorm: try packer.vector(name("ffn_norm.weight"), count: c.width),
                    gate: try packer.matrix(name("ffn_gate.weight"), rows: c.feedForwardWidth, columns: c.width, pool),
                    up: try packer.matrix(name("ffn_up.weight"), rows: c.feedForwardWidth, columns: c.width, pool),
                    down: try packer.matrix(name("ffn_down.weight"), rows: c.width, columns: c.feedForwardWidth, pool)))
        }
        try packer.checkAllUsed()
        let panels = { (m: ck_matrix) in (Int(m.rows) + 15) / 16 * m.panel_bytes }
        bytesPerToken = memory.count - (head.data == embedding.data ? 0 : panels(embedding))
    }
}

/// Copies tensors one after the other into the weights' memory and keeps account of what the file holds.
private struct TensorPacker {
    let file: GGUFFile
    /// Changes some of the matrices.
    let adapter: AdapterFile?
    /// Bytes that all tensors take when packed.
    let bytes: Int
    var destination: UnsafeMutableRawPointer?
    private var offset = 0
    private var used: Set<String> = []

    init(file: GGUFFile, adapter: AdapterFile?) throws(ModelError) {
        self.file = file
        self.adapter = adapter
        try adapter?.check(file)
        var bytes = 0
        for tensor in file.tensors.values { bytes += try Self.packedBytes(tensor, Self.packedType(tensor, adapter)) }
        self.bytes = bytes
    }

    /// The type that a tensor is packed from: a quantised matrix with an adapter's part in it gets eight bits.
    private static func packedType(_ tensor: GGUFTensor, _ adapter: AdapterFile?) -> TensorType {
        guard let adapter, adapter.targets.contains(tensor.name) else { return tensor.type }
        return ck_type_layout(tensor.type.kernelType).rawValue < CK_F16.rawValue ? .q8_0 : .f32
    }

    /// Matrices are packed, everything with one dimension becomes binary32.
    private static func packedBytes(_ tensor: GGUFTensor, _ type: TensorType) throws(ModelError) -> Int {
        if tensor.shape.count == 1 { return aligned(tensor.elementCount * 4) }
        guard tensor.shape.count == 2 else {
            throw .unsupported(
                field: "the shape of tensor \(tensor.name)", value: "\(tensor.shape)", supported: "one or two dimensions")
        }
        guard tensor.shape.allSatisfy({ $0 <= 1 << 24 }) else {
            throw .invalid(field: "the shape of tensor \(tensor.name)", reason: "is \(tensor.shape)")
        }
        let panel = ck_panel_bytes(ck_type_layout(type.kernelType), Int32(tensor.shape[0]))
        guard panel > 0 else {
            throw .unsupported(
                field: "the shape of tensor \(tensor.name)", value: "\(tensor.shape)", supported: "rows of whole blocks of 32")
        }
        return aligned((tensor.shape[1] + 15) / 16 * panel)
    }

    private static func aligned(_ bytes: Int) -> Int { (bytes + 63) / 64 * 64 }

    private mutating func claim(_ tensor: GGUFTensor) throws(ModelError) -> UnsafeMutableRawPointer {
        let size = try Self.packedBytes(tensor, Self.packedType(tensor, adapter))
        guard let destination, used.insert(tensor.name).inserted, offset + size <= bytes else {
            throw .invalid(field: "tensor \(tensor.name)", reason: "is asked for twice")
        }
        defer { offset += size }
        return destination + offset
    }

    mutating func matrix(_ name: String, rows: Int, columns: Int, _ pool: WorkerPool) throws(ModelError) -> ck_matrix {
        guard let tensor = file.tensors[name] else { throw .missing("tensor \(name)") }
        guard tensor.shape == [columns, rows] else {
            throw .invalid(field: "the shape of tensor \(name)", reason: "is \(tensor.shape), not \([columns, rows])")
        }
        let target = try claim(tensor).assumingMemoryBound(to: UInt8.self)
        guard let source = file.bytes(of: tensor).baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            throw .invalid(field: "tensor \(name)", reason: "is empty")
        }
        guard let adapter, adapter.targets.contains(name) else {
            defer { file.release(tensor) }
            return pack(source, tensor.type, rows, columns, into: target, pool)
        }
        var values = [Float](repeating: 0, count: rows * columns)
        ck_dequantize(tensor.type.kernelType, source, values.count, &values)
        adapter.merge(into: &values, of: name, rows: rows, columns: columns)
        file.release(tensor)
        let type = Self.packedType(tensor, adapter)
        var merged = [UInt8](repeating: 0, count: values.count / type.blockElements * type.blockBytes)
        if type == .q8_0 {
            ck_quantize_q8_0(values, values.count, &merged)
        } else {
            values.withUnsafeBytes { bytes in merged.withUnsafeMutableBytes { $0.copyMemory(from: bytes) } }
        }
        return merged.withUnsafeBufferPointer { merged in
            merged.baseAddress.map { pack($0, type, rows, columns, into: target, pool) } ?? ck_matrix()
        }
    }

    private func pack(
        _ source: UnsafePointer<UInt8>, _ tensorType: TensorType, _ rows: Int, _ columns: Int,
        into target: UnsafeMutablePointer<UInt8>, _ pool: WorkerPool
    ) -> ck_matrix {
        let type = tensorType.kernelType
        let layout = ck_type_layout(type)
        var job = PackJob(
            type: type, source: source,
            matrix: ck_matrix(
                rows: Int32(rows), columns: Int32(columns), layout: layout,
                scale: ck_type_scale(type, source, rows * columns / tensorType.blockElements),
                panel_bytes: ck_panel_bytes(layout, Int32(columns)), data: target),
            destination: target)
        let panels = (rows + 15) / 16
        job.panelsPerChunk = Int32(max(1, min(64, panels / (pool.threads * 4))))
        ck_pool_run(
            pool.handle, Int32((panels + Int(job.panelsPerChunk) - 1) / Int(job.panelsPerChunk)),
            { context, chunk in
                guard let job = context?.assumingMemoryBound(to: PackJob.self) else { return }
                let first = chunk * job.pointee.panelsPerChunk
                let last = min(first + job.pointee.panelsPerChunk, (job.pointee.matrix.rows + 15) / 16)
                ck_pack(job.pointee.type, job.pointee.source, &job.pointee.matrix, job.pointee.destination, first, last)
            }, &job)
        return job.matrix
    }

    mutating func vector(_ name: String, count: Int) throws(ModelError) -> UnsafePointer<Float> {
        guard let tensor = file.tensors[name] else { throw .missing("tensor \(name)") }
        guard tensor.shape == [count] else {
            throw .invalid(field: "the shape of tensor \(name)", reason: "is \(tensor.shape), not \([count])")
        }
        let target = try claim(tensor).assumingMemoryBound(to: Float.self)
        ck_dequantize(tensor.type.kernelType, file.bytes(of: tensor).baseAddress, count, target)
        return UnsafePointer(target)
    }

    /// A tensor that the forward pass does not know would change the model's meaning if it were left out in silence.
    func checkAllUsed() throws(ModelError) {
        for name in file.tensorNames where !used.contains(name) {
            throw .unsupported(field: "tensor", value: name, supported: "the tensors of the llama architecture")
        }
    }
}

/// What a packing chunk needs; lives on the caller's stack while the pool runs.
private struct PackJob {
    var type: ck_type
    var source: UnsafePointer<UInt8>
    var matrix: ck_matrix
    var destination: UnsafeMutablePointer<UInt8>
    var panelsPerChunk: Int32 = 1
}
