/// A low-rank adapter (LoRA, arXiv:2106.09685) in a GGUF file: for some matrices of a model, the change by fine-tuning
/// as the product of two low-rank matrices. It is used beside the weights (``LowRankAdapter``), or merged into them on
/// loading, so that inference takes no additional time.
package final class AdapterFile: Sendable {
    let file: GGUFFile
    package let name: String
    /// The architecture of the model that the adapter was trained for.
    package let architecture: String
    /// The names of the matrices that the adapter changes, such as `blk.0.attn_q.weight`.
    package let targets: Set<String>
    private let alpha: Double

    package var path: String { file.path }

    /// The metadata values that are strings, by key.
    package var texts: [String: String] {
        var texts: [String: String] = [:]
        for key in file.metadata.keys {
            if case .string(let text)? = file.metadata[key] { texts[key] = text }
        }
        return texts
    }

    /// - Throws: ``ModelError`` if the file is damaged or is not an adapter.
    package init(path: String) throws(ModelError) {
        file = try GGUFFile(path: path)
        guard try file.metadata.string("general.type") == "adapter" else {
            throw .invalid(field: "general.type", reason: "is not “adapter”: the file is not an adapter")
        }
        let kind = try file.metadata.string("adapter.type") ?? "lora"
        guard kind == "lora" else { throw .unsupported(field: "adapter.type", value: kind, supported: "lora") }
        guard let architecture = try file.metadata.string("general.architecture") else { throw .missing("general.architecture") }
        self.architecture = architecture
        name = try file.metadata.string("general.name") ?? "adapter"
        alpha = try file.metadata.float("adapter.lora.alpha") ?? 0
        var targets: Set<String> = []
        for tensor in file.tensorNames {
            guard tensor.hasSuffix(".lora_a") || tensor.hasSuffix(".lora_b") else {
                throw .unsupported(field: "tensor", value: tensor, supported: "pairs that end in .lora_a and .lora_b")
            }
            targets.insert(String(tensor.dropLast(7)))
        }
        guard !targets.isEmpty else { throw .missing("tensor that ends in .lora_a") }
        for target in targets {
            for half in ["lora_a", "lora_b"] where file.tensors["\(target).\(half)"] == nil {
                throw .missing("tensor \(target).\(half)")
            }
        }
        self.targets = targets
    }

    /// Checks that the adapter fits a model.
    ///
    /// - Throws: ``ModelError`` if the architecture or the shape of a matrix differs.
    package func check(_ model: GGUFFile) throws(ModelError) {
        let modelArchitecture = try model.metadata.string("general.architecture") ?? "none"
        guard architecture == modelArchitecture else {
            throw .unsupported(field: "the adapter's architecture", value: architecture, supported: modelArchitecture)
        }
        for name in targets.sorted() {
            guard let matrix = model.tensors[name], matrix.shape.count == 2 else {
                throw .invalid(field: "the adapter", reason: "changes \(name), but the model has no such matrix")
            }
            guard let a = file.tensors["\(name).lora_a"], let b = file.tensors["\(name).lora_b"],
                a.shape.count == 2, b.shape.count == 2, a.shape[0] == matrix.shape[0], b.shape[1] == matrix.shape[1],
                a.shape[1] == b.shape[0], a.shape[1] <= 4096
            else {
                throw .invalid(
                    field: "the adapter", reason: "has shapes for \(name) that do not fit the model's \(matrix.shape)")
            }
        }
    }

    /// The sizes of the two halves for a matrix, and the factor of their product.
    struct Sizes {
        var columns: Int
        var rank: Int
        var scale: Double
    }

    func sizes(of name: String) -> Sizes? {
        guard let a = file.tensors["\(name).lora_a"] else { return nil }
        // Without an alpha, the product is not scaled.
        return Sizes(columns: a.shape[0], rank: a.shape[1], scale: alpha > 0 ? alpha / Double(a.shape[1]) : 1)
    }

    /// The two halves for a matrix: a `[rank][columns]` and b `[rows][rank]`.
    func factors(of name: String) throws(ModelError) -> (a: [Float], b: [Float], sizes: Sizes)? {
        guard let a = file.tensors["\(name).lora_a"], let b = file.tensors["\(name).lora_b"], let sizes = sizes(of: name) else {
            return nil
        }
        return (try file.values(of: a), try file.values(of: b), sizes)
    }

    /// Adds the adapter's change to a matrix of a model for which ``check(_:)`` succeeded.
    ///
    /// - Parameter weights: `[rows][columns]`
    func merge(into weights: inout [Float], of name: String, rows: Int, columns: Int) throws(ModelError) {
        guard let (a, b, sizes) = try factors(of: name) else { return }
        WeightMerge.add(b, a, rank: sizes.rank, scale: Float(sizes.scale), to: &weights, rows: rows, columns: columns)
    }
}
