internal import Files
internal import Foundation
internal import Inference
internal import JSON
internal import ModelTools

/// A folder of PEFT: `adapter_config.json` and `adapter_model.safetensors` (huggingface/peft, `tuners/lora/config.py`). Its contents are not
/// trusted.
struct PEFTFolder {
    private let config: JSONValue
    private let tensors: Safetensors

    init(_ folder: URL) throws(TrainingError) {
        do {
            let data = try Data(contentsOf: folder.appendingPathComponent("adapter_config.json"))
            config = try JSONParser.parse(data)
        } catch {
            throw .invalidAdapter("\(folder.path): adapter_config.json cannot be read: \(error)")
        }
        do {
            tensors = try Safetensors(file: folder.appendingPathComponent("adapter_model.safetensors"))
        } catch {
            throw .invalidAdapter("\(folder.path): adapter_model.safetensors cannot be read: \(error)")
        }
        try checkKind()
    }

    /// What cannot be represented as scale · B · A beside the weights.
    private func checkKind() throws(TrainingError) {
        func refuse(_ what: String) throws(TrainingError) -> Never {
            throw .invalidAdapter("The adapter has \(what), which cannot be used beside quantised weights.")
        }
        guard case .string(let kind)? = config["peft_type"], kind == "LORA" else { try refuse("another type than LORA") }
        func isOn(_ key: String) -> Bool {
            switch config[key] {
            case .bool(let value)?: value
            case nil, .null?: false
            case .array(let list)?: !list.isEmpty
            case .object(let members)?: !members.isEmpty
            default: true
            }
        }
        for key in [
            "use_dora", "modules_to_save", "lora_bias", "trainable_token_indices", "target_parameters", "layer_replication",
            "velora_config",
            "use_kasa", "kasa_config", "monteclora_config", "arrow_config", "bdlora_config", "use_bdlora", "use_qalora",
            "alora_invocation_tokens",
            "fan_in_fan_out", "corda_config", "eva_config", "loftq_config",
        ] where isOn(key) { try refuse("“\(key)”") }
        if case .string(let bias)? = config["bias"], bias != "none" { try refuse("“bias” = “\(bias)”") }
        // These change the base weights as well.
        if case .string(let kind)? = config["init_lora_weights"],
            ["pissa", "olora", "corda", "loftq"].contains(where: { kind.lowercased().hasPrefix($0) })
        {
            try refuse("“init_lora_weights” = “\(kind)”, which also changes the model's weights,")
        }
    }

    private func number(_ value: JSONValue?) -> Double? {
        if case .number(let number)? = value { Double(number.text) } else { nil }
    }

    /// The factor of B · A for a module.
    private func scale(of module: String, rank: Int) throws(TrainingError) -> Double {
        var alpha = number(config["lora_alpha"]) ?? 8
        if case .object(let patterns)? = config["alpha_pattern"] {
            guard patterns.count <= Self.maximumPatterns else {
                throw .invalidAdapter("“alpha_pattern” has \(patterns.count) patterns, more than \(Self.maximumPatterns).")
            }
            for pattern in patterns where try Self.matches(module, pattern.name) {
                alpha = number(pattern.value) ?? 0
                break
            }
        }
        guard alpha > 0, alpha <= 1e9 else {
            throw .invalidAdapter("The alpha of “\(module)” is \(alpha), not a number above 0.")
        }
        if case .bool(true)? = config["use_rslora"] { return alpha / Double(rank).squareRoot() }
        return alpha / Double(rank)
    }

    private static let maximumPatterns = 256

