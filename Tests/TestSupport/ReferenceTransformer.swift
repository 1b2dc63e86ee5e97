internal import Foundation
package import Inference

/// A direct implementation of the formulas of the llama architecture, in double precision and without a KV cache, as a
/// reference for the engine. It does not use the kernels of the engine.
package struct ReferenceTransformer {
    package let model: TinyModel
    /// Values of a tensor, row-major.
    let values: [String: [Double]]

    package init(_ model: TinyModel, values: [String: [Float]]) {
        self.model = model
        self.values = values.mapValues { $0.map(Double.init) }
    }

    private func tensor(_ name: String) -> [Double] { values[name] ?? [] }

    private func product(_ name: String, _ x: [Double]) -> [Double] {
        // Plain loops over pointers: this code runs without optimisation and takes most of the time of a test.
        let w = tensor(name)
        var result = [Double](repeating: 0, count: w.count / x.count)
        w.withUnsafeBufferPointer { w in
            x.withUnsafeBufferPointer { x in
                var at = 0
                for row in result.indices {
                    var sum = 0.0
                    var i = 0
                    while i < x.count {
                        sum += w[at] * x[i]
                        at += 1
                        i += 1
                    }
                    result[row] = sum
                }
            }
        }
        return result
    }

    private func norm(_ name: String, _ x: [Double]) -> [Double] {
        let w = tensor(name)
        let scale = 1 / (x.reduce(0) { $0 + $1 * $1 } / Double(x.count) + 1e-5).squareRoot()
        return x.indices.map { x[$0] * scale * w[$0] }
    }

    private func rotate(_ x: [Double], position: Int, dimension: Int) -> [Double] {
        var x = x
        for start in stride(from: 0, to: x.count, by: dimension) {
            for pair in 0..<dimension / 2 {
                let angle = Double(position) * pow(10_000, -2 * Double(pair) / Double(dimension))
                let (a, b) = (x[start + 2 * pair], x[start + 2 * pair + 1])
                x[start + 2 * pair] = a * cos(angle) - b * sin(angle)
                x[start + 2 * pair + 1] = a * sin(angle) + b * cos(angle)
            }
        }
        return x
    }

    /// Logits after the last token.
    package func logits(_ tokens: [TokenID]) -> [Double] {
        let width = model.width
        let dimension = width / model.heads
        let embeddings = tensor("token_embd.weight")
        var states = tokens.map { Array(embeddings[Int($0) * width..<(Int($0) + 1) * width]) }
        for layer in 0..<model.layers {
            func name(_ part: String) -> String { "blk.\(layer).\(part).weight" }
            let normed = states.map { norm(name("attn_norm"), $0) }
            let queries = normed.enumerated().map { rotate(product(name("attn_q"), $1), position: $0, dimension: dimension) }
            let keys = normed.enumerated().map { rotate(product(name("attn_k"), $1), position: $0, dimension: dimension) }
            let values = normed.map { product(name("attn_v"), $0) }
            for position in states.indices {
                var attended = [Double](repeating: 0, count: width)
                for head in 0..<model.heads {
                    let kv = head / (model.heads / model.kvHeads) * dimension
                    let first = 0
                    let scores = (first...position).map { other in
                        (0..<dimension).reduce(0) { $0 + queries[position][head * dimension + $1] * keys[other][kv + $1] }
                            / Double(dimension).squareRoot()
                    }
                    let maximum = scores.max() ?? 0
                    let weights = scores.map { exp($0 - maximum) }
                    let total = weights.reduce(0, +)
                    for (index, other) in (first...position).enumerated() {
                        for d in 0..<dimension {
                            attended[head * dimension + d] += weights[index] / total * values[other][kv + d]
                        }
                    }
                }
                let output = product(name("attn_output"), attended)
                for i in 0..<width { states[position][i] += output[i] }
                let input = norm(name("ffn_norm"), states[position])
                let gate = product(name("ffn_gate"), input)
                let up = product(name("ffn_up"), input)
                let down = product(name("ffn_down"), gate.indices.map { gate[$0] / (1 + exp(-gate[$0])) * up[$0] })
                for i in 0..<width { states[position][i] += down[i] }
            }
        }
        let last = norm("output_norm.weight", states[states.count - 1])
        return product(model.hasOutputHead ? "output.weight" : "token_embd.weight", last)
    }
}
