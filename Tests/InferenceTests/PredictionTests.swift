import Foundation
import Grammar
import JSON
import Synchronization
import TestSupport
import Testing

@testable import Inference

/// Proposals of a prediction head.
@Suite struct PredictionTests {
    /// A recipe with a text, and what the head proposes after each of its tokens from `start` on.
    private struct Recipe: Decodable {
        var text: [TokenID]
        var start: Int
        var proposals: [[TokenID]]
    }

    private struct Fixture {
        let recipe: Recipe
        let file: TemporaryFile
        let model: NeuralModel
        let head: PredictionHead

        init(threads: Int = 1) throws {
            recipe = try ModelRecipe.load("nextn", in: "Inputs", as: Recipe.self)
            let builder = try ModelRecipe.load("nextn", in: "Inputs", as: ModelRecipe.self).builder()
            file = try TemporaryFile(builder.bytes())
            let gguf = try GGUFFile(path: file.path)
            model = try NeuralModel(file: gguf, pool: WorkerPool(threads: threads))
            head = try #require(try PredictionHead(of: model, file: gguf))
            head.cost = 0
        }

        /// Processes tokens and passes their residual streams on.
        func process(_ tokens: ArraySlice<TokenID>, _ cache: KVCache, _ draft: HeadDraft) throws {
            let position = cache.rows.count
            try model.forward(tokens, cache: cache)
            draft.take(try #require(model.hiddenRows(from: 0)), rows: tokens.count, position: position)
        }

        func proposal(_ draft: HeadDraft, maximum: Int = 3) -> [TokenID] {
            var tokens: [TokenID] = []
            #expect(draft.propose(DraftBudget(maximum: maximum, cost: 0), into: &tokens) == tokens.count)
            return tokens
        }
    }

    @Test("equal those of an independent computation, with rejected proposals in between")
    func proposalsEqualTheReference() throws {
        let fixture = try Fixture()
        let (text, start) = (fixture.recipe.text, fixture.recipe.start)
        // Alone, with the tokens after it, and with wrong proposals after it.
        for wrong in [[], [5, 6], [7]] as [[TokenID]] {
            let cache = try KVCache(shape: fixture.model.shape, capacity: 64)
            let draft = try HeadDraft(fixture.head, prompt: Array(text[..<start]), capacity: 64)
            try fixture.process(text[..<4], cache, draft)
            try fixture.process(text[4..<start], cache, draft)
            for index in start..<text.count - 1 {
                draft.append(text[index])
                #expect(fixture.proposal(draft) == fixture.recipe.proposals[index + 1 - start], "\(index), \(wrong)")
                try fixture.process(text[index...index] + wrong, cache, draft)
                cache.rewind(to: index + 1)
            }
        }
    }

    @Test("go on after tokens that were withdrawn, and without those that were in memory")
    func otherTexts() throws {
        let fixture = try Fixture()
        let (text, start) = (fixture.recipe.text, fixture.recipe.start)
        let cache = try KVCache(shape: fixture.model.shape, capacity: 64)
        let draft = try HeadDraft(fixture.head, prompt: Array(text[..<start]), capacity: 64)
        try fixture.process(text[..<start], cache, draft)
        #expect(fixture.proposal(draft) == [], "the next token is not known")
        // Others are withdrawn.
        for token in [11, 12, 13] as [TokenID] {
            draft.append(token)
            try fixture.process([token], cache, draft)
        }
        draft.keep(start)
        cache.rewind(to: start - 1)
        try fixture.process(text[start - 1..<start], cache, draft)
        draft.append(text[start])
        #expect(fixture.proposal(draft) == fixture.recipe.proposals[1])
        #expect(fixture.proposal(draft, maximum: 0) == [])
        // The rows of the beginning are not known: proposals are others, but there are some.
        let late = try HeadDraft(fixture.head, prompt: Array(text[..<start]), capacity: 64)
        cache.rewind(to: start - 3)
        try fixture.process(text[start - 3..<start], cache, late)
        late.append(text[start])
        #expect(fixture.proposal(late).count == 3)
        // A gap.
        try fixture.process([text[start]], cache, late)
        for token in [1, 2] as [TokenID] { late.append(token) }
        try fixture.model.forward([1], cache: cache)
        try fixture.process([2], cache, late)
        #expect(fixture.proposal(late) == [])
        late.append(3)
        #expect(fixture.proposal(late).count == 3)
    }

