package import Foundation
package import Inference

/// Chooses the types of a model's matrices for a size, or for a divergence that is not to be exceeded.
///
/// For each matrix and type, the error of its rows is measured, weighted with the importance of the columns if it is known. How much an
/// error matters is measured for each kind of matrix: all matrices of the kind are quantised, and the divergence of the model is divided
/// by their errors. Then the step that lowers the divergence most for its bytes is taken, again and again.
package struct MixtureSearch {
    /// A size and the divergence that is predicted for it.
    package struct Point: Sendable {
        package var bytes: Int
        package var divergence: Double
    }

    /// The result for a size or a divergence.
    package struct Mixture: Sendable {
        package var types: [String: TensorType]
        package var bytes: Int
        /// The divergence that is predicted, in nats per token.
        package var divergence: Double
        package var curve: [Point]
    }

    /// A matrix with the types that it can have, from small to large.
    private struct Matrix {
        var name: String
        var kind: String
        var steps: [(type: TensorType, bytes: Int, error: Double)]
    }

    static let ladder = TensorType.allCases.filter(\.isStep).sorted { $0.rank < $1.rank }
    /// The type that sensitivities are measured with: small enough that errors are larger than those of the engine.
    private static let probe = TensorType.q3_K
    private static let sampledRows = 48

    /// The windows that were measured with, and what the model says of them.
    private var windows: [[TokenID]] = []
    private var expected: [WindowPredictions] = []
    private let model: GGUFFile
    private let importance: ImportanceMatrix?
    private var matrices: [Matrix] = []
    /// The divergence for each unit of error, by the kind of matrix.
    private var sensitivity: [String: Double] = [:]
    /// Metadata, and tensors that keep their type.
    private var fixedBytes = 0

    /// Measures errors and sensitivities.
    ///
    /// - Parameters:
    ///   - windows: some windows of text.
    ///   - temporary: a file that may be written and is removed.
    ///   - progress: called with the share of the work that is done, from 0 to 1. If it throws, the search ends.
    package init(
        _ model: GGUFFile, importance: ImportanceMatrix?, windows: (TextMeasurement) throws -> [[TokenID]], temporary: URL,
        isCancelled: () -> Bool, progress: (Double) throws -> Void
    ) throws {
        self.model = model
        self.importance = importance
        // The head of the file, to which a few values are added, and what fills up to the alignment after each tensor.
        let head = model.tensors.values.filter { $0.shard == 0 }.map(\.range.lowerBound).min() ?? 0
        fixedBytes = head + 1024 + 32 * model.tensorNames.count
        for name in model.tensorNames {
            guard let tensor = model.tensors[name] else { continue }
            guard QuantizationMix.isQuantized(tensor), !tensor.type.isQuantized else {
                fixedBytes += tensor.range.count
                continue
            }
            matrices.append(Matrix(name: name, kind: Self.kind(name), steps: try steps(tensor)))
            try progress(0.3 * Double(matrices.count) / Double(model.tensorNames.count))
        }
        guard !matrices.isEmpty else {
            throw ModelError.unsupported(
                field: "a model whose matrices are quantised", value: model.path,
                supported: "models with 16 or 32 bits, such as those that are imported from safetensors")
        }
        let base = try TextMeasurement(path: model.path)
        let windows = try windows(base)
        self.windows = windows
        guard !windows.isEmpty else {
            throw ModelError.invalid(field: "the text", reason: "has fewer than \(TextMeasurement.usualWindow) tokens")
        }
        expected = try windows.map { try WindowPredictions($0, by: base, isCancelled: isCancelled) }
        defer { unlink(temporary.path) }
        let kinds = Set(matrices.map(\.kind)).sorted()
        for (index, kind) in kinds.enumerated() {
            var types: [String: TensorType] = [:]
            var error = 0.0
            for matrix in matrices where matrix.kind == kind {
                let step = matrix.steps.first { $0.type.rank >= Self.probe.rank } ?? matrix.steps[0]
                types[matrix.name] = step.type
                error += step.error
            }
            _ = try ModelQuantizer.write(
                model, types: types, fileType: .q3_K_M, importance: importance, allowsQuantized: false, to: temporary,
                progress: { _ in if isCancelled() { throw CancellationError() } })
            let divergence = try divergence(of: temporary, isCancelled: isCancelled)
            sensitivity[kind] = divergence / max(1e-12, error)
            try progress(0.3 + 0.7 * Double(index + 1) / Double(kinds.count))
        }
    }

    /// The mean divergence of a file's model.
    package func divergence(of file: URL, isCancelled: () -> Bool) throws -> Double {
        let other = try TextMeasurement(path: file.path)
        var divergence = ModelDivergence()
        for (window, expected) in zip(windows, expected) {
            try divergence.add(window, expected, other, isCancelled: isCancelled)
        }
        return divergence.mean
    }

    /// What the name says without the layer.
    private static func kind(_ name: String) -> String {
        let parts = name.split(separator: ".")
        return parts.first == "blk" ? parts.dropFirst(2).joined(separator: ".") : name
    }

    /// The bytes and errors of the types that fit, from small to large; each has a smaller error than those before it.
    private func steps(_ tensor: GGUFTensor) throws -> [(type: TensorType, bytes: Int, error: Double)] {
        let columns = tensor.shape[0]
        let rows = tensor.elementCount / columns
        let rowBytes = columns / tensor.type.blockElements * tensor.type.blockBytes
        var sample: [Float] = []
        let count = min(rows, Self.sampledRows)
        for index in 0..<count {
            let row = index * rows / count
            sample += tensor.type.decode(try model.bytes(of: tensor, in: row * rowBytes..<(row + 1) * rowBytes), count: columns)
        }
        let weights = try importance?.values(of: tensor)?.first
        func energy(_ values: (Int) -> Float) -> Double {
            sample.indices.reduce(0.0) { $0 + Double(values($1) * values($1)) * Double(weights?[$1 % columns] ?? 1) }
        }
        let whole = max(1e-30, energy { sample[$0] })
        var steps: [(type: TensorType, bytes: Int, error: Double)] = []
        for type in Self.ladder.map({ QuantizationMix.fitting($0, columns: columns) })
        where !steps.contains(where: { $0.type == type }) {
            let decoded = type.decode(
                try ModelQuantizer.encode(sample, columns: columns, type, weights.map { [$0] }), count: sample.count)
            let error = energy { sample[$0] - decoded[$0] } / whole
            let bytes = tensor.elementCount / type.blockElements * type.blockBytes
            // A larger type is a step only if it is better.
            if let last = steps.last, error >= last.error || bytes <= last.bytes { continue }
            steps.append((type, bytes, error))
        }
        return steps
    }

    /// The best mixture of at most so many bytes, or with at most this divergence, whichever is reached first.
    package func mixture(bytes limit: Int = .max, divergence most: Double = 0) -> Mixture {
        var places = [Int](repeating: 0, count: matrices.count)
        func cost(_ matrix: Int, _ step: Int) -> Double {
            (sensitivity[matrices[matrix].kind] ?? 0) * matrices[matrix].steps[step].error
        }
        var bytes = matrices.reduce(fixedBytes) { $0 + $1.steps[0].bytes }
        var divergence = matrices.indices.reduce(0.0) { $0 + cost($1, 0) }
        var curve = [Point(bytes: bytes, divergence: divergence)]
        // Few matrices and few steps: all are looked at each time.
        while divergence > most {
            var best: (matrix: Int, step: Int, gain: Double)?
            for matrix in matrices.indices {
                for step in matrices[matrix].steps.indices where step > places[matrix] {
                    let more = matrices[matrix].steps[step].bytes - matrices[matrix].steps[places[matrix]].bytes
                    guard bytes + more <= limit else { continue }
                    let gain = (cost(matrix, places[matrix]) - cost(matrix, step)) / Double(more)
                    if gain > best?.gain ?? 0 { best = (matrix, step, gain) }
                }
            }
            guard let best else { break }
            bytes += matrices[best.matrix].steps[best.step].bytes - matrices[best.matrix].steps[places[best.matrix]].bytes
            divergence -= cost(best.matrix, places[best.matrix]) - cost(best.matrix, best.step)
            places[best.matrix] = best.step
            if let last = curve.last, Double(bytes) > 1.05 * Double(last.bytes) {
                curve.append(Point(bytes: bytes, divergence: divergence))
            }
        }
        curve.append(Point(bytes: bytes, divergence: divergence))
        let types = zip(matrices, places).map { ($0.name, $0.steps[$1].type) }
        return Mixture(
            types: Dictionary(types, uniquingKeysWith: { first, _ in first }), bytes: bytes, divergence: divergence, curve: curve)
    }

    /// The smallest size that a mixture can have.
    package var smallestBytes: Int { matrices.reduce(fixedBytes) { $0 + ($1.steps.first?.bytes ?? 0) } }
}
