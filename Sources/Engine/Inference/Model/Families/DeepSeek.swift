internal import Foundation

extension ModelFamily {
    /// DeepSeek-V2 and models of the same architecture, such as GLM-4.7-Flash: latent attention, routed and shared
    /// experts.
    static func deepseek2(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let heads = try r.heads()
        let kvRank = try r.required("attention.kv_lora_rank", in: 1...4096)
        let rotaryDimension = try r.required("rope.dimension_count", in: 2...1024)
        // In files without absorbed projections, the usual keys contain the head sizes.
        let isAbsorbed = try r.integer("attention.key_length_mla") ?? 0 > 0
        let keyLength = try r.required("attention.key_length" + (isAbsorbed ? "_mla" : ""), in: 1...1024)
        let valueLength = try r.required("attention.value_length" + (isAbsorbed ? "_mla" : ""), in: 1...1024)
        guard keyLength > rotaryDimension else {
            throw .invalid(
                field: "\(r.architecture).attention.key_length_mla",
                reason: "is \(keyLength), not more than the \(rotaryDimension) rotated dimensions")
        }
        var rotary = try r.rotary(dimensions: rotaryDimension, halves: false)
        var scale = 1 / Double(keyLength).squareRoot()
        if case .yarn(let factor, _, _, _) = rotary.scaling {
            // The file contains a tenth of the multiplier. The attention temperature applies to scores, not to rotary
            // embeddings.
            let attentionFactor = try r.number("rope.scaling.attn_factor") ?? 1
            let written = try r.number("rope.scaling.yarn_log_multiplier")
            if written != nil { rotary.magnitude = attentionFactor }
            let multiplier = written.map { $0 / 0.1 } ?? 1
            let magnitude = attentionFactor * (1 + 0.1 * multiplier * log(factor))
            scale *= magnitude * magnitude
        }
        shape.rotaries = [rotary]
        let leading = try r.integer("leading_dense_block_count", in: 0...1024) ?? 0
        let dense = try r.dense(activation: .silu)
        var experts = try r.experts(activation: .silu, normalizes: false, readsRouting: true)
        // Files of GLM-4.7-Flash do not specify the gating function. Only sigmoids have a bias of the selection (arXiv:2412.19437).
        let hasBias = (0..<r.layers).contains { r.hasTensor(.selectionBias, .bias, layer: $0) }
        if try r.integer("expert_gating_func", in: 0...4) ?? 0 == 0, hasBias { experts?.gating = .sigmoid }
        let shared = try r.integer("expert_shared_count", in: 0...64) ?? 0
        let queryRank = try r.integer("attention.q_lora_rank", in: 0...8192) ?? 0
        for layer in 0..<r.layers {
            guard heads[layer] > 0 else {
                throw .invalid(field: "\(r.architecture).attention.head_count", reason: "is 0")
            }
            let attention = ModelShape.LatentAttention(
                heads: heads[layer], queryRank: queryRank == 0 || r.hasTensor(.query, layer: layer) ? nil : queryRank,
                kvRank: kvRank,
                plainDimension: keyLength - rotaryDimension, rotaryDimension: rotaryDimension, valueDimension: valueLength,
                scale: scale, rotary: 0)
            var feedForward = ModelShape.FeedForward(dense: dense[layer])
            if let experts, layer >= leading {
                feedForward.experts = experts
                feedForward.dense =
                    shared > 0
                    ? ModelShape.Dense(width: experts.width * shared, activation: .silu, isShared: true) : nil
            }
            shape.layers.append(ModelShape.Layer(mixer: .latent(attention), feedForward: feedForward))
        }
        return shape
    }
}
