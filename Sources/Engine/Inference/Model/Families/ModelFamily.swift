/// A family of models: how a file's metadata become a shape, and how its files differ from transformers' models.
package struct ModelFamily: Sendable {
    typealias Reader = @Sendable (ShapeReader) throws(ModelError) -> ModelShape

    let shape: Reader
    /// Whether files have the rows of queries and keys in the order of adjacent pairs, where transformers' models have the
    /// halves of each head: llama.cpp's converter stores them so.
    package let pairsRows: Bool

    private init(_ shape: @escaping Reader, pairsRows: Bool = false) { (self.shape, self.pairsRows) = (shape, pairsRows) }

    /// The supported architectures, by the name in `general.architecture`.
    package static let all: [String: ModelFamily] = [
        "llama": ModelFamily(llama, pairsRows: true), "mistral3": ModelFamily(mistral3, pairsRows: true),
        "smollm3": ModelFamily(smollm3, pairsRows: true), "ernie4_5": ModelFamily(ernie45),
        "granite": ModelFamily(granite, pairsRows: true), "granitemoe": ModelFamily(granite, pairsRows: true),
        "granitehybrid": ModelFamily(graniteHybrid, pairsRows: true), "minicpm": ModelFamily(minicpm, pairsRows: true),
        "qwen2": ModelFamily(qwen2), "qwen2vl": ModelFamily(qwen2), "qwen2moe": ModelFamily(qwen2moe),
        "qwen3": ModelFamily(qwen3), "qwen3moe": ModelFamily(qwen3), "qwen3vl": ModelFamily(qwen3),
        "qwen3vlmoe": ModelFamily(qwen3),
        "qwen3next": ModelFamily(qwen35), "qwen35": ModelFamily(qwen35), "qwen35moe": ModelFamily(qwen35),
        "gemma": ModelFamily(gemma), "gemma2": ModelFamily(gemma2), "gemma3": ModelFamily(gemma3),
        "gemma4": ModelFamily(gemma4),
        "phi3": ModelFamily(phi3), "olmo2": ModelFamily(olmo2), "olmoe": ModelFamily(olmoe),
        "exaone4": ModelFamily(exaone4), "gpt-oss": ModelFamily(gptOSS), "lfm2": ModelFamily(lfm2),
        "lfm2moe": ModelFamily(lfm2), "deepseek2": ModelFamily(deepseek2), "glm4": ModelFamily(glm4),
        "hunyuan-dense": ModelFamily(hunyuan), "seed_oss": ModelFamily(seedOSS),
        "bert": ModelFamily(bert), "nomic-bert": ModelFamily(nomicBert), "modern-bert": ModelFamily(modernBert),
        "gemma-embedding": ModelFamily(gemmaEmbedding),
    ]

    static var names: [String] { all.keys.sorted() }

    /// Whether files of an architecture have paired rows.
    package static func pairsRows(_ architecture: String) -> Bool { all[architecture]?.pairsRows ?? false }

    /// The row of a transformers' model that is a row of a file with paired rows: the pair (i, i + half) of a head are neighbours.
    package static func unpaired(row: Int, dimension: Int) -> Int {
        let (head, place) = row.quotientAndRemainder(dividingBy: dimension)
        return head * dimension + place % 2 * (dimension / 2) + place / 2
    }

    static func shape(of file: GGUFFile, withPredictions: Bool = false) throws(ModelError) -> ModelShape {
        guard let architecture = try file.metadata.string("general.architecture") else {
            throw .missing("general.architecture")
        }
        guard let family = all[architecture] else {
            throw .unsupported(
                field: "general.architecture", value: architecture, supported: names.joined(separator: ", "))
        }
        let shape = try family.shape(try ShapeReader(file: file, architecture: architecture, withPredictions: withPredictions))
        try validate(shape, architecture)
        return shape
    }

    /// Checks what the kernels assume of layers that refer to other values of the file.
    private static func validate(_ shape: ModelShape, _ architecture: String) throws(ModelError) {
        for (index, layer) in shape.layers.enumerated() {
            guard case .attention(let attention) = layer.mixer else { continue }
            if let rotary = attention.rotary, shape.rotaries[rotary].dimensions > attention.keyDimension {
                throw .invalid(
                    field: "\(architecture).rope.dimension_count",
                    reason: "is \(shape.rotaries[rotary].dimensions), but keys of layer \(index) have \(attention.keyDimension)")
            }
            guard let shared = attention.sharedLayer else { continue }
            guard case .attention(let owner) = shape.layers[shared].mixer, owner.kvHeads == attention.kvHeads,
                owner.keyDimension == attention.keyDimension, owner.valueDimension == attention.valueDimension
            else {
                throw .invalid(
                    field: "\(architecture).attention.shared_kv_layers",
                    reason: "layer \(index) has other keys and values than layer \(shared), which it shares")
            }
        }
    }
}
