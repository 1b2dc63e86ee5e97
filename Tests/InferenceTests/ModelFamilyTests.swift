import TestSupport
import Testing

@testable import Inference

/// How families and their variants are recognised.
struct ModelFamilyTests {
    /// The shape of a recorded model with other metadata; without its values, keys are removed.
    private func shape(_ recipe: String, _ changes: [String: GGUFBuilder.Value?]) throws -> ModelShape {
        var builder = try ModelRecipe.load(recipe).builder()
        for (key, value) in changes {
            builder.metadata.removeAll { $0.0 == key }
            if let value { builder.metadata.append((key, value)) }
        }
        let file = try TemporaryFile(builder.bytes())
        return try ModelFamily.shape(of: GGUFFile(path: file.path))
    }

    private func attention(_ shape: ModelShape) -> [ModelShape.Attention] {
        shape.layers.compactMap { layer in if case .attention(let attention)? = layer.mixer { attention } else { nil } }
    }

    @Test func familiesWithPairedRows() throws {
        let paired = ModelFamily.all.filter(\.value.pairsRows).keys.sorted()
        #expect(paired == ["granite", "granitehybrid", "granitemoe", "llama", "minicpm", "mistral3", "smollm3"])
        #expect(ModelFamily.pairsRows("llama") && !ModelFamily.pairsRows("qwen2") && !ModelFamily.pairsRows("unknown"))
        // They rotate what the rows pair.
        for name in paired {
            for recipe in ModelRecipe.names where recipe == name || recipe.hasPrefix(name + "-") {
                #expect(try shape(recipe, [:]).rotaries.allSatisfy { !$0.halves }, "\(recipe)")
            }
        }
        #expect((0..<12).map { ModelFamily.unpaired(row: $0, dimension: 6) } == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11])
    }

    /// Only the models with 27 billion weights divide scores by another width; a file that has the factor is believed.
    @Test(arguments: [("gemma2", 46), ("gemma3", 62)])
    func scoresOfGemma27B(family: String, layers: UInt32) throws {
        let blocks = "\(family).block_count", scale = "\(family).attention.scale"
        // 48 wide, 4 heads of 20 dimensions.
        func scales(_ changes: [String: GGUFBuilder.Value?]) throws -> Set<Double> {
            Set(attention(try shape(family, changes)).map(\.scale))
        }
        #expect(try scales([:]) == [1 / 20.0.squareRoot()])
        #expect(try scales([blocks: .uint32(layers - 1)]) == [1 / 20.0.squareRoot()])
        #expect(try scales([blocks: .uint32(layers)]) == [1 / 12.0.squareRoot()])
        #expect(try scales([blocks: .uint32(layers), scale: .float32(0.25)]) == [0.25])
        #expect(try scales([scale: .float32(0.25)]) == [0.25])
    }

    /// EXAONE 4 with a window has rotary embedding in the layers with windows only, whatever its number of layers.
    @Test func windowsOfEXAONE() throws {
        let blocks = "exaone4.block_count", window = "exaone4.attention.sliding_window"
        func layers(_ changes: [String: GGUFBuilder.Value?]) throws -> [ModelShape.Attention] {
            attention(try shape("exaone4", changes))
        }
        #expect(try layers([:]).allSatisfy { $0.window == nil && $0.rotary == 0 })
        let windowed = try layers([blocks: .uint32(8), window: .uint32(16)])
        #expect(windowed.map(\.window) == [16, 16, 16, nil, 16, 16, 16, nil])
        #expect(windowed.map(\.rotary) == [0, 0, 0, nil, 0, 0, 0, nil])
        // The large model without the key.
        #expect(try layers([blocks: .uint32(64)]).prefix(4).map(\.window) == [4096, 4096, 4096, nil])
        #expect(try layers([blocks: .uint32(64), window: .uint32(0)]).allSatisfy { $0.window == nil && $0.rotary == 0 })
    }

    /// Files without a gating function: experts with a bias of the selection are gated by sigmoids.
    @Test func gatingOfDeepSeek() throws {
        let key = "deepseek2.expert_gating_func"
        func gating(_ recipe: String, _ changes: [String: GGUFBuilder.Value?]) throws -> ModelShape.Gating? {
            try shape(recipe, changes).layers.last?.feedForward?.experts?.gating
        }
        #expect(try gating("deepseek2-absorbed", [key: nil]) == .sigmoid)
        #expect(try gating("deepseek2-absorbed", [key: .uint32(0)]) == .sigmoid)
        #expect(try gating("deepseek2-absorbed", [key: .uint32(1)]) == .softmax)
        #expect(try gating("deepseek2-lite", [:]) == .softmax)
        #expect(try gating("deepseek2-lite", [key: .uint32(2)]) == .sigmoid)
    }
}
