internal import CKernels

/// Rows of activations with buffers for their quantised form: the input of matrix products.
final class RowBuffer {
    let x: UnsafeMutablePointer<Float>
    /// The rows configured by the last call of `set`.
    var rows: Activations
    private let q: UnsafeMutablePointer<Int8>
    private let d: UnsafeMutablePointer<Float>
    private let s: UnsafeMutablePointer<Float>
    private let sums: UnsafeMutablePointer<Int32>
    /// For rows whose scales have a common unit; nil for a model without such rows.
    private let blocks: Blocks?

    private struct Blocks {
        let unit: UnsafeMutablePointer<Float>
        let factors: UnsafeMutablePointer<Int16>
        let weighted: UnsafeMutablePointer<Int16>
        let starts: UnsafeMutablePointer<Int32>
    }

    /// - Parameters:
    ///   - elements: the maximum of rows times columns.
    ///   - hasUnits: whether the scales of rows of a multiple of 256 columns have a common unit for 256 columns.
    init(_ elements: Int, hasUnits: Bool, _ layout: inout MemoryLayoutBuilder, _ memory: Memory?) {
        func pointer<Value>(_ count: Int, _ type: Value.Type) -> UnsafeMutablePointer<Value> {
            layout.pointer(count, of: type, in: memory)
        }
        x = pointer(elements, Float.self)
        q = pointer(elements, Int8.self)
        d = pointer(elements / 32 + 1, Float.self)
        s = pointer(elements / 32 + 1, Float.self)
        sums = pointer(elements / 16 + 2, Int32.self)
        blocks =
            hasUnits
            ? Blocks(
                unit: pointer(elements / 256 + 1, Float.self), factors: pointer(elements / 32 + 1, Int16.self),
                weighted: pointer(elements / 32 + 1, Int16.self), starts: pointer(elements / 16 + 2, Int32.self)) : nil
        rows = Activations()
    }

    func set(rows count: Int, columns: Int) {
        rows = view(from: 0, count: count, columns: columns)
    }

    /// A view of some of the rows.
    func slice(from first: Int, count: Int) -> Activations { view(from: first, count: count, columns: Int(rows.columns)) }

    private func view(from first: Int, count: Int, columns: Int) -> Activations {
        let groups = columns / 32
        let blocks = columns % 256 == 0 ? blocks : nil
        return Activations(
            count: Int32(count), columns: Int32(columns), x: x + first * columns, q: q + first * columns, d: d + first * groups,
            s: s + first * groups, sums: sums + first * 2 * groups, unit: blocks.map { $0.unit + first * groups / 8 },
            factors: blocks.map { $0.factors + first * groups }, weighted: blocks.map { $0.weighted + first * groups },
            starts: blocks.map { $0.starts + first * 2 * groups })
    }
}

/// Scratch memory of the forward pass, allocated once: every buffer holds a whole batch of rows of the widest layer.
final class Scratch {
    let batch: Int
    let residual: UnsafeMutablePointer<Float>  // [batch][width]
    let branch: UnsafeMutablePointer<Float>  // [batch][width]
    let part: UnsafeMutablePointer<Float>  // [batch][width or perLayerWidth]
    let query: UnsafeMutablePointer<Float>  // [batch][widest query or mixed input]
    let key: UnsafeMutablePointer<Float>  // [batch][widest key, latent with rotated part, or value heads of a DeltaNet]
    let value: UnsafeMutablePointer<Float>  // [batch][widest value, latent with rotated part, or value heads of a DeltaNet]
    let mixerGate: UnsafeMutablePointer<Float>  // [batch][widest gate, or queries and outputs of latent attention]
    let up: UnsafeMutablePointer<Float>  // [batch][widest feed-forward]
    let logits: UnsafeMutablePointer<Float>  // [fewRows][vocabulary]
    let queryScale: UnsafeMutablePointer<Float>  // [batch]
    let visibleEnd: UnsafeMutablePointer<Int32>  // [batch], the end of what rows see, 0 if that is before them
    /// Cosines and sines of each rotary embedding, `[batch][pairs]`.
    let angles: [(cosine: UnsafeMutablePointer<Float>, sine: UnsafeMutablePointer<Float>, pairs: Int)]
    let perLayer: UnsafeMutablePointer<Float>  // [batch][layers · perLayerWidth]
    let perLayerRow: UnsafeMutablePointer<Float>  // [layers · perLayerWidth]

