internal import Foundation
package import Inference

/// A tiny random model that can be reproduced in any language: metadata, shapes, and ranges of random numbers, written by
/// `Tests/Tools/record_architectures.py`, with logits of a reference.
package struct ModelRecipe: Decodable, Sendable {
    package struct Tensor: Decodable, Sendable {
        package var name: String
        package var shape: [Int]
        package var low: Float?
        package var high: Float?
        package var values: [Float]?
    }

    package struct Entry: Decodable, Sendable {
        package var key: String
        package var value: Value

        package enum Value: Sendable {
            case string(String), uint32(UInt32), float32(Float), bool(Bool), int32s([Int32]), uint32s([UInt32])
            case float32s([Float]), bools([Bool]), strings([String])
        }

        package init(from decoder: any Decoder) throws {
            var list = try decoder.unkeyedContainer()
            key = try list.decode(String.self)
            switch try list.decode(String.self) {
            case "string": value = .string(try list.decode(String.self))
            case "uint32": value = .uint32(try list.decode(UInt32.self))
            case "float32": value = .float32(try list.decode(Float.self))
            case "bool": value = .bool(try list.decode(Bool.self))
            case "int32[]": value = .int32s(try list.decode([Int32].self))
            case "uint32[]": value = .uint32s(try list.decode([UInt32].self))
            case "float32[]": value = .float32s(try list.decode([Float].self))
            case "bool[]": value = .bools(try list.decode([Bool].self))
            default: value = .strings(try list.decode([String].self))
            }
        }
    }

    package var name: String
    package var seed: UInt64
    package var context: Int
    package var metadata: [Entry]
    package var tensors: [Tensor]
    package var tokens: [TokenID]
    package var positions: [Int]
    package var logits: [[Double]]

    private static let golden = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("InferenceTests/Golden")

    package static let names: [String] = {
        // Without the folder, `thereAreRecipes` fails.
        let files = (try? FileManager.default.contentsOfDirectory(atPath: golden.path + "/Architectures")) ?? []
        return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }()

    package static func load(_ name: String) throws -> ModelRecipe { try load(name, in: "Architectures", as: ModelRecipe.self) }

    /// Reads a recipe, or a type that has more of its file.
    package static func load<Recipe: Decodable>(
        _ name: String, in folder: String, as type: Recipe.Type
    ) throws -> Recipe {
        try JSONDecoder().decode(type, from: Data(contentsOf: golden.appendingPathComponent("\(folder)/\(name).json")))
    }

    /// The file that the recipe describes, identical to the file that the reference read.
    package func builder() -> GGUFBuilder {
        var builder = GGUFBuilder()
        builder.metadata = metadata.map { entry in
            switch entry.value {
            case .string(let value): (entry.key, .string(value))
            case .uint32(let value): (entry.key, .uint32(value))
            case .float32(let value): (entry.key, .float32(value))
            case .bool(let value): (entry.key, .bool(value))
            case .int32s(let value): (entry.key, .int32s(value))
            case .uint32s(let value): (entry.key, .uint32s(value))
            case .float32s(let value): (entry.key, .float32s(value))
            case .bools(let value): (entry.key, .bools(value))
            case .strings(let value): (entry.key, .strings(value))
            }
        }
        builder.tensors = tensors.map { tensor in
            let values = tensor.values ?? random(tensor)
            return (tensor.name, .f32, tensor.shape, values.flatMap { withUnsafeBytes(of: $0.bitPattern, Array.init) })
        }
        return builder
    }

    private func random(_ tensor: Tensor) -> [Float] {
        numbers(tensor.name, count: tensor.shape.reduce(1, *), low: tensor.low ?? 0, high: tensor.high ?? 0)
    }

    /// The numbers that a tensor of this name has.
    package func numbers(_ name: String, count: Int, low: Float, high: Float) -> [Float] {
        Self.numbers(name, count: count, low: low, high: high, seed: seed)
    }

    package static func numbers(_ name: String, count: Int, low: Float, high: Float, seed: UInt64) -> [Float] {
        var state: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name.utf8 { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
        state ^= seed
        let span = high - low
        return (0..<count).map { _ in
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
            z ^= z >> 31
            return low + span * (Float(z >> 40) * 0x1p-24)
        }
    }
}
