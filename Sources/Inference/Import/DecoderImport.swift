internal import Foundation
internal import JSON

/// A decoder in the Hugging Face form, as metadata and tensors of a GGUF file. The names and changes are those of llama.cpp's converter,
/// so that the file runs there too.
struct DecoderImport {
    /// How a family differs from Llama.
    private struct Family {
        var architecture: String
        /// Whether rows of queries and keys are stored in the order of adjacent pairs.
        var permutes = false
        /// Whether 1 is added to the weights of norms.
        var shiftsNorms = false
        /// What the norm after attention is called.
        var attentionPostNorm = "ffn_norm"
        /// Whether the converter writes the width of heads.
        var hasHeadDimension = true
    }

    /// By `model_type` of `config.json`.
    private static let families: [String: Family] = [
        "llama": Family(architecture: "llama", permutes: true), "mistral": Family(architecture: "llama", permutes: true),
        "qwen2": Family(architecture: "qwen2"), "qwen3": Family(architecture: "qwen3"),
        "qwen3_moe": Family(architecture: "qwen3moe"), "phi3": Family(architecture: "phi3"),
        "smollm3": Family(architecture: "smollm3", permutes: true),
        "granite": Family(architecture: "granite", permutes: true, hasHeadDimension: false),
        "olmo2": Family(architecture: "olmo2", attentionPostNorm: "post_attention_norm"),
        "ernie4_5": Family(architecture: "ernie4_5"), "gemma": Family(architecture: "gemma", shiftsNorms: true),
        "gemma2": Family(architecture: "gemma2", shiftsNorms: true, attentionPostNorm: "post_attention_norm"),
        "gemma3_text": Family(architecture: "gemma3", shiftsNorms: true, attentionPostNorm: "post_attention_norm"),
        "gemma3": Family(architecture: "gemma3", shiftsNorms: true, attentionPostNorm: "post_attention_norm"),
    ]

    static var names: [String] { families.keys.sorted() }

    private let family: Family
    private let config: JSONValue
    private let weights: [String: Safetensors.Tensor]
    /// The number of rows of the embeddings that belong to tokens.
    private let vocabulary: Int

    /// - Parameters:
    ///   - config: `config.json`, of models with images the part for texts.
    ///   - tokens: the number of tokens of the tokenizer.
    /// - Throws: ``ModelError`` for families, quantisations and settings that are not read.
    init(config whole: JSONValue, weights: Safetensors, tokens: Int) throws(ModelError) {
        let type = whole["model_type"]?.string ?? "none"
        guard let family = Self.families[type] else {
            throw .unsupported(field: "model_type of config.json", value: type, supported: Self.names.joined(separator: ", "))
        }
        if let quantization = whole["quantization_config"], quantization != .null {
            throw .unsupported(
                field: "quantization_config", value: quantization["quant_method"]?.string ?? quantization.text,
                supported: "weights with 16 or 32 bits: import the original model and quantise it with fm model quantize")
        }
        self.family = family
        var config = whole
        if let text = whole["text_config"], case .object = text { config = text }
        self.config = config
        var found: [String: Safetensors.Tensor] = [:]
        for (name, tensor) in weights.tensors {
            var path = name
            for prefix in ["language_model.", "model.language_model."] where path.hasPrefix(prefix) {
                path = (prefix.hasPrefix("model.") ? "model." : "") + path.dropFirst(prefix.count)
            }
            // Towers of images are another file.
            if ["vision_tower.", "model.vision_tower.", "multi_modal_projector.", "model.multi_modal_projector."].contains(
                where: path.hasPrefix)
            {
                continue
            }
            if path.hasSuffix("rotary_emb.inv_freq") { continue }
            guard found.updateValue(tensor, forKey: path) == nil else {
                throw .invalid(field: "tensor \(path)", reason: "appears twice, with and without a prefix")
            }
        }
        self.weights = found
        guard let embeddings = found["model.embed_tokens.weight"], embeddings.shape.count == 2 else {
            throw .missing("tensor model.embed_tokens.weight")
        }
        // Gemma's table has rows for tokens that do not exist.
        vocabulary =
            family.shiftsNorms && family.architecture == "gemma3" ? min(embeddings.shape[0], tokens) : embeddings.shape[0]
        try check()
        for name in weights.skipped {
            guard self.name(of: name) == nil, name != "lm_head.weight" else {
                throw .unsupported(field: "tensor \(name)", value: "integers", supported: "F32, F16, BF16")
            }
        }
    }

