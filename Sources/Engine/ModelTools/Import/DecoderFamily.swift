internal import Foundation
internal import Inference
internal import JSON

/// How a kind of decoder differs from Llama in its Hugging Face form, and what its GGUF form says about it.
///
/// The names and changes are those of llama.cpp's converter, so that the files run there too.
struct DecoderFamily {
    var architecture: String
    /// Whether 1 is added to the weights of norms.
    var shiftsNorms = false
    /// The share of a head's dimensions that is rotated, if the configuration does not say it; nil if the family writes it itself.
    var rotatedShare: Double? = 1
    /// The names that modules have in this family, without the layer.
    var names: [String: TensorName] = [:]
    /// The activation functions that the family computes with.
    var activations = ["silu", "swish"]
    /// Whether rows of queries and keys become adjacent pairs.
    var pairsRows: Bool { ModelFamily.pairsRows(architecture) }
    /// Adds what the family alone has.
    var metadata: @Sendable (ImportConfig, inout ImportFields) throws(ModelError) -> Void = { (_, _) throws(ModelError) in }

    /// By `model_type` of `config.json`.
    static let all: [String: DecoderFamily] = {
        var result: [String: DecoderFamily] = [
            "llama": DecoderFamily(architecture: "llama"),
            "mistral": DecoderFamily(architecture: "llama"),
            "mixtral": DecoderFamily(architecture: "llama", metadata: experts),
            "ministral3": DecoderFamily(architecture: "mistral3", metadata: ministral),
            "smollm3": DecoderFamily(architecture: "smollm3", metadata: smollm3),
            "minicpm": DecoderFamily(architecture: "minicpm", metadata: minicpm),
            "granite": DecoderFamily(architecture: "granite", metadata: granite),
            "granitemoe": DecoderFamily(architecture: "granitemoe", metadata: granite),
            "granitemoeshared": DecoderFamily(architecture: "granitemoe", metadata: granite),
            "granitemoehybrid": DecoderFamily(architecture: "granitehybrid", metadata: graniteHybrid),
            "qwen2": DecoderFamily(architecture: "qwen2"),
            "qwen2_moe": DecoderFamily(architecture: "qwen2moe", metadata: qwen2moe),
            "qwen2_vl": DecoderFamily(architecture: "qwen2vl"), "qwen2_5_vl": DecoderFamily(architecture: "qwen2vl"),
            "qwen3": DecoderFamily(architecture: "qwen3"),
            "qwen3_moe": DecoderFamily(architecture: "qwen3moe", metadata: qwen3moe),
            "qwen3_vl": DecoderFamily(architecture: "qwen3vl", metadata: deepstack),
            "qwen3_vl_moe": DecoderFamily(
                architecture: "qwen3vlmoe",
                metadata: { (config, fields) throws(ModelError) in
                    try qwen3moe(config, &fields)
                    try deepstack(config, &fields)
                }),
            "qwen3_next": deltaNet("qwen3next"), "qwen3_5": deltaNet("qwen35"), "qwen3_5_moe": deltaNet("qwen35moe"),
            "phi3": DecoderFamily(
                architecture: "phi3",
                metadata: { (config, fields) throws(ModelError) in
                    fields.set("attention.sliding_window", try config.integer("sliding_window") ?? 0)
                }),
            "olmo2": DecoderFamily(
                architecture: "olmo2", names: ["post_attention_layernorm": .postAttentionNorm], metadata: windows),
            "olmoe": DecoderFamily(
                architecture: "olmoe",
                metadata: { (config, fields) throws(ModelError) in
                    try config.require("clip_qkv")
                    try config.require("norm_topk_prob", .bool(false))
                    try experts(config, &fields)
                }),
            "ernie4_5": DecoderFamily(architecture: "ernie4_5"),
            "seed_oss": DecoderFamily(architecture: "seed_oss", names: ["post_attention_layernorm": .postAttentionNorm]),
            "glm4": DecoderFamily(
                architecture: "glm4", rotatedShare: 0.5,
                names: ["post_self_attn_layernorm": .postAttentionNorm, "post_mlp_layernorm": .postFeedForwardNorm]),
            "exaone4": DecoderFamily(
                architecture: "exaone4", names: ["post_attention_layernorm": .postAttentionNorm], metadata: windows),
            "hunyuan_v1_dense": DecoderFamily(
                architecture: "hunyuan-dense",
                names: ["self_attn.query_layernorm": .queryNorm, "self_attn.key_layernorm": .keyNorm], metadata: hunyuan),
            "gemma": gemma("gemma"), "gemma2": gemma("gemma2"), "gemma3_text": gemma("gemma3"), "gemma4_text": gemma4,
            "gpt_oss": DecoderFamily(
                architecture: "gpt-oss", names: ["post_attention_layernorm": .postAttentionNorm], metadata: gptOSS),
            "lfm2": DecoderFamily(architecture: "lfm2", names: lfm2Names, metadata: lfm2),
            "lfm2_moe": DecoderFamily(
                architecture: "lfm2moe", names: lfm2Names,
                metadata: { (config, fields) throws(ModelError) in
                    try config.require("norm_topk_prob", .bool(true))
                    try config.require("routed_scaling_factor", number: 1)
                    try lfm2(config, &fields)
                    try experts(config, &fields)
                    fields.set("leading_dense_block_count", try config.integer("num_dense_layers", in: 0...1024))
                    fields.set("expert_gating_func", 2)
                }),
            "deepseek_v2": latent(isSigmoid: false), "deepseek_v3": latent(isSigmoid: true),
            "glm4_moe_lite": latent(isSigmoid: true),
        ]
        // Other names of the same.
        for (name, other) in [
            ("qwen3_5_text", "qwen3_5"), ("qwen3_5_moe_text", "qwen3_5_moe"), ("gemma3", "gemma3_text"),
            ("gemma4", "gemma4_text"),
            ("olmo3", "olmo2"), ("mistral3", "ministral3"),
        ] {
            result[name] = result[other]
        }
        return result
    }()

