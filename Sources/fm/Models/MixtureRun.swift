import ArgumentParser
import Foundation
import Inference
import ModelTools
import Reports

/// A search for a mixture: measures, chooses, writes, and measures the result.
struct MixtureRun: Sendable {
    private let mixture: MixtureSearch.Mixture
    private let measured: Double

    private static let windows = 3
    private static let rounds = 3

    /// - Parameters:
    ///   - size: the largest number of bytes; nil if the divergence counts.
    ///   - most: the largest divergence.
    init(
        _ file: GGUFFile, _ importance: ImportanceMatrix?, _ texts: [String], to url: URL, size: Int?, most: Double?,
        isCancelled: () -> Bool
    ) throws {
        let line = ProgressLine("Measuring", total: 1_000)
        defer { line.end() }
        func check() throws { if isCancelled() { throw CancellationError() } }
        let search = try MixtureSearch(
            file, importance: importance, windows: { try $0.requiredWindows(of: texts, limit: Self.windows) },
            temporary: URL(filePath: url.path + ".\(getpid()).measure"), isCancelled: isCancelled
        ) { share in
            try check()
            line.show(Int(share * 1_000), text: "how much each kind of matrix matters")
        }
        if let size, search.smallestBytes > size {
            throw ValidationError(
                "--target-size is too small: the smallest mixture has \(search.smallestBytes / 1_000_000) MB.")
        }
        // The prediction is a sum of single effects: what is measured corrects it.
        var wanted = most ?? 0
        var result: (mixture: MixtureSearch.Mixture, measured: Double)?
        for round in 0..<(most == nil ? 1 : Self.rounds) {
            let mixture = search.mixture(bytes: size ?? .max, divergence: wanted)
            let types = Dictionary(grouping: mixture.types.values, by: { $0 }).max { $0.value.count < $1.value.count }?.key
            _ = try ModelQuantizer.write(
                file, types: mixture.types, fileType: QuantizationMix.allCases.first { $0.type == types } ?? .q4_K_M,
                importance: importance, allowsQuantized: false, to: url
            ) { share in
                try check()
                line.show(Int(share * 1_000), text: "writing\(round > 0 ? " again, with more bits" : "")")
            }
            let measured = try search.divergence(of: url, isCancelled: isCancelled)
            result = (mixture, measured)
            guard let most, measured > most else { break }
            wanted *= 0.9 * most / measured
        }
        guard let result else { throw CancellationError() }
        (mixture, measured) = result
    }

    /// The curve of size against divergence, and what was chosen.
    var text: String {
        let highest = mixture.curve.first?.divergence ?? 1
        let rows = mixture.curve.map { point in
            let length = Int((40 * (point.divergence / max(1e-12, highest)).squareRoot()).rounded())
            return [
                "\(point.bytes / 1_000_000) MB", String(format: "%.4f", point.divergence),
                String(repeating: "█", count: max(0, min(40, length))),
            ]
        }
        var lines = TextTable([.right("size"), .right("divergence (predicted)"), .left()], rows: rows).lines()
        let counts = Dictionary(grouping: mixture.types.values, by: \.name).map { "\($0.value.count) × \($0.key)" }.sorted()
        lines.append("Chosen: \(mixture.bytes / 1_000_000) MB (\(counts.joined(separator: ", ")))")
        lines.append(String(format: "Divergence: %.4f nats per token (measured), %.4f (predicted)", measured, mixture.divergence))
        return lines.joined(separator: "\n")
    }
}
