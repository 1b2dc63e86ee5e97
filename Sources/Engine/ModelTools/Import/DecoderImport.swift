internal import Foundation
internal import Inference
internal import JSON

/// A decoder in the Hugging Face form, as metadata and tensors of a GGUF file.
struct DecoderImport {
    let family: DecoderFamily
    let config: ImportConfig
    private let weights: [String: SourceTensor]
    /// Blocks of MXFP4 and their scales.
    let blocks: [String: Safetensors.Tensor]
    private let layers: Int
    /// Whether layers after the last one predict the token after the next.
    private let hasPredictions: Bool
    /// The number of rows of the embeddings that belong to tokens.
    let embeddingCount: Int

    /// That of the family, or of a relative: some Granite hybrids are plain models, and EmbeddingGemma is built like Gemma 3.
    private let architecture: String

    /// - Parameters:
    ///   - whole: `config.json`.
    ///   - tokens: the number of tokens of the tokenizer.
    /// - Throws: ``ModelError`` for quantisations and settings that are not read.
    init(_ family: DecoderFamily, config whole: JSONValue, weights: Safetensors, tokens: Int) throws(ModelError) {
        // Of models with images, the part for texts is read; what it leaves out stands beside it.
        let config = ImportConfig(json: Self.flattened(whole))
        self.family = family
        self.config = config
        layers = try config.layers
        hasPredictions = config["num_nextn_predict_layers"]?.integer ?? 0 > 0
        let found = try Self.texts(weights.tensors)
        self.blocks = try Self.texts(weights.bytes)
        self.weights = try Self.dequantized(found, config, hasBlocks: !blocks.isEmpty && family.architecture == "gpt-oss")
        guard let embeddings = self.weights["model.embed_tokens.weight"], embeddings.shape.count == 2 else {
            throw .missing("tensor model.embed_tokens.weight")
        }
        guard embeddings.shape[0] <= HuggingFaceFolder.maximumTokens else {
            throw .invalid(field: "tensor model.embed_tokens.weight", reason: "has \(embeddings.shape[0]) rows")
        }
        // Gemma's table has rows for tokens that do not exist.
        embeddingCount =
            ["gemma3", "gemma4"].contains(family.architecture) ? min(embeddings.shape[0], tokens) : embeddings.shape[0]
        let isEmbedder = family.architecture == "gemma3" && config.flag("use_bidirectional_attention") == true
        if family.architecture == "granitehybrid", try !DecoderFamily.isHybrid(config) {
            architecture = try config.hasLocalExperts ? "granitemoe" : "granite"
        } else {
            architecture = isEmbedder ? "gemma-embedding" : family.architecture
        }
        try check()
        for name in weights.skipped where self.name(of: name) != nil {
            throw .unsupported(field: "tensor \(name)", value: "integers", supported: "F32, F16, BF16, F8_E4M3")
        }
    }

    private static func flattened(_ whole: JSONValue) -> JSONValue {
        guard case .object(let members) = whole, case .object(let text)? = whole["text_config"] else { return whole }
        // Whether the tables are shared is said by the whole.
        let parts = text.filter { $0.name != "tie_word_embeddings" || whole["tie_word_embeddings"] == nil }
        let own = Set(parts.map(\.name))
        return .object(parts + members.filter { !own.contains($0.name) && $0.name != "text_config" })
    }

    /// The tensors for texts under the names that models without images have.
    private static func texts(_ tensors: [String: Safetensors.Tensor]) throws(ModelError) -> [String: Safetensors.Tensor] {
        var found: [String: Safetensors.Tensor] = [:]
        let hasPrefix = tensors.keys.contains { $0.hasPrefix("model.") || $0.hasPrefix("language_model.") }
        for (name, tensor) in tensors {
            var path = name
            for prefix in ["language_model.model.", "model.language_model."] where path.hasPrefix(prefix) {
                path = "model." + path.dropFirst(prefix.count)
            }
            if path.hasPrefix("language_model.") { path = String(path.dropFirst("language_model.".count)) }
            if !hasPrefix { path = "model." + path }
            // Towers of images and sounds are other files; heads that predict several tokens are not computed.
            let part = path.hasPrefix("model.") ? path.dropFirst("model.".count) : path[...]
            let others = [
                "vision_tower.", "visual.", "multi_modal_projector.", "audio_tower.", "embed_vision.", "embed_audio.", "mtp.",
            ]
            if others.contains(where: part.hasPrefix) || path.hasSuffix("rotary_emb.inv_freq") { continue }
            guard found.updateValue(tensor, forKey: path) == nil else {
                throw .invalid(field: "tensor \(path)", reason: "appears twice, with and without a prefix")
            }
        }
        return found
    }

