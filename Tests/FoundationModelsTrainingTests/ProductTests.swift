import CKernels
import Foundation
import TestSupport
import Testing

@testable import FoundationModelsTraining
@testable import Inference

/// Products, attention and rows of training against loops in binary64, with the functions of every instruction set.
struct ProductTests {
    private static let sets: [ck_isa] = [CK_SCALAR, CK_AVX2, CK_AVX512].filter { ck_training_for($0) != nil }

    private func random(_ count: Int, _ seed: UInt64) -> [Float] {
        var numbers = SeededGenerator(seed)
        // Kernels may read 32 numbers more.
        return (0..<count).map { _ in numbers.uniform(-1...1) } + [Float](repeating: 0, count: 64)
    }

    @Test(
        "[A10] products with integers are those with the decoded matrix, in both directions",
        arguments: [TensorType.q4_K, .q6_K, .q8_0])
    func integers(type: TensorType) throws {
        let (rows, columns, count) = (96, 512, 300)
        var numbers = SeededGenerator(5)
        let plain = (0..<rows * columns).map { _ in numbers.uniform(-1...1) }
        let weights = type.encode(plain)
        let decoded = type.decode(weights, count: rows * columns)
        let pool = try WorkerPool(threads: 2)
        try weights.withUnsafeBufferPointer { weights in
            let matrix = FrozenMatrix(
                name: "m", rows: rows, columns: columns, type: ck_type(rawValue: type.rawValue),
                rowBytes: columns / type.blockElements * type.blockBytes, data: try #require(weights.baseAddress))
            let packed = try #require(try IntegerMatrix(matrix, pool: pool))
            let quantized = try QuantizedRows(elements: count * columns, pool: pool)
            for (product, isTransposed) in [(packed.forward, false), (packed.backward, true)] {
                let (n, k) = isTransposed ? (columns, rows) : (rows, columns)
                let x = random(count * k, 9)
                var activations = quantized.quantize(x, stride: k, rows: count, columns: k, pool: pool)
                var y = [Float](repeating: 0, count: count * n)
                y.withUnsafeMutableBufferPointer {
                    var product = ck_product(matrix: product, activations: nil, y: $0.baseAddress, ldy: Int32(n), add: false)
                    ck_matmul(pool.handle, pool.kernels, &activations, &product, 1)
                }
                var (error, size) = (0.0, 0.0)
                for row in stride(from: 0, to: count, by: 37) {
                    for output in 0..<n {
                        let expected = (0..<k).reduce(0.0) {
                            let weight = isTransposed ? decoded[$1 * columns + output] : decoded[output * columns + $1]
                            return $0 + Double(x[row * k + $1]) * Double(weight)
                        }
                        error += pow(Double(y[row * n + output]) - expected, 2)
                        size += expected * expected
                    }
                }
                #expect((error / size).squareRoot() < 0.02, "\(type) \(isTransposed): \((error / size).squareRoot())")
            }
        }
    }

    private func multiply(
        _ isa: ck_isa, weights: [UInt8], type: TensorType, rows: Int, columns: Int, transposed: Bool, x: [Float], count: Int,
        xTransposed: Bool, rounds: Bool, adds: Bool
    ) throws -> [Float] {
        let pool = try WorkerPool(threads: 2)
        let kernels = try #require(ck_training_for(isa))
        let (n, k) = transposed ? (columns, rows) : (rows, columns)
        let panels = UnsafeMutableRawPointer.allocate(
            byteCount: ck_training_panel_bytes(Int32(count), Int32(k), rounds), alignment: 64)
        defer { panels.deallocate() }
        var operand = ck_training_operand(panels: panels, count: Int32(count), k: Int32(k), rounds: rounds)
        ck_training_pack(pool.handle, x, Int32(xTransposed ? count : k), xTransposed, &operand)
        var y = [Float](repeating: 1, count: count * n)
        weights.withUnsafeBufferPointer { weights in
            y.withUnsafeMutableBufferPointer { y in
                var product = ck_training_product(
                    weights: weights.baseAddress, row_bytes: columns / type.blockElements * type.blockBytes,
                    type: ck_type(rawValue: type.rawValue), rows: Int32(rows), columns: Int32(columns), transposed: transposed,
                    x: operand, y: y.baseAddress, ldy: Int32(n), scale: 0.5, add: adds)
                ck_training_multiply(pool.handle, kernels, &product, 1)
            }
        }
        return y
    }

    @Test("[A10] products with quantised matrices, in both directions", arguments: sets.map(\.rawValue))
    func products(set: UInt32) throws {
        let isa = ck_isa(rawValue: set)
        var numbers = SeededGenerator(3)
        for (type, rows, columns, count) in [
            (TensorType.f32, 37, 70, 29), (.f32, 16, 600, 5), (.q4_1, 50, 96, 13), (.q4_K, 33, 512, 25), (.q6_K, 300, 256, 30),
            (.f16, 9, 33, 1),
        ] {
            let weights = TinyModel.randomBlocks(type, rows * columns, &numbers) + [UInt8](repeating: 0, count: 256)
            let decoded = type.decode(weights, count: rows * columns)
            for transposed in [false, true] {
                let (n, k) = transposed ? (columns, rows) : (rows, columns)
                let x = random(count * k, 7)
                for rounds in [false, true] where !rounds || ck_training_for(isa).pointee.rounded_tile != nil {
                    for xTransposed in [false, true] {
                        for adds in [false, true] {
                            let y = try multiply(
                                isa, weights: weights, type: type, rows: rows, columns: columns, transposed: transposed, x: x,
                                count: count, xTransposed: xTransposed, rounds: rounds, adds: adds)
                            var (error, size) = (0.0, 0.0)
                            for t in 0..<count {
                                for output in 0..<n {
                                    var sum = 0.0
                                    for i in 0..<k {
                                        let weight = transposed ? decoded[i * columns + output] : decoded[output * columns + i]
                                        sum += Double(weight) * Double(xTransposed ? x[i * count + t] : x[t * k + i])
                                    }
                                    let expected = 0.5 * sum + (adds ? 1 : 0)
                                    error += pow(Double(y[t * n + output]) - expected, 2)
                                    size += expected * expected
                                }
                            }
                            #expect(
                                (error / size).squareRoot() < (rounds ? 5e-3 : 2e-6),
                                "\(type) \(rows)×\(columns) \(transposed) \(rounds)")
                        }
                    }
                }
            }
        }
    }

