// Llama and its descendants (LLaMA, arXiv:2302.13971; grouped queries, arXiv:2305.13245): pre-norms, SwiGLU, rotary embedding of
// adjacent pairs.

internal import Foundation

extension ModelFamily {
    /// Llama, Mistral 7B and Nemo, Mixtral, SmolLM2 and many fine-tunes.
    static func llama(_ r: ShapeReader) throws(ModelError) -> ModelShape { try r.decoder(halves: false) }

    /// Ministral 3 and Mistral Small 3: as llama, with queries scaled by a factor that increases with the position.
    static func mistral3(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.decoder(halves: false)
        if case .yarn(let factor, let original, _, _) = shape.rotaries[0].scaling {
            shape.rotaries[0].scaling = .yarn(
                factor: factor, originalContext: original, fast: try r.number("rope.scaling.yarn_beta_fast") ?? 32,
                slow: try r.number("rope.scaling.yarn_beta_slow") ?? 1)
            let multiplier = try r.number("rope.scaling.yarn_log_multiplier") ?? 0
            shape.rotaries[0].magnitude /= 1 + 0.1 * multiplier * log(max(1, factor))
        }
        guard let beta = try r.number("attention.temperature_scale"), beta != 0 else { return shape }
        let length = try r.integer("rope.scaling.original_context_length", in: 1...(1 << 24)) ?? shape.contextLength
        shape.changeAttention { $0.temperature = ModelShape.Temperature(beta: beta, length: length) }
        return shape
    }

    /// SmolLM 3: every fourth layer has no position embedding (NoPE, arXiv:2305.19466).
    static func smollm3(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.decoder(halves: false)
        shape.changeAttention { attention, layer in if (layer + 1) % 4 == 0 { attention.rotary = nil } }
        return shape
    }

    /// ERNIE 4.5: as llama, ignoring the bias of the attention output, which the reference implementation does not use
    /// either. Its models rotate adjacent pairs themselves.
    static func ernie45(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.decoder(halves: false)
        shape.ignoresOutputBias = true
        return shape
    }
}
