import TestSupport
import Testing

@testable import Inference

/// The table of the names of tensors.
struct TensorNameTests {
    @Test func namesAreUnique() {
        let names = TensorName.allCases.map(\.whole)
        #expect(Set(names).count == names.count)
        let modules = TensorName.allCases.flatMap { $0.entry.modules + $0.entry.parameters.keys }
        #expect(Set(modules).count == modules.count)
        // PEFT's adapters name their targets by modules.
        for name in TensorName.allCases where name.entry.isTarget { #expect(!name.entry.modules.isEmpty, "\(name)") }
    }

    /// Each tensor of each recorded model is in the table, under the name that it has in the file.
    @Test(arguments: ModelRecipe.names)
    func namesOfFiles(recipe: String) throws {
        for tensor in try ModelRecipe.load(recipe).tensors.map(\.name) {
            let name = try #require(TensorName(of: tensor), "\(tensor)")
            let words = tensor.split(separator: ".")
            let layer = words[0] == "blk" ? Int(words[1]) : nil
            var names = TensorName.Part.allCases.map { part in layer.map { LayerNames($0)(name, part) } ?? name.part(part) }
            if let layer, words.count == 5, let expert = Int(words[3]) { names.append(LayerNames(layer)(name, expert: expert)) }
            #expect(names.contains(tensor), "\(tensor)")
            #expect(name.entry.isOutside == (layer == nil))
        }
    }

    @Test func namesThatAreRead() {
        let read: [String: TensorName?] = [
            "blk.3.attn_q.weight": .query, "blk.3.attn_q.bias": .query, "blk.3.ssm_a": .stateA,
            "blk.0.shortconv.in_proj.weight": .convolutionInput, "blk.12.ffn_up.7.weight": .up,
            "blk.12.ffn_up_exps.weight": .expertUps,
            "token_embd.weight": .tokenEmbedding, "cls.output.weight": .classifierOutput, "output.weight": .output,
            // Parts for images have layers of their own.
            "v.blk.0.attn_v.weight": .value,
            "attn_q.weight": .none, "blk.3.output.weight": .none, "blk.3.attn_x.weight": .none, "blk.3": .none, "blk": .none,
            "": .none, ".": .none, "7.weight": .none,
        ]
        for (name, expected) in read { #expect(TensorName(of: name) == expected, "\(name)") }
        #expect(LayerNames(3)(.stateStep, .bias) == "blk.3.ssm_dt.bias" && LayerNames(3)(.stateD, .whole) == "blk.3.ssm_d")
        #expect(TensorName.ofModule["self_attn.q_proj"] == .query && TensorName.ofModule["lm_head"] == nil)
        #expect(TensorName.ofOutsideModule["lm_head"] == .output)
        #expect(TensorName.query.isRotated && TensorName.key.isRotated && !TensorName.queryKeyValue.isRotated)
    }
}
