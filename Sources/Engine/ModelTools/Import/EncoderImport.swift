internal import Foundation
internal import Inference
internal import JSON

/// An encoder in the Hugging Face form, as metadata and tensors of a GGUF file: BERT and its relatives.
struct EncoderImport {
    struct Family: Sendable {
        var architecture: String
        /// Names of modules outside of the layers.
        var outside: [String: TensorName]
        /// Where layers begin, such as `encoder.layer.`.
        var layers: String
        /// Names of modules in a layer.
        var parts: [String: TensorName]
        /// What is before all names in some folders.
        var prefixes: [String]
        /// Parts that predict words or sentences, which embeddings do not need.
        var heads: [String]
    }

    private static let bert = Family(
        architecture: "bert",
        outside: [
            "embeddings.word_embeddings": .tokenEmbedding, "embeddings.position_embeddings": .positionEmbedding,
            "embeddings.token_type_embeddings": .tokenTypes, "embeddings.LayerNorm": .embeddingNorm,
        ],
        layers: "encoder.layer.",
        parts: [
            "attention.self.query": .query, "attention.self.key": .key, "attention.self.value": .value,
            "attention.output.dense": .attentionOutput, "attention.output.LayerNorm": .attentionOutputNorm,
            "intermediate.dense": .up, "output.dense": .down, "output.LayerNorm": .layerOutputNorm,
        ],
        prefixes: ["bert.", "roberta."], heads: ["pooler.", "cls.", "lm_head."])

    /// By `model_type` of `config.json`.
    static let families: [String: Family] = [
        "bert": bert, "roberta": bert, "xlm-roberta": bert,
        "nomic_bert": Family(
            architecture: "nomic-bert",
            outside: [
                "embeddings.word_embeddings": .tokenEmbedding, "embeddings.token_type_embeddings": .tokenTypes,
                "emb_ln": .embeddingNorm,
            ],
            layers: "encoder.layers.",
            parts: [
                "attn.Wqkv": .queryKeyValue, "attn.out_proj": .attentionOutput, "norm1": .attentionOutputNorm, "mlp.fc11": .up,
                "mlp.fc12": .gate, "mlp.fc2": .down, "norm2": .layerOutputNorm,
            ],
            prefixes: ["bert."], heads: ["pooler.", "cls."]),
        "modernbert": Family(
            architecture: "modern-bert",
            outside: [
                "embeddings.tok_embeddings": .tokenEmbedding, "embeddings.norm": .embeddingNorm, "final_norm": .outputNorm,
            ],
            layers: "layers.",
            parts: [
                "attn.Wqkv": .queryKeyValue, "attn.Wo": .attentionOutput, "attn_norm": .attentionNorm,
                "mlp_norm": .feedForwardNorm,
                "mlp.Wi": .up, "mlp.Wo": .down,
            ],
            prefixes: ["model."], heads: ["head.", "decoder.", "classifier."]),
    ]

    private let family: Family
    private let config: ImportConfig
    private let weights: Safetensors
    private var architecture: String { family.architecture }

    init(_ family: Family, config: ImportConfig, weights: Safetensors) {
        (self.family, self.config, self.weights) = (family, config, weights)
    }

    // MARK: - Metadata

    /// The number that precedes the first position in the table: RoBERTa counts from the number of the padding token.
    private var skippedPositions: Int {
        get throws(ModelError) {
            guard config.string("model_type")?.contains("roberta") == true else { return 0 }
            return try (config.integer("pad_token_id", in: 0...65_536) ?? 1) + 1
        }
    }

    /// More tokens of a question and a text together than rankers are trained with.
    static let maximumPair = 512

    /// - Parameter limit: the number of tokens that texts are cut off after.
    func metadata(limit: Int?) throws(ModelError) -> ImportFields {
        var fields = ImportFields(architecture)
        func required(_ keys: String...) throws(ModelError) -> Int {
            for key in keys { if let value = try config.integer(key) { return value } }
            throw .missing("\(keys[0]) in config.json")
        }
        for key in ["rotary_emb_interleaved", "prenorm", "use_rms_norm", "is_decoder"] { try config.require(key, .bool(false)) }
        try config.require("rotary_emb_fraction", number: 1)
        if architecture == "bert", let kind = config.string("position_embedding_type"), kind != "absolute" {
            throw .unsupported(field: "position_embedding_type", value: kind, supported: "absolute")
        }
        let usual = architecture == "nomic-bert" ? ["swiglu", "silu"] : ["gelu"]
        for key in ["hidden_act", "hidden_activation", "activation_function"] {
            if let activation = config.string(key), !usual.contains(activation) {
                throw .unsupported(field: key, value: activation, supported: usual.joined(separator: ", "))
            }
        }
        fields.set("block_count", try required("num_hidden_layers", "n_layer"))
        fields.set("embedding_length", try required("hidden_size", "n_embd"))
        fields.set("feed_forward_length", try required("intermediate_size", "n_inner"))
        fields.set("attention.head_count", try required("num_attention_heads", "n_head"))
        fields.set("attention.layer_norm_epsilon", 1e-12)
        for key in ["layer_norm_epsilon", "norm_eps", "layer_norm_eps"] {
            fields.set("attention.layer_norm_epsilon", try config.number(key))
        }
        fields.set("attention.causal", .bool(false))
        var positions = try required("max_position_embeddings", "n_positions")
        // Nomic Embed 1 and 1.5 are trained with 2,048 tokens; the table of their rotation is longer.
        if architecture == "nomic-bert" { positions = min(positions, 2048) }
        positions -= try skippedPositions
        fields.set("context_length", min(positions, max(3, limit ?? positions)))
        switch architecture {
        case "nomic-bert":
            fields.set("rope.freq_base", config.base(or: 1000))
            fields.set("rope.freq_base", try config.number("rotary_emb_base"))
        case "modern-bert":
            fields.set("rope.freq_base", config.base(or: 160_000))
            fields.set("rope.freq_base", try config.number("global_rope_theta"))
            fields.set("rope.freq_base_swa", config.windowedRope?["rope_theta"]?.double ?? 10_000)
            fields.set("rope.freq_base_swa", try config.number("local_rope_theta"))
            fields.set("attention.sliding_window", try required("local_attention"))
            fields.set("attention.sliding_window_pattern", try period())
            fields.set("attention.sliding_window_pattern", try config.integer("global_attn_every_n_layers"))
        default: break
        }
        return fields
    }

