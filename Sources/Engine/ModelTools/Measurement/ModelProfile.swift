internal import CKernels
internal import Foundation
internal import Inference

/// Where the time of a model goes: for each layer and operation, for a prompt and for generated tokens.
package struct ModelProfile: Sendable, Codable {
    /// An operation of a layer.
    package struct Operation: Sendable, Codable {
        package var name: String
        /// Milliseconds of the whole prompt, or of one generated token.
        package var milliseconds: Double
        /// The bytes of weights that it reads, and the multiplications and additions of its products.
        package var bytes: Int
        package var operations: Int
    }

    package struct Layer: Sendable, Codable {
        /// “embeddings”, a number, or “head”.
        package var name: String
        package var operations: [Operation]
        package var milliseconds: Double { operations.reduce(0) { $0 + $1.milliseconds } }
    }

    /// A phase of a request.
    package struct Phase: Sendable, Codable {
        package var tokens: Int
        package var layers: [Layer]
        package var milliseconds: Double { layers.reduce(0) { $0 + $1.milliseconds } }
        package var bytes: Int { layers.reduce(0) { $0 + $1.operations.reduce(0) { $0 + $1.bytes } } }
        package var operations: Int { layers.reduce(0) { $0 + $1.operations.reduce(0) { $0 + $1.operations } } }
    }

    package struct Tensor: Sendable, Codable {
        package var name: String
        package var shape: [Int]
        package var type: String
        package var bytes: Int
    }

    package var file: String
    package var architecture: String
    package var name: String
    package var kernels: String
    package var threads: Int
    package var loadSeconds: Double
    package var weightBytes: Int
    /// The bytes of the KV cache for each token.
    package var cacheBytesPerToken: Int
    package var prompt: Phase
    /// One token.
    package var generation: Phase
    /// Bytes per second that the threads read from memory; nil if it could not be measured.
    package var memoryRate: Double?
    package var tensors: [Tensor]

    package static let promptTokens = 256
    private static let generatedTokens = 16

    package init(path: String, isCancelled: () -> Bool) throws {
        let start = ContinuousClock.now
        let measurement = try TextMeasurement(path: path, isKept: true)
        loadSeconds = (ContinuousClock.now - start).seconds
        let (model, cache) = (measurement.model, measurement.cache)
        file = path
        architecture = model.shape.architecture
        name = model.shape.name
        kernels = InstructionSet.available.last { $0.isa == model.pool.kernels.pointee.isa }?.rawValue ?? "scalar"
        threads = model.pool.threads
        weightBytes = model.packedBytes
        cacheBytesPerToken = cache.bytesPerPosition
        let tokens = [TokenID](repeating: 0, count: Self.promptTokens)
        func run(_ tokens: ArraySlice<TokenID>) throws { try model.forward(tokens, cache: cache, isCancelled: isCancelled) }
        // The first run touches all pages.
        try run(tokens[...])
        cache.rewind(to: 0, keepsPages: true)
        let first = try model.calls { try run(tokens[...]) }
        prompt = Phase(tokens: Self.promptTokens, layers: Self.layers(first, runs: 1))
        let second = try model.calls { for _ in 0..<Self.generatedTokens { try run([0]) } }
        generation = Phase(tokens: 1, layers: Self.layers(second, runs: Self.generatedTokens))
        memoryRate = MemoryRate.measure(bytes: min(max(64 << 20, model.packedBytes), 2 << 30), pool: model.pool)
        tensors = measurement.file.tensorNames.compactMap { measurement.file.tensors[$0] }.map {
            Tensor(name: $0.name, shape: $0.shape, type: $0.type.name, bytes: $0.range.count)
        }
    }

    /// Milliseconds of a generated token on a machine that reads so many bytes per second, if it reaches the same share of that as this one.
    package func generationMilliseconds(memoryRate other: Double) -> Double? {
        memoryRate.map { generation.milliseconds * $0 / other }
    }

    /// The calls of each layer. Which layer a call belongs to is known for products; norms and quantisation come before the next product,
    /// everything else after the last.
    private static func layers(_ calls: [OperationCall], runs: Int) -> [Layer] {
        func layer(_ name: String) -> Int? {
            let parts = name.split(separator: ".")
            return parts.count > 1 && parts[0] == "blk" ? Int(parts[1]) : nil
        }
        let own = calls.map { call in call.factors.lazy.compactMap(\.tensor).compactMap(layer).first }
        let count = (own.compactMap { $0 }.max() ?? -1) + 1
        // Embeddings first, then the layers, then the head.
        var places: [Int] = []
        var current = 0
        for (index, call) in calls.enumerated() {
            if let layer = own[index] {
                current = layer + 1
            } else if call.name == "embeddings" {
                current = 0
            } else if call.name == "products", !call.factors.isEmpty, current >= count {
                current = count + 1  // the output head
            } else if ["norms", "quantization"].contains(call.name) {
                // Of the same token: after the last layer, only the head has a norm.
                let next = (index..<calls.count).lazy.prefix { calls[$0].name != "embeddings" }.compactMap { own[$0] }.first
                places.append(next.map { $0 + 1 } ?? (current >= count ? count + 1 : current))
                continue
            }
            places.append(current)
        }
        var layers: [Layer] = (0..<count + 2).map {
            Layer(name: $0 == 0 ? "embeddings" : $0 == count + 1 ? "head" : "\($0 - 1)", operations: [])
        }
        for (call, place) in zip(calls, places) {
            let names = call.factors.compactMap(\.tensor).map {
                $0.split(separator: ".").dropFirst(2).dropLast().joined(separator: ".")
            }
            let name =
                call.name != "products" ? call.name : names.isEmpty ? "product of the head" : names.joined(separator: " + ")
            let place = min(place, count + 1)
            let index = layers[place].operations.firstIndex { $0.name == name } ?? layers[place].operations.count
            if index == layers[place].operations.count {
                layers[place].operations.append(Operation(name: name, milliseconds: 0, bytes: 0, operations: 0))
            }
            layers[place].operations[index].milliseconds += 1e3 * call.seconds / Double(runs)
            layers[place].operations[index].bytes += call.factors.reduce(0) { $0 + $1.bytes } / runs
            layers[place].operations[index].operations += 2 * call.rows * call.factors.reduce(0) { $0 + $1.weights } / runs
        }
        return layers.filter { !$0.operations.isEmpty }
    }
}
