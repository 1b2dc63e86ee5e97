package import Foundation
package import Inference

/// Writes a model with an adapter merged into its weights, for programs that know no adapters.
package enum ModelMerge {
    /// Copies a model's file. The matrices that the adapter changes are decoded, changed and written with another type; everything else
    /// stays as it is.
    ///
    /// - Parameters:
    ///   - type: the type of the changed matrices: F16, BF16, F32 or Q8_0.
    ///   - progress: called with the share of the work that is done, from 0 to 1. If it throws, no file is written.
    /// - Throws: ``ModelError`` if the adapter does not fit the model, or if the file cannot be written.
    package static func write(
        model: GGUFFile, adapter: AdapterFile, type: TensorType, to url: URL, progress: (Double) throws -> Void
    ) throws {
        try adapter.check(model)
        let entries = model.tensorNames.compactMap { model.tensors[$0] }.map { tensor in
            // A matrix whose rows are no whole blocks of the type has 16 bits.
            var own = tensor.type
            // Numbers that have more than 16 bits, or the range of bfloat16, keep them.
            if adapter.targets.contains(tensor.name), own != .f32, own != .bf16 {
                own = tensor.shape[0] % type.blockElements == 0 ? type : .f16
            }
            return ModelCopy.Entry(tensor: tensor, type: own)
        }
        try ModelCopy(model: model, entries: entries).write(to: url, progress: progress) { entry, _ in
            guard adapter.targets.contains(entry.tensor.name) else { return try model.bytes(of: entry.tensor) }
            var weights = try model.values(of: entry.tensor)
            try adapter.merge(into: &weights, of: entry.tensor.name, rows: entry.tensor.shape[1], columns: entry.tensor.shape[0])
            guard weights.allSatisfy({ $0.isFinite && (entry.type == .f32 || entry.type == .bf16 || abs($0) <= 65_504) }) else {
                throw ModelError.invalid(field: "the adapter", reason: "makes \(entry.tensor.name) too large for 16 bits")
            }
            return entry.type.encode(weights)
        }
    }
}