    /// Whether a pattern of PEFT, a regular expression, fits the end of a module's name. Patterns are not trusted: matching ends early.
    private static func matches(_ module: String, _ pattern: String) throws(TrainingError) -> Bool {
        if module == pattern || module.hasSuffix("." + pattern) { return true }
        guard pattern.contains(where: { "*+?[]{}()|\\^$".contains($0) }) else { return false }
        // Why it is no regular expression does not matter: the message has the pattern.
        guard pattern.utf8.count <= 200, let expression = try? NSRegularExpression(pattern: "^(.*\\.)?(\(pattern))$") else {
            throw .invalidAdapter(
                "The pattern “\(pattern.prefix(40))” of “alpha_pattern” is not a regular expression, or too long.")
        }
        var isFound = false
        var reports = 0
        expression.enumerateMatches(
            in: module, options: .reportProgress, range: NSRange(module.startIndex..., in: module)
        ) { result, _, stop in
            reports += 1
            if result != nil { isFound = true }
            if result != nil || reports > 100 { stop.pointee = true }
        }
        guard isFound || reports <= 100 else {
            throw .invalidAdapter("The pattern “\(pattern.prefix(40))” of “alpha_pattern” takes too long.")
        }
        return isFound
    }

    // MARK: - Names

    /// One matrix of some models with the rows of the gate and of what it multiplies.
    private static let gateAndUp = (module: "mlp.gate_up_proj", name: "ffn_gate_up")

    /// The modules of layers that adapters may target, and their names in a file.
    private static let targets =
        TensorName.allCases.filter { $0.entry.isTarget && !$0.entry.isOutside }
        .map { (module: $0.entry.module, name: $0.whole) } + [gateAndUp]

    /// `blk.3.attn_q` for `model.layers.3.self_attn.q_proj`.
    private static func name(of module: String) -> String? {
        // Models with images and sound have towers of the same structure.
        if module.contains("vision") || module.contains("visual") || module.contains("audio") { return nil }
        if module.hasSuffix("embed_tokens") { return TensorName.tokenEmbedding.whole }
        if module == "lm_head" || module.hasSuffix(".lm_head") { return TensorName.output.whole }
        guard let target = targets.first(where: { module.hasSuffix("." + $0.module) }) else { return nil }
        let before = module.dropLast(target.module.count + 1).split(separator: ".")
        guard before.count >= 2, before[before.count - 2] == "layers", let layer = Int(before[before.count - 1]), layer >= 0
        else {
            return nil
        }
        return "blk.\(layer).\(target.name)"
    }

    /// The row of a model's file for each row of PEFT's model, or the other way round.
    private static func permutation(heads: Int, dimension: Int) -> [Int] {
        (0..<heads * dimension).map { ModelFamily.unpaired(row: $0, dimension: dimension) }
    }

    private static func rows(_ b: [Float], rank: Int, _ order: [Int]) -> [Float] {
        order.flatMap { b[$0 * rank..<($0 + 1) * rank] }
    }

    // MARK: - Reading

