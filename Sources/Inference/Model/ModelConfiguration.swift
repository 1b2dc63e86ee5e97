/// The shape of a decoder-only transformer, resolved from a file's metadata: nothing here is optional or unchecked.
package struct ModelConfiguration: Sendable, Equatable {
    package let architecture: String
    /// `general.name`, or the architecture where the file has no name.
    package let name: String
    package let layers: Int
    /// Width of the residual stream (n_embd).
    package let width: Int
    package let feedForwardWidth: Int
    package let heads: Int
    package let kvHeads: Int
    package let headDimension: Int
    /// Dimensions of a head that are rotated.
    package let rotaryDimensions: Int
    package let rotaryBase: Double
    package let rotaryScaling: RotaryScaling
    /// Rotated pairs are (i, i + half) rather than (2i, 2i + 1).
    package let rotatesHalves: Bool
    package let normEpsilon: Double
    /// Positions the model was trained for.
    package let contextLength: Int
    package let vocabularySize: Int
    /// Positions each token sees, its own included; nil for all.
    package let slidingWindow: Int?

    /// How positions beyond the original training length are brought into range.
    package enum RotaryScaling: Sendable, Equatable {
        case none
        /// Positions divided by the factor (arXiv:2306.15595).
        case linear(factor: Double)
        /// Interpolation of low frequencies only, and a temperature on attention (arXiv:2309.00071).
        case yarn(factor: Double, originalContext: Int)
    }

    /// Architectures with a forward pass here.
    package static let supportedArchitectures = ["llama"]

    package init(file: GGUFFile) throws(ModelError) {
        let metadata = file.metadata
        guard let architecture = try metadata.string("general.architecture") else {
            throw .missing("general.architecture")
        }
        guard Self.supportedArchitectures.contains(architecture) else {
            throw .unsupported(
                field: "general.architecture", value: architecture,
                supported: Self.supportedArchitectures.joined(separator: ", "))
        }
        func required(_ key: String, in range: ClosedRange<Int>) throws(ModelError) -> Int {
            guard let value = try metadata.integer("\(architecture).\(key)", in: range) else {
                throw .missing("\(architecture).\(key)")
            }
            return value
        }
        self.architecture = architecture
        name = try metadata.string("general.name") ?? architecture
        layers = try required("block_count", in: 1...1024)
        width = try required("embedding_length", in: 1...(1 << 18))
        feedForwardWidth = try required("feed_forward_length", in: 1...(1 << 20))
        heads = try required("attention.head_count", in: 1...1024)
        kvHeads = try metadata.integer("\(architecture).attention.head_count_kv", in: 1...heads) ?? heads
        guard heads % kvHeads == 0 else {
            throw .invalid(
                field: "\(architecture).attention.head_count_kv", reason: "is \(kvHeads), which does not divide \(heads) heads")
        }
        let keyLength = try metadata.integer("\(architecture).attention.key_length", in: 2...512)
        if keyLength == nil, width % heads != 0 {
            throw .invalid(
                field: "\(architecture).attention.head_count", reason: "is \(heads), which does not divide the width \(width)")
        }
        headDimension = keyLength ?? width / heads
        guard headDimension <= 512 else {
            throw .unsupported(field: "the head dimension", value: "\(headDimension)", supported: "up to 512")
        }
        let valueLength = try metadata.integer("\(architecture).attention.value_length", in: 1...4096) ?? headDimension
        guard valueLength == headDimension else {
            throw .unsupported(
                field: "\(architecture).attention.value_length", value: "\(valueLength)",
                supported: "the key length, \(headDimension)")
        }
        rotaryDimensions = try metadata.integer("\(architecture).rope.dimension_count", in: 0...headDimension) ?? headDimension
        guard rotaryDimensions % 2 == 0 else {
            throw .invalid(field: "\(architecture).rope.dimension_count", reason: "is \(rotaryDimensions), an odd number")
        }
        rotaryBase = try metadata.float("\(architecture).rope.freq_base") ?? 10_000
        guard rotaryBase > 0 else { throw .invalid(field: "\(architecture).rope.freq_base", reason: "is \(rotaryBase)") }
        contextLength = try metadata.integer("\(architecture).context_length", in: 1...(1 << 24)) ?? 2048
        rotaryScaling = try Self.rotaryScaling(metadata, architecture: architecture, contextLength: contextLength)
        // Files of the llama family hold weights permuted for adjacent pairs.
        rotatesHalves = false
        guard let epsilon = try metadata.float("\(architecture).attention.layer_norm_rms_epsilon"), epsilon > 0 else {
            throw .missing("\(architecture).attention.layer_norm_rms_epsilon")
        }
        normEpsilon = epsilon
        guard let embeddings = file.tensors["token_embd.weight"] else { throw .missing("tensor token_embd.weight") }
        guard embeddings.shape.count == 2, embeddings.shape[0] == width, (1...(1 << 24)).contains(embeddings.shape[1]) else {
            throw .invalid(field: "tensor token_embd.weight", reason: "has the shape \(embeddings.shape)")
        }
        vocabularySize = embeddings.shape[1]
        slidingWindow = try metadata.integer("\(architecture).attention.sliding_window", in: 1...(1 << 24))
    }

    private static func rotaryScaling(
        _ metadata: GGUFMetadata, architecture: String, contextLength: Int
    ) throws(ModelError) -> RotaryScaling {
        let key = "\(architecture).rope.scaling"
        let oldFactor = try metadata.float("\(architecture).rope.scale_linear")
        let factor = try metadata.float("\(key).factor") ?? oldFactor ?? 1
        guard factor > 0 else { throw .invalid(field: "\(key).factor", reason: "is \(factor)") }
        switch try metadata.string("\(key).type") ?? (factor == 1 ? "none" : "linear") {
        case "none": return .none
        case "linear": return .linear(factor: factor)
        case "yarn":
            let original = try metadata.integer("\(key).original_context_length", in: 1...(1 << 24))
            return .yarn(factor: factor, originalContext: original ?? contextLength)
        case let other: throw .unsupported(field: "\(key).type", value: other, supported: "none, linear, yarn")
        }
    }
}