    /// The number of rows of the embeddings.
    var embeddingCount: Int { vocabulary }

    /// A number of config.json; nil if it is missing or null.
    private func optionalInteger(_ key: String, in range: ClosedRange<Int> = 1...(1 << 24)) throws(ModelError) -> Int? {
        guard let value = config[key], value != .null else { return nil }
        guard let number = value.integer, range.contains(number) else {
            throw .invalid(field: "\(key) in config.json", reason: "is \(value.text.prefix(40)), not an integer of \(range)")
        }
        return number
    }

    private func integer(_ key: String, or usual: Int? = nil) throws(ModelError) -> Int {
        if let value = try optionalInteger(key) { return value }
        guard let usual else { throw .missing("\(key) in config.json") }
        return usual
    }

    /// Gemma 3's configurations leave out what equals the defaults of its class.
    private func usual(_ gemma3: Int) -> Int? { family.architecture == "gemma3" ? gemma3 : nil }

    private var layers: Int { get throws(ModelError) { try integer("num_hidden_layers") } }
    private var heads: Int { get throws(ModelError) { try integer("num_attention_heads", or: usual(8)) } }
    private var keyHeads: Int {
        get throws(ModelError) {
            if let own = try optionalInteger("num_key_value_heads", in: 1...65_536) { return own }
            if let usual = usual(4) { return usual }
            return try heads
        }
    }
    private var headDimension: Int {
        get throws(ModelError) {
            var dimension = try integer("hidden_size") / max(1, heads)
            if let own = try optionalInteger("head_dim", in: 2...65_536) ?? usual(256) { dimension = own }
            guard dimension > 0, dimension % 2 == 0 else { throw .invalid(field: "head_dim", reason: "is \(dimension)") }
            return dimension
        }
    }

    private func number(_ key: String) throws(ModelError) -> Double? {
        guard let value = config[key], value != .null else { return nil }
        guard let number = value.double, number.isFinite else {
            throw .invalid(field: "\(key) in config.json", reason: "is \(value.text.prefix(40)), not a number")
        }
        return number
    }

    /// Checks settings that would change what the model computes.
    private func check() throws(ModelError) {
        let activation = config["hidden_activation"]?.string ?? config["hidden_act"]?.string
        let allowed = family.shiftsNorms ? ["gelu_pytorch_tanh", "gelu"] : ["silu", "swish"]
        if let activation, !allowed.contains(activation) {
            throw .unsupported(field: "hidden_act of config.json", value: activation, supported: allowed.joined(separator: ", "))
        }
        for key in ["rope_parameters", "rope_scaling"] {
            guard let value = config[key], value != .null else { continue }
            guard case .object = value else { throw .invalid(field: "\(key) in config.json", reason: "is not an object") }
        }
        let layers = try layers
        for name in weights.keys {
            if let layer = Self.parse(name)?.layer, layer >= layers {
                throw .invalid(field: "num_hidden_layers", reason: "is \(layers), and there is a tensor \(name)")
            }
        }
    }

    // MARK: - Metadata

    private var rope: JSONValue? {
        let parameters = config["rope_parameters"] ?? config["rope_scaling"]
        return parameters?["full_attention"] ?? parameters
    }

    /// The base of the rotation; newer configurations have it among the other parameters.
    private var base: Double {
        rope?["rope_theta"]?.double ?? config["rope_theta"]?.double ?? (family.architecture == "gemma3" ? 1_000_000 : 10_000)
    }
    private var ropeType: String { rope?["rope_type"]?.string ?? rope?["type"]?.string ?? "default" }
    private var originalContext: Int? {
        rope?["original_max_position_embeddings"]?.integer ?? config["original_max_position_embeddings"]?.integer
    }