    /// Directional derivatives of every function of rows, in binary64 from the function itself.
    @Test("[A10] gradients of norms, activations and losses", arguments: sets.map(\.rawValue)) func rows(set: UInt32) throws {
        let kernels = try #require(ck_training_for(ck_isa(rawValue: set))).pointee
        let n = 37
        let (x, w, dy) = (random(n, 1), random(n, 2), random(n, 3))
        func norm(_ x: [Double]) -> [Double] {
            let rho = 1 / (x.reduce(0) { $0 + $1 * $1 } / Double(n) + 1e-5).squareRoot()
            return (0..<n).map { x[$0] * rho * Double(w[$0]) }
        }
        func numeric(_ f: ([Double]) -> Double, _ x: [Float], _ i: Int) -> Double {
            var (up, down) = (x.prefix(n).map(Double.init), x.prefix(n).map(Double.init))
            up[i] += 1e-5
            down[i] -= 1e-5
            return (f(up) - f(down)) / 2e-5
        }
        var dx = [Float](repeating: 0, count: n)
        kernels.norm_backward(x, w, dy, 1e-5, Int32(n), &dx)
        for i in 0..<n {
            let expected = numeric({ x in zip(norm(x), dy).reduce(0) { $0 + $1.0 * Double($1.1) } }, x, i)
            #expect(abs(Double(dx[i]) - expected) < 1e-4)
        }
        func gelu(_ v: Double) -> Double { 0.5 * v * (1 + tanh((2 / Double.pi).squareRoot() * (v + 0.044715 * v * v * v))) }
        let functions: [(ck_activation, (Double) -> Double)] = [
            (CK_SILU, { $0 / (1 + exp(-$0)) }), (CK_GELU, gelu), (CK_RELU_SQUARED, { $0 > 0 ? $0 * $0 : 0 }),
        ]
        for (kind, function) in functions {
            var (gate, up) = (x.map { 3 * $0 }, w)
            var h = [Float](repeating: 0, count: n)
            kernels.activate(kind, gate, up, Int32(n), &h)
            for i in 0..<n { #expect(abs(Double(h[i]) - function(Double(gate[i])) * Double(up[i])) < 1e-5) }
            let (gateBefore, upBefore) = (gate, up)
            kernels.activate_backward(kind, &gate, &up, dy, Int32(n))
            for i in 0..<n {
                let value = Double(gateBefore[i])
                let slope = (function(value + 1e-5) - function(value - 1e-5)) / 2e-5
                #expect(abs(Double(gate[i]) - Double(dy[i]) * Double(upBefore[i]) * slope) < 2e-4)
                #expect(abs(Double(up[i]) - Double(dy[i]) * function(value)) < 1e-5)
            }
        }
    }

    @Test("[A10] cross-entropy of capped logits and its gradient") func crossEntropy() throws {
        let pool = try WorkerPool(threads: 2)
        let (rows, vocabulary) = (3, 131)
        for cap in [Float(0), 4] {
            let logits = random(rows * vocabulary, 5).map { 6 * $0 }
            let targets: [Int32] = [0, 77, 130]
            func loss(_ z: [Double], _ target: Int) -> Double {
                let z = cap > 0 ? z.map { Double(cap) * tanh($0 / Double(cap)) } : z
                let most = z.max() ?? 0
                return most + log(z.reduce(0) { $0 + exp($1 - most) }) - z[target]
            }
            var gradient = logits
            var losses = [Float](repeating: 0, count: rows)
            var right = [Bool](repeating: false, count: rows)
            ck_training_cross_entropy(
                pool.handle, ck_training_best(), &gradient, Int32(rows), Int32(vocabulary), targets, cap, 0.25, &losses, &right)
            for row in 0..<rows {
                let z = logits[row * vocabulary..<(row + 1) * vocabulary].map(Double.init)
                #expect(abs(Double(losses[row]) - loss(z, Int(targets[row]))) < 1e-4)
                for i in stride(from: 0, to: vocabulary, by: 13) {
                    var (up, down) = (z, z)
                    up[i] += 1e-4
                    down[i] -= 1e-4
                    let expected = 0.25 * (loss(up, Int(targets[row])) - loss(down, Int(targets[row]))) / 2e-4
                    #expect(abs(Double(gradient[row * vocabulary + i]) - expected) < 1e-4, "cap \(cap)")
                }
            }
        }
    }
}