    // MARK: - Experts

    private static func experts(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        guard let count = try config.integer("num_local_experts", "num_experts", "n_routed_experts", in: 0...1024), count > 0
        else { throw .missing("num_experts in config.json") }
        fields.set("expert_count", count)
        guard let used = try config.integer("num_experts_per_tok", "num_experts_per_token", "top_k_experts") else {
            throw .missing("num_experts_per_tok in config.json")
        }
        fields.set("expert_used_count", used)
        fields.set("expert_feed_forward_length", try config.integer("moe_intermediate_size"))
        fields.set("expert_shared_feed_forward_length", try config.integer("shared_expert_intermediate_size"))
    }

    private static func qwen2moe(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        try config.require("norm_topk_prob", .bool(false))
        try experts(config, &fields)
    }

    private static func qwen3moe(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        try config.require("norm_topk_prob", .bool(true))
        try experts(config, &fields)
    }

    // MARK: - Llama's relatives

    private static func ministral(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        guard config.ropeType == "yarn" else { return }
        fields.set("rope.scaling.yarn_log_multiplier", config.rope?["mscale_all_dim"]?.double)
        fields.set("attention.temperature_scale", config.rope?["llama_4_scaling_beta"]?.double)
    }

    private static func smollm3(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        // Which layers rotate is not in the file: every fourth does not.
        guard case .array(let list)? = config["no_rope_layers"] else { return }
        for (layer, value) in list.enumerated() where value.integer != ((layer + 1) % 4 == 0 ? 0 : 1) {
            throw .unsupported(
                field: "no_rope_layers of config.json", value: "\(value.text) for layer \(layer)",
                supported: "0 for every fourth layer")
        }
    }

    private static func minicpm(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        let (layers, width) = (Double(try config.required("num_hidden_layers")), Double(try config.required("hidden_size")))
        fields.set("embedding_scale", try config.number("scale_emb") ?? 1)
        fields.set("residual_scale", try config.number("scale_depth").map { $0 / layers.squareRoot() } ?? 1)
        fields.set("logit_scale", width / Double(try config.integer("dim_model_base") ?? Int(width)))
    }

    private static func granite(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        fields.set("attention.scale", try config.number("attention_multiplier"))
        fields.set("embedding_scale", try config.number("embedding_multiplier"))
        fields.set("residual_scale", try config.number("residual_multiplier"))
        fields.set("logit_scale", try config.number("logits_scaling"))
        if try config.hasLocalExperts {
            try experts(config, &fields)
            fields.set("expert_shared_feed_forward_length", try config.integer("shared_intermediate_size"))
        }
    }

    /// The layers with attention; nil if all have it. Newer configurations have another name for them.
    static func attentionLayers(_ config: ImportConfig) throws(ModelError) -> [Bool]? {
        try config.strings("layer_types")?.map { $0 == "attention" || $0 == "full_attention" }
    }

    /// Whether a Granite hybrid has layers without attention. Those without are files of another family.
    static func isHybrid(_ config: ImportConfig) throws(ModelError) -> Bool {
        try attentionLayers(config)?.contains(false) ?? false
    }

