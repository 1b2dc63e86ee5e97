internal import Foundation

/// Reads and validates the metadata that families have in common. Keys are prefixed with the architecture, such as
/// `qwen2.block_count`.
struct ShapeReader {
    let file: GGUFFile
    let architecture: String
    /// The number of layers, without the multi-token prediction layers at the end, which are not computed.
    let layers: Int
    let width: Int
    let vocabularySize: Int

    /// - Parameter withPredictions: whether the multi-token prediction layers are layers too.
    init(file: GGUFFile, architecture: String, withPredictions: Bool = false) throws(ModelError) {
        self.file = file
        self.architecture = architecture
        func required(_ key: String, _ range: ClosedRange<Int>) throws(ModelError) -> Int {
            guard let value = try file.metadata.integer("\(architecture).\(key)", in: range) else {
                throw .missing("\(architecture).\(key)")
            }
            return value
        }
        let blocks = try required("block_count", 1...1024)
        let predicted = try file.metadata.integer("\(architecture).nextn_predict_layers", in: 0...blocks - 1) ?? 0
        layers = withPredictions ? blocks : blocks - predicted
        width = try required("embedding_length", 1...(1 << 18))
        guard let embeddings = file.tensors[TensorName.tokenEmbedding.weight] else {
            throw .missing("tensor \(TensorName.tokenEmbedding.weight)")
        }
        guard embeddings.shape.count == 2, embeddings.shape[0] == width, (1...(1 << 24)).contains(embeddings.shape[1]) else {
            throw .invalid(field: "tensor \(TensorName.tokenEmbedding.weight)", reason: "has the shape \(embeddings.shape)")
        }
        vocabularySize = embeddings.shape[1]
    }

    // MARK: - Values

    func integer(_ key: String, in range: ClosedRange<Int> = 0...(1 << 24)) throws(ModelError) -> Int? {
        try file.metadata.integer("\(architecture).\(key)", in: range)
    }

    func required(_ key: String, in range: ClosedRange<Int> = 1...(1 << 24)) throws(ModelError) -> Int {
        guard let value = try integer(key, in: range) else { throw .missing("\(architecture).\(key)") }
        return value
    }

    func number(_ key: String) throws(ModelError) -> Double? { try file.metadata.float("\(architecture).\(key)") }

    func bool(_ key: String) throws(ModelError) -> Bool? { try file.metadata.bool("\(architecture).\(key)") }

    /// A value for each layer, from an array or from a single value for all layers; nil if the key is absent.
    func perLayer(_ key: String, in range: ClosedRange<Int>) throws(ModelError) -> [Int]? {
        let full = "\(architecture).\(key)"
        switch try file.metadata.value(of: full) {
        case nil: return nil
        case .array(let array):
            guard let values = file.integers(of: array), values.count >= layers else {
                throw .invalid(field: full, reason: "is not an array of \(layers) integers")
            }
            guard let wrong = values.prefix(layers).first(where: { !range.contains($0) }) else {
                return Array(values.prefix(layers))
            }
            throw .invalid(field: full, reason: "contains \(wrong), outside \(range.lowerBound)…\(range.upperBound)")
        default:
            guard let value = try integer(key, in: range) else { return nil }
            return Array(repeating: value, count: layers)
        }
    }

    /// A Boolean for each layer; nil if the key is absent or contains a single number (a period).
    func flags(_ key: String) throws(ModelError) -> [Bool]? {
        guard case .array? = try file.metadata.value(of: "\(architecture).\(key)") else { return nil }
        return try perLayer(key, in: 0...1).map { $0.map { $0 == 1 } }
    }

    func hasTensor(_ name: TensorName, _ part: TensorName.Part = .weight, layer: Int) -> Bool {
        file.tensors[LayerNames(layer)(name, part)] != nil
    }

    /// A tensor outside of the layers if the file has it.
    func ifPresent(_ name: TensorName) -> TensorName? { file.tensors[name.weight] == nil ? nil : name }

    // MARK: - Properties of most families

    func base(epsilonKey: String = "attention.layer_norm_rms_epsilon") throws(ModelError) -> ModelShape {
        guard let epsilon = try number(epsilonKey), epsilon > 0 else { throw .missing("\(architecture).\(epsilonKey)") }
        return ModelShape(
            architecture: architecture, name: try file.metadata.string("general.name") ?? architecture, width: width,
            vocabularySize: vocabularySize, contextLength: try integer("context_length", in: 1...(1 << 24)) ?? 2048,
            normEpsilon: epsilon)
    }

    /// How a text's vector is computed, if the file says so or the family always does.
    func pooling(default usual: ModelShape.Pooling? = nil) throws(ModelError) -> ModelShape.Pooling? {
        switch try integer("pooling_type", in: 0...(1 << 16)) {
        case nil, 0, 4: usual  // 4 is the score of a reranker
        case 1: .mean
        case 2: .first
        case 3: .last
        case let other?:
            throw .unsupported(
                field: "\(architecture).pooling_type", value: "\(other)", supported: "1 (mean), 2 (first token), 3 (last token)")
        }
    }