    let normed: RowBuffer  // [batch][width]
    let attended: RowBuffer  // [batch][widest output of a mixer before its projection]
    let gated: RowBuffer  // [batch][widest feed-forward, per-layer embedding or pooled vector]
    let latent: RowBuffer  // [batch][latent of queries]
    let heads: RowBuffer  // [heads][batch][plain part of a query or key, or latent] of latent attention
    let router: RowBuffer  // [batch][width]
    let joined: RowBuffer  // 2·width, of a prediction head

    // Experts: a pair is a (row, slot) combination; pairs are ordered by expert.
    let routerLogits: UnsafeMutablePointer<Float>  // [batch][experts]
    let expertWeights: UnsafeMutablePointer<Float>  // [batch][used]
    let chosen: UnsafeMutablePointer<Int32>  // [batch][used]
    let place: UnsafeMutablePointer<Int32>  // [batch][used], the index of the pair
    let source: UnsafeMutablePointer<Int32>  // [pairs], the row of the pair
    let expertStart: UnsafeMutablePointer<Int32>  // [experts + 1]
    let gathered: RowBuffer  // [pairs][width]
    let expertGate: RowBuffer  // [pairs][width of an expert]
    let expertUp: UnsafeMutablePointer<Float>  // [pairs][width of an expert]
    let expertOutput: UnsafeMutablePointer<Float>  // [pairs][width]
    let expertRows: UnsafeMutablePointer<Activations>  // [products], the rows of each expert or head

    /// The products of one parallel region.
    let products: UnsafeMutablePointer<Product>
    /// The calls for the segments of a batch.
    let rotations: UnsafeMutablePointer<Rotation>
    let attentions: UnsafeMutablePointer<AttentionCall>
    /// The segments of the batch that are processed with an adapter.
    var adapted: [Segment] = []
    /// The low-rank products of one parallel region.
    var lowRank: [LowRankProduct] = []

    private let memory: Memory

    /// - Parameters:
    ///   - hasUnits: whether activations may have a common unit for 256 columns.
    ///   - joins: whether the input of the first layer is joined from two.
    convenience init(_ shape: ModelShape, batch: Int, hasUnits: Bool, joins: Bool = false) throws(ModelError) {
        var layout = MemoryLayoutBuilder()
        // The first pass computes sizes only, the second assigns the same layout in memory.
        _ = Scratch(shape, batch: batch, hasUnits: hasUnits, joins: joins, &layout, try Memory(bytes: 1), measuring: true)
        let memory = try Memory(bytes: layout.bytes)
        layout = MemoryLayoutBuilder()
        self.init(shape, batch: batch, hasUnits: hasUnits, joins: joins, &layout, memory, measuring: false)
    }