    private static func graniteHybrid(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        try granite(config, &fields)
        if try !config.hasLocalExperts {
            fields.set("feed_forward_length", try config.integer("shared_intermediate_size", "intermediate_size"))
        }
        if config.string("position_embedding_type") != "rope" { fields.set("rope.scaling.finetuned", .bool(false)) }
        guard try isHybrid(config), let attention = try attentionLayers(config) else { return }
        let heads = try config.required("mamba_n_heads")
        fields.set("ssm.conv_kernel", try config.integer("mamba_d_conv") ?? 4)
        fields.set("ssm.state_size", try config.required("mamba_d_state"))
        fields.set("ssm.group_count", try config.integer("mamba_n_groups") ?? 1)
        fields.set("ssm.inner_size", try heads * config.required("mamba_d_head", in: 1...65_536))
        fields.set("ssm.time_step_rank", heads)
        let keyHeads = try config.required("num_key_value_heads")
        fields.set("attention.head_count_kv", attention.map { $0 ? keyHeads : 0 })
    }

    // MARK: - Layers with windows

    private static func windows(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        guard let window = try config.integer("sliding_window", in: 0...(1 << 24)), window > 0 else { return }
        let layers = try config.layers
        let large = ModelFamily.largeEXAONE.layers
        if fields.architecture == "exaone4", layers != large {
            // llama.cpp would leave the windows out.
            throw .unsupported(field: "sliding_window of config.json", value: "\(window)", supported: "\(large) layers, or none")
        }
        fields.set("attention.sliding_window", window)
        if let types = try config.strings("layer_types") {
            fields.set("attention.sliding_window_pattern", types.map { $0 == "sliding_attention" })
        } else {
            // A period, or a letter for each layer of one: L is local.
            let letters = Array(config.string("sliding_window_pattern") ?? "")
            let period = letters.isEmpty ? try config.integer("sliding_window_pattern", in: 1...1024) ?? 4 : letters.count
            fields.set(
                "attention.sliding_window_pattern",
                (0..<layers).map { letters.isEmpty ? ($0 + 1) % period != 0 : letters[$0 % period] == "L" })
        }
        fields.set("rope.freq_base_swa", config.windowedRope?["rope_theta"]?.double)
    }

    // MARK: - Hunyuan

    private static func hunyuan(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        guard config.ropeType == "dynamic" else { return }
        // The base that the NTK-aware scaling of the trained factor amounts to; the context is what it was made for.
        let (alpha, dimension) = (config.rope?["alpha"]?.double ?? 50, Double(try config.required("head_dim", in: 4...65_536)))
        fields.set("rope.freq_base", config.base(or: 10_000) * pow(alpha, dimension / (dimension - 2)))
        fields.set("rope.scaling.type", .string("none"))
        fields.set("context_length", 262_144)
    }

    // MARK: - Qwen

    private static func deepstack(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        guard case .array(let list)? = config["vision_config"]?["deepstack_visual_indexes"] else { return }
        fields.set("n_deepstack_layers", list.count)
    }

    private static func deltaNet(_ architecture: String) -> DecoderFamily {
        DecoderFamily(
            architecture: architecture, shiftsNorms: true, rotatedShare: 0.25,
            names: ["post_attention_layernorm": .postAttentionNorm]
        ) {
            (config, fields) throws(ModelError) in
            let layers = try config.layers
            if architecture != "qwen35" {
                try config.require("norm_topk_prob", .bool(true))
                try experts(config, &fields)
            }
            let heads = try config.required("linear_num_value_heads", in: 1...65_536)
            fields.set("ssm.conv_kernel", try config.required("linear_conv_kernel_dim"))
            fields.set("ssm.state_size", try config.required("linear_key_head_dim"))
            fields.set("ssm.group_count", try config.required("linear_num_key_heads"))
            fields.set("ssm.time_step_rank", heads)
            fields.set("ssm.inner_size", try heads * config.required("linear_value_head_dim", in: 1...65_536))
            if let attention = try attentionLayers(config) {
                fields.set("attention.recurrent_layers", attention.map { !$0 })
            }
            fields.set("full_attention_interval", try config.integer("full_attention_interval", in: 1...layers) ?? 4)
            // The loader needs sections, also of a model without images.
            if architecture != "qwen3next", config.rope?["mrope_section"] == nil {
                fields.set("rope.dimension_sections", [11, 11, 10, 0])
            }
        }
    }

    // MARK: - Gemma