    @Test("fewer are made after failures, but again when they pay")
    func estimates() throws {
        let fixture = try Fixture()
        let text = fixture.recipe.text
        let cache = try KVCache(shape: fixture.model.shape, capacity: 256)
        let draft = try HeadDraft(fixture.head, prompt: Array(text[..<8]), capacity: 256)
        try fixture.process(text[..<8], cache, draft)
        func count(of budget: DraftBudget, isRight: Bool) throws -> Int {
            draft.append(3)
            var tokens: [TokenID] = []
            let count = draft.propose(budget, into: &tokens)
            draft.learn(accepted: isRight ? count : 0, of: count)
            try fixture.process([3], cache, draft)
            return count
        }
        let budget = DraftBudget(maximum: 8, cost: 0.3)
        var counts: [Int] = []
        for _ in 0..<60 { counts.append(try count(of: budget, isRight: false)) }
        #expect(counts[0] > 0 && counts.suffix(40).contains(0) && counts.suffix(20).contains(1))
        #expect(counts.suffix(40).max() == 1)
        for _ in 0..<150 { counts.append(try count(of: budget, isRight: true)) }
        #expect((counts.last ?? 0) > 1)
    }

    @Test("models without such a layer have no head, and those with one load without it as before")
    func files() async throws {
        let plain = try TinyModel().file()
        let model = try await LoadedModel.load(path: plain.path, threads: 1)
        #expect(try await !model.loadPredictionHead())
        // Recurrent states cannot be withdrawn.
        let recurrent = try TemporaryFile(ModelRecipe.load("qwen35-mtp").builder().bytes())
        let file = try GGUFFile(path: recurrent.path)
        #expect(try PredictionHead(of: NeuralModel(file: file, pool: WorkerPool(threads: 1)), file: file) == nil)
        var tiny = TinyModel()
        tiny.predicts = true
        let predicting = try tiny.file()
        let gguf = try GGUFFile(path: predicting.path)
        let bytes = try NeuralModel(file: gguf, pool: WorkerPool(threads: 1)).packedBytes
        #expect(try ModelShape(file: gguf).layers.count == 2)
        tiny.predicts = false
        let without = try tiny.file()
        #expect(try NeuralModel(file: GGUFFile(path: without.path), pool: WorkerPool(threads: 1)).packedBytes == bytes)
        // A layer that lacks a tensor is an error for who asks for it.
        var builder = TinyModel()
        builder.predicts = true
        var damaged = builder.builder()
        damaged.tensors.removeAll { $0.name == "blk.2.nextn.hnorm.weight" }
        let damagedFile = try TemporaryFile(damaged.bytes())
        let damagedModel = try await LoadedModel.load(path: damagedFile.path, threads: 1)
        await #expect(throws: ModelError.missing("tensor blk.2.nextn.hnorm.weight")) {
            try await damagedModel.loadPredictionHead()
        }
    }

    private static func models() async throws -> (plain: LoadedModel, predicting: LoadedModel, file: TemporaryFile) {
        var tiny = TinyModel()
        (tiny.predicts, tiny.layers) = (true, 8)
        let file = try tiny.file()
        let plain = try await LoadedModel.load(path: file.path, threads: 1)
        let predicting = try await LoadedModel.load(path: file.path, threads: 1)
        #expect(try await predicting.loadPredictionHead())
        // In a model of eight layers, it takes a part of the time that it seldom has in others.
        predicting.predictionHead.withLock { $0?.head.cost = 0 }
        return (plain, predicting, file)
    }