    private init(
        _ shape: ModelShape, batch: Int, hasUnits: Bool, joins: Bool, _ layout: inout MemoryLayoutBuilder, _ memory: Memory,
        measuring: Bool
    ) {
        let sizes = ScratchSizes(shape)
        let target = measuring ? nil : memory
        self.memory = memory
        self.batch = batch
        func floats(_ count: Int, _ layout: inout MemoryLayoutBuilder) -> UnsafeMutablePointer<Float> {
            layout.pointer(max(1, count), of: Float.self, in: target)
        }
        func integers(_ count: Int, _ layout: inout MemoryLayoutBuilder) -> UnsafeMutablePointer<Int32> {
            layout.pointer(max(1, count), of: Int32.self, in: target)
        }
        residual = floats(batch * shape.width, &layout)
        // Also holds pooled vectors, which projections can make wider.
        let widestVector = shape.projections.reduce(shape.width) { max($0, $1.width) }
        branch = floats(batch * widestVector, &layout)
        part = floats(batch * max(shape.width, shape.perLayerWidth), &layout)
        query = floats(batch * sizes.query, &layout)
        key = floats(batch * sizes.key, &layout)
        value = floats(batch * sizes.value, &layout)
        mixerGate = floats(batch * sizes.gate, &layout)
        up = floats(batch * sizes.feedForward, &layout)
        logits = floats(shape.isEncoder ? 0 : min(batch, EngineLimits.fewRows) * shape.vocabularySize, &layout)
        queryScale = floats(batch, &layout)
        visibleEnd = integers(batch, &layout)
        var angles: [(cosine: UnsafeMutablePointer<Float>, sine: UnsafeMutablePointer<Float>, pairs: Int)] = []
        for rotary in shape.rotaries {
            let pairs = rotary.dimensions / 2
            angles.append((floats(batch * pairs, &layout), floats(batch * pairs, &layout), pairs))
        }
        self.angles = angles
        let perLayerWidth = shape.perLayerWidth * shape.layers.count
        perLayer = floats(batch * perLayerWidth, &layout)
        perLayerRow = floats(perLayerWidth, &layout)
        normed = RowBuffer(batch * shape.width, hasUnits: hasUnits, &layout, target)
        attended = RowBuffer(batch * sizes.mixed, hasUnits: hasUnits, &layout, target)
        gated = RowBuffer(batch * max(sizes.feedForward, shape.perLayerWidth, widestVector), hasUnits: hasUnits, &layout, target)
        latent = RowBuffer(batch * sizes.latent, hasUnits: hasUnits, &layout, target)
        heads = RowBuffer(batch * sizes.heads, hasUnits: hasUnits, &layout, target)
        router = RowBuffer(sizes.experts > 0 ? batch * shape.width : 0, hasUnits: hasUnits, &layout, target)
        joined = RowBuffer(joins ? batch * 2 * shape.width : 0, hasUnits: hasUnits, &layout, target)
        let pairs = batch * sizes.usedExperts
        routerLogits = floats(batch * sizes.experts, &layout)
        expertWeights = floats(pairs, &layout)
        chosen = integers(pairs, &layout)
        place = integers(pairs, &layout)
        source = integers(pairs, &layout)
        expertStart = integers(sizes.experts + 1, &layout)
        gathered = RowBuffer(pairs * shape.width, hasUnits: hasUnits, &layout, target)
        expertGate = RowBuffer(pairs * sizes.expertWidth, hasUnits: hasUnits, &layout, target)
        expertUp = floats(pairs * sizes.expertWidth, &layout)
        expertOutput = floats(pairs * shape.width, &layout)
        let products = max(8, 2 * sizes.experts, sizes.latentHeads)
        expertRows = layout.pointer(products, of: Activations.self, in: target)
        self.products = layout.pointer(products, of: Product.self, in: target)
        rotations = layout.pointer(EngineLimits.sequences, of: Rotation.self, in: target)
        attentions = layout.pointer(EngineLimits.sequences, of: AttentionCall.self, in: target)
    }
}

/// The maximum row width of each buffer.
private struct ScratchSizes {
    var query = 0, key = 0, value = 0, gate = 0, mixed = 0, latent = 0, heads = 0, latentHeads = 0
    var feedForward = 0, experts = 0, usedExperts = 0, expertWidth = 0

    init(_ shape: ModelShape) {
        func atLeast(_ size: inout Int, _ other: Int) { size = max(size, other) }
        for layer in shape.layers {
            switch layer.mixer {
            case .attention(let a):
                atLeast(&query, a.heads * a.keyDimension)
                atLeast(&key, a.kvHeads * a.keyDimension)
                atLeast(&value, a.kvHeads * a.valueDimension)
                if a.isGated { atLeast(&gate, a.heads * a.keyDimension) }
                atLeast(&mixed, a.heads * a.valueDimension)
            case .latent(let a):
                // The absorbed query, and the original query before absorption.
                atLeast(&query, a.heads * (a.kvRank + a.rotaryDimension))
                atLeast(&gate, a.heads * max(a.plainDimension + a.rotaryDimension, a.kvRank))
                atLeast(&key, a.kvRank + a.rotaryDimension)
                atLeast(&value, a.kvRank + a.rotaryDimension)
                atLeast(&latent, a.queryRank ?? 0)
                atLeast(&heads, a.heads * max(a.plainDimension, a.kvRank))
                atLeast(&mixed, a.heads * max(a.valueDimension, a.kvRank))
                atLeast(&latentHeads, a.heads)
            case .delta(let d):
                atLeast(&query, d.mixedWidth)
                atLeast(&key, d.valueHeads)
                atLeast(&value, d.valueHeads)
                atLeast(&gate, d.valueWidth)
                atLeast(&mixed, d.valueWidth)
            case .mamba(let m):
                atLeast(&query, m.inputWidth)
                atLeast(&gate, m.mixedWidth)
                atLeast(&mixed, m.inner)
            case .convolution:
                atLeast(&query, 3 * shape.width)
                atLeast(&mixed, shape.width)
            case nil: break
            }
            if let dense = layer.feedForward?.dense { atLeast(&feedForward, dense.width) }
            if let e = layer.feedForward?.experts {
                atLeast(&experts, e.count)
                atLeast(&usedExperts, e.used)
                atLeast(&expertWidth, e.width)
            }
        }
    }
}