    /// The tensors with the scales that belong to numbers of 8 bits applied.
    private static func dequantized(_ tensors: [String: Safetensors.Tensor], _ config: ImportConfig, hasBlocks: Bool)
        throws(ModelError) -> [String: SourceTensor]
    {
        let quantization = config["quantization_config"]
        let method = quantization?["quant_method"]?.string
        var block: (rows: Int, columns: Int)?
        switch method {
        case nil where quantization == nil: break
        case "mxfp4" where hasBlocks: break
        case "fp8":
            if case .array(let sizes)? = quantization?["weight_block_size"] {
                let range = 1...65_536
                guard sizes.count == 2, let rows = sizes[0].integer, let columns = sizes[1].integer, range.contains(rows),
                    range.contains(columns)
                else {
                    throw .invalid(field: "weight_block_size in config.json", reason: "is not two numbers")
                }
                block = (rows, columns)
            }
        default:
            throw .unsupported(
                field: "quantization_config", value: method ?? quantization?.text ?? "",
                supported:
                    "fp8 with scales, MXFP4 of gpt-oss, and weights with 16 or 32 bits: import the original model and quantise it afterwards"
            )
        }
        var result = tensors.mapValues { SourceTensor($0) }
        var unscaled = Set(tensors.filter { $0.value.isFloat8 }.keys)
        for (name, scale) in tensors where method == "fp8" {
            if name.hasSuffix("activation_scale") || name.hasSuffix(".input_scale") { result[name] = nil }
            guard name.hasSuffix("_scale_inv") else { continue }
            let target = String(name.dropLast("_scale_inv".count))
            guard let weight = result[target] else { throw .missing("tensor \(target)") }
            result[name] = nil
            unscaled.remove(target)
            do { result[target] = try weight.scaled(by: SourceTensor(scale), block: block) } catch {
                throw .invalid(field: "tensor \(name)", reason: "does not fit \(target): \(scale.shape) for \(weight.shape)")
            }
        }
        if let name = unscaled.min() { throw .missing("scales of the 8-bit tensor \(name)") }
        for (name, tensor) in result where tensor.shape.isEmpty || tensor.shape.count > 4 {
            throw .invalid(field: "tensor \(name)", reason: "has the shape \(tensor.shape)")
        }
        return result
    }

    // MARK: - What is done

    /// What becomes different from the folder, for the person who imports.
    func notes(of weights: Safetensors) throws(ModelError) -> [String] {
        var notes: [String] = []
        let kinds = self.weights.keys.compactMap(Self.expert).count
        if kinds > 0 { notes.append("\(kinds) matrices of experts stacked") }
        if self.weights.keys.contains(where: { $0.hasSuffix("kv_b_proj.weight") }) {
            notes.append("keys and values of latent attention apart")
        }
        if family.pairsRows { notes.append("rows of queries and keys as adjacent pairs") }
        if family.shiftsNorms { notes.append("1 added to norms") }
        if try !ropeFactors().isEmpty { notes.append("factors of the rotation computed") }
        if let window = config["sliding_window"]?.integer, (1..<4096).contains(window),
            config.flag("use_sliding_window") != false,
            ["llama", "mistral3", "qwen2", "qwen3", "phi3"].contains(architecture)
        {
            notes.append("attention windows of \(window) tokens are not applied, as in llama.cpp")
        }
        if config["quantization_config"]?["quant_method"]?.string == "fp8" {
            notes.append("8-bit numbers multiplied with their scales")
        }
        if !blocks.isEmpty { notes.append("\(blocks.count / 2) tensors of MXFP4 copied block by block") }
        if let rows = self.weights["model.embed_tokens.weight"]?.shape.first, rows > embeddingCount {
            notes.append("\(rows - embeddingCount) rows of the embeddings without tokens left out")
        }
        if isTied, self.weights["lm_head.weight"] != nil { notes.append("one table for embeddings and output") }
        let predictions = self.weights.keys.count(where: isPrediction)
        let others = weights.tensors.count - self.weights.count - scales(of: weights)
        if predictions > 0 { notes.append("\(predictions) tensors that predict further tokens left out") }
        if others > 0 { notes.append("\(others) tensors for images, sounds or further tokens left out") }
        return notes
    }

