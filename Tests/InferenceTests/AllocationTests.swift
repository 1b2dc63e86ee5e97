import AllocationCounter
import Grammar
import JSON
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

    private func turn(
        _ request: GenerationRequest, _ tokenizer: Tokenizer, _ model: NeuralModel, contextSize: Int
    ) throws -> TurnDriver {
        try TurnDriver(
            request, plan: TurnPlan(request, ChatTurn(), TurnVocabulary(tokenizer)), tokenizer: tokenizer,
            contextSize: contextSize, logitCount: model.shape.vocabularySize
        ) { _ in }
    }

    @Test(.enabled(if: allocation_count() >= 0), arguments: Sampling.allCases, [1, 3])
    func tokens(_ sampling: Sampling, sequences: Int) throws {
        var tiny = TinyModel()
        tiny.context = 512
        let file = try tiny.file()
        let gguf = try GGUFFile(path: file.path)
        let tokenizer = try Tokenizer(file: gguf)
        let model = try NeuralModel(file: gguf, pool: WorkerPool(threads: 1))
        let engine = Engine(model: model, memory: PoolMemory())
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
            let decoding = try turn(request, tokenizer, model, contextSize: 500)
            let cache = try KVCache(shape: model.shape, capacity: 500)
            try engine.submit(decoding, in: cache, priority: .interactive, signals: RequestSignals()) { _ in }
        }
        while engine.processedTokens < 40 * sequences { #expect(engine.step()) }
        let (before, tokens) = (allocation_count(), engine.processedTokens)
        while engine.processedTokens < tokens + 100 * sequences, engine.step() {}
        let count = Int(allocation_count() - before)
        #expect(count <= 8 * sequences, "\(count) allocations for \(engine.processedTokens - tokens) tokens")
    }

    /// The second time, the grammar knows all states of the response, as it does in the steady state. The budget is large:
    /// where it hardly suffices for the shortest ending, that ending is computed for each token, with some allocations.
    @Test(.enabled(if: allocation_count() >= 0), arguments: Sampling.allCases)
    func constrainedTokens(_ sampling: Sampling) throws {
        var tiny = TinyModel()
        tiny.context = 3_000
        let file = try tiny.file()
        let gguf = try GGUFFile(path: file.path)
        let tokenizer = try Tokenizer(file: gguf)
        let model = try NeuralModel(file: gguf, pool: WorkerPool(threads: 1))
        let engine = Engine(model: model, memory: PoolMemory())
        let schema = try JSONParser.parse(
            """
            {"type": "object", "required": ["letters", "few", "numbers"], "properties": {
              "letters": {"type": "string", "minLength": 150, "maxLength": 160},
              "few": {"type": "string", "pattern": "^[ab]{100,110}$"},
              "numbers": {"type": "array", "items": {"type": "integer", "minimum": 100, "maximum": 999}, "minItems": 30}}}
            """)
        let grammar = try Grammar(.schema(schema), vocabulary: TokenVocabulary(tokenizer))
        var request = GenerationRequest(tokens: [5, 40, 41], sampling: sampling.settings, maximumTokens: 2_500, grammar: grammar)
        request.proposesTokens = false
        // A text that is ended for its repetitions is built again, once.
        request.detectsLoops = false
        /// The allocations of this thread, from the 20th token on. Masks are prepared on another one.
        func generate() throws -> (count: Int, tokens: Int) {
            let decoding = try turn(request, tokenizer, model, contextSize: 3_000)
            try engine.submit(
                decoding, in: KVCache(shape: model.shape, capacity: 3_000), priority: .interactive, signals: RequestSignals()
            ) { _ in }
            let tokens = engine.processedTokens + 20
            while engine.processedTokens < tokens, engine.step() {}
            let before = allocation_count()
            while engine.step() {}
            return (Int(allocation_count() - before), engine.processedTokens - tokens)
        }
        let first = try generate()
        let second = try generate()
        #expect(first.count > 20 * first.tokens && second.tokens == first.tokens)
        #expect(second.count <= 40, "\(second.count) allocations for \(second.tokens) tokens")
    }
}