    func adapter(for file: GGUFFile, _ shape: ModelShape) throws(TrainingError) -> AdapterData {
        var data = AdapterData(architecture: shape.architecture)
        var found: [String: AdapterData.Pair] = [:]
        for name in tensors.tensors.keys.sorted() {
            guard let (module, isEmbedding) = Self.module(of: name) else {
                // The other halves; and the weights of the model, which PEFT saves with an adapter of embeddings.
                if name.contains(".lora_B") || name.contains(".lora_embedding_B") || name.hasSuffix(".base_layer.weight") {
                    continue
                }
                throw .invalidAdapter("The adapter has the tensor “\(name)”, which is not a half of a low-rank product.")
            }
            let other = name.replacingOccurrences(
                of: isEmbedding ? ".lora_embedding_A" : ".lora_A", with: isEmbedding ? ".lora_embedding_B" : ".lora_B")
            guard let a = tensors.tensors[name], let b = tensors.tensors[other] else {
                throw .invalidAdapter("The adapter has “\(name)”, but not “\(other)”.")
            }
            guard a.shape.count == 2, b.shape.count == 2, a.shape[0] == b.shape[1], a.shape[0] <= 4096 else {
                throw .invalidAdapter(
                    "The halves of “\(module)” have the shapes \(a.shape) and \(b.shape), which do not fit together.")
            }
            guard let target = Self.name(of: module) else {
                throw .invalidAdapter("The adapter changes “\(module)”, which \(shape.name) has not under a known name.")
            }
            let rank = a.shape[0]
            var pair: AdapterData.Pair
            do {
                let (aValues, bValues) = (try a.values(0..<a.count), try b.values(0..<b.count))
                if isEmbedding {
                    // Rows of the table are columns of PEFT's product: (B · A)ᵀ = Aᵀ · Bᵀ.
                    pair = AdapterData.Pair(
                        rank: rank, rows: a.shape[1], columns: b.shape[0],
                        a: AdapterFile.transposed(bValues, rows: b.shape[0], columns: rank),
                        b: AdapterFile.transposed(aValues, rows: rank, columns: a.shape[1]),
                        scale: try scale(of: module, rank: rank))
                } else {
                    pair = AdapterData.Pair(
                        rank: rank, rows: b.shape[0], columns: a.shape[1], a: aValues, b: bValues,
                        scale: try scale(of: module, rank: rank))
                }
            } catch let error as TrainingError { throw error } catch { throw .invalidAdapter("\(error)") }
            guard found[target] == nil else {
                throw .invalidAdapter("The adapter changes \(target) twice, also as “\(module)”.")
            }
            if target == TensorName.output.whole, file.tensors[TensorName.output.weight] == nil {
                throw .invalidAdapter(
                    "The adapter changes “lm_head”, but \(shape.name) uses its embeddings as the head: a change of only the head cannot be represented."
                )
            }
            if target == TensorName.tokenEmbedding.whole, file.tensors[TensorName.output.weight] == nil {
                throw .invalidAdapter(
                    "The adapter changes the embeddings, which \(shape.name) also uses as its head: a change of only the embeddings cannot be represented."
                )
            }
            try permute(&pair, target, shape)
            found[target] = pair
        }
        data.pairs = try Self.fitted(found, file, shape)
        data.texts["base_model"] = shape.name
        if case .attention(let attention)? = shape.layers.first?.mixer {
            data.texts["head_dimension"] = "\(attention.keyDimension)"
        }
        guard !data.pairs.isEmpty else { throw .invalidAdapter("The adapter changes nothing.") }
        return data
    }

    private static func module(of tensor: String) -> (module: String, isEmbedding: Bool)? {
        for (mark, isEmbedding) in [(".lora_A", false), (".lora_embedding_A", true)] {
            guard let range = tensor.range(of: mark) else { continue }
            var module = String(tensor[..<range.lowerBound])
            for prefix in ["base_model.model.", "base_model."] where module.hasPrefix(prefix) {
                module.removeFirst(prefix.count)
                break
            }
            return (module, isEmbedding)
        }
        return nil
    }

    private func permute(_ pair: inout AdapterData.Pair, _ target: String, _ shape: ModelShape) throws(TrainingError) {
        guard ModelFamily.pairsRows(shape.architecture), let heads = Self.heads(target, shape) else { return }
        guard pair.rows == heads.count * heads.dimension else {
            throw .invalidAdapter(
                "The adapter changes \(target) as a matrix of \(pair.rows) rows, but \(shape.name) has \(heads.count * heads.dimension)."
            )
        }
        pair.b = Self.rows(pair.b, rank: pair.rank, Self.permutation(heads: heads.count, dimension: heads.dimension))
    }

    /// The heads of a matrix of queries or keys.
    private static func heads(_ target: String, _ shape: ModelShape) -> (count: Int, dimension: Int)? {
        let parts = target.split(separator: ".")
        guard parts.count == 3, let layer = Int(parts[1]), shape.layers.indices.contains(layer),
            case .attention(let attention) = shape.layers[layer].mixer
        else { return nil }
        switch TensorName(of: target) {
        case .query: return (attention.heads, attention.keyDimension)
        case .key: return (attention.kvHeads, attention.keyDimension)
        default: return nil
        }
    }

