internal import Foundation
package import Inference

/// A complete small model with random weights: byte vocabulary, chat template, llama architecture.
package struct TinyModel {
    package var layers = 2
    package var width = 64
    package var feedForward = 96
    package var heads = 4
    package var kvHeads = 2
    package var context = 512
    /// The tensor type of all weight matrices.
    package var type = TensorType.f32
    package var seed: UInt64 = 1
    package var rope: [(String, GGUFBuilder.Value)] = []
    package var hasOutputHead = true
    package var template = TinyModel.chatML
    /// Control tokens besides the three of the vocabulary, such as the marks of reasoning.
    package var controlTokens: [String] = []
    /// Whether a layer predicts the token after the next one. It is often right, because the other layers change little; of binary32
    /// only.
    package var predicts = false

    package init() {}

    package static let chatML =
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
        + "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

    package static let merges = ["t h", "th e", "i n", "in g", "a n", "Ġ t", "Ġt h", "Ġth e", "e r", "o n"]

    /// 256 bytes in the alphabet of GPT-2, the merged tokens, then the special tokens.
    package static var tokens: [String] {
        var tokens: [String] = []
        var next = 0x100
        for byte in 0..<256 {
            let printable = (0x21...0x7E).contains(byte) || (0xA1...0xAC).contains(byte) || (0xAE...0xFF).contains(byte)
            tokens.append(String(Unicode.Scalar(UInt32(printable ? byte : next)).map(Character.init) ?? "?"))
            if !printable { next += 1 }
        }
        return tokens + merges.map { $0.replacingOccurrences(of: " ", with: "") } + [
            "<|endoftext|>", "<|im_start|>", "<|im_end|>",
        ]
    }

    package func builder() -> GGUFBuilder {
        var random = SeededGenerator(seed)
        var builder = GGUFBuilder()
        let tokens = Array(Self.tokens.dropLast(3)) + controlTokens + Self.tokens.suffix(3)
        builder.metadata = [
            ("general.architecture", .string("llama")), ("general.name", .string("tiny")),
            ("llama.block_count", .uint32(UInt32(predicts ? layers + 1 : layers))),
            ("llama.embedding_length", .uint32(UInt32(width))),
            ("llama.feed_forward_length", .uint32(UInt32(feedForward))), ("llama.attention.head_count", .uint32(UInt32(heads))),
            ("llama.attention.head_count_kv", .uint32(UInt32(kvHeads))), ("llama.context_length", .uint32(UInt32(context))),
            ("llama.rope.freq_base", .float32(10_000)), ("llama.attention.layer_norm_rms_epsilon", .float32(1e-5)),
            ("tokenizer.ggml.model", .string("gpt2")), ("tokenizer.ggml.pre", .string("smollm")),
            ("tokenizer.ggml.tokens", .strings(tokens)),
            ("tokenizer.ggml.token_type", .int32s(tokens.indices.map { $0 < tokens.count - 3 - controlTokens.count ? 1 : 3 })),
            ("tokenizer.ggml.merges", .strings(Self.merges)),
            ("tokenizer.ggml.bos_token_id", .uint32(UInt32(tokens.count - 2))),
            ("tokenizer.ggml.eos_token_id", .uint32(UInt32(tokens.count - 1))),
            ("tokenizer.chat_template", .string(template)),
        ]
        builder.metadata += rope
        if predicts { builder.metadata.append(("llama.nextn_predict_layers", .uint32(1))) }
        let kvWidth = width / heads * kvHeads
        func floats(_ values: [Float]) -> [UInt8] {
            values.flatMap { withUnsafeBytes(of: $0.bitPattern.littleEndian, Array.init) }
        }
        func matrix(_ name: String, _ columns: Int, _ rows: Int, ifPredicting factor: Float = 1) {
            let blocks =
                predicts
                ? floats((0..<columns * rows).map { _ in random.uniform(-0.2...0.2) * factor })
                : Self.randomBlocks(type, columns * rows, &random)
            builder.tensors.append((name, type, [columns, rows], blocks))
        }
        func norm(_ name: String) {
            let values = (0..<width).map { _ in random.uniform(0.5...1.5) }
            builder.tensors.append((name, .f32, [width], floats(values)))
        }
        matrix("token_embd.weight", width, tokens.count, ifPredicting: 10)
        for layer in 0..<(predicts ? layers + 1 : layers) {
            norm("blk.\(layer).attn_norm.weight")
            matrix("blk.\(layer).attn_q.weight", width, width)
            matrix("blk.\(layer).attn_k.weight", width, kvWidth)
            matrix("blk.\(layer).attn_v.weight", width, kvWidth)
            matrix("blk.\(layer).attn_output.weight", width, width, ifPredicting: 0.1)
            norm("blk.\(layer).ffn_norm.weight")
            matrix("blk.\(layer).ffn_gate.weight", width, feedForward)
            matrix("blk.\(layer).ffn_up.weight", width, feedForward)
            matrix("blk.\(layer).ffn_down.weight", feedForward, width, ifPredicting: 0.1)
        }
        if predicts {
            let prefix = "blk.\(layers).nextn."
            // The embedding of the next token passes through.
            let input = (0..<2 * width * width).map { index in
                random.uniform(-0.01...0.01) + (index % (2 * width) == index / (2 * width) ? 1 : 0)
            }
            builder.tensors.append((prefix + "eh_proj.weight", .f32, [2 * width, width], floats(input)))
            for name in ["enorm", "hnorm"] {
                let values = (0..<width).map { _ in random.uniform(0.9...1.1) }
                builder.tensors.append((prefix + name + ".weight", .f32, [width], floats(values)))
            }
        }
        norm("output_norm.weight")
        if hasOutputHead { matrix("output.weight", width, tokens.count) }
        return builder
    }

    package func file() throws -> TemporaryFile { try TemporaryFile(builder().bytes()) }

    /// A low-rank adapter with random values that fits all models of this size, and changes greedy answers.
    package func adapter(seed: UInt64, architecture: String = "llama") -> GGUFBuilder {
        let rank = 4
        var random = SeededGenerator(seed)
        var builder = GGUFBuilder()
        builder.metadata = [
            ("general.type", .string("adapter")), ("adapter.type", .string("lora")),
            ("general.architecture", .string(architecture)), ("adapter.lora.alpha", .float32(64)),
        ]
        for layer in 0..<layers {
            for (half, shape) in [("lora_a", [feedForward, rank]), ("lora_b", [rank, width])] {
                let values = Self.randomBlocks(.f32, shape[0] * shape[1], &random)
                builder.tensors.append(("blk.\(layer).ffn_down.weight.\(half)", .f32, shape, values))
            }
        }
        return builder
    }

    /// Random blocks of a tensor type whose values have the magnitude of trained weights.
    package static func randomBlocks(_ type: TensorType, _ count: Int, _ random: inout SeededGenerator) -> [UInt8] {
        func half(_ range: ClosedRange<Float>) -> [UInt8] {
            withUnsafeBytes(of: halfBits(random.uniform(range)).littleEndian, Array.init)
        }
        func noise(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) } }
        var bytes: [UInt8] = []
        for _ in 0..<count / type.blockElements {
            switch type.name {
            case "F32": withUnsafeBytes(of: random.uniform(-0.2...0.2).bitPattern.littleEndian) { bytes += $0 }
            case "F16": bytes += half(-0.2...0.2)
            case "BF16": withUnsafeBytes(of: UInt16(random.uniform(-0.2...0.2).bitPattern >> 16).littleEndian) { bytes += $0 }
            case "Q4_0": bytes += half(0.01...0.03) + noise(16)
            case "Q4_1": bytes += half(0.01...0.03) + half(-0.25 ... -0.15) + noise(16)
            case "Q5_0": bytes += half(0.005...0.015) + noise(20)
            case "Q5_1": bytes += half(0.005...0.015) + half(-0.25 ... -0.15) + noise(20)
            case "Q8_0": bytes += half(0.0005...0.0015) + noise(32)
            case "Q2_K": bytes += noise(80) + half(0.003...0.006) + half(0.003...0.006)
            case "Q3_K": bytes += noise(108) + half(0.001...0.002)
            case "Q4_K": bytes += half(0.0003...0.0006) + half(0.002...0.004) + noise(140)
            case "Q5_K": bytes += half(0.00015...0.0003) + half(0.002...0.004) + noise(172)
            case "Q6_K": bytes += noise(208) + half(0.00003...0.0001)
            case "IQ4_NL": bytes += half(0.0005...0.0015) + noise(16)
            case "IQ4_XS": bytes += half(0.00003...0.0001) + noise(134)
            case "MXFP4": bytes += [UInt8.random(in: 120...123, using: &random)] + noise(16)
            case "NVFP4": bytes += (0..<4).map { _ in UInt8.random(in: 1...40, using: &random) } + noise(32)
            case "IQ2_XXS", "IQ2_XS", "IQ2_S": bytes += half(0.001...0.002) + noise(type.blockBytes - 2)
            case "IQ3_XXS", "IQ3_S": bytes += half(0.0005...0.001) + noise(type.blockBytes - 2)
            case "IQ1_S": bytes += half(0.005...0.01) + noise(48)
            case "IQ1_M":
                // The scale is stored in the high nibbles of the last four 16-bit words.
                var block = noise(56)
                for (index, nibble) in [0x8, 0x2, 0x1, 0x2].enumerated() {
                    block[49 + 2 * index] = block[49 + 2 * index] & 0xF | UInt8(nibble) << 4
                }
                bytes += block
            case "TQ1_0": bytes += noise(52) + half(0.05...0.1)
            case "TQ2_0": bytes += noise(64) + half(0.05...0.1)
            case "Q1_0", "Q2_0": bytes += half(0.05...0.1) + noise(16)
            default: preconditionFailure("randomBlocks has no blocks of \(type)")
            }
        }
        return bytes
    }

    /// Converts a value to binary16 by truncation. The value must be less than the maximum of binary16.
    private static func halfBits(_ value: Float) -> UInt16 {
        let bits = value.bitPattern
        let exponent = Int(bits >> 23 & 0xFF) - 112
        guard exponent > 0 else { return UInt16(bits >> 16 & 0x8000) | UInt16(min(1023, abs(value) * 16_777_216)) }
        return UInt16(bits >> 16 & 0x8000) | UInt16(exponent) << 10 | UInt16(bits >> 13 & 0x3FF)
    }
}