    /// The distance of layers with full attention, where the configuration lists the layers.
    private func period() throws(ModelError) -> Int {
        let layers = try config.layers
        guard let types = try config.strings("layer_types") else { return 3 }
        let period = (1..<max(2, layers)).first { $0 < layers && types[$0] == "full_attention" } ?? layers
        for (layer, type) in types.enumerated() where (type == "full_attention") != (layer % period == 0) {
            throw .unsupported(field: "layer_types of config.json", value: type, supported: "full attention at a fixed distance")
        }
        return period
    }

    // MARK: - Tensors

    func tensors(_ type: TensorType) throws(ModelError) -> [GGUFWriter.Tensor] {
        var result: [GGUFWriter.Tensor] = []
        for (name, tensor) in weights.tensors.sorted(by: { $0.key < $1.key }) {
            var path = name
            for prefix in family.prefixes where path.hasPrefix(prefix) { path = String(path.dropFirst(prefix.count)) }
            if family.heads.contains(where: path.hasPrefix) { continue }
            guard let target = self.name(of: path) else {
                throw .unsupported(
                    field: "tensor", value: name, supported: "the tensors of a \(config.string("model_type") ?? "") model")
            }
            var source = SourceTensor(tensor)
            guard (1...2).contains(source.shape.count), !tensor.isFloat8 else {
                throw .invalid(field: "tensor \(name)", reason: "has the shape \(source.shape), or 8 bits")
            }
            if target == TensorName.tokenEmbedding.weight, source.shape[0] > HuggingFaceFolder.maximumTokens {
                throw .invalid(field: "tensor \(name)", reason: "has \(source.shape[0]) rows")
            }
            if target == TensorName.positionEmbedding.weight {
                let skipped = try skippedPositions
                guard source.shape.count == 2, source.shape[0] > skipped else {
                    throw .invalid(field: "tensor \(name)", reason: "has the shape \(source.shape)")
                }
                source = source.rows([source.shape[0] - skipped, source.shape[1]]) { $0 + skipped }
            }
            // The kernels of integer matrices need whole blocks.
            let isMatrix = source.shape.count == 2 && target != TensorName.tokenTypes.weight
            let fits = (source.shape.last ?? 1) % type.blockElements == 0
            result.append(
                GGUFWriter.Tensor(
                    name: target, shape: source.shape.reversed(), type: Self.type(of: target, isMatrix: isMatrix && fits, type),
                    values: source.values))
        }
        // The loader takes biases as optional, because some families have none.
        guard architecture == "bert" else { return result }
        let found = Set(result.map(\.name))
        for layer in 0..<(try config.layers) {
            for name in family.parts.values {
                for part in [TensorName.Part.weight, .bias] where !found.contains(LayerNames(layer)(name, part)) {
                    throw .missing("tensor \(LayerNames(layer)(name, part))")
                }
            }
        }
        for name in [
            TensorName.tokenEmbedding.weight, TensorName.positionEmbedding.weight, TensorName.embeddingNorm.weight,
            TensorName.embeddingNorm.bias,
        ]
        where !found.contains(name) {
            throw .missing("tensor \(name)")
        }
        return result
    }

    /// Tensors that have more bits than the others. Only rows of the embeddings are read, so that 8 bits would not be faster.
    /// Values are most sensitive: with 8 bits, the lowest cosine with the original vectors of MiniLM falls from 0.9991 to 0.9984. Products
    /// with BF16 are twice as fast as with F16 where the processor has them.
    private static func type(of tensor: String, isMatrix: Bool, _ type: TensorType) -> TensorType {
        switch TensorName(of: tensor) {
        case .positionEmbedding: .f32
        case .tokenEmbedding where type == .q8_0: .f16
        case .value where type == .q8_0 && tensor.hasSuffix(".weight"): .bf16
        default: isMatrix ? type : .f32
        }
    }

    private func name(of path: String) -> String? {
        guard let dot = path.lastIndex(of: ".") else { return nil }
        let module = String(path[..<dot])
        guard let part = TensorName.Part(rawValue: String(path[dot...])), part == .weight || part == .bias else { return nil }
        if let name = family.outside[module] { return name.part(part) }
        guard module.hasPrefix(family.layers) else { return nil }
        let parts = module.dropFirst(family.layers.count).split(separator: ".", maxSplits: 1)
        guard parts.count == 2, let layer = Int(parts[0]), layer >= 0 else { return nil }
        return family.parts[String(parts[1])].map { LayerNames(layer)($0, part) }
    }
}
