internal import CKernels

/// Scratch memory of the forward pass, allocated once: every buffer has room for a whole batch of rows.
final class Activations {
    let batch: Int
    /// Rotated pairs per head.
    let pairs: Int
    /// Whether inputs of products are also kept as bytes.
    let quantizes: Bool

    let residual: UnsafeMutablePointer<Float>  // [batch][width]
    let normed: UnsafeMutablePointer<Float>  // [batch][width]
    let query: UnsafeMutablePointer<Float>  // [batch][heads · headDimension]
    let key: UnsafeMutablePointer<Float>  // [batch][kvHeads · headDimension]
    let value: UnsafeMutablePointer<Float>  // [batch][kvHeads · headDimension]
    let attended: UnsafeMutablePointer<Float>  // [batch][heads · headDimension]
    let gate: UnsafeMutablePointer<Float>  // [batch][feedForwardWidth]
    let up: UnsafeMutablePointer<Float>  // [batch][feedForwardWidth]
    let logits: UnsafeMutablePointer<Float>  // [vocabulary]
    let cosine: UnsafeMutablePointer<Float>  // [batch][pairs]
    let sine: UnsafeMutablePointer<Float>  // [batch][pairs]
    /// The products of one parallel region.
    let products: UnsafeMutablePointer<ck_product>

    /// `normed`, `attended` and `gate` as inputs of products.
    var normedRows: ck_activations
    var attendedRows: ck_activations
    var gatedRows: ck_activations
    var rotation: ck_rotation
    var attention: ck_attention

    private let configuration: ModelConfiguration
    private let memory: Memory

    init(_ c: ModelConfiguration, batch: Int, quantizes: Bool) throws(ModelError) {
        configuration = c
        self.batch = batch
        self.quantizes = quantizes
        pairs = c.rotaryDimensions / 2
        let attentionWidth = c.heads * c.headDimension
        let kvWidth = c.kvHeads * c.headDimension
        var layout = MemoryLayouter()
        func floats(_ count: Int) -> Int { layout.reserve(count, of: Float.self) }
        let offsets = [
            floats(batch * c.width), floats(batch * c.width), floats(batch * attentionWidth), floats(batch * kvWidth),
            floats(batch * kvWidth), floats(batch * attentionWidth), floats(batch * c.feedForwardWidth),
            floats(batch * c.feedForwardWidth), floats(c.vocabularySize), floats(batch * pairs), floats(batch * pairs),
        ]
        let productOffset = layout.reserve(4, of: ck_product.self)
        let rowLayouts = [c.width, attentionWidth, c.feedForwardWidth].map { columns in
            (
                columns, layout.reserve(batch * columns, of: Int8.self), floats(batch * columns / 32),
                floats(batch * columns / 32), layout.reserve(batch * columns / 16, of: Int32.self)
            )
        }
        let memory = try Memory(bytes: layout.bytes)
        let pointers = offsets.map { memory.pointer(at: $0, as: Float.self) }
        func rows(_ index: Int, _ x: UnsafeMutablePointer<Float>) -> ck_activations {
            let (columns, q, d, s, sums) = rowLayouts[index]
            return ck_activations(
                count: 0, columns: Int32(columns), x: x, q: memory.pointer(at: q, as: Int8.self),
                d: memory.pointer(at: d, as: Float.self), s: memory.pointer(at: s, as: Float.self),
                sums: memory.pointer(at: sums, as: Int32.self))
        }
        (residual, normed, query, key, value, attended) =
            (pointers[0], pointers[1], pointers[2], pointers[3], pointers[4], pointers[5])
        (gate, up, logits, cosine, sine) = (pointers[6], pointers[7], pointers[8], pointers[9], pointers[10])
        products = memory.pointer(at: productOffset, as: ck_product.self)
        normedRows = rows(0, normed)
        attendedRows = rows(1, attended)
        gatedRows = rows(2, gate)
        rotation = ck_rotation()
        attention = ck_attention()
        self.memory = memory
    }

    /// Sets how many rows the next products have.
    func setRows(_ rows: Int) {
        normedRows.count = Int32(rows)
        attendedRows.count = Int32(rows)
        gatedRows.count = Int32(rows)
    }

    /// Fills in what is the same for all layers of a batch.
    func prepareAttention(cache: KVCache, position: Int, rows: Int) {
        let c = configuration
        let (heads, kvHeads, dimension) = (Int32(c.heads), Int32(c.kvHeads), Int32(c.headDimension))
        rotation = ck_rotation(
            q: query, k: key, v: value, cosine: cosine, sine: sine, keys: nil, values: nil, rows: Int32(rows), heads: heads,
            kv_heads: kvHeads, head_dim: dimension, value_stride: Int32(cache.valueStride), capacity: Int32(cache.capacity),
            position: Int32(position), pairs: Int32(pairs), halves: c.rotatesHalves)
        attention = ck_attention(
            q: query, out: attended, keys: nil, values: nil, partial: cache.partial,
            scale: 1 / Float(c.headDimension).squareRoot(),
            rows: Int32(rows), heads: heads, kv_heads: kvHeads, head_dim: dimension, value_stride: Int32(cache.valueStride),
            capacity: Int32(cache.capacity), length: Int32(position + rows), window: Int32(c.slidingWindow ?? 0))
    }
}
