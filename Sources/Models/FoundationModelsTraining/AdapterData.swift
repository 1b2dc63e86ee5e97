internal import Files
public import Foundation
internal import Inference
internal import JSON
internal import ModelTools

/// The contents of an adapter, to convert between files: `.fmadapter`, GGUF, and folders of PEFT.
///
/// Names and orders of rows are those of GGUF models. Each pair stands for scale · B · A with its own scale.
public struct AdapterData: Sendable {
    package struct Pair: Sendable {
        package var rank: Int
        var rows: Int
        var columns: Int
        /// `[rank][columns]`
        package var a: [Float]
        /// `[rows][rank]`
        package var b: [Float]
        package var scale: Double
    }

    package var pairs: [String: Pair] = [:]
    var architecture: String
    /// The metadata of a `.fmadapter` file.
    var texts: [String: String] = [:]

    /// Reads a `.fmadapter` file or a GGUF adapter.
    public init(contentsOf url: URL) throws(TrainingError) {
        do {
            let file = try AdapterFile(path: url.path)
            architecture = file.architecture
            texts = file.texts.filter { !$0.key.contains("general.") && !$0.key.hasPrefix("adapter.") }
            texts["name"] = file.name
            for name in file.targets {
                guard let (a, b, sizes) = try file.factors(of: name) else { continue }
                guard file.alpha >= 0 else { throw ModelError.invalid(field: "alpha", reason: "is \(file.alpha)") }
                pairs[name] = Pair(rank: sizes.rank, rows: sizes.rows, columns: sizes.columns, a: a, b: b, scale: sizes.scale)
            }
        } catch {
            throw .invalidAdapter("\(error)")
        }
    }