    private func scales(of weights: Safetensors) -> Int {
        weights.tensors.keys.count {
            $0.hasSuffix("_scale_inv") || $0.hasSuffix("activation_scale") || $0.hasSuffix(".input_scale")
        }
    }

    // MARK: - Settings

    /// Gemma 3's configurations leave out what equals the defaults of its class.
    private func usual(_ gemma3: Int) -> Int? { family.architecture == "gemma3" ? gemma3 : nil }

    private func integer(_ key: String, or usual: Int?) throws(ModelError) -> Int {
        if let value = try config.integer(key) { return value }
        guard let usual else { throw .missing("\(key) in config.json") }
        return usual
    }

    var heads: Int { get throws(ModelError) { try integer("num_attention_heads", or: usual(8)) } }
    var keyHeads: Int {
        get throws(ModelError) {
            if let own = try config.integer("num_key_value_heads", in: 1...65_536) { return own }
            if let usual = usual(4) { return usual }
            return try heads
        }
    }
    var headDimension: Int {
        get throws(ModelError) {
            var dimension = try config.required("hidden_size") / heads
            // Granite has a head dimension in its configuration and does not use it.
            if !architecture.hasPrefix("granite"), let own = try config.integer("head_dim", in: 2...65_536) ?? usual(256) {
                dimension = own
            }
            guard dimension > 0, dimension % 2 == 0 else { throw .invalid(field: "head_dim", reason: "is \(dimension)") }
            return dimension
        }
    }

    /// Checks settings that would change what the model computes.
    private func check() throws(ModelError) {
        let activation = config.string("hidden_activation") ?? config.string("hidden_act")
        if let activation, !family.activations.contains(activation) {
            throw .unsupported(
                field: "hidden_act of config.json", value: activation, supported: family.activations.joined(separator: ", "))
        }
        // Attention to both sides is that of encoders.
        try config.require("is_causal", .bool(true))
        if architecture != "gemma-embedding" { try config.require("use_bidirectional_attention", .bool(false)) }
        for key in ["rope_parameters", "rope_scaling"] {
            guard let value = config[key] else { continue }
            guard case .object = value else { throw .invalid(field: "\(key) in config.json", reason: "is not an object") }
        }
        for name in weights.keys {
            if let layer = Self.parse(name)?.layer, layer >= layers, !isPrediction(name) {
                throw .invalid(field: "num_hidden_layers", reason: "is \(layers), and there is a tensor \(name)")
            }
        }
    }

    /// Whether a tensor belongs to the layers after the last one, which predict the token after the next.
    private func isPrediction(_ name: String) -> Bool {
        hasPredictions && Self.parse(name).map { $0.layer >= layers } ?? false
    }

    // MARK: - Metadata

