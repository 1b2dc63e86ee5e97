/// The tensors of models: one table of their names in files and in transformers, and of what holds for each of them.
///
/// In a file, a tensor of a layer is called `blk.3.attn_q.weight`: its layer, its name, and which part of the module it is.
package enum TensorName: Int, CaseIterable, Sendable {
    // Outside of the layers
    case tokenEmbedding, perLayerEmbedding, positionEmbedding, tokenTypes, embeddingNorm, outputNorm, output
    case perLayerModelProjection, perLayerProjectionNorm, projection2, projection3
    case classifier, classifierNorm, classifierOutput
    case rotaryFactors, shortFactors, longFactors
    // Norms of a layer
    case attentionNorm, postAttentionNorm, attentionOutputNorm, feedForwardNorm, postFeedForwardNorm, layerOutputNorm
    case preFeedForwardNorm2, postFeedForwardNorm1, postFeedForwardNorm2
    // Attention
    case query, key, value, queryKeyValue, attentionGate, attentionOutput, queryNorm, keyNorm, sinks
    case queryDown, queryDownNorm, queryUp, keyValueDown, keyValueNorm, keyValueUp, keyUp, valueUp
    // Recurrent layers and convolutions
    case stateInput, stateConvolution, stateA, stateD, stateStep, stateNorm, stateOutput, stateAlpha, stateBeta, stateBetaAlpha
    case convolutionInput, convolution, convolutionOutput
    // Feed-forward networks
    case gate, up, down, sharedGate, sharedUp, sharedDown, sharedOutputGate
    case router, selectionBias, expertGates, expertUps, expertDowns, expertGatesAndUps
    // Other parts of a layer
    case perLayerGate, perLayerProjection, perLayerNorm, layerScale
    // A layer that predicts the token after the next one
    case predictionInput, predictionEmbeddingNorm, predictionHiddenNorm, predictionEmbedding, predictionOutputNorm,
        predictionOutput

    /// What a tensor is, as far as mixtures of types ask for it.
    package enum Role: Sendable { case output, embedding, value, key, query, attentionOutput, up, gate, down, other }

    /// What of a module a tensor is, as the end of its name; `whole` for a tensor that is no part of one.
    package enum Part: String, CaseIterable, Sendable { case weight = ".weight", bias = ".bias", scale = ".scale", whole = "" }

    /// Whether a matrix keeps its precision where the others get a type that was asked for.
    package enum Precision: Sendable { case asOthers, keptInImport, keptInQuantization, kept }

    /// A row of the table.
    package struct Entry: Sendable {
        /// The name in a file, without the layer and the part.
        package let name: String
        package let role: Role
        /// The names that its module has in decoders of transformers: in a layer, or in the whole model. Families with names of
        /// their own say them themselves.
        package let modules: [String]
        /// The name of its module that PEFT writes.
        package var module: String { modules.first ?? name }
        /// The names of parameters of transformers that are no weight or bias of such a module.
        package let parameters: [String: Part]
        /// Whether adapters of PEFT may target it, as the first of its modules.
        package let isTarget: Bool
        /// Whether it is used in another way than in products with the activations of a batch, so that an adapter cannot change it
        /// while the model runs, but has to be merged into it.
        package let isMerged: Bool
        package let precision: Precision
        /// Whether it belongs to no layer.
        package let isOutside: Bool

        init(
            _ name: String, _ role: Role = .other, _ modules: String..., parameters: [String: Part] = [:], isTarget: Bool = false,
            isMerged: Bool = false, precision: Precision = .asOthers, isOutside: Bool = false
        ) {
            (self.name, self.role, self.modules, self.parameters) = (name, role, modules, parameters)
            (self.isTarget, self.isMerged, self.precision, self.isOutside) = (isTarget, isMerged, precision, isOutside)
        }
    }

    private var row: Entry {
        switch self {
        case .tokenEmbedding:
            Entry("token_embd", .embedding, "model.embed_tokens", isTarget: true, isMerged: true, isOutside: true)
        case .perLayerEmbedding:
            Entry("per_layer_token_embd", .embedding, "model.embed_tokens_per_layer", isMerged: true, isOutside: true)
        case .positionEmbedding: Entry("position_embd", precision: .kept, isOutside: true)
        case .tokenTypes: Entry("token_types", precision: .kept, isOutside: true)
        case .embeddingNorm: Entry("token_embd_norm", .other, "model.embedding_norm", precision: .kept, isOutside: true)
        case .outputNorm: Entry("output_norm", .other, "model.norm", precision: .kept, isOutside: true)
        case .output: Entry("output", .output, "lm_head", isTarget: true, isMerged: true, isOutside: true)
        case .perLayerModelProjection:
            Entry(
                "per_layer_model_proj", .other, "model.per_layer_model_projection", precision: .keptInQuantization,
                isOutside: true)
        case .perLayerProjectionNorm:
            Entry("per_layer_proj_norm", .other, "model.per_layer_projection_norm", precision: .kept, isOutside: true)
        case .projection2: Entry("dense_2", isOutside: true)
        case .projection3: Entry("dense_3", isOutside: true)
        case .classifier: Entry("cls", isOutside: true)
        case .classifierNorm: Entry("cls.norm", precision: .kept, isOutside: true)
        case .classifierOutput: Entry("cls.output", isOutside: true)
        case .rotaryFactors: Entry("rope_freqs", isOutside: true)
        case .shortFactors: Entry("rope_factors_short", isOutside: true)
        case .longFactors: Entry("rope_factors_long", isOutside: true)

        case .attentionNorm: Entry("attn_norm", .other, "input_layernorm", precision: .kept)
        case .postAttentionNorm: Entry("post_attention_norm", precision: .kept)
        case .attentionOutputNorm: Entry("attn_output_norm", precision: .kept)
        case .feedForwardNorm:
            Entry(
                "ffn_norm", .other, "post_attention_layernorm", "pre_feedforward_layernorm", "ffn_norm", precision: .kept)
        case .postFeedForwardNorm: Entry("post_ffw_norm", .other, "post_feedforward_layernorm", precision: .kept)
        case .layerOutputNorm: Entry("layer_output_norm", precision: .kept)
        case .preFeedForwardNorm2: Entry("pre_ffw_norm_2", .other, "pre_feedforward_layernorm_2", precision: .kept)
        case .postFeedForwardNorm1: Entry("post_ffw_norm_1", .other, "post_feedforward_layernorm_1", precision: .kept)
        case .postFeedForwardNorm2: Entry("post_ffw_norm_2", .other, "post_feedforward_layernorm_2", precision: .kept)

        case .query: Entry("attn_q", .query, "self_attn.q_proj", isTarget: true)
        case .key: Entry("attn_k", .key, "self_attn.k_proj", isTarget: true)
        case .value: Entry("attn_v", .value, "self_attn.v_proj", isTarget: true)
        case .queryKeyValue: Entry("attn_qkv", .value, "self_attn.qkv_proj", "linear_attn.in_proj_qkv", isTarget: true)
        case .attentionGate: Entry("attn_gate", .other, "linear_attn.in_proj_z")
        case .attentionOutput: Entry("attn_output", .attentionOutput, "self_attn.o_proj", isTarget: true)
        case .queryNorm: Entry("attn_q_norm", .other, "self_attn.q_norm", precision: .kept)
        case .keyNorm: Entry("attn_k_norm", .other, "self_attn.k_norm", precision: .kept)
        case .sinks: Entry("attn_sinks", parameters: ["self_attn.sinks": .weight])
        case .queryDown: Entry("attn_q_a", .other, "self_attn.q_a_proj")
        case .queryDownNorm: Entry("attn_q_a_norm", .other, "self_attn.q_a_layernorm", precision: .kept)
        case .queryUp: Entry("attn_q_b", .other, "self_attn.q_b_proj")
        case .keyValueDown: Entry("attn_kv_a_mqa", .other, "self_attn.kv_a_proj_with_mqa")
        case .keyValueNorm: Entry("attn_kv_a_norm", .other, "self_attn.kv_a_layernorm", precision: .kept)
        case .keyValueUp: Entry("attn_kv_b", .value, isMerged: true)
        case .keyUp: Entry("attn_k_b", isMerged: true)
        case .valueUp: Entry("attn_v_b", isMerged: true)

        case .stateInput: Entry("ssm_in", .other, "mamba.in_proj")
        case .stateConvolution: Entry("ssm_conv1d", .other, "linear_attn.conv1d", "mamba.conv1d", precision: .kept)
        case .stateA: Entry("ssm_a", parameters: ["linear_attn.A_log": .whole, "mamba.A_log": .whole])
        case .stateD: Entry("ssm_d", parameters: ["mamba.D": .whole])
        case .stateStep: Entry("ssm_dt", parameters: ["linear_attn.dt_bias": .bias, "mamba.dt_bias": .bias])
        case .stateNorm: Entry("ssm_norm", .other, "linear_attn.norm", "mamba.norm", precision: .kept)
        case .stateOutput: Entry("ssm_out", .other, "linear_attn.out_proj", "mamba.out_proj")
        case .stateAlpha: Entry("ssm_alpha", .other, "linear_attn.in_proj_a")
        case .stateBeta: Entry("ssm_beta", .other, "linear_attn.in_proj_b")
        case .stateBetaAlpha: Entry("ssm_ba", .other, "linear_attn.in_proj_ba")
        case .convolutionInput: Entry("shortconv.in_proj", .other, "conv.in_proj")
        case .convolution: Entry("shortconv.conv", .other, "conv.conv", precision: .kept)
        case .convolutionOutput: Entry("shortconv.out_proj", .other, "conv.out_proj")

        case .gate: Entry("ffn_gate", .gate, "mlp.gate_proj", isTarget: true)
        // Some models have the rows of the gate before the others, in one matrix.
        case .up: Entry("ffn_up", .up, "mlp.up_proj", "mlp.gate_up_proj", isTarget: true)
        case .down: Entry("ffn_down", .down, "mlp.down_proj", isTarget: true)
        case .sharedGate: Entry("ffn_gate_shexp", .gate, "mlp.shared_expert.gate_proj", "mlp.shared_experts.gate_proj")
        case .sharedUp: Entry("ffn_up_shexp", .up, "mlp.shared_expert.up_proj", "mlp.shared_experts.up_proj")
        case .sharedDown: Entry("ffn_down_shexp", .down, "mlp.shared_expert.down_proj", "mlp.shared_experts.down_proj")
        case .sharedOutputGate: Entry("ffn_gate_inp_shexp", .gate, "mlp.shared_expert_gate", precision: .keptInImport)
        case .router:
            Entry(
                "ffn_gate_inp", .other, "mlp.gate", "mlp.router", "feed_forward.gate", "router.proj", "block_sparse_moe.gate",
                "block_sparse_moe.router.layer", "block_sparse_moe.router", parameters: ["router.scale": .scale],
                precision: .kept)
        case .selectionBias:
            Entry(
                "exp_probs_b", parameters: ["mlp.gate.e_score_correction_bias": .bias, "feed_forward.expert_bias": .bias])
        case .expertGates: Entry("ffn_gate_exps", .gate)
        case .expertUps: Entry("ffn_up_exps", .up)
        case .expertDowns:
            Entry(
                "ffn_down_exps", .down, "block_sparse_moe.output_linear",
                parameters: ["router.per_expert_scale": .scale, "experts.down_proj": .weight])
        case .expertGatesAndUps: Entry("ffn_gate_up_exps", .gate, parameters: ["experts.gate_up_proj": .weight])

        case .perLayerGate: Entry("inp_gate", .other, "per_layer_input_gate")
        case .perLayerProjection: Entry("proj", .other, "per_layer_projection")
        case .perLayerNorm: Entry("post_norm", .other, "post_per_layer_input_norm", precision: .kept)
        case .layerScale: Entry("layer_output_scale", parameters: ["layer_scalar": .weight])

        case .predictionInput: Entry("nextn.eh_proj")
        case .predictionEmbeddingNorm: Entry("nextn.enorm", precision: .kept)
        case .predictionHiddenNorm: Entry("nextn.hnorm", precision: .kept)
        case .predictionEmbedding: Entry("nextn.embed_tokens", isMerged: true)
        case .predictionOutputNorm: Entry("nextn.shared_head_norm", precision: .kept)
        case .predictionOutput: Entry("nextn.shared_head_head", isMerged: true)
        }
    }

    private static let table = allCases.map(\.row)

    package var entry: Entry { Self.table[rawValue] }

    // MARK: - Names in files

    /// The name of a part, without the layer.
    package func part(_ part: Part) -> String { entry.name + part.rawValue }

    package var weight: String { part(.weight) }
    package var bias: String { part(.bias) }
    package var whole: String { entry.name }

    /// Whether the rows of its heads are what a rotation pairs: files of some families have them in another order
    /// (``ModelFamily/pairsRows``).
    package var isRotated: Bool { entry.role == .query || entry.role == .key }

    private static let byName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.entry.name, $0) })

    /// The tensor that has a name in a file, such as `token_embd.weight`, `blk.3.attn_q.bias`, or `blk.3.ffn_up.7.weight` of an
    /// expert; nil for unknown ones.
    package init?(of name: String) {
        var words = name.split(separator: ".")
        let block = words.firstIndex(of: "blk")
        if let block { words.removeFirst(min(words.count, block + 2)) }
        if let last = words.last, Part(rawValue: "." + last) != nil { words.removeLast() }
        if words.count > 1, let last = words.last, Int(last) != nil { words.removeLast() }
        guard let found = Self.byName[words.joined(separator: ".")], found.entry.isOutside == (block == nil) else { return nil }
        self = found
    }

    // MARK: - Names in transformers

    /// By the names of modules of layers.
    package static let ofModule = Dictionary(
        uniqueKeysWithValues: allCases.filter { !$0.entry.isOutside }.flatMap { name in name.entry.modules.map { ($0, name) } })

    /// By the names of modules outside of the layers.
    package static let ofOutsideModule = Dictionary(
        uniqueKeysWithValues: allCases.filter(\.entry.isOutside).flatMap { name in name.entry.modules.map { ($0, name) } })

    /// By the names of parameters.
    package static let ofParameter = Dictionary(
        uniqueKeysWithValues: allCases.flatMap { name in name.entry.parameters.map { ($0.key, (name: name, part: $0.value)) } })
}

/// The names that the tensors of a layer have in a file.
package struct LayerNames {
    private let prefix: String

    package init(_ layer: Int) { prefix = "blk.\(layer)." }

    package func callAsFunction(_ name: TensorName, _ part: TensorName.Part = .weight) -> String { prefix + name.part(part) }

    /// The name of one expert's matrix, in older files.
    func callAsFunction(_ name: TensorName, expert: Int) -> String { "\(prefix)\(name.whole).\(expert).weight" }
}