    private static func gemma(_ architecture: String) -> DecoderFamily {
        DecoderFamily(
            architecture: architecture, shiftsNorms: true, rotatedShare: nil,
            names: architecture == "gemma" ? [:] : ["post_attention_layernorm": .postAttentionNorm],
            activations: ["gelu_pytorch_tanh", "gelu"]
        ) { (config, fields) throws(ModelError) in
            guard architecture != "gemma" else { return }
            fields.set("attention.sliding_window", try config.required("sliding_window"))
            let layers = try config.layers
            if let types = try config.strings("layer_types") {
                // Loaders know the usual order.
                let period = architecture == "gemma2" ? 2 : 6
                let windowed = types.map { $0 == "sliding_attention" }
                if windowed != (0..<layers).map({ ($0 + 1) % period != 0 }) {
                    fields.set("attention.sliding_window_pattern", windowed)
                }
            }
            if architecture == "gemma2" {
                for key in ["attn_logit_softcapping", "final_logit_softcapping"] where config[key] == nil {
                    throw .missing("\(key) in config.json")
                }
            }
            fields.set("attn_logit_softcapping", try config.number("attn_logit_softcapping"))
            fields.set("final_logit_softcapping", try config.number("final_logit_softcapping"))
            if architecture == "gemma3" {
                fields.set("rope.freq_base_swa", try config.number("rope_local_base_freq"))
                fields.set("rope.freq_base_swa", config.windowedRope?["rope_theta"]?.double)
            }
            // The scale of attention is not in the file: it follows from the number of layers.
            if let scalar = try config.number("query_pre_attn_scalar") {
                let heads = try config.integer("num_attention_heads", in: 1...65_536) ?? 8
                let dimension = try config.integer("head_dim") ?? 256
                let usual =
                    layers == ModelFamily.layersOf27B[architecture] ? try config.required("hidden_size") / heads : dimension
                guard scalar == Double(usual) else {
                    throw .unsupported(field: "query_pre_attn_scalar", value: "\(scalar)", supported: "\(usual)")
                }
            }
        }
    }

    private static let gemma4 = DecoderFamily(
        architecture: "gemma4", rotatedShare: nil, names: ["post_attention_layernorm": .postAttentionNorm],
        activations: ["gelu_pytorch_tanh"]
    ) { (config, fields) throws(ModelError) in
        let layers = try config.layers
        guard let types = try config.strings("layer_types") else { throw .missing("layer_types in config.json") }
        let windowed = types.map { $0 == "sliding_attention" }
        /// A setting of the layers with full attention: newer configurations have it for each layer.
        func full(_ key: String, _ own: String) throws(ModelError) -> Int? {
            if let value = try config.integer(own, in: 1...65_536) { return value }
            guard let first = windowed.firstIndex(of: false) else { return nil }
            return config["per_layer_config"]?["\(first)"]?[key]?.integer.flatMap { (1...65_536).contains($0) ? $0 : nil }
        }
        let dimension = try config.integer("head_dim", in: 2...65_536) ?? 256
        let fullDimension = try full("head_dim", "global_head_dim") ?? dimension
        fields.set("attention.key_length", fullDimension)
        fields.set("attention.value_length", fullDimension)
        fields.set("attention.key_length_swa", dimension)
        fields.set("attention.value_length_swa", dimension)
        fields.set("rope.dimension_count", fullDimension)
        fields.set("rope.dimension_count_swa", dimension)
        fields.set("rope.freq_base_swa", config.windowedRope?["rope_theta"]?.double)
        fields.set("attention.sliding_window", try config.required("sliding_window"))
        fields.set("attention.sliding_window_pattern", windowed)
        guard let cap = try config.number("final_logit_softcapping") else {
            throw .missing("final_logit_softcapping in config.json")
        }
        fields.set("final_logit_softcapping", cap)
        fields.set("embedding_length_per_layer_input", try config.integer("hidden_size_per_layer_input", in: 0...65_536) ?? 0)
        let shared = try config.integer("num_kv_shared_layers", in: 0...layers) ?? 0
        fields.set("attention.shared_kv_layers", shared)
        if config.flag("use_double_wide_mlp") == true {
            let width = try config.required("intermediate_size")
            fields.set("feed_forward_length", (0..<layers).map { $0 < layers - shared ? width : 2 * width })
        }
        if let heads = try full("num_key_value_heads", "num_global_key_value_heads"),
            let own = try config.integer("num_key_value_heads")
        {
            fields.set("attention.head_count_kv", windowed.map { $0 ? own : heads })
        }
        if config.flag("enable_moe_block") == true {
            try experts(config, &fields)
            fields.set("expert_feed_forward_length", try config.integer("expert_intermediate_size", "moe_intermediate_size"))
        }
        guard config.rope?["rope_type"]?.string == "proportional" else {
            throw .unsupported(field: "rope_type", value: config.ropeType, supported: "proportional")
        }
    }