    func metadata() throws(ModelError) -> ImportFields {
        var fields = ImportFields(architecture)
        fields.set("block_count", layers)
        fields.set("context_length", try integer("max_position_embeddings", or: usual(131_072)))
        fields.set("embedding_length", try config.required("hidden_size"))
        fields.set("feed_forward_length", try feedForward())
        fields.set("attention.head_count", try heads)
        fields.set("attention.head_count_kv", try keyHeads)
        fields.set("attention.layer_norm_rms_epsilon", 1e-6)
        for key in ["norm_eps", "rms_norm_eps"] { fields.set("attention.layer_norm_rms_epsilon", try config.number(key)) }
        if config["head_dim"] != nil || usual(256) != nil, !architecture.hasPrefix("granite") {
            fields.set("attention.key_length", try headDimension)
            fields.set("attention.value_length", try headDimension)
        }
        fields.set("vocab_size", embeddingCount)
        if let usual = family.rotatedShare {
            fields.set("rope.dimension_count", try Int(config.rotatedShare(or: usual) * Double(headDimension)))
        }
        fields.set("rope.freq_base", config.base(or: usual(1) == nil ? 10_000 : 1_000_000))
        try setRope(&fields)
        if case .array(let sections)? = config.rope?["mrope_section"], architecture != "glm4" {
            let numbers = sections.map { $0.integer ?? 0 }
            fields.set("rope.dimension_sections", numbers.prefix(4) + Array(repeating: 0, count: max(0, 4 - numbers.count)))
        }
        try family.metadata(config, &fields)
        return fields
    }

    /// The width of feed-forward networks; nil for models that have experts only.
    private func feedForward() throws(ModelError) -> Int? {
        // The configuration of LFM2 has the width before it is rounded.
        if architecture == "lfm2", let first = weights["model.layers.0.feed_forward.w1.weight"] { return first.shape.first }
        if let width = try config.integer("intermediate_size") { return width }
        return try config.integer("moe_intermediate_size") == nil ? try config.required("intermediate_size") : nil
    }

    private func setRope(_ fields: inout ImportFields) throws(ModelError) {
        let rope = config.rope
        let factor = rope?["factor"]?.double
        if ["linear", "yarn"].contains(config.ropeType), factor == nil {
            throw .missing("factor of rope_parameters in config.json")
        }
        switch config.ropeType {
        case "linear":
            fields.set("rope.scaling.type", .string("linear"))
            fields.set("rope.scaling.factor", factor)
        case "yarn":
            fields.set("rope.scaling.type", .string("yarn"))
            fields.set("rope.scaling.factor", factor)
            fields.set("rope.scaling.original_context_length", config.originalContext)
            fields.set("rope.scaling.yarn_beta_fast", rope?["beta_fast"]?.double)
            fields.set("rope.scaling.yarn_beta_slow", rope?["beta_slow"]?.double)
            fields.set("rope.scaling.yarn_attn_factor", rope?["attention_factor"]?.double)
            if let own = rope?["attention_factor"]?.double, let factor, factor > 1 {
                // Loaders multiply with what the paper has.
                let usual = 1 + 0.1 * log(factor)
                if abs(own - usual) > 1e-3 { fields.set("rope.scaling.attn_factor", own / usual) }
            }
            if architecture != "mistral3" {
                for (key, usual) in [("beta_fast", 32.0), ("beta_slow", 1)] {
                    guard let own = rope?[key]?.double, own != usual else { continue }
                    throw .unsupported(field: "\(key) of rope_parameters", value: "\(own)", supported: "\(usual)")
                }
            }
            if rope?["truncate"] == .bool(false) { fields.set("rope.scaling.yarn_truncate", .bool(false)) }
        case "longrope", "su":
            fields.set("rope.scaling.type", .string("longrope"))
            fields.set("rope.scaling.original_context_length", config.originalContext)
            let ratio = Double(try config.required("max_position_embeddings")) / Double(config.originalContext ?? 1)
            let magnitude = ratio > 1 ? (1 + log(ratio) / log(Double(max(2, config.originalContext ?? 2)))).squareRoot() : 1
            fields.set("rope.scaling.attn_factor", rope?["attention_factor"]?.double ?? magnitude)
        case "default", "llama3", "mrope": break
        case "dynamic" where architecture == "hunyuan-dense", "proportional" where architecture == "gemma4": break
        case let other:
            throw .unsupported(field: "rope_type", value: other, supported: "default, linear, llama3, longrope, yarn")
        }
    }

    // MARK: - Tensors