    @Test("change neither greedy nor sampled turns")
    func turns() async throws {
        let (plain, predicting, file) = try await Self.models()
        defer { withExtendedLifetime(file) {} }
        var random = SeededGenerator(6)
        var usage = GenerationUsage()
        for round in 0..<40 {
            let prompt = (0..<Int.random(in: 1...60, using: &random)).map { _ in TokenID.random(in: 1...250, using: &random) }
            var request = GenerationRequest(
                tokens: prompt,
                sampling: round % 2 == 0 ? .greedy : SamplingSettings(temperature: 0.5, topK: 3, seed: UInt64(round)),
                maximumTokens: [nil, 1, 7, 64].randomElement(using: &random) ?? nil)
            request.detectsLoops = round % 3 == 0
            let size = prompt.count + Int.random(in: 1...100, using: &random)
            var results: [String] = []
            for model in [plain, predicting] {
                request.proposesTokens = model === predicting
                let sequence = try model.makeSequence(contextSize: size, sharesCache: round % 4 == 0)
                let result = try await model.generate(request, in: sequence) { _ in true }
                results.append("\(result.stopReason) \(result.tokens) \(result.usage.generatedTokens)")
                usage.acceptedTokens += result.usage.acceptedTokens
                usage.proposedTokens += result.usage.proposedTokens
                let whole = prompt + result.tokens
                #expect(whole.starts(with: sequence.cache.tokens) && sequence.cache.tokens.count >= whole.count - 1)
            }
            #expect(results[0] == results[1], "round \(round)")
        }
        #expect(usage.acceptedTokens > 0 && usage.proposedTokens > usage.acceptedTokens)
    }

    @Test("change nothing under a grammar, nor if several sequences are processed together")
    func constrainedTurns() async throws {
        let (plain, predicting, file) = try await Self.models()
        defer { withExtendedLifetime(file) {} }
        let schema = try JSONParser.parse(
            """
            {"type": "object", "required": ["free", "few"], "additionalProperties": false, "properties": {
              "free": {"type": "string", "minLength": 30, "maxLength": 40}, "few": {"enum": ["alpha", "beta", "another one"]}}}
            """)
        let requests = try await [plain, predicting].asyncMap { model in
            let grammar = try Grammar(.schema(schema), vocabulary: await model.grammarVocabulary)
            return (0..<8).map { number in
                var request = GenerationRequest(
                    tokens: (0..<20).map { TokenID(($0 * (number + 3) + number) % 250 + 1) },
                    sampling: number % 4 != 1 ? .greedy : SamplingSettings(temperature: 1, topK: 8, seed: UInt64(number)),
                    maximumTokens: 120, grammar: number < 4 ? grammar : nil)
                (request.proposesTokens, request.detectsLoops) = (model === predicting, false)
                return request
            }
        }
        let alone = try await requests[0].asyncMap { request in
            try await plain.generate(request, in: plain.makeSequence(contextSize: 200, sharesCache: false)) { _ in true }.tokens
        }
        func answer(_ number: Int) async throws -> (number: Int, result: GenerationResult) {
            let sequence = try predicting.makeSequence(contextSize: 200, sharesCache: false)
            return (number, try await predicting.generate(requests[1][number], in: sequence) { _ in true })
        }
        var accepted = (constrained: 0, free: 0)
        func check(_ answer: (number: Int, result: GenerationResult)) {
            #expect(answer.result.tokens == alone[answer.number], "\(answer.number)")
            if answer.number < 4 {
                accepted.constrained += answer.result.usage.acceptedTokens
            } else {
                accepted.free += answer.result.usage.acceptedTokens
            }
        }
        for number in requests[1].indices { check(try await answer(number)) }
        #expect(accepted.constrained > 0 && accepted.free > 0)
        try await withThrowingTaskGroup(of: (number: Int, result: GenerationResult).self) { group in
            for number in requests[1].indices { group.addTask { try await answer(number) } }
            for try await answer in group { check(answer) }
        }
    }
}

extension Sequence {
    fileprivate func asyncMap<Value>(_ body: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await body(element)) }
        return values
    }
}