    func heads() throws(ModelError) -> [Int] {
        guard let heads = try perLayer("attention.head_count", in: 0...1024) else {
            throw .missing("\(architecture).attention.head_count")
        }
        return heads
    }

    /// The attention of each layer; nil for layers with 0 heads or 0 KV heads.
    func attention(rotary: Int? = 0) throws(ModelError) -> [ModelShape.Attention?] {
        let heads = try heads()
        let kvHeads = try perLayer("attention.head_count_kv", in: 0...1024) ?? heads
        let most = heads.max() ?? 1
        let keyLength = try integer("attention.key_length", in: 1...1024)
        if keyLength == nil, most == 0 || width % most != 0 {
            throw .invalid(
                field: "\(architecture).attention.head_count", reason: "is \(most), which does not divide the width \(width)")
        }
        let key = keyLength ?? width / most
        let value = try integer("attention.value_length", in: 1...1024) ?? key
        guard key <= 1024, value <= 1024 else {
            throw .unsupported(field: "the head dimension", value: "\(key)", supported: "up to 1024")
        }
        let scale = 1 / Double(key).squareRoot()
        var result: [ModelShape.Attention?] = []
        for layer in 0..<layers {
            if kvHeads[layer] == 0 || heads[layer] == 0 {
                result.append(nil)
                continue
            }
            guard heads[layer] % kvHeads[layer] == 0 else {
                throw .invalid(
                    field: "\(architecture).attention.head_count_kv",
                    reason: "is \(kvHeads[layer]), which does not divide \(heads[layer]) heads")
            }
            result.append(
                ModelShape.Attention(
                    heads: heads[layer], kvHeads: kvHeads[layer], keyDimension: key, valueDimension: value, scale: scale,
                    rotary: rotary))
        }
        return result
    }

    /// The attention of each layer, in models where all layers must have one.
    func requiredAttention(rotary: Int? = 0) throws(ModelError) -> [ModelShape.Attention] {
        var result: [ModelShape.Attention] = []
        for attention in try attention(rotary: rotary) {
            guard let attention else {
                throw .invalid(field: "\(architecture).attention.head_count_kv", reason: "is 0 for a layer that needs attention")
            }
            result.append(attention)
        }
        return result
    }

    /// The attention window of each layer; nil for full attention.
    ///
    /// The file specifies the windowed layers by an array of flags or by a period; `period` is the default. In each
    /// period, all layers but the last one (with `denseFirst`, but the first one) are windowed.
    func windows(period: Int? = nil, denseFirst: Bool = false, window defaultWindow: Int? = nil) throws(ModelError) -> [Int?] {
        guard let window = try integer("attention.sliding_window", in: 0...(1 << 24)) ?? defaultWindow, window > 0 else {
            return Array(repeating: nil, count: layers)
        }
        if let flags = try flags("attention.sliding_window_pattern") { return flags.map { $0 ? window : nil } }
        let written = try integer("attention.sliding_window_pattern", in: 0...1024)
        guard let period = written ?? period, period > 1 else { return Array(repeating: nil, count: layers) }
        return (0..<layers).map { layer in
            (denseFirst ? layer % period != 0 : layer % period < period - 1) ? window : nil
        }
    }

    func rotary(dimensions defaultDimensions: Int, halves: Bool, baseKey: String = "rope.freq_base") throws(ModelError)
        -> ModelShape.Rotary
    {
        let dimensions = try integer("rope.dimension_count", in: 0...1024) ?? defaultDimensions
        guard dimensions % 2 == 0 else {
            throw .invalid(field: "\(architecture).rope.dimension_count", reason: "is \(dimensions), an odd number")
        }
        let base = try number(baseKey) ?? 10_000
        guard base > 0 else { throw .invalid(field: "\(architecture).\(baseKey)", reason: "is \(base)") }
        var rotary = ModelShape.Rotary(dimensions: dimensions, base: base, halves: halves)
        let attentionFactor = try number("rope.scaling.attn_factor") ?? 1
        rotary.magnitude = attentionFactor
        let oldFactor = try number("rope.scale_linear")
        let factor = try number("rope.scaling.factor") ?? oldFactor ?? 1
        guard factor > 0 else { throw .invalid(field: "\(architecture).rope.scaling.factor", reason: "is \(factor)") }
        switch try file.metadata.string("\(architecture).rope.scaling.type") ?? (factor == 1 ? "none" : "linear") {
        case "none": break
        case "longrope":
            // Short factors apply within the original context, long ones to larger contexts (arXiv:2402.13753).
            let trained = try integer("context_length", in: 1...(1 << 24)) ?? 2048
            rotary.factors = ifPresent(.shortFactors)
            rotary.longFactors = ifPresent(.longFactors)
            rotary.originalContext = try integer("rope.scaling.original_context_length", in: 1...(1 << 24)) ?? trained
        case "linear": rotary.scaling = factor == 1 ? .none : .linear(factor: factor)
        case "yarn":
            let trained = try integer("context_length", in: 1...(1 << 24)) ?? 2048
            let original = try integer("rope.scaling.original_context_length", in: 1...(1 << 24)) ?? trained
            rotary.scaling = .yarn(
                factor: factor, originalContext: original, fast: 32, slow: 1)
            // A key of our own: gpt-oss is trained without the rounding, and llama.cpp rounds.
            rotary.roundsBlend = try bool("rope.scaling.yarn_truncate") ?? true
            // The attention temperature (arXiv:2309.00071, section 3.4).
            rotary.magnitude *= 1 + 0.1 * log(max(1, factor))
        case let other:
            throw .unsupported(
                field: "\(architecture).rope.scaling.type", value: other, supported: "none, linear, yarn, longrope")
        }
        rotary.factors = rotary.factors ?? ifPresent(.rotaryFactors)
        rotary.sections = try sections()
        return rotary
    }