    /// - Parameter type: the type of matrices; nil for that of the file. Vectors, norms and routers have 32 bits.
    func tensors(_ type: TensorType?) throws(ModelError) -> [GGUFWriter.Tensor] {
        var result: [GGUFWriter.Tensor] = []
        var experts: [String: [Int: SourceTensor]] = [:]
        for (name, tensor) in weights.sorted(by: { $0.key < $1.key }) {
            if name == "lm_head.weight" && isTied || isPrediction(name) { continue }
            if let (target, expert) = Self.expert(name) {
                experts[target, default: [:]][expert] = tensor
                continue
            }
            for (target, part) in try changed(name, tensor) { result.append(try entry(target, part, type)) }
        }
        for (target, parts) in experts.sorted(by: { $0.key < $1.key }) {
            let ordered = try (0..<parts.count).map { (index) throws(ModelError) -> SourceTensor in
                guard let part = parts[index] else { throw .missing("expert \(index) of \(target)") }
                return part
            }
            guard let stacked = SourceTensor.stacked(ordered), stacked.shape.count == 3 else {
                throw .invalid(field: target, reason: "has experts of different shapes")
            }
            result.append(try entry(target, stacked, type))
        }
        for (name, values) in try ropeFactors() {
            result.append(GGUFWriter.Tensor(name: name, shape: [values.count], type: .f32) { Array(values[$0]) })
        }
        return try result + blockTensors()
    }

    private var isTied: Bool {
        // Of a model with equal tables, only one is written.
        config.flag("tie_word_embeddings") ?? family.architecture.hasPrefix("gemma")
    }

    private func entry(_ target: String, _ tensor: SourceTensor, _ type: TensorType?) throws(ModelError) -> GGUFWriter.Tensor {
        var shape = Array(tensor.shape.reversed())
        let name = TensorName(of: target)
        if name == .tokenEmbedding || name == .perLayerEmbedding {
            guard shape.count == 2 else { throw .invalid(field: target, reason: "has the shape \(tensor.shape)") }
            shape[1] = min(shape[1], embeddingCount)
        }
        let keepsAll =
            tensor.shape.count == 1 || !target.hasSuffix(".weight") || name?.entry.precision == .kept
            || name?.entry.precision == .keptInImport
        let wanted = type ?? tensor.type
        let own: TensorType = keepsAll ? .f32 : shape[0] % wanted.blockElements == 0 ? wanted : .f16
        return GGUFWriter.Tensor(name: target, shape: shape, type: own, values: tensor.values)
    }

    /// The layer, the module and the part of a name such as `model.layers.3.mlp.up_proj.weight`; parameters such as
    /// `model.layers.3.layer_scalar` are no part of a module.
    static func parse(_ name: String) -> (layer: Int, module: String, part: TensorName.Part)? {
        let parts = name.split(separator: ".", maxSplits: 3).map(String.init)
        guard parts.count == 4, parts[0] == "model", parts[1] == "layers", let layer = Int(parts[2]), layer >= 0 else {
            return nil
        }
        for part in [TensorName.Part.weight, .bias] where parts[3].hasSuffix(part.rawValue) {
            return (layer, String(parts[3].dropLast(part.rawValue.count)), part)
        }
        return (layer, parts[3], .whole)
    }

    /// What a tensor that remains one tensor is called; nil for unknown ones.
    func name(of name: String) -> String? {
        if name.hasSuffix(".weight"), let target = TensorName.ofOutsideModule[String(name.dropLast(".weight".count))] {
            return target.weight
        }
        guard let (layer, module, part) = Self.parse(name) else { return nil }
        if part == .whole { return TensorName.ofParameter[module].map { LayerNames(layer)($0.name, $0.part) } }
        return (family.names[module] ?? TensorName.ofModule[module]).map { LayerNames(layer)($0, part) }
    }

    /// The tensor that an expert's matrix is a part of, and the expert's number.
    private static func expert(_ name: String) -> (target: String, expert: Int)? {
        guard let (layer, module, part) = parse(name), part == .weight else { return nil }
        let parts = module.split(separator: ".").map(String.init)
        let names: [String: TensorName] = [
            "gate_proj": .expertGates, "up_proj": .expertUps, "down_proj": .expertDowns, "w1": .expertGates, "w2": .expertDowns,
            "w3": .expertUps,
        ]
        guard parts.count == 4, parts[1] == "experts", let expert = Int(parts[2]), let name = names[parts[3]] else { return nil }
        return (LayerNames(layer)(name), expert)
    }
}
