import AllocationCounter
import TestSupport
import Testing

@testable import Inference

/// The engine allocates nothing for a token: buffers are kept, and those that grow with a response double their size.
@Suite struct AllocationTests {
    enum Sampling: CaseIterable {
        case greedy, random, topK
        var settings: SamplingSettings {
            switch self {
            case .greedy: .greedy
            case .random: SamplingSettings(temperature: 1, topP: 0.9, seed: 3)
            case .topK: SamplingSettings(temperature: 0.8, topK: 20, seed: 3)
            }
        }
    }

    @Test(.enabled(if: allocation_count() >= 0), arguments: Sampling.allCases, [1, 3])
    func tokens(_ sampling: Sampling, sequences: Int) throws {
        var tiny = TinyModel()
        tiny.context = 512
        let file = try tiny.file()
        let gguf = try GGUFFile(path: file.path)
        let tokenizer = try Tokenizer(file: gguf)
        let model = try DecoderModel(file: gguf, pool: WorkerPool(threads: 1))
        let engine = Engine(model: model, caches: CacheRegistry(released: ReleasedCaches(maximumBytes: 0)))
        for index in 0..<sequences {
            var request = GenerationRequest(
                tokens: [TokenID(index + 5), 40, 41], sampling: sampling.settings, maximumTokens: 240)
            // The text of a byte that is not a character is allocated.
            request.bannedTokens = (0..<TokenID(model.shape.vocabularySize)).filter {
                tokenizer.text(of: $0).first ?? 0xFF >= 0x80
            }
            request.detectsLoops = false
            // Proposals let one sequence run ahead, so that its buffers double more often than those of the others.
            request.proposesTokens = sequences == 1
            let decoding = FreeDecoding(request, tokenizer: tokenizer, kernels: model.pool.kernels, contextSize: 500) { _ in true
            }
            let cache = try KVCache(shape: model.shape, capacity: 500)
            try engine.submit(decoding, in: cache, priority: .interactive, signals: RequestSignals()) { _ in }
        }
        while engine.processedTokens < 40 * sequences { #expect(engine.step()) }
        let (before, tokens) = (allocation_count(), engine.processedTokens)
        while engine.processedTokens < tokens + 100 * sequences, engine.step() {}
        let count = Int(allocation_count() - before)
        #expect(count <= 8 * sequences, "\(count) allocations for \(engine.processedTokens - tokens) tokens")
    }
}
