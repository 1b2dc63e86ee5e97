import Foundation
import Inference
import TestSupport
import Testing

/// Low-rank adapters: the logits equal those of a model with merged weights.
struct AdapterTests {
    private static let targets = [
        ("blk.0.attn_q.weight", 64, 64), ("blk.1.ffn_down.weight", 96, 64), ("output.weight", 64, TinyModel.tokens.count),
    ]
    private static let rank = 4
    private static let alpha: Float = 8

    /// Random matrices for a target, row by row: a `[rank][columns]`, b `[rows][rank]`.
    private static func halves(_ columns: Int, _ rows: Int, _ random: inout SeededGenerator) -> (a: [Float], b: [Float]) {
        (
            (0..<rank * columns).map { _ in random.uniform(-0.2...0.2) },
            (0..<rows * rank).map { _ in random.uniform(-0.2...0.2) }
        )
    }

    private static func bytes(_ values: [Float]) -> [UInt8] {
        values.flatMap { withUnsafeBytes(of: $0.bitPattern.littleEndian, Array.init) }
    }

    private static func adapter() -> GGUFBuilder {
        var random = SeededGenerator(9)
        var builder = GGUFBuilder()
        builder.metadata = [
            ("general.type", .string("adapter")), ("adapter.type", .string("lora")),
            ("general.architecture", .string("llama")), ("general.name", .string("shifted")),
            ("adapter.lora.alpha", .float32(alpha)),
        ]
        for (name, columns, rows) in targets {
            let (a, b) = halves(columns, rows, &random)
            builder.tensors.append((name + ".lora_a", .f32, [columns, rank], bytes(a)))
            builder.tensors.append((name + ".lora_b", .f32, [rank, rows], bytes(b)))
        }
        return builder
    }

    /// The same weights with the low-rank product added by simple loops.
    private static func merged(_ base: GGUFBuilder) -> GGUFBuilder {
        var random = SeededGenerator(9)
        var builder = base
        for (name, columns, rows) in targets {
            let (a, b) = halves(columns, rows, &random)
            guard let index = builder.tensors.firstIndex(where: { $0.name == name }) else { continue }
            var weights = builder.tensors[index].data.withUnsafeBytes { data in
                (0..<rows * columns).map { Float(bitPattern: data.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self)) }
            }
            for row in 0..<rows {
                for column in 0..<columns {
                    var sum: Float = 0
                    for r in 0..<rank { sum += b[row * rank + r] * a[r * columns + column] }
                    weights[row * columns + column] += alpha / Float(rank) * sum
                }
            }
            builder.tensors[index].data = bytes(weights)
        }
        return builder
    }

    private func logits(_ file: TemporaryFile, adapter: AdapterFile? = nil) throws -> [Float] {
        let model = try DecoderModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1), adapter: adapter)
        let cache = try KVCache(shape: model.shape, capacity: 64)
        let tokens: [TokenID] = [72, 101, 108, 108, 111, 32, 119]
        try model.forward(tokens[...], cache: cache)
        return Array(model.logits)
    }

    private func distance(_ a: [Float], _ b: [Float]) -> Float {
        let norm = b.reduce(0) { $0 + $1 * $1 }
        return (zip(a, b).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) } / norm).squareRoot()
    }

    @Test("[A10] an adapter gives the logits of the merged weights") func merging() throws {
        let base = TinyModel().builder()
        let file = try TemporaryFile(Self.adapter().bytes())
        let adapter = try AdapterFile(path: file.path)
        #expect(adapter.name == "shifted")
        let adapted = try logits(TemporaryFile(base.bytes()), adapter: adapter)
        let expected = try logits(TemporaryFile(Self.merged(base).bytes()))
        let plain = try logits(TemporaryFile(base.bytes()))
        #expect(distance(adapted, expected) < 1e-5)
        #expect(distance(plain, expected) > 0.05)
    }

    @Test("[A10] an adapter changes the logits of quantised weights", arguments: [TensorType.q8_0, .q4_1])
    func quantised(type: TensorType) throws {
        var tiny = TinyModel()
        tiny.type = type
        let file = try TemporaryFile(Self.adapter().bytes())
        let adapted = try logits(TemporaryFile(tiny.builder().bytes()), adapter: AdapterFile(path: file.path))
        let plain = try logits(TemporaryFile(tiny.builder().bytes()))
        #expect(adapted.allSatisfy { $0.isFinite })
        #expect(distance(adapted, plain) > 0.05)
    }

    @Test("[A10] an adapter for another model, or a damaged one, is rejected with a ModelError") func refused() throws {
        let model = try TemporaryFile(TinyModel().builder().bytes())
        var other = Self.adapter()
        other.tensors[0].name = "blk.7.attn_q.weight.lora_a"
        other.tensors[1].name = "blk.7.attn_q.weight.lora_b"
        var wrongShape = Self.adapter()
        wrongShape.tensors[0].shape = [32, Self.rank * 2]
        for builder in [other, wrongShape] {
            let file = try TemporaryFile(builder.bytes())
            #expect(throws: ModelError.self) { try logits(model, adapter: AdapterFile(path: file.path)) }
        }
        var half = Self.adapter()
        half.tensors.removeLast()
        #expect(throws: ModelError.self) { try AdapterFile(path: TemporaryFile(half.bytes()).path) }
        #expect(throws: ModelError.self) { try AdapterFile(path: model.path) }
        var foreign = Self.adapter()
        foreign.metadata[2] = ("general.architecture", .string("gemma"))
        let file = try TemporaryFile(foreign.bytes())
        #expect(throws: ModelError.self) { try logits(model, adapter: AdapterFile(path: file.path)) }
    }
}
