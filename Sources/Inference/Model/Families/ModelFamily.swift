/// The supported architectures, by the name in `general.architecture`, each with a function that converts a file's
/// metadata to a shape.
enum ModelFamily {
    typealias Reader = @Sendable (ShapeReader) throws(ModelError) -> ModelShape

    static let readers: [String: Reader] = [
        "llama": llama, "mistral3": mistral3, "smollm3": smollm3,
        "granite": granite, "granitemoe": granite, "granitehybrid": graniteHybrid,
        "qwen2": qwen2, "qwen3": qwen3, "qwen2vl": qwen2, "qwen3vl": qwen3, "qwen3moe": qwen3moe, "qwen3vlmoe": qwen3moe,
        "qwen3next": qwen35, "qwen35": qwen35, "qwen35moe": qwen35,
        "gemma": gemma, "gemma2": gemma2, "gemma3": gemma3, "gemma4": gemma4,
        "phi3": phi3, "olmo2": olmo2, "gpt-oss": gptOSS, "lfm2": lfm2, "lfm2moe": lfm2, "deepseek2": deepseek2,
        "qwen2moe": qwen2moe, "minicpm": minicpm, "glm4": glm4, "exaone4": exaone4, "hunyuan-dense": hunyuan,
        "bert": bert, "nomic-bert": nomicBert, "modern-bert": modernBert, "gemma-embedding": gemmaEmbedding,
        "ernie4_5": ernie45, "olmoe": olmoe, "seed_oss": seedOSS,
    ]

    static var names: [String] { readers.keys.sorted() }

    static func shape(of file: GGUFFile) throws(ModelError) -> ModelShape {
        guard let architecture = try file.metadata.string("general.architecture") else {
            throw .missing("general.architecture")
        }
        guard let reader = readers[architecture] else {
            throw .unsupported(
                field: "general.architecture", value: architecture, supported: names.joined(separator: ", "))
        }
        let shape = try reader(try ShapeReader(file: file, architecture: architecture))
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
