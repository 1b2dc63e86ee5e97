package import Foundation
package import Inference
internal import JSON

/// A model as it is published on the Hugging Face hub: a folder with `config.json`, `tokenizer.json` and safetensors
/// files. It is imported by conversion to a GGUF file.
package struct HuggingFaceFolder: Sendable {
    private let folder: URL
    private let config: JSONValue
    private let kind: Kind
    private let weights: Safetensors

    private enum Kind { case encoder(EncoderImport.Family), decoder(DecoderFamily) }

    /// - Throws: ``ModelError`` if the folder is not a model, or one of an unknown kind.
    package init(_ folder: URL) throws {
        self.folder = folder
        config = try Self.json(folder.appendingPathComponent("config.json"))
        kind = try Self.kind(config)
        weights = try Safetensors(folder: folder)
    }

    private static func kind(_ config: JSONValue) throws(ModelError) -> Kind {
        guard let type = config["model_type"]?.string else { throw .missing("model_type in config.json") }
        if let family = EncoderImport.families[type] { return .encoder(family) }
        if let family = DecoderFamily.all[type] { return .decoder(family) }
        throw .unsupported(
            field: "model_type of config.json", value: type,
            supported:
                "\((encoders + decoders).joined(separator: ", ")). Other models must be downloaded as GGUF files."
        )
    }

    /// Checks a folder without its weights.
    ///
    /// - Throws: ``ModelError`` if it is not a model, or one of an unknown kind.
    package static func check(_ folder: URL) throws { _ = try kind(json(folder.appendingPathComponent("config.json"))) }

    /// The names of the files that have the weights.
    package static func weightFiles(in folder: URL) throws -> [String] { try Safetensors.names(in: folder) }

    /// More tokens than any tokenizer has.
    static let maximumTokens = 1 << 22

    /// The files that are read; an import must not write to them.
    package var paths: [String] {
        let names = [
            "config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja",
            "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "model.safetensors.index.json",
            "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors", "3_Dense/config.json",
            "3_Dense/model.safetensors", "3_LayerNorm/model.safetensors", "4_Dense/config.json", "4_Dense/model.safetensors",
        ]
        return names.map { folder.appendingPathComponent($0).path } + weights.paths
    }

    /// The kinds of language models that can be imported, by `model_type`.
    package static var decoders: [String] { DecoderFamily.all.keys.sorted() }

    /// The kinds of models that make vectors of texts.
    package static var encoders: [String] { EncoderImport.families.keys.sorted() }

    /// The types that matrices can be imported with.
    package static let types: [TensorType] = [.f32, .f16, .bf16, .q8_0]

    /// Whether the model makes vectors of texts; otherwise it generates text. Some are built like language models.
    package var isEncoder: Bool {
        if case .encoder = kind { return true }
        return config["use_bidirectional_attention"] == .bool(true) || has("1_Pooling/config.json")
    }

    /// Writes the GGUF file.
    ///
    /// - Parameters:
    ///   - name: the name in the file's metadata.
    ///   - type: the type of matrices: F32, F16, BF16 or Q8_0; nil for Q8_0 for encoders, and for decoders the type that the folder has.
    ///     Vectors stay in F32.
    ///   - pre: the name of the pre-tokenizer, if it is not recognised.
    ///   - progress: called with the share of the work that is done, from 0 to 1. If it throws, no file is written; after a
    ///     `CancellationError` the next call continues.
    /// - Returns: what became different from the folder, in words.
    @discardableResult
    package func write(
        to url: URL, name: String, type: TensorType? = nil, license: String? = nil, pre: String? = nil,
        progress: (Double) throws -> Void = { _ in }
    ) throws -> [String] {
        guard [nil, .f32, .f16, .bf16, .q8_0].contains(type), !isEncoder || type != .bf16 else {
            throw ModelError.unsupported(
                field: "the type", value: type?.name ?? "", supported: "F32, F16, Q8_0, of decoders BF16")
        }
        let tokenizer = try Self.json(folder.appendingPathComponent("tokenizer.json"))
        let settings = try optionalJSON("tokenizer_config.json") ?? .object([])
        var writer = GGUFWriter()
        var fields: ImportFields
        var count: Int
        var notes: [String] = []
        switch kind {
        case .encoder(let family):
            let encoder = EncoderImport(family, config: ImportConfig(json: config), weights: weights)
            let limit = try optionalJSON("sentence_bert_config.json")?["max_seq_length"]?.integer
            let isRanker = try isRanker
            fields = try encoder.metadata(limit: isRanker ? min(limit ?? .max, EncoderImport.maximumPair) : limit)
            fields.set("pooling_type", try pooling() ?? 1)
            writer.tensors = try encoder.tensors(type ?? .q8_0)
            if isRanker { writer.tensors += try head(width: config["hidden_size"]?.integer ?? 0) }
            count = writer.tensors.first { $0.name == TensorName.tokenEmbedding.weight }?.shape.last ?? 0
        case .decoder(let family):
            let decoder = try DecoderImport(
                family, config: config, weights: weights, tokens: TokenizerImport.count(tokenizer))
            fields = try decoder.metadata()
            writer.tensors = try decoder.tensors(type ?? (isEncoder ? .q8_0 : nil))
            count = decoder.embeddingCount
            notes = try decoder.notes(of: weights)
            if isEncoder { try addPooling(&fields, &writer, type ?? .q8_0) }
        }
        if isEncoder { try checkModules(fields.architecture) }
        let matrices = writer.tensors.filter { $0.shape.count > 1 }.map(\.type)
        let fileType = matrices.contains(.q8_0) ? 7 : matrices.contains(.bf16) ? 32 : matrices.contains(.f16) ? 1 : 0
        writer.metadata = [
            ("general.architecture", .string(fields.architecture)), ("general.name", .string(name)),
            ("general.file_type", .uint32(UInt32(fileType))), ("general.quantization_version", .uint32(2)),
        ]
        if let license { writer.metadata.append(("general.license", .string(license))) }
        let generation = try optionalJSON("generation_config.json")
        let ends = [generation?["eos_token_id"], config["eos_token_id"]].flatMap { value -> [Int] in
            if case .array(let list)? = value { return list.compactMap(\.integer) }
            return value?.integer.map { [$0] } ?? []
        }
        let pieces = TokenizerImport(
            tokenizer: tokenizer, config: settings, preName: pre, architecture: fields.architecture,
            beginning: config["bos_token_id"]?.integer, ends: ends, isEmbedder: isEncoder)
        writer.metadata += try fields.values + pieces.metadata(count: count) + prompts()
        if !isEncoder, let template = try chatTemplate(settings) {
            writer.metadata.append(("tokenizer.chat_template", .string(template)))
        }
        try writer.write(to: url, source: identity(), progress: progress) { path in
            // A file that cannot be used must not replace one that can.
            let file = try GGUFFile(path: path)
            try NeuralModel.check(file)
            _ = try Tokenizer(file: file)
        }
        return notes
    }

    /// Names, sizes and times of the files that are read. A path alone does not say whether the file is still the same.
    private func identity() throws -> String {
        try paths.filter { FileManager.default.fileExists(atPath: $0) }.map { path in
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let time = attributes[.modificationDate] as? Date
            return "\(path) \(attributes[.size] ?? 0) \(time?.timeIntervalSince1970 ?? 0)"
        }.joined(separator: ";")
    }

    /// The file beside the configuration takes precedence, as in transformers.
    private func chatTemplate(_ settings: JSONValue) throws -> String? {
        if has("chat_template.jinja") {
            let file = folder.appendingPathComponent("chat_template.jinja")
            guard let template = String(bytes: try Self.contents(file), encoding: .utf8) else {
                throw ModelError.invalid(field: "chat_template.jinja", reason: "is not UTF-8")
            }
            return template
        }
        if let template = settings["chat_template"]?.string { return template }
        guard case .array(let templates)? = settings["chat_template"] else { return nil }
        return (templates.first { $0["name"]?.string == "default" } ?? templates.first)?["template"]?.string
    }

    // MARK: - Models for embeddings

    /// How the vectors of tokens become one, as Sentence Transformers says it: the number in GGUF files; nil if it says nothing.
    private func pooling() throws -> Int? {
        guard let pooling = try optionalJSON("1_Pooling/config.json") else { return nil }
        let modes = ["pooling_mode_mean_tokens": 1, "pooling_mode_cls_token": 2, "pooling_mode_lasttoken": 3]
        var chosen = modes.filter { pooling[$0.key] == .bool(true) }
        var others = false
        // Newer files name one mode.
        if let name = pooling["pooling_mode"]?.string {
            chosen = modes.filter {
                ["pooling_mode_\(name)", "pooling_mode_\(name)_token", "pooling_mode_\(name)_tokens"].contains($0.key)
            }
        }
        if case .object(let members) = pooling {
            others = members.contains {
                $0.name.hasPrefix("pooling_mode_") && $0.value == .bool(true) && modes[$0.name] == nil
            }
        }
        guard let mode = chosen.first, chosen.count == 1, !others else {
            throw ModelError.unsupported(
                field: "1_Pooling/config.json", value: "another mode", supported: "the mean, the CLS token or the last token")
        }
        return mode.value
    }

    /// What a decoder needs to make vectors: pooling, and the layers after it.
    private func addPooling(_ fields: inout ImportFields, _ writer: inout GGUFWriter, _ type: TensorType) throws {
        fields.set("pooling_type", try pooling() ?? 1)
        for name in ["dense_2", "dense_3"] {
            let module = name.replacing("dense_", with: "") + "_Dense"
            guard has(module) else { continue }
            let dense = try Safetensors(file: folder.appendingPathComponent("\(module)/model.safetensors"))
            guard let tensor = dense.tensors["linear.weight"], tensor.shape.count == 2, dense.tensors.count == 1 else {
                throw ModelError.unsupported(field: module, value: "other tensors", supported: "a single matrix, linear.weight")
            }
            fields.set("\(name)_feat_in", tensor.shape[1])
            fields.set("\(name)_feat_out", tensor.shape[0])
            let fits = tensor.shape[1] % type.blockElements == 0
            writer.tensors.append(
                GGUFWriter.Tensor(
                    name: "\(name).weight", shape: tensor.shape.reversed(), type: fits ? type : .f16,
                    values: SourceTensor(tensor).values))
        }
    }

    /// Whether the model reads a question and a text together: the vector of the first token becomes a score by two matrices with a norm
    /// between them, as in `cross-encoder/ettin-reranker-17m-v1`.
    private var isRanker: Bool {
        get throws {
            guard config["model_type"] == .string("modernbert") else { return false }
            return try modules().contains { $0.kind == "LayerNorm" }
        }
    }

    /// What Sentence Transformers computes, in order: the last part of the name of each module, and its folder.
    private func modules() throws -> [(kind: String, path: String)] {
        guard case .array(let modules)? = try optionalJSON("modules.json") else { return [] }
        return modules.map { module in
            (module["type"]?.string?.split(separator: ".").last.map(String.init) ?? "none", module["path"]?.string ?? "")
        }
    }

    /// The tensors that make a score of the vector of a ranker.
    private func head(width: Int) throws -> [GGUFWriter.Tensor] {
        var tensors: [GGUFWriter.Tensor] = []
        func add(_ module: String, _ parts: [(name: String, target: String, shape: [Int])]) throws {
            let file = try Safetensors(file: folder.appendingPathComponent("\(module)/model.safetensors"))
            for part in parts {
                guard let tensor = file.tensors[part.name], tensor.shape == part.shape, file.tensors.count == parts.count else {
                    throw ModelError.unsupported(
                        field: module, value: "other tensors", supported: "\(parts.map(\.name)) of a score of width \(width)")
                }
                tensors.append(
                    GGUFWriter.Tensor(
                        name: part.target, shape: part.shape.reversed(), type: .f32, values: SourceTensor(tensor).values))
            }
        }
        try add("2_Dense", [("linear.weight", TensorName.classifier.weight, [width, width])])
        try add(
            "3_LayerNorm",
            [
                ("norm.weight", TensorName.classifierNorm.weight, [width]),
                ("norm.bias", TensorName.classifierNorm.bias, [width]),
            ])
        try add(
            "4_Dense",
            [
                ("linear.weight", TensorName.classifierOutput.weight, [1, width]),
                ("linear.bias", TensorName.classifierOutput.bias, [1]),
            ])
        return tensors
    }

    /// Refuses a ranker with other modules or functions than those that the engine computes.
    private func checkRanker() throws {
        let wanted = ["Transformer ", "Pooling 1_Pooling", "Dense 2_Dense", "LayerNorm 3_LayerNorm", "Dense 4_Dense"]
        guard try modules().map({ "\($0.kind) \($0.path)" }) == wanted else {
            throw ModelError.unsupported(
                field: "modules.json", value: "other modules", supported: "of a ranker: \(wanted.joined(separator: ", "))")
        }
        for (module, name) in [("2_Dense", ".GELU"), ("4_Dense", ".Identity")] {
            let function = try optionalJSON("\(module)/config.json")?["activation_function"]?.string ?? "none"
            guard function.hasSuffix(name) else {
                throw ModelError.unsupported(field: "\(module)/config.json", value: function, supported: "…\(name)")
            }
        }
        // The engine has one number for all norms.
        try ImportConfig(json: config).require("norm_eps", number: 1e-5)
    }

    /// Refuses what Sentence Transformers does with vectors after pooling and is not imported.
    private func checkModules(_ architecture: String) throws {
        if try isRanker { return try checkRanker() }
        for (kind, path) in try modules() {
            if ["Transformer", "Pooling", "Normalize"].contains(kind) { continue }
            var isPlain = kind == "Dense" && architecture == "gemma-embedding" && ["2_Dense", "3_Dense"].contains(path)
            if isPlain, let settings = try optionalJSON("\(path)/config.json") {
                let function = settings["activation_function"]?.string ?? "Identity"
                isPlain = function.hasSuffix("Identity") && settings["bias"] != .bool(true)
            }
            guard isPlain else {
                throw ModelError.unsupported(
                    field: "modules.json", value: "\(kind) in \(path)",
                    supported:
                        "Transformer, Pooling, Normalize, the plain matrices of EmbeddingGemma, and the head of a ModernBERT that ranks"
                )
            }
        }
    }

    private func prompts() throws -> [(String, GGUFWriter.Value)] {
        guard isEncoder, let prompts = try optionalJSON("config_sentence_transformers.json")?["prompts"] else { return [] }
        var result: [(String, GGUFWriter.Value)] = []
        if let query = prompts["query"]?.string { result.append((EmbeddingPrompts.queryKey, .string(query))) }
        if let document = prompts["document"]?.string ?? prompts["passage"]?.string {
            result.append((EmbeddingPrompts.documentKey, .string(document)))
        }
        return result
    }

    // MARK: - Files

    private func has(_ name: String) -> Bool { FileManager.default.fileExists(atPath: folder.appendingPathComponent(name).path) }

    private func optionalJSON(_ name: String) throws -> JSONValue? {
        has(name) ? try Self.json(folder.appendingPathComponent(name)) : nil
    }

    fileprivate static func json(_ url: URL) throws -> JSONValue {
        let data = try contents(url)
        do { return try JSONParser.parse(data) } catch {
            throw ModelError.invalid(field: url.lastPathComponent, reason: "is not valid JSON: \(error)")
        }
    }

    private static func contents(_ url: URL) throws -> Data {
        let source = try SourceFile(path: url.path)
        guard source.size <= (url.lastPathComponent == "tokenizer.json" ? 256 : 16) << 20 else {
            throw ModelError.invalid(field: url.lastPathComponent, reason: "is too large")
        }
        var data = Data(count: source.size)
        try data.withUnsafeMutableBytes { try source.read(into: $0, at: 0) }
        return data
    }
}

extension Safetensors {
    /// Reads `model.safetensors`, or the files that `model.safetensors.index.json` lists.
    init(folder: URL) throws { try self.init(files: Self.names(in: folder).map { folder.appendingPathComponent($0) }) }

    /// The names of the files of a folder.
    fileprivate static func names(in folder: URL) throws -> [String] {
        let index = folder.appendingPathComponent("model.safetensors.index.json")
        guard FileManager.default.fileExists(atPath: index.path) else { return ["model.safetensors"] }
        guard case .object(let map)? = try HuggingFaceFolder.json(index)["weight_map"] else {
            throw ModelError.missing("weight_map in model.safetensors.index.json")
        }
        let names = Set(map.map { $0.value.string ?? "" })
        for name in names where name.contains("/") || name.isEmpty {
            throw ModelError.invalid(field: "model.safetensors.index.json", reason: "names the file “\(name)”")
        }
        return names.sorted()
    }
}
