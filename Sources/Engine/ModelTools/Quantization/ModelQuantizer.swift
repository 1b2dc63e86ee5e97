internal import Waiting
internal import CKernels
package import Foundation
package import Inference

/// Writes models with fewer bits.
package enum ModelQuantizer {
    /// What was written.
    package struct Result: Sendable {
        package var bytes: Int
        /// The numbers of tensors by type.
        package var counts: [(type: TensorType, count: Int)]
        /// Bits for each weight, over all tensors.
        package var bitsPerWeight: Double
        /// Matrices whose importance is not known although that of others is.
        package var withoutImportance: [String]
    }

    /// Copies a model with other types.
    ///
    /// - Parameters:
    ///   - types: the types of tensors by name, such as those of ``QuantizationMix/types(of:hasImportance:overrides:)``.
    ///   - allowsQuantized: whether tensors that have fewer than 16 bits are quantised again, which loses more than once.
    ///   - progress: called with the share of the work that is done, from 0 to 1. If it throws, no file is written.
    /// - Throws: ``ModelError``.
    package static func write(
        _ model: GGUFFile, types: [String: TensorType], fileType: QuantizationMix, importance: ImportanceMatrix?,
        allowsQuantized: Bool, to url: URL, progress: (Double) throws -> Void
    ) throws -> Result {
        let entries = model.tensorNames.compactMap { model.tensors[$0] }.map {
            ModelCopy.Entry(tensor: $0, type: types[$0.name] ?? $0.type)
        }
        for entry in entries where entry.type != entry.tensor.type {
            guard entry.type.isWritable else {
                throw ModelError.unsupported(
                    field: "the type of \(entry.tensor.name)", value: entry.type.name,
                    supported: writable.map(\.name).joined(separator: ", "))
            }
            guard allowsQuantized || !entry.tensor.type.isQuantized else {
                throw ModelError.unsupported(
                    field: "\(entry.tensor.name), which has the type", value: entry.tensor.type.name,
                    supported: "F32, F16 and BF16: quantising it again loses more")
            }
            guard entry.tensor.shape[0] % entry.type.blockElements == 0 else {
                throw ModelError.invalid(
                    field: entry.tensor.name,
                    reason: "has rows of \(entry.tensor.shape[0]), which are no whole blocks of \(entry.type.name)")
            }
        }
        var copy = ModelCopy(model: model, entries: entries)
        copy.changes = [("general.file_type", .uint32(fileType.fileType)), ("general.quantization_version", .uint32(2))]
        var missing: [String] = []
        if let importance {
            copy.changes += [
                ("quantize.imatrix.file", .string(importance.name)),
                ("quantize.imatrix.dataset", .string(importance.datasets.joined(separator: ", "))),
                ("quantize.imatrix.entries_count", .uint32(UInt32(clamping: importance.columns.count))),
                ("quantize.imatrix.chunks_count", .uint32(UInt32(clamping: importance.chunks))),
            ]
        }
        var values: [[Float]]?
        try copy.write(to: url, progress: progress) { entry, written in
            let tensor = entry.tensor
            let columns = tensor.shape[0]
            let rows = tensor.elementCount / columns
            if written == 0 {
                values = try importance?.values(of: tensor)
                if importance != nil, values == nil, entry.type.blockElements > 1, tensor.name.hasPrefix("blk.") {
                    missing.append(tensor.name)
                }
            }
            let first = written / (columns / entry.type.blockElements * entry.type.blockBytes)
            let count = min(max(1, partElements / columns), rows - first)
            let rowBytes = columns / tensor.type.blockElements * tensor.type.blockBytes
            let bytes = try model.bytes(of: tensor, in: first * rowBytes..<(first + count) * rowBytes)
            if entry.type == tensor.type { return bytes }
            let numbers = tensor.type.decode(bytes, count: count * columns)
            guard numbers.allSatisfy(\.isFinite) else {
                throw ModelError.invalid(field: tensor.name, reason: "has numbers that are infinite or not a number")
            }
            // Scales have 16 bits, and squares of weights must be numbers of 32 bits.
            guard entry.type == .bf16 || entry.type == .f32 || numbers.allSatisfy({ abs($0) <= 65_504 }) else {
                throw ModelError.invalid(
                    field: tensor.name,
                    reason: "has numbers that are too large for \(entry.type.name): use BF16, or --tensor for this matrix")
            }
            return try encode(
                numbers, columns: columns, firstRow: first, rowsOfMatrix: tensor.shape.count > 1 ? tensor.shape[1] : 1,
                entry.type,
                values)
        }
        let total = entries.reduce(0) { $0 + $1.tensor.elementCount }
        let bytes = entries.reduce(0) { $0 + $1.bytes }
        let counts = Dictionary(grouping: entries, by: \.type).map { ($0.key, $0.value.count) }.sorted { $0.1 > $1.1 }
        return Result(
            bytes: bytes, counts: counts, bitsPerWeight: 8 * Double(bytes) / Double(max(1, total)), withoutImportance: missing)
    }

    /// The types that can be written.
    package static var writable: [TensorType] { TensorType.allCases.filter(\.isWritable) }

    private static let partElements = 1 << 22

    /// The blocks of rows, on all cores.
    ///
    /// - Parameter importance: `[matrices][columns]`: experts have a matrix each.
    static func encode(
        _ numbers: [Float], columns: Int, firstRow: Int = 0, rowsOfMatrix: Int = .max, _ type: TensorType,
        _ importance: [[Float]]? = nil
    ) throws -> [UInt8] {
        guard type.isQuantized else { return type.encode(numbers) }
        let rows = numbers.count / columns
        let rowBytes = columns / type.blockElements * type.blockBytes
        let parts = min(rows, 4 * ProcessInfo.processInfo.activeProcessorCount)
        return try concurrently(parts) { part in
            let range = rows * part / parts..<rows * (part + 1) / parts
            var bytes = [UInt8](repeating: 0, count: range.count * rowBytes)
            numbers.withUnsafeBufferPointer { numbers in
                bytes.withUnsafeMutableBufferPointer { bytes in
                    guard let from = numbers.baseAddress, let to = bytes.baseAddress else { return }
                    for row in range {
                        let matrix = (firstRow + row) / rowsOfMatrix
                        let weights = importance.map { $0[min(matrix, $0.count - 1)] }
                        ck_encode(
                            type.kernelType, from + row * columns, columns, weights, to + (row - range.lowerBound) * rowBytes)
                    }
                }
            }
            return bytes
        }.flatMap { $0 }
    }
}