    /// Reads a folder of PEFT, or a GGUF adapter, for a model, and checks that it fits.
    ///
    /// - Parameter model: The path of the model's GGUF file.
    /// - Throws: ``TrainingError/invalidAdapter(_:)``, which names what cannot be represented.
    public init(importing url: URL, for model: String) throws(TrainingError) {
        var isDirectory: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory)
        let file: GGUFFile
        let shape: ModelShape
        do {
            file = try GGUFFile(path: model)
            shape = try ModelShape(file: file)
        } catch { throw .damagedModel("\(error)") }
        if exists, isDirectory.boolValue,
            FileManager.default.fileExists(atPath: url.appendingPathComponent("adapter_config.json").path)
        {
            self = try PEFTFolder(url).adapter(for: file, shape)
        } else {
            try self.init(contentsOf: url)
        }
        for (name, pair) in pairs {
            guard let tensor = file.tensors[name] else {
                throw .invalidAdapter("The adapter changes \(name), but \(shape.name) has no such matrix.")
            }
            guard tensor.shape == [pair.columns, pair.rows] else {
                throw .invalidAdapter(
                    "The adapter changes \(name) as a matrix of \(pair.rows) rows and \(pair.columns) columns, but that of \(shape.name) has \(tensor.shape.last ?? 0) and \(tensor.shape[0])."
                )
            }
        }
        if architecture != shape.architecture {
            throw .otherModel("The adapter is for \(architecture) models, and \(shape.name) is a \(shape.architecture) model.")
        }
    }

    init(architecture: String) { self.architecture = architecture }

    // MARK: - One alpha

    /// One alpha for all pairs, of which each then has the scale alpha / rank: what differs becomes part of B.
    private var folded: (alpha: Double, pairs: [(name: String, pair: Pair)]) {
        let names = pairs.keys.sorted()
        // The most frequent one, so that most pairs stay as they are.
        var counts: [Double: Int] = [:]
        for pair in pairs.values { counts[pair.scale * Double(pair.rank), default: 0] += 1 }
        let alpha = counts.max { ($0.value, $0.key) < ($1.value, $1.key) }?.key ?? 1
        return (
            alpha,
            names.compactMap { name in
                guard var pair = pairs[name] else { return nil }
                let factor = pair.scale * Double(pair.rank) / alpha
                if abs(factor - 1) > 1e-12 { pair.b = pair.b.map { Float(Double($0) * factor) } }
                return (name, pair)
            }
        )
    }

    /// Writes a `.fmadapter` file.
    ///
    /// - Parameter isSmall: Writes numbers of 8 bits with a factor for each rank, half the size of an adapter that was trained here. The
    ///   product of the two matrices differs by some 4 % of its size then. Otherwise numbers have 32 bits.
    public func write(to url: URL, isSmall: Bool = false) throws(TrainingError) {
        let (alpha, pairs) = folded
        var metadata = texts
        metadata["format"] = "fmadapter"
        metadata["version"] = "1"
        metadata["architecture"] = architecture
        metadata["alpha"] = "\(alpha)"
        metadata["rank"] = "\(pairs.map(\.pair.rank).max() ?? 0)"
        metadata["name"] = texts["name"] ?? url.deletingPathExtension().lastPathComponent
        var tensors: [SafetensorsData.Tensor] = []
        for (name, pair) in pairs {
            let halves = [
                (name: name + ".lora_a", shape: [pair.rank, pair.columns], values: pair.a),
                (name: name + ".lora_b", shape: [pair.rows, pair.rank], values: pair.b),
            ]
            for half in halves {
                guard isSmall else {
                    tensors.append(.init(name: half.name, shape: half.shape, values: half.values))
                    continue
                }
                guard half.values.allSatisfy(\.isFinite) else {
                    throw .invalidAdapter("The tensor \(half.name) has numbers that are not finite.")
                }
                let isA = half.name.hasSuffix("a")
                let (integers, factors) = Self.rounded(half.values, rank: pair.rank) { isA ? $0 / pair.columns : $0 % pair.rank }
                tensors.append(.init(name: half.name, shape: half.shape, integers: integers))
                tensors.append(.init(name: half.name + AdapterFile.factorSuffix, shape: [pair.rank], values: factors))
            }
        }
        let data: Data
        do { data = try SafetensorsData.file(tensors, metadata: metadata, type: .f32) } catch {
            throw .invalidAdapter("\(error)")
        }
        try FileWriter.write(data, to: url)
    }

    /// The largest integer of a small adapter. Answers differ as much with 127 (Documentation/Teaching.md), and compressed files are a
    /// quarter smaller with fewer different integers.
    private static let largestInteger: Float = 31

    /// Numbers as integers with a factor for each rank.
    ///
    /// - Parameter place: the rank of a number by its index.
    private static func rounded(_ values: [Float], rank: Int, place: (Int) -> Int) -> (integers: [Int8], factors: [Float]) {
        var largest = [Float](repeating: 0, count: rank)
        for (index, value) in values.enumerated() { largest[place(index)] = max(largest[place(index)], abs(value)) }
        let factors = largest.map { $0 / largestInteger }
        let integers = values.enumerated().map { index, value in
            let factor = factors[place(index)]
            return factor > 0 ? Int8(max(-largestInteger, min(largestInteger, (value / factor).rounded()))) : 0
        }
        return (integers, factors)
    }

    /// Writes a GGUF adapter, as llama.cpp reads it, with numbers of 32 bits.
    public func writeGGUF(to url: URL) throws(TrainingError) {
        let (alpha, pairs) = folded
        do {
            try GGUFWriter.writeAdapter(
                to: url, architecture: architecture, name: texts["name"] ?? "adapter", alpha: Float(alpha),
                pairs: pairs.map { ($0.name, $0.pair.rank, $0.pair.rows, $0.pair.columns, $0.pair.a, $0.pair.b) })
        } catch {
            throw .cannotWrite(path: url.path, reason: "\(error)")
        }
    }

    /// Writes a folder as PEFT saves it: `adapter_config.json` and `adapter_model.safetensors`.
    public func writePEFT(to folder: URL) throws(TrainingError) {
        try PEFTFolder.write(self, to: folder, folded.alpha, folded.pairs)
    }
}
