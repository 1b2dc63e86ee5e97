package import Foundation
internal import JSON

/// A model as it is published on the Hugging Face hub: a folder with `config.json`, `tokenizer.json` and safetensors
/// files. It is imported by conversion to a GGUF file.
package struct HuggingFaceFolder: Sendable {
    private let folder: URL
    private let config: Config
    private let weights: Safetensors

    private struct Config: Decodable, Sendable {
        var model_type: String
        var hidden_size: Int?
        var num_hidden_layers: Int?
        var num_attention_heads: Int?
        var intermediate_size: Int?
        var max_position_embeddings: Int?
        var layer_norm_eps: Double?
        var hidden_act: String?
        var position_embedding_type: String?
    }

    /// - Throws: ``ModelError`` if the folder is not a model, or one of an unknown kind.
    package init(_ folder: URL) throws {
        self.folder = folder
        config = try Self.read(Config.self, folder.appendingPathComponent("config.json"))
        guard config.model_type == "bert" || DecoderFamily.all[config.model_type] != nil else {
            throw ModelError.unsupported(
                field: "model_type of config.json", value: config.model_type,
                supported:
                    "bert, \(Self.decoders.joined(separator: ", ")). Download other models as GGUF files: fm model pull OWNER/REPO-GGUF"
            )
        }
        weights = try Safetensors(folder: folder)
    }

    /// The kinds of language models that can be imported, by `model_type`.
    package static var decoders: [String] { DecoderFamily.all.keys.sorted() }

    /// Whether the model makes vectors of texts; otherwise it generates text.
    package var isEncoder: Bool { config.model_type == "bert" }

    /// Writes the GGUF file.
    ///
    /// - Parameters:
    ///   - name: the name in the file's metadata.
    ///   - type: the type of matrices: F32, F16, BF16 or Q8_0; nil for Q8_0 for encoders, and for decoders the type that the folder has.
    ///     Vectors stay in F32.
    ///   - pre: the name of a decoder's pre-tokenizer, if it is not recognised.
    ///   - progress: called with the share of the work that is done, from 0 to 1. If it throws, no file is written.
    package func write(
        to url: URL, name: String, type: TensorType? = nil, license: String? = nil, pre: String? = nil,
        progress: (Double) throws -> Void = { _ in }
    ) throws {
        guard [nil, .f32, .f16, .bf16, .q8_0].contains(type), !isEncoder || type != .bf16 else {
            throw ModelError.unsupported(
                field: "the type", value: type?.name ?? "", supported: "F32, F16, Q8_0, of decoders BF16")
        }
        guard isEncoder else { return try writeDecoder(to: url, name: name, type: type, license: license, pre: pre, progress) }
        let type = type ?? .q8_0
        var writer = GGUFWriter()
        writer.metadata = [("general.architecture", .string("bert")), ("general.name", .string(name))]
        if let license { writer.metadata.append(("general.license", .string(license))) }
        writer.metadata += try shape() + tokenizer() + prompts()
        writer.tensors = try tensors(type)
        try writer.write(to: url, progress: progress) { path in
            // A file that cannot be used must not replace one that can.
            let file = try GGUFFile(path: path)
            let shape = try ModelShape(file: file)
            _ = try DecoderModel.bytesPerToken(file: file, shape: shape, pool: .shared())
            let tokenizer = try Tokenizer(file: file)
            guard tokenizer.vocabulary.count <= shape.vocabularySize else {
                throw ModelError.invalid(
                    field: "tokenizer.json",
                    reason: "has \(tokenizer.vocabulary.count) tokens, more than the \(shape.vocabularySize) embeddings")
            }
        }
    }

    // MARK: - Decoders

    private func writeDecoder(
        to url: URL, name: String, type: TensorType?, license: String?, pre: String?, _ progress: (Double) throws -> Void
    ) throws {
        let tokenizer = try Self.json(folder.appendingPathComponent("tokenizer.json"))
        let settings = try optionalJSON("tokenizer_config.json") ?? .object([])
        let config = try Self.json(folder.appendingPathComponent("config.json"))
        var tokens = 0
        if case .object(let vocabulary)? = tokenizer["model"]?["vocab"] { tokens = vocabulary.count }
        // Numbers of added tokens, which may be among the others.
        if case .array(let added)? = tokenizer["added_tokens"] {
            tokens = max(tokens, (added.compactMap { $0["id"]?.integer }.filter { (0..<1 << 24).contains($0) }.max() ?? -1) + 1)
        }
        let decoder = try DecoderImport(config: config, weights: weights, tokens: tokens)
        var writer = GGUFWriter()
        let architecture = try decoder.metadata()
        writer.tensors = try decoder.tensors(type)
        let matrices = writer.tensors.filter { $0.shape.count > 1 }.map(\.type)
        writer.metadata = [
            ("general.architecture", .string(String(architecture[0].0.prefix { $0 != "." }))), ("general.name", .string(name)),
            (
                "general.file_type",
                .uint32(matrices.contains(.q8_0) ? 7 : matrices.contains(.bf16) ? 32 : matrices.contains(.f16) ? 1 : 0)
            ),
            ("general.quantization_version", .uint32(2)),
        ]
        if let license { writer.metadata.append(("general.license", .string(license))) }
        let generation = try optionalJSON("generation_config.json")
        let ends = [generation?["eos_token_id"], config["eos_token_id"]].compactMap { value -> Int? in
            if case .array(let list)? = value { return list.first?.integer }
            return value?.integer
        }
        writer.metadata +=
            try architecture
            + TokenizerImport(tokenizer: tokenizer, config: settings, preName: pre).metadata(
                count: decoder.embeddingCount, ends: ends)
        // The file beside the configuration takes precedence, as in transformers.
        let file = folder.appendingPathComponent("chat_template.jinja")
        if FileManager.default.fileExists(atPath: file.path) {
            guard let template = String(bytes: try Self.contents(file), encoding: .utf8) else {
                throw ModelError.invalid(field: "chat_template.jinja", reason: "is not UTF-8")
            }
            writer.metadata.append(("tokenizer.chat_template", .string(template)))
        } else if let template = settings["chat_template"]?.string {
            writer.metadata.append(("tokenizer.chat_template", .string(template)))
        } else if case .array(let templates)? = settings["chat_template"],
            let template = (templates.first { $0["name"]?.string == "default" } ?? templates.first)?["template"]?.string
        {
            writer.metadata.append(("tokenizer.chat_template", .string(template)))
        }
        try writer.write(to: url, progress: progress) { path in
            let file = try GGUFFile(path: path)
            let shape = try ModelShape(file: file)
            _ = try DecoderModel.bytesPerToken(file: file, shape: shape, pool: .shared())
            _ = try Tokenizer(file: file)
        }
    }

    private func optionalJSON(_ name: String) throws -> JSONValue? {
        let url = folder.appendingPathComponent(name)
        return FileManager.default.fileExists(atPath: url.path) ? try Self.json(url) : nil
    }

    private static func json(_ url: URL) throws -> JSONValue {
        let data = try contents(url)
        do { return try JSONParser.parse(data) } catch {
            throw ModelError.invalid(field: url.lastPathComponent, reason: "is not valid JSON: \(error)")
        }
    }

    // MARK: - Parts of a BERT model

    private func shape() throws -> [(String, GGUFWriter.Value)] {
        func required(_ value: Int?, _ name: String) throws -> UInt32 {
            guard let value, let result = UInt32(exactly: value), value > 0 else {
                throw ModelError.missing("\(name) in config.json")
            }
            return result
        }
        if let kind = config.position_embedding_type, kind != "absolute" {
            throw ModelError.unsupported(field: "position_embedding_type", value: kind, supported: "absolute")
        }
        if let activation = config.hidden_act, activation != "gelu" {
            throw ModelError.unsupported(field: "hidden_act", value: activation, supported: "gelu")
        }
        // Sentence Transformers cuts texts off earlier than the table of positions does.
        struct Limit: Decodable { var max_seq_length: Int? }
        let positions = try required(config.max_position_embeddings, "max_position_embeddings")
        let limit = try optional(Limit.self, "sentence_bert_config.json")?.max_seq_length ?? Int(positions)
        return [
            ("bert.block_count", .uint32(try required(config.num_hidden_layers, "num_hidden_layers"))),
            ("bert.embedding_length", .uint32(try required(config.hidden_size, "hidden_size"))),
            ("bert.feed_forward_length", .uint32(try required(config.intermediate_size, "intermediate_size"))),
            ("bert.attention.head_count", .uint32(try required(config.num_attention_heads, "num_attention_heads"))),
            ("bert.attention.layer_norm_epsilon", .float32(Float(config.layer_norm_eps ?? 1e-12))),
            ("bert.attention.causal", .bool(false)),
            ("bert.context_length", .uint32(UInt32(clamping: min(Int(positions), max(3, limit))))),
            ("bert.pooling_type", .uint32(try pooling())),
        ]
    }

    private func pooling() throws -> UInt32 {
        struct Pooling: Decodable {
            var pooling_mode_cls_token: Bool?
            var pooling_mode_mean_tokens: Bool?
        }
        guard let pooling = try optional(Pooling.self, "1_Pooling/config.json") else { return 1 }
        if pooling.pooling_mode_mean_tokens == true { return 1 }
        if pooling.pooling_mode_cls_token == true { return 2 }
        throw ModelError.unsupported(field: "1_Pooling/config.json", value: "another mode", supported: "mean and CLS token")
    }

    private func tokenizer() throws -> [(String, GGUFWriter.Value)] {
        struct File: Decodable {
            struct Model: Decodable {
                var type: String?
                var vocab: [String: Int]?
                var unk_token: String?
            }
            struct Normalizer: Decodable {
                var lowercase: Bool?
                var strip_accents: Bool?
            }
            struct Added: Decodable {
                var id: Int
                var content: String
                var special: Bool?
            }
            var model: Model
            var normalizer: Normalizer?
            var added_tokens: [Added]?
        }
        let file = try Self.read(File.self, folder.appendingPathComponent("tokenizer.json"))
        guard file.model.type == "WordPiece" || file.model.type == nil, let vocabulary = file.model.vocab else {
            throw ModelError.unsupported(
                field: "model.type of tokenizer.json", value: file.model.type ?? "none", supported: "WordPiece")
        }
        let last = vocabulary.values.max() ?? -1
        guard last >= 0, last < 1 << 22 else {
            throw ModelError.invalid(field: "tokenizer.json", reason: "has the token number \(last)")
        }
        let count = last + 1
        let special = Set((file.added_tokens ?? []).filter { $0.special ?? true }.map(\.content))
        var tokens = (0..<count).map { "[unused\($0)]" }
        var types = [Int32](repeating: 5, count: count)
        for (text, id) in vocabulary {
            guard id >= 0 else { throw ModelError.invalid(field: "tokenizer.json", reason: "has the token number \(id)") }
            // GGUF marks the beginning of a word instead of its continuation.
            types[id] = special.contains(text) ? 3 : 1
            // By bytes: a combining mark after “##” forms one character with it.
            let continued = text.utf8.starts(with: "##".utf8) && text.utf8.count > 2
            tokens[id] =
                special.contains(text)
                ? text : continued ? String(decoding: text.utf8.dropFirst(2), as: UTF8.self) : "\u{2581}" + text
        }
        func id(_ name: String) throws -> UInt32 {
            guard let id = vocabulary[name] else { throw ModelError.missing("token \(name) in tokenizer.json") }
            return UInt32(clamping: id)
        }
        let unknown = file.model.unk_token ?? "[UNK]"
        let isLowercased = file.normalizer?.lowercase ?? true
        return [
            ("tokenizer.ggml.model", .string("bert")), ("tokenizer.ggml.tokens", .strings(tokens)),
            ("tokenizer.ggml.token_type", .int32s(types)), ("tokenizer.ggml.unknown_token_id", .uint32(try id(unknown))),
            ("tokenizer.ggml.bos_token_id", .uint32(try id("[CLS]"))), ("tokenizer.ggml.eos_token_id", .uint32(try id("[SEP]"))),
            ("tokenizer.ggml.cls_token_id", .uint32(try id("[CLS]"))),
            ("tokenizer.ggml.seperator_token_id", .uint32(try id("[SEP]"))),  // sic
            ("tokenizer.ggml.padding_token_id", .uint32(try id("[PAD]"))),
            ("tokenizer.ggml.normalizer.lowercase", .bool(isLowercased)),
            ("tokenizer.ggml.normalizer.strip_accents", .bool(file.normalizer?.strip_accents ?? isLowercased)),
        ]
    }

    private func prompts() throws -> [(String, GGUFWriter.Value)] {
        struct Prompts: Decodable { var prompts: [String: String]? }
        guard let prompts = try optional(Prompts.self, "config_sentence_transformers.json")?.prompts else { return [] }
        var result: [(String, GGUFWriter.Value)] = []
        if let query = prompts["query"] { result.append((EmbeddingPrompts.queryKey, .string(query))) }
        if let document = prompts["document"] ?? prompts["passage"] {
            result.append((EmbeddingPrompts.documentKey, .string(document)))
        }
        return result
    }

    private func tensors(_ type: TensorType) throws -> [GGUFWriter.Tensor] {
        var result: [GGUFWriter.Tensor] = []
        for (name, tensor) in weights.tensors.sorted(by: { $0.key < $1.key }) {
            // The pooler was trained for the prediction of the next sentence; the other heads predict words.
            let path = name.hasPrefix("bert.") ? String(name.dropFirst(5)) : name
            if path.hasPrefix("pooler.") || path.hasPrefix("cls.") { continue }
            guard let target = Self.name(of: path) else {
                throw ModelError.unsupported(field: "tensor", value: name, supported: "the tensors of a BERT model")
            }
            // The kernels of integer matrices need whole blocks.
            let isMatrix = tensor.shape.count == 2 && target != "token_types.weight"
            let fits = (tensor.shape.last ?? 1) % type.blockElements == 0
            result.append(
                GGUFWriter.Tensor(
                    name: target, shape: tensor.shape.reversed(),
                    type: Self.type(of: target, isMatrix: isMatrix && fits, type),
                    values: { try tensor.values($0) }))
        }
        // The loader takes biases as optional, because some families have none.
        let found = Set(result.map(\.name))
        for layer in 0..<(config.num_hidden_layers ?? 0) {
            for name in Self.layerTensors.values {
                for kind in ["weight", "bias"] where !found.contains("blk.\(layer).\(name).\(kind)") {
                    throw ModelError.missing("tensor blk.\(layer).\(name).\(kind)")
                }
            }
        }
        for name in Self.embeddingTensors.values where !found.contains(name) { throw ModelError.missing("tensor \(name)") }
        return result
    }

    /// Tensors that have more bits than the others. Only rows of the embeddings are read, so that 8 bits would not be faster.
    /// Values are most sensitive: with 8 bits, the lowest cosine with the original vectors of MiniLM falls from 0.9991 to 0.9984. Products
    /// with BF16 are twice as fast as with F16 where the processor has them.
    private static func type(of tensor: String, isMatrix: Bool, _ type: TensorType) -> TensorType {
        switch tensor {
        case "position_embd.weight": .f32
        case "token_embd.weight" where type == .q8_0: .f16
        case _ where type == .q8_0 && tensor.hasSuffix("attn_v.weight"): .bf16
        default: isMatrix ? type : .f32
        }
    }

    private static func name(of path: String) -> String? {
        if let name = embeddingTensors[path] { return name }
        let parts = path.split(separator: ".").map(String.init)
        guard parts.count > 4, parts[0] == "encoder", parts[1] == "layer", let layer = Int(parts[2]), let kind = parts.last,
            kind == "weight" || kind == "bias"
        else { return nil }
        return layerTensors[parts[3..<parts.count - 1].joined(separator: ".")].map { "blk.\(layer).\($0).\(kind)" }
    }

    private static let embeddingTensors = [
        "embeddings.word_embeddings.weight": "token_embd.weight",
        "embeddings.position_embeddings.weight": "position_embd.weight",
        "embeddings.token_type_embeddings.weight": "token_types.weight",
        "embeddings.LayerNorm.weight": "token_embd_norm.weight", "embeddings.LayerNorm.bias": "token_embd_norm.bias",
    ]

    private static let layerTensors = [
        "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
        "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
        "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
    ]

    // MARK: - Files

    private func optional<Value: Decodable>(_ type: Value.Type, _ name: String) throws -> Value? {
        let url = folder.appendingPathComponent(name)
        return FileManager.default.fileExists(atPath: url.path) ? try Self.read(type, url) : nil
    }

    static func read<Value: Decodable>(_ type: Value.Type, _ url: URL) throws -> Value {
        try decode(type, contents(url), url.lastPathComponent)
    }

    private static func contents(_ url: URL) throws -> Data {
        let source = try SourceFile(path: url.path)
        guard source.size <= 1 << 30 else { throw ModelError.invalid(field: url.lastPathComponent, reason: "is too large") }
        var data = Data(count: source.size)
        try data.withUnsafeMutableBytes { try source.read(into: $0, at: 0) }
        return data
    }

    static func decode<Value: Decodable>(_ type: Value.Type, _ data: Data, _ name: String) throws -> Value {
        do { return try JSONDecoder().decode(type, from: data) } catch {
            throw ModelError.invalid(field: name, reason: "is not valid JSON of the expected form")
        }
    }
}