    /// How pairs are divided among the coordinates of positions; nil if all have the first one.
    private func sections() throws(ModelError) -> ModelShape.Sections? {
        let key = "\(architecture).rope.dimension_sections"
        guard case .array(let array)? = try file.metadata.value(of: key) else { return nil }
        guard let counts = file.integers(of: array), (3...4).contains(counts.count), counts.allSatisfy((0...1024).contains) else {
            throw .invalid(field: key, reason: "is not the numbers of pairs of three coordinates")
        }
        guard counts.count == 3 || counts[3] == 0 else {
            throw .unsupported(field: key, value: "\(counts)", supported: "three coordinates")
        }
        return ModelShape.Sections(time: counts[0], height: counts[1], width: counts[2])
    }

    func dense(activation: ModelShape.Activation, isGated: Bool = true) throws(ModelError) -> [ModelShape.Dense?] {
        guard let widths = try perLayer("feed_forward_length", in: 0...(1 << 20)) else {
            throw .missing("\(architecture).feed_forward_length")
        }
        return widths.map { $0 == 0 ? nil : ModelShape.Dense(width: $0, activation: activation, isGated: isGated) }
    }

    /// The experts of the model, nil if it has none.
    ///
    /// - Parameters:
    ///   - widthKey: the metadata key of the experts' width in this family.
    ///   - readsRouting: whether the gating function, normalisation, scale and groups are read from the file; families
    ///     without these keys have fixed routing.
    func experts(
        activation: ModelShape.Activation, widthKey: String = "expert_feed_forward_length", normalizes: Bool = true,
        readsRouting: Bool = false
    ) throws(ModelError) -> ModelShape.Experts? {
        guard let count = try integer("expert_count", in: 0...1024), count > 0 else { return nil }
        let used = try required("expert_used_count", in: 1...min(count, 64))
        let own = try perLayer(widthKey, in: 0...(1 << 20))?.max()
        let shared = try perLayer("feed_forward_length", in: 0...(1 << 20))?.max().map { $0 / used }
        guard let width = own ?? shared, width > 0 else { throw .missing("\(architecture).\(widthKey)") }
        var experts = ModelShape.Experts(count: count, used: used, width: width, activation: activation)
        experts.normalizes = normalizes
        guard readsRouting else { return experts }
        switch try integer("expert_gating_func", in: 0...4) {
        case nil, 0, 1: break
        case 2: experts.gating = .sigmoid
        case let other:
            throw .unsupported(
                field: "\(architecture).expert_gating_func", value: "\(other ?? 0)", supported: "1 (softmax), 2 (sigmoid)")
        }
        experts.normalizes = try bool("expert_weights_norm") ?? normalizes
        if let scale = try number("expert_weights_scale"), scale != 0 { experts.scale = scale }
        let groups = max(1, try integer("expert_group_count", in: 0...count) ?? 1)
        guard count % groups == 0 else {
            throw .invalid(field: "\(architecture).expert_group_count", reason: "is \(groups), which does not divide \(count)")
        }
        experts.groups = groups
        experts.usedGroups = max(1, try integer("expert_group_used_count", in: 0...groups) ?? groups)
        guard used <= count / groups * experts.usedGroups else {
            throw .invalid(field: "\(architecture).expert_used_count", reason: "is \(used), more than the used groups have")
        }
        return experts
    }
}

extension GGUFFile {
    /// The elements of an array of integers or Booleans of any width; nil for other element types.
    func integers(of array: GGUFArray) -> [Int]? {
        switch array.elementType {
        case .int32: values(of: array, as: Int32.self).map { Int($0) }
        case .uint32: values(of: array, as: UInt32.self).map { Int($0) }
        case .int64: values(of: array, as: Int64.self).map { Int($0) }
        case .uint64: values(of: array, as: UInt64.self).map { Int(clamping: $0) }
        case .uint16: values(of: array, as: UInt16.self).map { Int($0) }
        case .int16: values(of: array, as: Int16.self).map { Int($0) }
        case .uint8, .bool: values(of: array, as: UInt8.self).map { Int($0) }
        case .int8: values(of: array, as: Int8.self).map { Int($0) }
        case .float32, .float64, .string, .array: nil
        }
    }
}