    func metadata() throws(ModelError) -> [(String, GGUFWriter.Value)] {
        let a = family.architecture
        var result: [(String, GGUFWriter.Value)] = []
        func add(_ key: String, _ value: Int?) {
            if let value { result.append(("\(a).\(key)", .uint32(UInt32(clamping: value)))) }
        }
        func add(_ key: String, _ value: Double?) { if let value { result.append(("\(a).\(key)", .float32(Float(value)))) } }
        add("block_count", try layers)
        add("context_length", try integer("max_position_embeddings", or: usual(131_072)))
        add("embedding_length", try integer("hidden_size"))
        add("feed_forward_length", try integer("intermediate_size"))
        add("attention.head_count", try heads)
        add("attention.head_count_kv", try keyHeads)
        add("attention.layer_norm_rms_epsilon", try number("rms_norm_eps") ?? 1e-6)
        let isGemma = a.hasPrefix("gemma")
        if family.hasHeadDimension, config["head_dim"]?.integer != nil || isGemma {
            add("attention.key_length", try headDimension)
            add("attention.value_length", try headDimension)
        }
        add("vocab_size", vocabulary)
        var share = try number("partial_rotary_factor") ?? 1
        if let own = rope?["partial_rotary_factor"]?.double { share = own }
        guard share > 0, share <= 1 else { throw .invalid(field: "partial_rotary_factor", reason: "is not from 0 to 1") }
        if !isGemma { add("rope.dimension_count", Int(share * Double(try headDimension))) }
        add("rope.freq_base", base)
        let factor = rope?["factor"]?.double
        if ropeType == "linear" || ropeType == "yarn", factor == nil {
            throw .missing("factor of rope_parameters in config.json")
        }
        switch ropeType {
        case "linear":
            result.append(("\(a).rope.scaling.type", .string("linear")))
            add("rope.scaling.factor", factor)
        case "yarn":
            result.append(("\(a).rope.scaling.type", .string("yarn")))
            add("rope.scaling.factor", factor)
            add("rope.scaling.original_context_length", originalContext)
            add("rope.scaling.yarn_beta_fast", rope?["beta_fast"]?.double)
            add("rope.scaling.yarn_beta_slow", rope?["beta_slow"]?.double)
            add("rope.scaling.yarn_attn_factor", rope?["attention_factor"]?.double)
        case "longrope", "su":
            add("rope.scaling.original_context_length", originalContext)
            let ratio = Double(try integer("max_position_embeddings")) / Double(max(1, originalContext ?? 1))
            let factor = ratio > 1 ? (1 + log(ratio) / log(Double(max(2, originalContext ?? 2)))).squareRoot() : 1
            add("rope.scaling.attn_factor", rope?["attention_factor"]?.double ?? factor)
        case "default", "llama3": break
        case let other:
            throw .unsupported(field: "rope_type", value: other, supported: "default, linear, llama3, longrope, yarn")
        }
        switch a {
        case "phi3": add("attention.sliding_window", config["sliding_window"]?.integer ?? 0)
        case "gemma2", "gemma3":
            add("attention.sliding_window", try integer("sliding_window"))
            add("attn_logit_softcapping", config["attn_logit_softcapping"]?.double)
            add("final_logit_softcapping", config["final_logit_softcapping"]?.double)
            let local =
                config["rope_parameters"]?["sliding_attention"]?["rope_theta"]?.double ?? config["rope_local_base_freq"]?.double
            if a == "gemma3" { add("rope.freq_base_swa", local) }
            // The scale of attention is not in the file: it follows from the number of layers.
            if let scalar = try number("query_pre_attn_scalar") {
                let layers = try layers
                let usual = layers == 46 || layers == 62 ? try integer("hidden_size") / max(1, heads) : try headDimension
                guard scalar == Double(usual) else {
                    throw .unsupported(field: "query_pre_attn_scalar", value: "\(scalar)", supported: "\(usual)")
                }
            }
        case "granite":
            add("attention.scale", config["attention_multiplier"]?.double)
            add("embedding_scale", config["embedding_multiplier"]?.double)
            add("residual_scale", config["residual_multiplier"]?.double)
            add("logit_scale", config["logits_scaling"]?.double)
        case "qwen3moe":
            // Newer configurations have another name.
            add("expert_count", try integer(config["num_experts"] == nil ? "num_local_experts" : "num_experts"))
            add("expert_used_count", try integer("num_experts_per_tok"))
            add("expert_feed_forward_length", try integer("moe_intermediate_size"))
        default: break
        }
        return result
    }

