internal import Files
package import Foundation

/// A low-rank adapter (LoRA, arXiv:2106.09685): for some matrices of a model, the change by fine-tuning as the product of two low-rank
/// matrices. It is used beside the weights (``LowRankAdapter``), or merged into them on loading, so that inference takes no additional
/// time.
///
/// Files are GGUF, as llama.cpp reads them, or safetensors with the names of a GGUF model (`.fmadapter`), whose numbers are floating-point
/// numbers, or integers of 8 bits with a factor for each rank. Their contents are not trusted.
package final class AdapterFile: Sendable {
    package let path: String
    package let name: String
    /// The architecture of the model that the adapter was trained for.
    package let architecture: String
    /// The names of the matrices that the adapter changes, such as `blk.0.attn_q.weight`.
    package let targets: Set<String>
    /// The metadata values that are strings, by key.
    package let texts: [String: String]
    /// The fingerprint of the model that the adapter was trained with; nil if the file does not say.
    package let baseFingerprint: String?
    package let baseName: String?
    package let alpha: Double
    private let halves: [String: Half]

    /// One of the two matrices of a product.
    private struct Half: Sendable {
        var rows: Int
        var columns: Int
        var read: @Sendable () throws(ModelError) -> [Float]
    }

    /// Identifies the file's state; nil if it cannot be examined.
    var identity: UInt64? { Self.identity(of: [self]) }

    /// The state of bytes in memory; nil for a file.
    private let contentsIdentity: UInt64?

    /// The same for several files.
    static func identity(of files: [AdapterFile]) -> UInt64? {
        let contents = files.compactMap(\.contentsIdentity)
        guard !contents.isEmpty else { return GGUFFile.identity(of: files.map(\.path)) }
        return contents.count == files.count ? contents.withUnsafeBytes { FNV.hash($0) } : nil
    }

    /// Reads an adapter that is a part of a program.
    ///
    /// - Parameter name: what errors call it.
    /// - Throws: ``ModelError`` if it is not an adapter in the form of `.fmadapter`.
    package convenience init(contents: Data, name: String) throws(ModelError) {
        let source = SourceFile(contents, name: name)
        let file: Safetensors
        do { file = try Safetensors(source) } catch {
            throw (error as? ModelError) ?? .invalid(field: "the adapter", reason: "is not safetensors: \(error)")
        }
        try self.init(safetensors: file, path: name, contentsIdentity: source.state.withUnsafeBytes { FNV.hash($0) })
    }

    /// - Throws: ``ModelError`` if the file is damaged or is not an adapter.
    package convenience init(path: String) throws(ModelError) {
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue {
            let isApples = FileManager.default.fileExists(atPath: path + "/adapter_weights.bin")
            throw .unsupported(
                field: "the adapter", value: isApples ? "a package for Apple's model" : "a folder",
                supported: isApples
                    ? "adapters of the models that run here: such a package changes a model that only Apple's devices have"
                    : "a .fmadapter or .gguf file; a PEFT folder must be imported first")
        }
        let start = try SourceFile(path: path)
        var magic = [UInt8](repeating: 0, count: min(4, start.size))
        try magic.withUnsafeMutableBufferPointer { buffer throws(ModelError) in
            try start.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
        }
        if magic == Array("GGUF".utf8) {
            try self.init(gguf: GGUFFile(path: path))
        } else {
            let file: Safetensors
            do {
                file = try Safetensors(file: URL(filePath: path))
            } catch let error as ModelError {
                throw error
            } catch {
                throw .invalid(field: "the adapter", reason: "is neither GGUF nor safetensors: \(error)")
            }
            try self.init(safetensors: file, path: path)
        }
    }

    private convenience init(gguf file: GGUFFile) throws(ModelError) {
        guard try file.metadata.string("general.type") == "adapter" else {
            throw .invalid(field: "general.type", reason: "is not “adapter”: the file is not an adapter")
        }
        let kind = try file.metadata.string("adapter.type") ?? "lora"
        guard kind == "lora" else { throw .unsupported(field: "adapter.type", value: kind, supported: "lora") }
        guard let architecture = try file.metadata.string("general.architecture") else { throw .missing("general.architecture") }
        var texts: [String: String] = [:]
        for key in file.metadata.keys {
            if case .string(let text)? = file.metadata[key] { texts[key] = text }
        }
        var halves: [String: Half] = [:]
        for name in file.tensorNames {
            guard let tensor = file.tensors[name] else { continue }
            guard tensor.shape.count == 2 else {
                throw .invalid(field: "tensor \(name)", reason: "has \(tensor.shape.count) dimensions, not 2")
            }
            halves[name] = Half(rows: tensor.shape[1], columns: tensor.shape[0]) { () throws(ModelError) in
                try file.values(of: tensor)
            }
        }
        // Rows of embeddings are looked up, not multiplied: a is B, and b is Aᵀ (see GGUFWriter).
        let (aName, bName) = (TensorName.tokenEmbedding.weight + ".lora_a", TensorName.tokenEmbedding.weight + ".lora_b")
        if let a = halves[aName], let b = halves[bName], a.columns == b.columns {
            halves[bName] = a
            halves[aName] = Half(rows: b.columns, columns: b.rows) { () throws(ModelError) in
                Self.transposed(try b.read(), rows: b.rows, columns: b.columns)
            }
        }
        try self.init(
            path: file.path, name: texts["general.name"] ?? "adapter", architecture: architecture, texts: texts,
            alpha: try file.metadata.float("adapter.lora.alpha") ?? 0, halves: halves)
    }

    private convenience init(
        safetensors file: Safetensors, path: String, contentsIdentity: UInt64? = nil
    ) throws(ModelError) {
        guard file.metadata["format"] == "fmadapter" else {
            throw .invalid(
                field: "the adapter",
                reason:
                    "has no “format”: the file is not an adapter of this program. PEFT adapters must be imported first")
        }
        guard file.metadata["version"] == "1" else {
            throw .unsupported(field: "version", value: file.metadata["version"] ?? "none", supported: "1")
        }
        guard let architecture = file.metadata["architecture"] else { throw .missing("architecture") }
        guard let alpha = file.metadata["alpha"].flatMap(Double.init), alpha.isFinite, alpha >= 0 else {
            throw .invalid(field: "alpha", reason: "is missing, or not a number")
        }
        var halves: [String: Half] = [:]
        for (name, tensor) in file.tensors.merging(file.integers, uniquingKeysWith: { tensor, _ in tensor }) {
            // Those of integers are read with them; others are tensors that no adapter has.
            let suffix = AdapterFile.factorSuffix
            if name.hasSuffix(suffix), file.integers[String(name.dropLast(suffix.count))] != nil { continue }
            guard tensor.shape.count == 2 else {
                throw .invalid(field: "tensor \(name)", reason: "has \(tensor.shape.count) dimensions, not 2")
            }
            let isInteger = file.integers[name] != nil
            let factors = isInteger ? try file.factors(of: name, tensor) : []
            let (rows, columns, isA) = (tensor.shape[0], tensor.shape[1], name.hasSuffix("a"))
            halves[name] = Half(rows: rows, columns: columns) { () throws(ModelError) in
                guard isInteger else { return try tensor.values(0..<tensor.count) }
                // The rank counts the rows of A, and the columns of B.
                return try tensor.bytes(0..<tensor.count).enumerated().map { index, byte in
                    Float(Int8(bitPattern: byte)) * factors[isA ? index / columns : index % columns]
                }
            }
        }
        try self.init(
            path: path, name: file.metadata["name"] ?? "adapter", architecture: architecture, texts: file.metadata, alpha: alpha,
            halves: halves, contentsIdentity: contentsIdentity)
    }

    private init(
        path: String, name: String, architecture: String, texts: [String: String], alpha: Double, halves: [String: Half],
        contentsIdentity: UInt64? = nil
    ) throws(ModelError) {
        self.path = path
        self.contentsIdentity = contentsIdentity
        (self.name, self.architecture, self.texts, self.alpha, self.halves) = (name, architecture, texts, alpha, halves)
        baseFingerprint = texts["base_fingerprint"]
        baseName = texts["base_model"]
        var targets: Set<String> = []
        for tensor in halves.keys {
            guard tensor.hasSuffix(".lora_a") || tensor.hasSuffix(".lora_b") else {
                throw .unsupported(field: "tensor", value: tensor, supported: "pairs that end in .lora_a and .lora_b")
            }
            targets.insert(String(tensor.dropLast(7)))
        }
        guard !targets.isEmpty else { throw .missing("tensor that ends in .lora_a") }
        for target in targets {
            for half in ["lora_a", "lora_b"] where halves["\(target).\(half)"] == nil {
                throw .missing("tensor \(target).\(half)")
            }
            guard let a = halves["\(target).lora_a"], let b = halves["\(target).lora_b"], a.rows == b.columns,
                (1...4096).contains(a.rows)
            else { throw .invalid(field: "the adapter", reason: "has halves of \(target) that do not fit together") }
        }
        self.targets = targets
    }

    /// The ending of the name of the factors of a matrix of integers.
    package static let factorSuffix = ".scale"

    /// A matrix `[rows][columns]` as `[columns][rows]`.
    package static func transposed(_ values: [Float], rows: Int, columns: Int) -> [Float] {
        var result = [Float](repeating: 0, count: values.count)
        for row in 0..<rows { for column in 0..<columns { result[column * rows + row] = values[row * columns + column] } }
        return result
    }

    /// Checks that the adapter fits a model.
    ///
    /// - Throws: ``ModelError`` if the architecture, the shape of a matrix, or the model that it was trained with differs.
    package func check(_ model: GGUFFile) throws(ModelError) {
        let modelArchitecture = try model.metadata.string("general.architecture") ?? "none"
        guard architecture == modelArchitecture else {
            throw .unsupported(field: "the adapter's architecture", value: architecture, supported: modelArchitecture)
        }
        if let baseFingerprint {
            let fingerprint = try model.fingerprint()
            guard fingerprint == baseFingerprint else {
                let modelName = try model.metadata.string("general.name") ?? "this model"
                throw .unsupported(
                    field: "the adapter's model", value: "\(baseName ?? "unknown") (\(baseFingerprint))",
                    supported: "\(modelName) (\(fingerprint)), which is the model in use")
            }
        }
        for name in targets.sorted() {
            guard let matrix = model.tensors[name], matrix.shape.count == 2 else {
                throw .invalid(field: "the adapter", reason: "changes \(name), but the model has no such matrix")
            }
            guard let a = halves["\(name).lora_a"], let b = halves["\(name).lora_b"], a.columns == matrix.shape[0],
                b.rows == matrix.shape[1], a.rows == b.columns, a.rows <= 4096
            else {
                throw .invalid(
                    field: "the adapter", reason: "has shapes for \(name) that do not fit the model's \(matrix.shape)")
            }
        }
    }

    /// The sizes of the two halves for a matrix, and the factor of their product.
    package struct Sizes {
        package var columns: Int
        package var rank: Int
        package var rows: Int
        package var scale: Double
    }

    package func sizes(of name: String) -> Sizes? {
        guard let a = halves["\(name).lora_a"], let b = halves["\(name).lora_b"] else { return nil }
        // Without an alpha, the product is not scaled.
        return Sizes(columns: a.columns, rank: a.rows, rows: b.rows, scale: alpha > 0 ? alpha / Double(a.rows) : 1)
    }

    /// The two halves for a matrix: a `[rank][columns]` and b `[rows][rank]`.
    package func factors(of name: String) throws(ModelError) -> (a: [Float], b: [Float], sizes: Sizes)? {
        guard let a = halves["\(name).lora_a"], let b = halves["\(name).lora_b"], let sizes = sizes(of: name) else { return nil }
        return (try a.read(), try b.read(), sizes)
    }

    /// Adds the adapter's change to a matrix of a model for which ``check(_:)`` succeeded.
    ///
    /// - Parameter weights: `[rows][columns]`
    package func merge(into weights: inout [Float], of name: String, rows: Int, columns: Int) throws(ModelError) {
        guard let (a, b, sizes) = try factors(of: name) else { return }
        WeightMerge.add(b, a, rank: sizes.rank, scale: Float(sizes.scale), to: &weights, rows: rows, columns: columns)
    }
}

extension Safetensors {
    /// The factors of a matrix of integers, one for each rank.
    fileprivate func factors(of name: String, _ matrix: Tensor) throws(ModelError) -> [Float] {
        let rank = name.hasSuffix("a") ? matrix.shape[0] : matrix.shape[1]
        let field = name + AdapterFile.factorSuffix
        guard let tensor = tensors[field] else { throw .missing("tensor \(field)") }
        guard tensor.count == rank else {
            throw .invalid(field: "tensor \(field)", reason: "has \(tensor.count) numbers, not \(rank)")
        }
        return try tensor.values(0..<rank)
    }
}