    // MARK: - Others

    private static func gptOSS(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        try experts(config, &fields)
        fields.set("expert_feed_forward_length", try config.required("intermediate_size"))
        fields.set("attention.sliding_window", try config.required("sliding_window"))
        // Constants of the kernels, and the order of layers that the loader has.
        try config.require("swiglu_limit", number: 7)
        try config.require("swiglu_alpha", number: 1.702)
        for (layer, type) in (try config.strings("layer_types") ?? []).enumerated()
        where type != (layer % 2 == 0 ? "sliding_attention" : "full_attention") {
            throw .unsupported(field: "layer_types of config.json", value: type, supported: "windows in every other layer")
        }
    }

    private static let lfm2Names: [String: TensorName] = [
        "operator_norm": .attentionNorm, "feed_forward.w1": .gate, "feed_forward.w2": .down, "feed_forward.w3": .up,
        "self_attn.out_proj": .attentionOutput, "self_attn.q_layernorm": .queryNorm, "self_attn.k_layernorm": .keyNorm,
    ]

    private static func lfm2(_ config: ImportConfig, _ fields: inout ImportFields) throws(ModelError) {
        try config.require("conv_bias", .bool(false))
        let layers = try config.layers
        var attention = try attentionLayers(config)
        if attention == nil, case .array(let list)? = config["full_attn_idxs"] {
            let own = Set(list.compactMap(\.integer))
            attention = (0..<layers).map(own.contains)
        }
        guard let attention else { throw .missing("layer_types in config.json") }
        let heads = try config.required("num_key_value_heads")
        fields.set("attention.head_count_kv", attention.map { $0 ? heads : 0 })
        fields.set("shortconv.l_cache", try config.required("conv_L_cache"))
    }

    /// DeepSeek's multi-head latent attention (arXiv:2405.04434).
    private static func latent(isSigmoid: Bool) -> DecoderFamily {
        DecoderFamily(architecture: "deepseek2", rotatedShare: nil) { (config, fields) throws(ModelError) in
            try config.require("rope_interleave", .bool(true))
            let rank = try config.integer("kv_lora_rank", in: 1...65_536) ?? 512
            let rotated = try config.required("qk_rope_head_dim", in: 1...65_536)
            // The keys and values of all heads are one: the latent vector.
            fields.set("attention.head_count_kv", 1)
            fields.set("attention.kv_lora_rank", rank)
            fields.set("attention.q_lora_rank", try config.integer("q_lora_rank"))
            fields.set("attention.key_length", rank + rotated)
            fields.set("attention.value_length", rank)
            fields.set("attention.key_length_mla", try config.required("qk_nope_head_dim", in: 1...65_536) + rotated)
            fields.set("attention.value_length_mla", try config.required("v_head_dim"))
            fields.set("rope.dimension_count", rotated)
            fields.set("rope.scaling.yarn_log_multiplier", config.rope?["mscale_all_dim"]?.double.map { 0.1 * $0 })
            try experts(config, &fields)
            fields.set("leading_dense_block_count", try config.integer("first_k_dense_replace", in: 0...1024) ?? 0)
            fields.set("expert_shared_count", try config.integer("n_shared_experts", in: 0...1024) ?? 0)
            fields.set("expert_weights_scale", try config.number("routed_scaling_factor"))
            fields.set("expert_weights_norm", .bool(config.flag("norm_topk_prob") ?? isSigmoid))
            let gating = config.string("scoring_func") ?? (isSigmoid ? "sigmoid" : "softmax")
            guard let function = ["softmax": 1, "sigmoid": 2][gating] else {
                throw .unsupported(field: "scoring_func of config.json", value: gating, supported: "softmax, sigmoid")
            }
            fields.set("expert_gating_func", function)
            // Version 2 limits groups by their best expert, version 3 by the sum of the best two, which is computed here.
            if isSigmoid {
                fields.set("expert_group_count", try config.integer("n_group"))
                fields.set("expert_group_used_count", try config.integer("topk_group"))
            } else if config.string("topk_method") == "group_limited_greedy", try config.integer("n_group") ?? 1 > 1 {
                throw .unsupported(field: "topk_method of config.json", value: "group_limited_greedy", supported: "greedy")
            }
        }
    }
}
