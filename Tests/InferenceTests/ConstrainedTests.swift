import Grammar
import JSON
import Synchronization
import TestSupport
import Testing

@testable import Inference
@testable import InstalledModels

/// Constrained generation with a real model.
@Suite struct ConstrainedTests {
    private static let schemas = [
        """
        {"type":"object","properties":{"name":{"type":"string","maxLength":40},"age":{"type":"integer","minimum":0,"maximum":120},\
        "role":{"enum":["admin","editor","viewer"]},"email":{"type":"string","format":"email"}},"required":["name","age","role"],\
        "additionalProperties":false}
        """,
        """
        {"type":"array","items":{"type":"object","properties":{"city":{"type":"string"},"population":{"type":"integer"},\
        "capital":{"type":"boolean"}},"required":["city","population","capital"],"additionalProperties":false},"minItems":2,"maxItems":3}
        """,
        """
        {"type":"object","properties":{"kind":{"const":"event"},"when":{"type":"string","format":"date"},"place":{"anyOf":\
        [{"type":"null"},{"type":"string"}]}},"required":["kind","when","place"],"additionalProperties":false}
        """,
    ]

    private func generate(
        _ model: LoadedModel, _ schema: String, prompt: String = "Invent one.", limit: Int? = 200, fast: Bool = true,
        pretty: Bool = false, sampling: SamplingSettings = .greedy
    ) async throws -> (text: String, result: GenerationResult) {
        let grammar = try Grammar(
            .schema(try JSONParser.parse(schema)), vocabulary: await model.grammarVocabulary,
            options: GrammarOptions(isPretty: pretty, allowsZeroFraction: false))
        let tokens = try model.tokens(for: ChatPrompt([ChatMessage(role: .user, content: prompt + "\n" + schema)]))
        var request = GenerationRequest(tokens: tokens, sampling: sampling, maximumTokens: limit, grammar: grammar)
        request.batchesForcedTokens = fast
        let sequence = try model.makeSequence(contextSize: 1_024)
        let text = Mutex("")
        let result = try await model.generate(request, in: sequence) { piece in
            text.withLock { $0 += piece.text }
            return true
        }
        return (text.withLock { $0 }, result)
    }

    /// The responses are the same whether or not forced tokens are batched, and many tokens are forced.
    @Test func fastForwardChangesNothing() async throws {
        let model = try await LoadedModel.load(path: ModelStore.defaultModelPath, defaults: ModelCatalogue.defaults)
        var forced = 0
        var total = 0
        for schema in Self.schemas {
            for sampling in [SamplingSettings.greedy, SamplingSettings(temperature: 0.7, topP: 0.9, seed: 3)] {
                let fast = try await generate(model, schema, sampling: sampling)
                let slow = try await generate(model, schema, fast: false, sampling: sampling)
                #expect(fast.text == slow.text)
                #expect(fast.result.usage.generatedTokens == slow.result.usage.generatedTokens)
                let document = try JSONParser.parse(fast.text)
                #expect(try SchemaChecker(JSONParser.parse(schema)).problem(document) == nil)
                forced += fast.result.usage.forcedTokens
                total += fast.result.usage.generatedTokens
            }
        }
        #expect(Double(forced) >= 0.18 * Double(total), "\(forced) of \(total) tokens were forced")
    }

    @Test func everyBudgetGivesAValidDocument() async throws {
        let model = try await LoadedModel.load(path: ModelStore.defaultModelPath, defaults: ModelCatalogue.defaults)
        let schema = Self.schemas[0]
        let checker = SchemaChecker(try JSONParser.parse(schema))
        var needed = 0
        do {
            _ = try await generate(model, schema, limit: 3)
            Issue.record("three tokens are not enough")
        } catch GenerationFailure.budgetTooSmall(let least, let available) {
            #expect(available == 3)
            needed = least
        }
        for limit in [needed, needed + 1, needed + 3, needed + 7, needed + 15] {
            for pretty in [false, true] {
                guard let (text, result) = try? await generate(model, schema, limit: limit, pretty: pretty) else {
                    #expect(pretty, "line breaks need more tokens")
                    continue
                }
                // A document that had to be shorter than the model wanted says so.
                #expect(result.usage.generatedTokens <= limit)
                #expect(result.stopReason == .endOfTurn || result.stopReason == .maximumTokens)
                #expect(try checker.problem(JSONParser.parse(text)) == nil, "\(limit): \(text)")
            }
        }
    }

    /// Logits that are computed for a few candidates only equal those of the whole output head.
    @Test func fewLogitsAreTheSame() async throws {
        let file = try GGUFFile(path: ModelStore.defaultModelPath)
        let model = try NeuralModel(file: file, pool: WorkerPool(threads: 1))
        let cache = try KVCache(shape: model.shape, capacity: 64)
        try model.forward([1, 100, 200], cache: cache)
        let all = Array(model.logits)
        cache.rewind(to: 2)
        for index in model.logits.indices { model.logits[index] = 0 }
        let candidates: [TokenID] = [3, 17, 18, 999, 49_151]
        try model.forward([200], cache: cache, candidates: candidates)
        for token in candidates { #expect(abs(model.logits[Int(token)] - all[Int(token)]) < 1e-3) }
        #expect(model.logits[25_000] == 0, "the logits of other tokens are not computed")
    }

    /// A request that is cancelled while a token is processed ends with this token.
    @Test func cancellationEndsWithinOneToken() async throws {
        let model = try await LoadedModel.load(path: ModelStore.defaultModelPath, defaults: ModelCatalogue.defaults)
        let grammar = try Grammar(
            .schema(try JSONParser.parse("{\"type\":\"string\",\"minLength\":400}")), vocabulary: await model.grammarVocabulary)
        let tokens = try model.tokens(for: ChatPrompt([ChatMessage(role: .user, content: "Write.")]))
        let request = GenerationRequest(tokens: tokens, sampling: .greedy, grammar: grammar)
        let sequence = try model.makeSequence(contextSize: 1_024)
        let pieces = Mutex(0)
        let cancelled = Mutex<Task<GenerationResult, any Error>?>(nil)
        let task = Task {
            await eventually { cancelled.withLock { $0 != nil } }
            return try await model.generate(request, in: sequence) { _ in
                pieces.withLock { $0 += 1 }
                cancelled.withLock { $0?.cancel() }
                return true
            }
        }
        cancelled.withLock { $0 = task }
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(pieces.withLock { $0 } == 1)
    }
}
