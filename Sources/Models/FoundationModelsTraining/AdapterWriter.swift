internal import Files
internal import Foundation
internal import Inference
internal import ModelTools

/// Writes a trained adapter as a `.fmadapter` file: safetensors with `MATRIX.lora_a` `[rank][columns]` and `MATRIX.lora_b` `[rows][rank]`
/// in binary16, by the names of the model's file, and metadata as text.
enum AdapterWriter {
    static func write(
        _ factors: LowRankFactors, _ trainer: AdapterTrainer, _ information: AdapterInformation,
        _ summary: AdapterTrainer.Summary, to url: URL
    ) throws {
        let options = trainer.options
        var metadata = [
            "format": "fmadapter", "version": "1",
            "name": information.name ?? url.deletingPathExtension().lastPathComponent,
            "base_model": trainer.model.shape.name, "architecture": trainer.model.shape.architecture,
            "base_fingerprint": trainer.fingerprint,
            "rank": "\(options.rank)", "alpha": "\(options.alpha ?? Double(2 * options.rank))",
            "data_hash": String(trainer.dataHash, radix: 16),
            "created": ISO8601DateFormatter().string(from: Date()),
        ]
        // PEFT's order of rows depends on it.
        if let layer = trainer.model.layers.first { metadata["head_dimension"] = "\(layer.attention.keyDimension)" }
        metadata["base_adapter"] = trainer.baseHash
        metadata["author"] = information.author
        metadata["description"] = information.description
        metadata["license"] = information.license
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        metadata["training"] = String(decoding: try encoder.encode(summary), as: UTF8.self)
        metadata["options"] = String(decoding: try encoder.encode(options), as: UTF8.self)
        for (key, value) in information.creatorDefined { metadata["creator." + key] = value }
        // The largest number of 16 bits.
        let limit: Float = 65_504
        guard (0..<factors.count).allSatisfy({ abs(factors.values.pointer[$0]) <= limit }) else {
            throw TrainingError.diverged(
                step: summary.steps, lines: [], reason: "the adapter has numbers that are too large for its file")
        }
        var tensors: [SafetensorsData.Tensor] = []
        for place in factors.order where place.trained > 0 {
            tensors.append(.init(name: place.name + ".lora_a", shape: [place.trained, place.columns], values: factors.a(place)))
            tensors.append(.init(name: place.name + ".lora_b", shape: [place.rows, place.trained], values: factors.b(place)))
        }
        try FileWriter.write(SafetensorsData.file(tensors, metadata: metadata, type: .f16), to: url)
    }
}
