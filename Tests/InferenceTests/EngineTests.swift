import Grammar
import JSON
import Synchronization
import TestSupport
import Testing

@testable import Inference

/// Many requests at once: each gets the answer that it gets alone.
@Suite struct EngineTests {
    private enum Kind: Hashable {
        case free(seed: UInt64, maximum: Int)
        case constrained(seed: UInt64, forced: Bool)
        case score
        case compare
        case prefill
    }

    /// Counts the caches that still exist.
    private final class WeakCaches: Sendable {
        private struct Entry: @unchecked Sendable {  // Only compared with nil.
            weak var cache: (any SequenceMemory)?
        }

        private let entries = Mutex<[Entry]>([])

        func add(_ cache: any SequenceMemory) {
            let entry = Entry(cache: cache)
            entries.withLock { $0.append(entry) }
        }

        var count: Int { entries.withLock { $0.filter { $0.cache != nil }.count } }
    }

    private struct Request: Hashable {
        var prompt: [TokenID]
        var kind: Kind
        var format: CacheFormat
    }

    private static let words = ["alpha", "beta", "gamma delta", "the thing", "another one"]

    private static func random(_ random: inout SeededGenerator, _ model: LoadedModel) -> Request {
        // A few beginnings are common, so that prefixes are shared.
        let beginning = (0..<40 * Int.random(in: 0...2, using: &random)).map { TokenID($0 % 250 + 1) }
        let prompt =
            beginning + (0..<Int.random(in: 1...90, using: &random)).map { _ in TokenID.random(in: 1...250, using: &random) }
        let seed = UInt64.random(in: 1...1_000, using: &random)
        let kind: Kind =
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4: .free(seed: seed, maximum: Int.random(in: 0...40, using: &random))
            case 4..<7: .constrained(seed: seed, forced: Bool.random(using: &random))
            case 7: .score
            case 8: .compare
            default: .prefill
            }
        return Request(prompt: prompt, kind: kind, format: Int.random(in: 0..<4, using: &random) == 0 ? .int8 : .binary16)
    }

    private static func run(
        _ request: Request, _ model: LoadedModel, in sequence: SequenceState, _ grammar: Grammar
    ) async throws -> String {
        switch request.kind {
        case .free(let seed, let maximum):
            let text = Mutex("")
            let result = try await model.generate(
                GenerationRequest(
                    tokens: request.prompt, sampling: SamplingSettings(temperature: 1, topK: 40, seed: seed),
                    maximumTokens: maximum), in: sequence
            ) { piece in
                text.withLock { $0 += piece.text }
                return true
            }
            #expect(result.usage.promptTokens == request.prompt.count && result.usage.generatedTokens <= maximum)
            return text.withLock { $0 } + " \(result.stopReason) \(result.tokens)"
        case .constrained(let seed, let forced):
            var generation = GenerationRequest(
                tokens: request.prompt, sampling: SamplingSettings(temperature: 1, seed: seed), grammar: grammar)
            generation.batchesForcedTokens = forced
            let result = try await model.generate(generation, in: sequence) { _ in true }
            return "\(result.tokens)"
        case .score:
            return "\(try await model.logProbability(of: [5, 9, 77, 31, 8], after: request.prompt, in: sequence))"
        case .compare:
            // The probabilities of tokens do not depend on other requests either.
            var generation = GenerationRequest(tokens: request.prompt, sampling: .greedy, maximumTokens: 2)
            generation.topScores = 2
            let scores = Mutex("")
            _ = try await model.generateTurn(generation, in: sequence) { event in
                if case .text(let piece) = event { scores.withLock { $0 += "\(piece.scores)" } }
                return true
            }
            return scores.withLock { $0 }
        case .prefill:
            try await model.prefill(request.prompt, in: sequence)
            return ""
        }
    }

    /// A turn is one piece of work for the engine, whatever it consists of. The seeds find turns of a random model that have everything.
    @Test func turnsAreSubmittedOnce() async throws {
        var tiny = TinyModel()
        tiny.controlTokens = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
        tiny.template =
            "{# tools <tool_call> <think> #}" + TinyModel.chatML + "{% if add_generation_prompt %}{{ '<think>\n' }}{% endif %}"
        let file = try tiny.file()
        let model = try await LoadedModel.load(path: file.path, threads: 1)
        #expect(model.toolFormat != nil && model.thinkingFormat != nil)
        let tool = try TurnTestTools.tool(
            "pick",
            """
            {"type": "object", "required": ["n"], "additionalProperties": false,
             "properties": {"n": {"enum": [1, 2, 3, 4, 5, 6, 7, 8]}}}
            """)
        var tools = TurnTools()
        (tools.callable, tools.areInPrompt) = ([tool], true)
        let tokens = try model.tokens(for: ChatPrompt([ChatMessage(role: .user, content: "Hi")], tools: [tool]))
        var isFound = false
        for seed in 0..<400 as Range<UInt64> where !isFound {
            let script = Mutex<[String]>([])
            let before = await model.submissions
            _ = try await model.generateTurn(
                GenerationRequest(tokens: tokens, sampling: SamplingSettings(temperature: 4, seed: seed), maximumTokens: 400),
                tools: tools, in: try model.makeSequence(contextSize: 512, sharesCache: false)
            ) { event in
                script.withLock { script in
                    switch event {
                    case .text: if script.last != "text" { script.append("text") }
                    case .thought: if script.last != "thought" { script.append("thought") }
                    case .call: script.append("call")
                    case .state: break
                    }
                }
                return true
            }
            #expect(await model.submissions == before + 1)
            let all = script.withLock { $0 }
            isFound = all.contains("call") && all.first == "thought" && all.contains("text")
        }
        #expect(isFound, "no seed leads to a turn of reasoning, text and a call")
    }

    /// The trigger of a required call is processed with the prompt, and counts as a part of it.
    @Test func requiredCallNearTheEndOfTheContext() async throws {
        var tiny = TinyModel()
        tiny.controlTokens = ["<tool_call>"]
        tiny.template = "{# tools <tool_call> #}" + TinyModel.chatML
        let file = try tiny.file()
        let model = try await LoadedModel.load(path: file.path, threads: 1)
        var tools = TurnTools()
        tools.callable = [try TurnTestTools.mail()]
        (tools.areInPrompt, tools.mustCall) = (true, true)
        for size in [64, 256] {
            for free in 1...40 {
                let request = GenerationRequest(
                    tokens: [TokenID](repeating: 40, count: size - free), sampling: .greedy, maximumTokens: 4)
                let sequence = try model.makeSequence(contextSize: size, sharesCache: false)
                do { _ = try await model.generateTurn(request, tools: tools, in: sequence) { _ in true } } catch {
                    switch error {
                    case GenerationFailure.promptTooLong, GenerationFailure.argumentTooLong, GenerationFailure.budgetTooSmall:
                        break
                    default: Issue.record("\(error)")
                    }
                }
            }
        }
        let cache = try KVCache(shape: model.shape, capacity: 16)
        try cache.reserve(16)
        #expect(throws: GenerationFailure.promptTooLong(tokens: 17, contextSize: 16)) { try cache.reserve(17) }
    }

    /// Requests for which there is no memory wait for others; if nothing can go on, the newest fails with an error that says why.
    @Test func requestsWaitForMemory() async throws {
        let file = try TinyModel().file()
        let available = Mutex(1 << 30)
        let memory = PoolMemory(system: SystemMemory(available: { available.withLock { $0 } }, reserve: 1 << 20))
        let model = try await LoadedModel.load(path: file.path, threads: 1, memory: memory)
        let prompts = (0..<4).map { start in (0..<300).map { TokenID(($0 * (start + 1)) % 250 + 1) } }
        @Sendable func answer(_ prompt: [TokenID]) async throws -> String {
            let sequence = try model.makeSequence(contextSize: 512, sharesCache: false)
            var text = ""
            _ = try await model.generate(
                GenerationRequest(tokens: prompt, sampling: SamplingSettings(temperature: 0), maximumTokens: 8), in: sequence
            ) { piece in
                text += "\(piece.scores)"
                return true
            }
            return text
        }
        let alone = try await prompts.asyncMap { try await answer($0) }
        // Less than the reserve: one request at a time goes on.
        available.withLock { $0 = 900_000 }
        let together = try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for (index, prompt) in prompts.enumerated() { group.addTask { (index, try await answer(prompt)) } }
            return try await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
        }
        #expect(prompts.indices.map { together[$0] } == alone)
        // Nothing.
        available.withLock { $0 = 1_000 }
        await #expect(throws: GenerationFailure.self) { try await answer(prompts[0]) }
        available.withLock { $0 = 1 << 30 }
        #expect(try await answer(prompts[0]) == alone[0])
    }

    /// With little memory, idle sequences lose their caches, and few released ones are kept.
    @Test(arguments: [(1, 240, false), (2, 1_000, true), (4, 240, true)])
    func answersDoNotDependOnOtherRequests(threads: Int, count: Int, hasLittleMemory: Bool) async throws {
        let file = try TinyModel().file()
        // Other programs on the machine need no memory.
        let memory = PoolMemory(
            maximumBytes: hasLittleMemory ? 200_000 : 1 << 30, system: SystemMemory(available: { nil }, reserve: 0))
        let model = try await LoadedModel.load(path: file.path, threads: threads, memory: memory)
        let list = JSONValue.array(Self.words.map { .string($0) })
        let grammar = try Grammar(
            .schema(
                .object([
                    .init("type", .string("array")), .init("items", .object([.init("enum", list)])),
                    .init("maxItems", .number(DecimalNumber(4))),
                ])),
            vocabulary: await model.grammarVocabulary)
        var random = SeededGenerator(UInt64(threads))
        let requests = (0..<count).map { _ in Self.random(&random, model) }
        var alone: [Request: String] = [:]
        for request in Set(requests) {
            let sequence = try model.makeSequence(contextSize: 512, format: request.format, sharesCache: false)
            alone[request] = try await Self.run(request, model, in: sequence, grammar)
        }
        let made = WeakCaches()
        @Sendable func makeSequence(_ format: CacheFormat) throws -> SequenceState {
            let sequence = try model.makeSequence(contextSize: 512, format: format)
            made.add(sequence.cache)
            return sequence
        }
        let before = await model.processed
        // 16 tasks, each with a sequence of its own that several of its requests use. Some requests are cancelled.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<16 {
                let mine = stride(from: task, to: requests.count, by: 16).map { requests[$0] }
                let expected = alone
                group.addTask {
                    var sequence = try makeSequence(.binary16)
                    for (index, request) in mine.enumerated() {
                        if index % 4 == 3 || request.format != sequence.format { sequence = try makeSequence(request.format) }
                        if (index + task) % 5 == 0 {
                            let current = sequence
                            let cancelled = Task { try await Self.run(request, model, in: current, grammar) }
                            for _ in 0..<(task * 3) { await Task.yield() }
                            cancelled.cancel()
                            _ = await cancelled.result
                        }
                        let answer = try await Self.run(request, model, in: sequence, grammar)
                        #expect(answer == expected[request])
                    }
                }
            }
            try await group.waitForAll()
        }
        let after = await model.processed
        #expect(after.passes > before.passes)
        #expect(await model.waitingRequests == 0)
        #expect((memory.evictions.load(ordering: .relaxed) > 0) == hasLittleMemory)
        // The sequences are gone. What is left are kept caches, which new sequences may begin with.
        #expect(hasLittleMemory ? made.count < 16 : made.count > 16, "\(made.count) caches")
        #expect(memory.account.used <= memory.account.limit)
        memory.releaseKept()
        #expect(made.count == 0 && memory.account.used == 0)
    }

    /// Eight conversations need far fewer passes than eight times those of one.
    @Test func conversationsShareBatches() async throws {
        let file = try TinyModel().file()
        let model = try await LoadedModel.load(path: file.path, threads: 1)
        func converse(_ number: Int) async throws {
            var request = GenerationRequest(
                tokens: (0..<60).map { TokenID(($0 * 7 + number) % 250 + 1) }, sampling: .greedy, maximumTokens: 64)
            request.proposesTokens = false
            request.detectsLoops = false
            request.bannedTokens = Array(model.tokenizer.stopTokens)
            _ = try await model.generate(
                request, in: try model.makeSequence(contextSize: 256, sharesCache: false)
            ) { _ in true }
        }
        try await converse(0)
        let one = await model.processed
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 { group.addTask { try await converse(number) } }
            try await group.waitForAll()
        }
        let all = await model.processed
        #expect(all.tokens - one.tokens == 8 * one.tokens)
        #expect(all.passes - one.passes <= 2 * one.passes)
    }

    /// Requests that arrive together and begin in the same way process their beginning once.
    @Test func equalBeginningsAreProcessedOnce() async throws {
        let file = try TinyModel().file()
        let model = try await LoadedModel.load(path: file.path, threads: 1)
        let beginning = (0..<300).map { TokenID($0 * 7 % 250 + 1) }
        @Sendable func answer(_ number: Int, sharesCache: Bool) async throws -> [TokenID] {
            var request = GenerationRequest(
                tokens: beginning + [TokenID(number + 1), 5, TokenID(number + 20)], sampling: .greedy, maximumTokens: 8)
            request.proposesTokens = false
            request.bannedTokens = Array(model.tokenizer.stopTokens)
            let sequence = try model.makeSequence(contextSize: 400, sharesCache: sharesCache)
            return try await model.generate(request, in: sequence) { _ in true }.tokens
        }
        var alone: [[TokenID]] = []
        for number in 0..<8 { alone.append(try await answer(number, sharesCache: false)) }
        let before = await model.processed
        let together = try await withThrowingTaskGroup(of: (Int, [TokenID]).self) { group in
            for number in 0..<8 {
                group.addTask {
                    let tokens = try await answer(number, sharesCache: true)
                    return (number, tokens)
                }
            }
            return try await group.reduce(into: [Int: [TokenID]]()) { $0[$1.0] = $1.1 }
        }
        for number in 0..<8 { #expect(together[number] == alone[number]) }
        let processed = await model.processed.tokens - before.tokens
        // A request that arrives when fewer than 64 tokens of the beginning are left computes these itself.
        #expect(processed <= 300 + 8 * (63 + 3 + 7), "\(processed) tokens")
        // Also if the request that processes the beginning is cancelled.
        let first = Task { try await answer(100, sharesCache: true) }
        let second = Task { try await answer(3, sharesCache: true) }
        first.cancel()
        _ = await first.result
        #expect(try await second.value == alone[3])
    }

    /// A request that is cancelled while it waits for its turn ends, although the engine never reaches it.
    @Test func waitingRequestsCanBeCancelled() async throws {
        let file = try TinyModel().file()
        let model = try await LoadedModel.load(path: file.path, threads: 1)
        let prompt = (0..<100).map { TokenID($0 + 1) }
        let tasks = try (0..<30).map { _ in
            let sequence = try model.makeSequence(contextSize: 512)
            var request = GenerationRequest(tokens: prompt, sampling: .greedy, maximumTokens: 400)
            request.detectsLoops = false
            request.bannedTokens = Array(model.tokenizer.stopTokens)
            return Task { [request] in try await model.generate(request, in: sequence) { _ in true } }
        }
        await eventually { await model.waitingRequests > 0 }
        for task in tasks { task.cancel() }
        for task in tasks {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(await model.waitingRequests == 0)
    }

    /// Proposed tokens change neither greedy nor sampled responses, and leave nothing in the sequence.
    @Test func proposalsChangeNothing() async throws {
        let file = try TinyModel().file()
        let model = try await LoadedModel.load(path: file.path, threads: 2)
        var random = SeededGenerator(4)
        var usage = GenerationUsage()
        for round in 0..<60 {
            // A prompt that repeats itself, and settings under which the model repeats its prompt.
            let part = (0..<Int.random(in: 3...20, using: &random)).map { _ in TokenID.random(in: 1...250, using: &random) }
            let prompt = Array(repeatElement(part, count: Int.random(in: 1...5, using: &random)).joined())
            let sampling =
                round % 2 == 0
                ? .greedy : SamplingSettings(temperature: 0.2, topK: 3, seed: UInt64(round), penalties: .init(repetition: 1.1))
            var request = GenerationRequest(
                tokens: prompt, sampling: sampling, maximumTokens: [nil, 1, 7, 64].randomElement(using: &random) ?? nil)
            request.detectsLoops = round % 3 == 0
            let size = prompt.count + Int.random(in: 1...120, using: &random)
            var results: [String] = []
            for proposes in [false, true] {
                request.proposesTokens = proposes
                let text = Mutex("")
                let sequence = try model.makeSequence(contextSize: size, sharesCache: false)
                let result = try await model.generate(request, in: sequence) { piece in
                    text.withLock { $0 += piece.text }
                    return true
                }
                results.append(text.withLock { $0 } + " \(result.stopReason) \(result.tokens) \(result.usage.generatedTokens)")
                usage.acceptedTokens += result.usage.acceptedTokens
                usage.proposedTokens += result.usage.proposedTokens
                let whole = prompt + result.tokens
                #expect(whole.starts(with: sequence.cache.tokens) && sequence.cache.tokens.count >= whole.count - 1)
            }
            #expect(results[0] == results[1])
        }
        #expect(usage.acceptedTokens > 50 && usage.proposedTokens > usage.acceptedTokens)
    }

    /// The same for responses under a grammar: free texts between forced ones, many of which repeat the prompt.
    @Test func proposalsChangeNothingUnderAGrammar() async throws {
        let file = try TinyModel().file()
        let model = try await LoadedModel.load(path: file.path, threads: 2)
        let word = JSONValue.object([.init("type", .string("string")), .init("maxLength", .number(DecimalNumber(12)))])
        let list = JSONValue.array(Self.words.map { .string($0) })
        let names = ["alpha", "beta", "another one"]
        let item = JSONValue.object([
            .init("type", .string("object")),
            .init("properties", .object(names.map { .init($0, $0 == "beta" ? .object([.init("enum", list)]) : word) })),
            .init("required", .array(names.map { .string($0) })), .init("additionalProperties", .bool(false)),
        ])
        let grammar = try Grammar(
            .schema(
                .object([
                    .init("type", .string("array")), .init("items", item), .init("minItems", .number(DecimalNumber(2))),
                    .init("maxItems", .number(DecimalNumber(4))),
                ])), vocabulary: await model.grammarVocabulary)
        var random = SeededGenerator(8)
        var usage = GenerationUsage()
        let example = model.tokenizer.encode(
            "[{\"alpha\":\"the thing\",\"beta\":\"gamma delta\",\"another one\":\"12 34\"},"
                + "{\"alpha\":\"in the\",\"beta\":\"alpha\",\"another one\":\"thing\"}]")
        for round in 0..<40 {
            let prompt = Array(repeatElement(example, count: Int.random(in: 1...2, using: &random)).joined())
            var request = GenerationRequest(
                tokens: prompt,
                sampling: round % 2 == 0 ? .greedy : SamplingSettings(temperature: 1, topK: 5, seed: UInt64(round)),
                maximumTokens: [nil, 160, 120].randomElement(using: &random) ?? nil, grammar: grammar)
            var results: [String] = []
            for proposes in [false, true] {
                request.proposesTokens = proposes
                let sequence = try model.makeSequence(contextSize: prompt.count + 200, sharesCache: false)
                let result = try await model.generate(request, in: sequence) { _ in true }
                results.append(
                    "\(result.stopReason) \(result.tokens) \(result.usage.generatedTokens) \(result.usage.forcedTokens)")
                usage.acceptedTokens += result.usage.acceptedTokens
                usage.proposedTokens += result.usage.proposedTokens
                #expect((prompt + result.tokens).starts(with: sequence.cache.tokens))
            }
            #expect(results[0] == results[1], "round \(round)")
        }
        #expect(usage.acceptedTokens > 20 && usage.proposedTokens > usage.acceptedTokens)
    }

    @Test func proposalsFollowTheLatestOccurrence() {
        func proposal(_ draft: inout LookupDraft, maximum: Int = 8, cost: Double = 0.08) -> [TokenID] {
            var tokens: [TokenID] = []
            let count = draft.propose(DraftBudget(maximum: maximum, cost: cost), into: &tokens)
            #expect(count == tokens.count)
            return tokens
        }
        var draft = LookupDraft(prompt: [1, 2, 3, 4, 5, 1, 2, 3, 6, 7, 8])
        #expect(proposal(&draft) == [], "the latest token has not occurred before")
        for token in [1, 2, 3] { draft.append(TokenID(token)) }
        #expect(proposal(&draft) == [6, 7, 8, 1, 2, 3])
        #expect(proposal(&draft, maximum: 2) == [6, 7])
        #expect(proposal(&draft, cost: 0.8) == [], "a proposal must gain more than it costs")
        #expect(proposal(&draft, maximum: 0) == [])
        // Fewer tokens after failures, and none at the end.
        var lengths = [6]
        for _ in 0..<40 {
            let tokens = proposal(&draft)
            if tokens.count != lengths.last { lengths.append(tokens.count) }
            if tokens.isEmpty { break }
            draft.learn(accepted: 0, of: tokens.count)
        }
        #expect(lengths.count > 2 && lengths.last == 0 && lengths == lengths.sorted(by: >))
        // Tokens that would have been proposed show that proposals pay again.
        let text: [TokenID] = [6, 7, 8, 1, 2, 3]
        for _ in 0..<10 {
            for token in text {
                _ = proposal(&draft)
                draft.append(token)
            }
        }
        #expect(proposal(&draft) == text)
    }

    /// After a changed token the rest is proposed from the place where the copied text was left, although the latest token occurs
    /// later again.
    @Test func proposalsContinueCopiedTexts() {
        var draft = LookupDraft(prompt: [1, 2, 3, 4, 5, 6, 7, 8, 9, 60, 6, 50, 9, 99])
        for token in [1, 2, 3] { draft.append(TokenID(token)) }
        var tokens: [TokenID] = []
        let count = draft.propose(DraftBudget(maximum: 8, cost: 0.08), into: &tokens)
        #expect(tokens.prefix(2) == [4, 5])
        draft.append(4)
        draft.learn(accepted: 1, of: count)
        // 5 is replaced by 77.
        for token in [77, 6] { draft.append(TokenID(token)) }
        tokens = []
        _ = draft.propose(DraftBudget(maximum: 8, cost: 0.08), into: &tokens)
        #expect(tokens.first == 7)
    }
}

extension Sequence {
    fileprivate func asyncMap<Value>(_ body: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await body(element)) }
        return values
    }
}