    // MARK: - Tensors

    /// - Parameter type: the type of matrices; nil for that of the file. Vectors, norms and routers have 32 bits.
    func tensors(_ type: TensorType?) throws(ModelError) -> [GGUFWriter.Tensor] {
        var result: [GGUFWriter.Tensor] = []
        var experts: [String: [Int: Safetensors.Tensor]] = [:]
        for (name, tensor) in weights.sorted(by: { $0.key < $1.key }) {
            if name == "lm_head.weight", isTied { continue }
            if let (target, expert) = Self.expert(name) {
                experts[target, default: [:]][expert] = tensor
                continue
            }
            guard let target = self.name(of: name) else {
                throw .unsupported(field: "tensor", value: name, supported: "the tensors of \(family.architecture) models")
            }
            result.append(try self.tensor(target, tensor, type))
        }
        for (target, parts) in experts.sorted(by: { $0.key < $1.key }) {
            let ordered = try (0..<parts.count).map { (index) throws(ModelError) -> Safetensors.Tensor in
                guard let part = parts[index] else { throw .missing("expert \(index) of \(target)") }
                return part
            }
            guard let first = ordered.first, ordered.allSatisfy({ $0.shape == first.shape }), first.shape.count == 2 else {
                throw .invalid(field: target, reason: "has experts of different shapes")
            }
            result.append(
                GGUFWriter.Tensor(
                    name: target, shape: [first.shape[1], first.shape[0], ordered.count],
                    type: Self.fitting(type ?? first.type, first.shape[1])
                ) { range in
                    var values: [Float] = []
                    values.reserveCapacity(range.count)
                    var place = range.lowerBound
                    while place < range.upperBound {
                        let (expert, start) = place.quotientAndRemainder(dividingBy: first.count)
                        let count = min(first.count - start, range.upperBound - place)
                        values += try ordered[expert].values(start..<start + count)
                        place += count
                    }
                    return values
                })
        }
        let factors = try ropeFactors()
        for (name, values) in factors {
            result.append(GGUFWriter.Tensor(name: name, shape: [values.count], type: .f32) { Array(values[$0]) })
        }
        return result
    }

    private var isTied: Bool {
        // Of a model with equal tables, only one is written.
        config["tie_word_embeddings"] == .bool(true)
            || (family.architecture.hasPrefix("gemma") && config["tie_word_embeddings"] == nil)
    }

    private static let parts = [
        "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm",
        "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
        "mlp.gate_up_proj": "ffn_up", "mlp.gate": "ffn_gate_inp", "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm",
    ]

    /// The layer, the module and the kind of a name such as `model.layers.3.mlp.up_proj.weight`.
    private static func parse(_ name: String) -> (layer: Int, module: String, kind: String)? {
        let parts = name.split(separator: ".", maxSplits: 3).map(String.init)
        guard parts.count == 4, parts[0] == "model", parts[1] == "layers", let layer = Int(parts[2]), layer >= 0,
            let dot = parts[3].lastIndex(of: ".")
        else { return nil }
        let kind = String(parts[3][parts[3].index(after: dot)...])
        return kind == "weight" || kind == "bias" ? (layer, String(parts[3][..<dot]), kind) : nil
    }

    private func name(of name: String) -> String? {
        switch name {
        case "model.embed_tokens.weight": return "token_embd.weight"
        case "model.norm.weight": return "output_norm.weight"
        case "lm_head.weight": return "output.weight"
        default:
            guard let (layer, module, kind) = Self.parse(name) else { return nil }
            let part = module == "post_attention_layernorm" ? family.attentionPostNorm : Self.parts[module]
            return part.map { "blk.\(layer).\($0).\(kind)" }
        }
    }