    /// Splits or joins pairs where the file has other matrices than PEFT's model.
    private static func fitted(
        _ found: [String: AdapterData.Pair], _ file: GGUFFile, _ shape: ModelShape
    ) throws(TrainingError) -> [String: AdapterData.Pair] {
        var result: [String: AdapterData.Pair] = [:]
        var left = found
        for index in shape.layers.indices {
            let layer = LayerNames(index)
            func name(_ name: TensorName) -> String { layer(name, .whole) }
            guard case .attention(let a) = shape.layers[index].mixer else { continue }
            let widths = [a.heads * a.keyDimension, a.kvHeads * a.keyDimension, a.kvHeads * a.valueDimension]
            let dense = shape.layers[index].feedForward?.dense?.width ?? 0
            let matrices: [(fused: String, own: TensorName, parts: [TensorName], widths: [Int])] = [
                (name(.queryKeyValue), .queryKeyValue, [.query, .key, .value], widths),
                ("blk.\(index).\(gateAndUp.name)", .up, [.gate, .up], [dense, dense]),
            ]
            for (fused, own, parts, widths) in matrices {
                let isFused = own == .up ? file.tensors[layer(.gate)] == nil : file.tensors[layer(own)] != nil
                if isFused {
                    if let pair = left.removeValue(forKey: fused) { result[name(own)] = pair }
                    if own == .up, left[name(.gate)] == nil { continue }  // ffn_up of a model without a gate
                    let pairs = parts.map { left.removeValue(forKey: name($0)) }
                    if pairs.contains(where: { $0 != nil }) { result[name(own)] = try joined(pairs, widths, name(own)) }
                } else if let pair = left.removeValue(forKey: fused) {
                    guard pair.rows == widths.reduce(0, +) else {
                        throw .invalidAdapter(
                            "The adapter changes \(fused) as a matrix of \(pair.rows) rows, not \(widths.reduce(0, +)).")
                    }
                    var first = 0
                    for (target, width) in zip(parts, widths) {
                        var part = pair
                        part.rows = width
                        part.b = Array(pair.b[first * pair.rank..<(first + width) * pair.rank])
                        first += width
                        result[name(target)] = part
                    }
                }
            }
        }
        result.merge(left) { first, _ in first }
        return Dictionary(uniqueKeysWithValues: result.map { ($0.key + ".weight", $0.value) })
    }

    /// Pairs of several matrices as one of the matrix that has the rows of all: the ranks are added.
    private static func joined(_ parts: [AdapterData.Pair?], _ widths: [Int], _ name: String) throws(TrainingError)
        -> AdapterData.Pair
    {
        let known = parts.compactMap(\.self)
        guard let first = known.first, known.allSatisfy({ $0.columns == first.columns }),
            zip(parts, widths).allSatisfy({ $0 == nil || $0?.rows == $1 })
        else { throw .invalidAdapter("The adapter changes parts of \(name) that do not fit together.") }
        let rank = known.reduce(0) { $0 + $1.rank }
        let rows = widths.reduce(0, +)
        var b = [Float](repeating: 0, count: rows * rank)
        var (row, column) = (0, 0)
        for (part, width) in zip(parts, widths) {
            if let part {
                for r in 0..<width {
                    for c in 0..<part.rank { b[(row + r) * rank + column + c] = part.b[r * part.rank + c] * Float(part.scale) }
                }
                column += part.rank
            }
            row += width
        }
        return AdapterData.Pair(rank: rank, rows: rows, columns: first.columns, a: known.flatMap(\.a), b: b, scale: 1)
    }

    // MARK: - Writing

