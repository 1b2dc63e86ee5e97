import Foundation
import TestSupport
import Testing

@testable import Inference
@testable import ModelTools

/// Language models in the Hugging Face form. `Tests/Tools/check_import.py` compares every tensor with llama.cpp's converter.
@Suite struct ImportTests {
    struct Expected: Decodable {
        struct Line: Decodable { var text: String, ids: [TokenID] }
        var lines: [Line]
        var tokens: [TokenID]
        var logits: [Float]
    }

    /// A copy of a recorded folder that may be changed.
    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("import-\(UUID().uuidString)")
        var output: URL { url.appendingPathComponent("model.gguf") }

        init(_ name: String) throws {
            let source = try #require(Bundle.module.url(forResource: "Golden", withExtension: nil)).appendingPathComponent(
                "Import/\(name)")
            try FileManager.default.copyItem(at: source, to: url)
        }
        deinit { try? FileManager.default.removeItem(at: url) }  // best effort

        func change(_ file: String, _ from: String, _ to: String) throws {
            let path = url.appendingPathComponent(file)
            let text = try String(contentsOf: path, encoding: .utf8)
            #expect(text.contains(from))
            try text.replacingOccurrences(of: from, with: to).write(to: path, atomically: true, encoding: .utf8)
        }

        func write(_ type: TensorType? = .f32, pre: String? = nil) throws {
            try HuggingFaceFolder(url).write(to: output, name: "tiny", type: type, pre: pre)
        }
    }

    @Test("[H1] the tokens and logits of transformers", arguments: ["qwen2", "mistral", "llama", "gemma2"])
    func equalsTransformers(_ name: String) throws {
        let folder = try Folder(name)
        try folder.write()
        let expected = try JSONDecoder().decode(
            Expected.self, from: Data(contentsOf: folder.url.appendingPathComponent("expected.json")))
        let file = try GGUFFile(path: folder.output.path)
        let tokenizer = try Tokenizer(file: file)
        for line in expected.lines { #expect(tokenizer.encode(line.text) == line.ids, "\(line.text)") }
        let model = try NeuralModel(file: file, pool: .shared())
        let cache = try KVCache(shape: model.shape, capacity: 64)
        try model.forward(expected.tokens[...], cache: cache)
        // The cache has 16 bits.
        for (value, wanted) in zip(model.logits, expected.logits) { #expect(abs(value - wanted) < 5e-3) }
        #expect(try file.metadata.string("tokenizer.chat_template")?.contains("im_start") == true)
    }

    @Test("[H1] the type of matrices, and the template's file before the setting") func types() throws {
        let folder = try Folder("qwen2")
        try "{{ messages }}".write(
            to: folder.url.appendingPathComponent("chat_template.jinja"), atomically: true, encoding: .utf8)
        try folder.write(.bf16)
        let file = try GGUFFile(path: folder.output.path)
        #expect(file.tensors["blk.0.attn_q.weight"]?.type == .bf16 && file.tensors["blk.0.attn_norm.weight"]?.type == .f32)
        #expect(try file.metadata.string("tokenizer.chat_template") == "{{ messages }}")
        #expect(try file.metadata.integer("general.file_type", in: 0...100) == 32)
    }

    @Test("[H1] what is not read is refused by name") func refusals() throws {
        for (file, from, to, message) in [
            ("config.json", "\"model_type\": \"qwen2\"", "\"model_type\": \"elephant\"", "elephant"),
            (
                "config.json", "\"model_type\": \"qwen2\"",
                "\"quantization_config\": {\"quant_method\": \"awq\"}, \"model_type\": \"qwen2\"", "awq"
            ),
            ("config.json", "\"rope_type\": \"default\"", "\"rope_type\": \"spiral\"", "spiral"),
            ("config.json", "\"num_attention_heads\"", "\"heads\"", "num_attention_heads"),
            ("config.json", "\"num_attention_heads\"", "\"head_dim\": 9223372036854775806, \"num_attention_heads\"", "head_dim"),
            (
                "config.json", "\"num_attention_heads\"", "\"partial_rotary_factor\": 1e300, \"num_attention_heads\"",
                "partial_rotary"
            ),
            ("config.json", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu\"", "relu"),
            ("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", "num_hidden_layers"),
            ("tokenizer.json", "\\\\p{N}", "\\\\p{Lu}", "--pre"),
            ("tokenizer.json", "\"type\": \"BPE\"", "\"type\": \"Unigram\"", "Unigram"),
        ] {
            let folder = try Folder("qwen2")
            try folder.change(file, from, to)
            #expect { try folder.write() } throws: { "\($0)".contains(message) }
            #expect(!FileManager.default.fileExists(atPath: folder.output.path))
        }
        let folder = try Folder("qwen2")
        try folder.change("tokenizer.json", "\\\\p{N}", "\\\\p{Lu}")
        try folder.write(pre: "qwen2")
        #expect(throws: ModelError.self) { try folder.write(pre: "no such") }
    }

    @Test("[H1] numbers of 8 bits: with scales of blocks, with one scale, without") func float8() throws {
        // 1, −2, 0.5 and the largest number
        let codes: [UInt8] = [0x38, 0xC0, 0x30, 0x7E]
        func write(_ folder: Folder, scale: [Float], _ shape: [Int]) throws {
            let name = "model.layers.0.mlp.up_proj.weight"
            let weights = try Safetensors(folder: folder.url)
            var tensors = try weights.tensors.filter { $0.key != name }.map {
                try SafetensorsData.Tensor(name: $0.key, shape: $0.value.shape, values: $0.value.values(0..<$0.value.count))
            }
            if !scale.isEmpty { tensors.append(.init(name: name + "_scale_inv", shape: shape, values: scale)) }
            let file = try SafetensorsData.file(tensors, metadata: [:], type: .f32)
            // The tensor of bytes is added by hand.
            let length = file.withUnsafeBytes { Int($0.loadUnaligned(as: UInt64.self)) }
            let body = file.dropFirst(8 + length)
            let count = try #require(weights.tensors[name]).count
            let entry =
                "{\"\(name)\":{\"dtype\":\"F8_E4M3\",\"shape\":[48,32],\"data_offsets\":[\(body.count),\(body.count + count)]},"
            let header = Data(entry.utf8) + file[8 + 1..<8 + length]
            let bytes = (0..<count).map { codes[$0 % 4] }
            try (withUnsafeBytes(of: UInt64(header.count).littleEndian) { Data($0) } + header + body + Data(bytes)).write(
                to: folder.url.appendingPathComponent("model.safetensors"))
        }
        func quantized(_ block: String) throws -> Folder {
            let folder = try Folder("qwen2")
            try folder.change(
                "config.json", "\"model_type\": \"qwen2\"",
                "\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": \(block)}, \"model_type\": \"qwen2\""
            )
            return folder
        }
        let blocks = try quantized("[32, 16]")
        try write(blocks, scale: [1, 2, 3, 4], [2, 2])
        try blocks.write()
        let file = try GGUFFile(path: blocks.output.path)
        let values = try file.values(of: try #require(file.tensors["blk.0.ffn_up.weight"]))
        // The second block of columns; then the second of rows, which is cut off.
        #expect(values[0..<4] == [1, -2, 0.5, 448] && values[16..<20] == [2, -4, 1, 896] && values[32 * 32 + 16] == 4)
        let single = try quantized("null")
        try write(single, scale: [0.5], [])
        try single.write()
        let other = try GGUFFile(path: single.output.path)
        #expect(try other.values(of: try #require(other.tensors["blk.0.ffn_up.weight"]))[0..<2] == [0.5, -1])
        // A code that is no number.
        for (scale, shape, block) in [
            ([.nan, 1, 1, 1], [2, 2], "[32, 16]"), ([], [], "[32, 16]"), ([1, 2], [2], "[32, 16]"),
            ([1], [], "[9223372036854775807, 1]"),
        ]
            as [([Float], [Int], String)]
        {
            let folder = try quantized(block)
            try write(folder, scale: scale, shape)
            #expect(throws: ModelError.self) { try folder.write() }
        }
    }

    @Test("[H1] an interrupted import continues") func continues() throws {
        let folder = try Folder("qwen2")
        try folder.write(.bf16)
        let whole = try Data(contentsOf: folder.output)
        try FileManager.default.removeItem(at: folder.output)
        let part = folder.output.appendingPathExtension("partial")
        func interrupted(after limit: Double) throws -> Int {
            var steps = 0
            do {
                try HuggingFaceFolder(folder.url).write(to: folder.output, name: "tiny", type: .bf16) {
                    steps += 1
                    if $0 > limit { throw CancellationError() }
                }
            } catch is CancellationError {}
            return steps
        }
        _ = try interrupted(after: 0.3)
        let kept = try Data(contentsOf: part)
        #expect(kept.count > 1000 && kept.count < whole.count && !FileManager.default.fileExists(atPath: folder.output.path))
        _ = try interrupted(after: 0.7)
        #expect(try Data(contentsOf: part).count > kept.count)
        // What is kept is not read again: a changed byte in it would remain.
        var marked = try Data(contentsOf: part)
        marked[kept.count - 100] ^= 1
        try FileHandle(forWritingTo: part).write(contentsOf: marked)
        _ = try interrupted(after: 2)
        var expected = whole
        expected[kept.count - 100] ^= 1
        #expect(try Data(contentsOf: folder.output) == expected)
        // Of changed weights nothing is continued.
        _ = try interrupted(after: 0.5)
        let weights = folder.url.appendingPathComponent("model.safetensors")
        try Data(contentsOf: weights).write(to: weights)
        var damaged = try Data(contentsOf: part)
        damaged[damaged.count - 100] ^= 1
        try FileHandle(forWritingTo: part).write(contentsOf: damaged)
        _ = try interrupted(after: 2)
        #expect(try Data(contentsOf: folder.output) == whole)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(!names.contains { $0.contains(".partial") })
    }

    @Test("[H1] damaged folders are errors") func damaged() throws {
        var random = SeededGenerator(3)
        let folder = try Folder("mistral")
        let originals = try ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"].map {
            (folder.url.appendingPathComponent($0), try Data(contentsOf: folder.url.appendingPathComponent($0)))
        }
        var refused = 0
        for round in 0..<120 {
            let (url, good) = originals[round % originals.count]
            var bad = good
            if round % 3 == 0 {
                bad = good.prefix(Int.random(in: 0..<good.count, using: &random))
            } else {
                // The head of the weights is what is interpreted.
                let reach = url.pathExtension == "safetensors" ? 3000 : good.count
                for _ in 0..<4 {
                    bad[Int.random(in: 0..<min(reach, good.count), using: &random)] = UInt8.random(in: 32...126, using: &random)
                }
            }
            try bad.write(to: url)
            do { try folder.write() } catch is ModelError { refused += 1 }
            try good.write(to: url)
        }
        #expect(refused > 40)
    }
}