    /// The tensor that an expert's matrix is a part of, and the expert's number.
    private static func expert(_ name: String) -> (target: String, expert: Int)? {
        guard let (layer, module, kind) = parse(name), kind == "weight" else { return nil }
        let parts = module.split(separator: ".").map(String.init)
        guard parts.count == 4, parts[0] == "mlp", parts[1] == "experts", let expert = Int(parts[2]),
            let part = ["gate_proj": "gate", "up_proj": "up", "down_proj": "down"][parts[3]]
        else { return nil }
        return ("blk.\(layer).ffn_\(part)_exps.weight", expert)
    }

    private static func fitting(_ type: TensorType, _ columns: Int) -> TensorType {
        columns % type.blockElements == 0 ? type : .f16
    }

    private func tensor(_ target: String, _ tensor: Safetensors.Tensor, _ type: TensorType?) throws(ModelError)
        -> GGUFWriter.Tensor
    {
        let isNorm = target.hasSuffix("_norm.weight")
        guard tensor.shape.count == 2 || tensor.shape.count == 1 else {
            throw .invalid(field: target, reason: "has the shape \(tensor.shape)")
        }
        var shape = Array(tensor.shape.reversed())
        let own: TensorType =
            tensor.shape.count == 1 || isNorm || target.contains("ffn_gate_inp")
            ? .f32 : Self.fitting(type ?? tensor.type, shape[0])
        if target == "token_embd.weight" { shape[1] = vocabulary }
        let shift: Float = family.shiftsNorms && isNorm ? 1 : 0
        let isQuery = target.contains(".attn_q.")
        if family.permutes, isQuery || target.contains(".attn_k.") {
            let count = isQuery ? try heads : try keyHeads
            let rows = tensor.shape[0]
            guard count > 0, rows % count == 0, (rows / count) % 2 == 0 else {
                throw .invalid(field: target, reason: "has \(rows) rows, for \(count) heads")
            }
            let (dimension, columns) = (rows / count, tensor.count / rows)
            return GGUFWriter.Tensor(name: target, shape: shape, type: own) { range in
                var values: [Float] = []
                values.reserveCapacity(range.count)
                var place = range.lowerBound
                while place < range.upperBound {
                    let (row, column) = place.quotientAndRemainder(dividingBy: columns)
                    let (head, within) = row.quotientAndRemainder(dividingBy: dimension)
                    // Pairs (i, i + d/2) become neighbours.
                    let source = head * dimension + within % 2 * (dimension / 2) + within / 2
                    let count = min(columns - column, range.upperBound - place)
                    values += try tensor.values(source * columns + column..<source * columns + column + count)
                    place += count
                }
                return values
            }
        }
        return GGUFWriter.Tensor(name: target, shape: shape, type: own) { range in
            let values = try tensor.values(range)
            return shift == 0 ? values : values.map { $0 + shift }
        }
    }

    /// Factors that frequencies of the rotation are divided by.
    private func ropeFactors() throws(ModelError) -> [(name: String, values: [Float])] {
        let dimension = try headDimension
        switch ropeType {
        case "llama3":
            let factor = rope?["factor"]?.double ?? 8
            let (low, high) = (rope?["low_freq_factor"]?.double ?? 1, rope?["high_freq_factor"]?.double ?? 4)
            let original = Double(originalContext ?? 8192)
            guard factor > 0, high > low else {
                throw .invalid(field: "rope_parameters", reason: "has factors that make no sense")
            }
            let values = stride(from: 0, to: dimension, by: 2).map { index -> Float in
                let length = 2 * Double.pi * pow(base, Double(index) / Double(dimension))
                if length < original / high { return 1 }
                if length > original / low { return Float(factor) }
                let smooth = (original / length - low) / (high - low)
                return Float(1 / ((1 - smooth) / factor + smooth))
            }
            return [("rope_freqs.weight", values)]
        case "longrope", "su":
            func values(_ key: String) throws(ModelError) -> [Float] {
                guard case .array(let list)? = rope?[key] else { throw .missing("\(key) in config.json") }
                return list.compactMap { $0.double.map(Float.init) }
            }
            return [
                ("rope_factors_long.weight", try values("long_factor")),
                ("rope_factors_short.weight", try values("short_factor")),
            ]
        default: return []
        }
    }
}