    static func write(
        _ data: AdapterData, to folder: URL, _ alpha: Double, _ pairs: [(name: String, pair: AdapterData.Pair)]
    ) throws(TrainingError) {
        var tensors: [SafetensorsData.Tensor] = []
        var modules: Set<String> = []
        let rank = pairs.map(\.pair.rank).max() ?? 1
        var ranks: [String: Int] = [:]
        var alphas: [String: Double] = [:]
        for (name, pair) in pairs {
            let target = TensorName(of: name)
            if target == .output {
                let full = TensorName.output.entry.module
                modules.insert(full)
                if pair.rank != rank { (ranks[full], alphas[full]) = (pair.rank, alpha) }
                tensors.append(
                    .init(name: "base_model.model.\(full).lora_A.weight", shape: [pair.rank, pair.columns], values: pair.a))
                tensors.append(
                    .init(name: "base_model.model.\(full).lora_B.weight", shape: [pair.rows, pair.rank], values: pair.b))
                continue
            }
            if target == .tokenEmbedding {
                let full = TensorName.tokenEmbedding.entry.module
                modules.insert("embed_tokens")
                if pair.rank != rank { (ranks[full], alphas[full]) = (pair.rank, alpha) }
                tensors.append(
                    .init(
                        name: "base_model.model.\(full).lora_embedding_A", shape: [pair.rank, pair.rows],
                        values: AdapterFile.transposed(pair.b, rows: pair.rows, columns: pair.rank)))
                tensors.append(
                    .init(
                        name: "base_model.model.\(full).lora_embedding_B", shape: [pair.columns, pair.rank],
                        values: AdapterFile.transposed(pair.a, rows: pair.rank, columns: pair.columns)))
                continue
            }
            let parts = name.split(separator: ".")
            guard parts.count == 4, let target, target.entry.isTarget, name.hasSuffix(target.weight) else {
                throw .invalidAdapter("The adapter changes \(name), for which PEFT's name is not known.")
            }
            // The file's one matrix of both halves is “gate_up_proj” in the families that have it.
            let isFusedGate =
                target == .up && !pairs.contains { TensorName(of: $0.name) == .gate } && data.architecture == "phi3"
            let module = isFusedGate ? gateAndUp.module : target.entry.module
            modules.insert(String(module.split(separator: ".")[1]))
            var b = pair.b
            if ModelFamily.pairsRows(data.architecture), target.isRotated {
                guard let dimension = Int(data.texts["head_dimension"] ?? ""), dimension > 0, pair.rows % dimension == 0 else {
                    throw .invalidAdapter(
                        "The adapter does not say how long the heads of its model are: import it for its model first.")
                }
                let order = Self.permutation(heads: pair.rows / dimension, dimension: dimension)
                var restored = b
                for (place, row) in order.enumerated() {
                    for r in 0..<pair.rank { restored[row * pair.rank + r] = b[place * pair.rank + r] }
                }
                b = restored
            }
            let full = "model.layers.\(parts[1]).\(module)"
            if pair.rank != rank {
                ranks[full] = pair.rank
                alphas[full] = alpha
            }
            tensors.append(
                .init(name: "base_model.model.\(full).lora_A.weight", shape: [pair.rank, pair.columns], values: pair.a))
            tensors.append(.init(name: "base_model.model.\(full).lora_B.weight", shape: [pair.rows, pair.rank], values: b))
        }
        struct Config: Encodable {
            var peft_type = "LORA", task_type = "CAUSAL_LM", bias = "none", inference_mode = true, lora_dropout = 0.0
            var base_model_name_or_path: String
            var r: Int, lora_alpha: Double, target_modules: [String], rank_pattern: [String: Int], alpha_pattern: [String: Double]
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let config = Config(
                base_model_name_or_path: data.texts["base_model"] ?? "", r: rank, lora_alpha: alpha,
                target_modules: modules.sorted(),
                rank_pattern: ranks, alpha_pattern: alphas)
            try FileWriter.write(try encoder.encode(config), to: folder.appendingPathComponent("adapter_config.json"))
            try FileWriter.write(
                try SafetensorsData.file(tensors, metadata: ["format": "pt"], type: .f32),
                to: folder.appendingPathComponent("adapter_model.safetensors"))
        } catch let error as TrainingError { throw error } catch {
            throw .cannotWrite(path: folder.path, reason: "\(error)")
        }
    }
}
