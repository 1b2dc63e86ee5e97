import Dispatch
import Grammar
import JSON
import Synchronization
import TestSupport
import Testing
import Waiting

@testable import Inference

/// What is asked on a branch of a sequence, and turns that wait for their grammar.
@Suite struct BranchTests {
    /// Takes the logits after the last token of some texts: of the sequence, of branches, of the sequence again.
    private final class Asking: SequenceWork {
        struct Step {
            var branch: WorkBranch?
            /// All tokens of the sequence or the branch.
            var tokens: [TokenID]
        }

        let prompt: ModelInput
        let wantsPromptLogits = true
        private let steps: [Step]
        private var current = -1
        private(set) var logits: [[Float]] = []
        /// The tokens that were in memory at the beginning and for each new branch.
        private(set) var cached: [Int] = []

        init(_ prompt: ModelInput, _ steps: [Step]) { (self.prompt, self.steps) = (prompt, steps) }

        private var step: Step? { steps.indices.contains(current) ? steps[current] : nil }
        var position: Int? { step.map { $0.tokens.count - 1 } }
        func tokens(in range: Range<Int>) -> ArraySlice<TokenID> { (step?.tokens ?? prompt.ids)[range] }
        var branch: WorkBranch? { step?.branch }
        func begin(cachedTokens: Int) { cached.append(cachedTokens) }

        func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? {
            current += 1
            guard let step else { return nil }
            tokens += step.tokens.suffix(1)
            return .last(1)
        }

        func take(_ row: UnsafeMutableBufferPointer<Float>) { logits.append(Array(row)) }
    }

    /// Branches give the logits of sequences of their own, and the sequence goes on as if nothing had been asked.
    @Test(arguments: ["llama", "gemma4", "lfm2", "qwen35", "granitehybrid"].filter { ModelRecipe.names.contains($0) })
    func branchesAreSequencesOfTheirOwn(name: String) throws {
        let recipe = try ModelRecipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
        let memory = PoolMemory()
        let engine = Engine(model: model, memory: memory)
        let all = recipe.tokens
        let (prompt, more) = (Array(all[..<24]), Array(all[..<25]))
        // After a part of the prompt, after all of it, after another prompt, and on the sequence in between.
        let changed = Array(all[..<20]) + [(all[20] + 1) % 90, 7]
        let appended = prompt + [9, 8, 7]
        let other = Array(all[..<23].reversed())
        let work = Asking(
            ModelInput(prompt),
            [
                .init(branch: WorkBranch(number: 1, keptTokens: changed.count), tokens: changed), .init(tokens: more),
                .init(branch: WorkBranch(number: 2, keptTokens: prompt.count), tokens: appended),
                .init(branch: WorkBranch(number: 2, keptTokens: prompt.count), tokens: appended + [3]),
                .init(branch: WorkBranch(number: 3, keptTokens: other.count), tokens: other), .init(tokens: Array(all[..<26])),
            ])
        let cache = try KVCache(shape: model.shape, capacity: recipe.context)
        let sequence = SequenceState(
            cache: cache, contextSize: recipe.context, memory: memory, model: 0, isShared: true)
        var result: Result<Void, any Error>?
        try engine.submit(work, in: cache, priority: .interactive, signals: RequestSignals()) { result = $0 }
        for _ in 0..<1_000 where result == nil { _ = engine.step() }
        try #require(result).get()

        func fresh(_ tokens: [TokenID]) throws -> [Float] {
            let cache = try KVCache(shape: model.shape, capacity: recipe.context)
            try model.forward(tokens[...], cache: cache)
            return Array(model.logits)
        }
        let expected = try [prompt, changed, more, appended, appended + [3], other, Array(all[..<26])].map(fresh)
        for (index, (found, expected)) in zip(work.logits, expected).enumerated() {
            let isEqual = found == expected
            #expect(isEqual, "step \(index)")
        }
        #expect(work.logits.count == expected.count)
        #expect(cache.tokens == Array(all[..<26]))
        if !cache.isRecurrent { #expect(work.cached == [0, 20, 24, 0]) }
        // What is kept serves the next sequence that begins with it.
        let kept = try memory.withLongestPrefix(
            of: InputRows(other), model: 0, user: ObjectIdentifier(engine), where: { _ in true }
        ) { _, count in count }
        #expect(kept == other.count)
        withExtendedLifetime(sequence) {}
    }

    /// A branch after a picture knows its vectors; one that divides a range whose rows see each other computes all of it again.
    @Test(arguments: [false, true]) func branchesAfterVectors(seesItself: Bool) throws {
        let recipe = try ModelRecipe.load("llama")
        let file = try TemporaryFile(recipe.builder().bytes())
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
        let engine = Engine(model: model, memory: PoolMemory())
        let width = model.shape.width
        var input = ModelInput(recipe.tokens[..<10])
        input.append(
            try EmbeddingRun(
                recipe.numbers("picture", count: 8 * width, low: -1, high: 1), width: width, seesItself: seesItself))
        let picture = input
        input.append(recipe.tokens[10..<14])
        let asked = picture.ids + [5, 6]
        let work = Asking(
            input,
            [
                .init(branch: WorkBranch(number: 1, keptTokens: asked.count), tokens: asked),
                .init(branch: WorkBranch(number: 2, keptTokens: picture.count), tokens: picture.ids),
                .init(branch: nil, tokens: input.ids + [7]),
            ])
        let cache = try KVCache(shape: model.shape, capacity: recipe.context)
        var result: Result<Void, any Error>?
        try engine.submit(work, in: cache, priority: .interactive, signals: RequestSignals()) { result = $0 }
        for _ in 0..<1_000 where result == nil { _ = engine.step() }
        try #require(result).get()
        func fresh(_ ids: [TokenID]) throws -> [Float] {
            let cache = try KVCache(shape: model.shape, capacity: recipe.context)
            try cache.reserve(ids.count)
            var none: [RowState] = []
            try ids.withUnsafeBufferPointer {
                try model.forward($0, parts: [PassPart(cache, ids.count, of: input)], states: &none) { false }
            }
            model.computeLogits(ofRows: [ids.count - 1], candidates: nil)
            return Array(model.logits(0))
        }
        #expect(try work.logits == [input.ids, asked, picture.ids, input.ids + [7]].map(fresh))
        #expect(work.cached == [0, 18, seesItself ? 10 : 17])
        #expect(cache.tokens == input.ids + [7] && cache.rows.runs == input.rows.runs)
    }

    // MARK: Grammars that are being compiled

    /// Opens once.
    private final class Gate: Sendable {
        private let state = Mutex((isOpen: false, waiting: [CheckedContinuation<Void, Never>]()))

        func open() {
            let waiting = state.withLock { state in
                state.isOpen = true
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }

        func wait() async {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isOpen { state.waiting.append(continuation) }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        }
    }

    /// A grammar that another thread uses: nobody else's step can begin.
    private final class UsedGrammar: Sendable {
        private let isHeld = DispatchSemaphore(value: 0)
        private let isReleased = DispatchSemaphore(value: 0)

        init(_ grammar: Grammar) {
            runInBackground { [isHeld, isReleased] in
                let cursor = GrammarCursor(grammar) { _ in [] }
                // While another thread is within a step, the grammar is busy: the only error, after which this tries again.
                var wasHeld = false
                while !wasHeld {
                    try? grammar.attempt(cursor.work, upTo: 1) {
                        wasHeld = true
                        isHeld.signal()
                        isReleased.wait()
                    }
                }
            }
        }

        /// Waits until the other thread has begun.
        func begin() async { await onAnotherThread { [isHeld] in isHeld.wait() } }
        func release() { isReleased.signal() }
    }

    /// A step of a grammar that cannot be made at once, here because another thread uses it, holds up no other request: they are answered
    /// while it waits, and the value is the same afterwards. With sampling and penalties too, because nothing is drawn twice.
    @Test(arguments: [SamplingSettings.greedy, SamplingSettings(temperature: 1, seed: 5)])
    func theEngineDoesNotWaitForSteps(sampling: SamplingSettings) async throws {
        let file = try TinyModel().file()
        let model = try await LoadedModel.load(path: file.path, threads: 1)
        let source = GrammarSource.schema(
            try JSONParser.parse(#"{"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 3}"#))
        let grammar = try Grammar(source, vocabulary: await model.grammarVocabulary)
        let own = try Grammar(source, vocabulary: await model.grammarVocabulary)
        func answer(_ grammar: Grammar, _ limit: Int = 60, _ receive: @escaping @Sendable () -> Void = {}) async throws
            -> [TokenID]
        {
            var request = GenerationRequest(tokens: (1...40).map { TokenID($0) }, sampling: sampling, maximumTokens: limit)
            request.grammar = PendingGrammar(grammar)
            let sequence = try model.makeSequence(contextSize: 200, sharesCache: false)
            return try await model.generateTurn(request, in: sequence) { _ in
                receive()
                return true
            }.tokens
        }
        let expected = try await answer(own)
        #expect(expected.count > 10)

        // From the beginning, and in the middle.
        for first in [0, 3] {
            let used = Mutex<UsedGrammar?>(nil)
            let pieces = Mutex(0)
            if first == 0 {
                let now = UsedGrammar(grammar)
                await now.begin()
                used.withLock { $0 = now }
            }
            let processed = await model.processed.tokens
            async let waiting = answer(grammar) {
                guard
                    pieces.withLock({
                        $0 += 1; return $0 == first
                    })
                else { return }
                used.withLock { $0 = UsedGrammar(grammar) }
            }
            await eventually { await model.processed.tokens >= processed + 40 && used.withLock { $0 != nil } }
            if first > 0 { await used.withLock { $0 }?.begin() }
            // Another request with another grammar is answered meanwhile.
            #expect(try await answer(own) == expected)
            used.withLock { $0 }?.release()
            #expect(try await waiting == expected)
        }

        // A request that waits can be cancelled, and the grammar is free for others afterwards.
        let used = UsedGrammar(grammar)
        await used.begin()
        let processed = await model.processed.tokens
        let cancelled = Task { try await answer(grammar) }
        await eventually { await model.processed.tokens >= processed + 40 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        used.release()
        #expect(try await answer(grammar) == expected)
    }

    private struct Broken: Error {}

    /// The prompt is processed while the grammar is compiled, other requests are answered, and the value is the same.
    @Test func theEngineDoesNotWaitForGrammars() async throws {
        let file = try TinyModel().file()
        let model = try await LoadedModel.load(path: file.path, threads: 1)
        let grammar = try Grammar(
            .schema(try JSONParser.parse(#"{"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 3}"#)),
            vocabulary: await model.grammarVocabulary)
        let prompt = (1...40).map { TokenID($0) }
        func answer(_ pending: PendingGrammar) async throws -> [TokenID] {
            var request = GenerationRequest(tokens: prompt, sampling: .greedy, maximumTokens: 60)
            request.grammar = pending
            let sequence = try model.makeSequence(contextSize: 200, sharesCache: false)
            return try await model.generateTurn(request, in: sequence) { _ in true }.tokens
        }
        let expected = try await answer(PendingGrammar(grammar))

        let gate = Gate()
        let before = await model.processed.tokens
        async let waiting = answer(
            PendingGrammar {
                await gate.wait()
                return grammar
            })
        await eventually { await model.processed.tokens >= before + prompt.count }
        // Others are not held up, and afterwards the engine rests.
        #expect(try await answer(PendingGrammar(grammar)) == expected)
        gate.open()
        #expect(try await waiting == expected)

        await #expect(throws: Broken.self) { _ = try await answer(PendingGrammar { throw Broken() }) }

        let never = Gate()
        let tokens = await model.processed.tokens
        let cancelled = Task {
            try await answer(
                PendingGrammar {
                    await never.wait()
                    return grammar
                })
        }
        await eventually { await model.processed.tokens >= tokens + prompt.count }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        never.open()
    }

    // MARK: Models that were not trained to call tools

    private func untrained(mustCall: Bool = false) throws -> ChatTurn {
        let (weather, mail) = (try TurnTestTools.weather(), try TurnTestTools.mail())
        var chat = ChatTurn()
        chat.contextSize = 4_096
        chat.tools.callable = [weather, mail]
        chat.tools.mustCall = mustCall
        chat.tools.message = TurnTestBytes.plain("Is it warm in Rome?")
        chat.tools.recipients = [
            TurnRecipient(tool: weather, prompt: TurnTestBytes.plain("To the weather: ")),
            TurnRecipient(tool: mail, prompt: TurnTestBytes.plain("To the mail: ")),
            TurnRecipient(tool: nil, prompt: TurnTestBytes.plain("To a friend: ")),
        ]
        let lists = try TurnTestTools.grammar(
            .tools(
                ToolGrammar(
                    tools: [.init(name: weather.name, parameters: weather.parameters)], allowsText: false, maximumCount: 8)))
        chat.callList = { tools, count in tools.map(\.name) == ["get_weather"] && count == 8 ? lists : nil }
        return chat
    }

    /// Answers the questions to whom the message is.
    private func decided(_ chat: ChatTurn, _ scores: [Double]) throws -> TestTurn {
        var turn = TestTurn(chat: chat)
        for (recipient, score) in zip(chat.tools.recipients, scores) {
            let question = try #require(turn.step.phase?.question)
            #expect(question.prompt == recipient.prompt && question.tokens == chat.tools.message)
            try turn.ends(PhaseEnd(reason: .endOfTurn, logValue: score))
            turn.expectWritten("")
        }
        return turn
    }

    @Test func theMostProbableRecipientIsCalled() throws {
        var turn = try decided(untrained(), [-20, -30, -25])
        #expect(turn.step.phase?.output == .call && turn.step.phase?.maximumTokens == nil)
        let call = #"{"name": "get_weather", "arguments": {"place": "Rome"}}"#
        try turn.fills("[\(call), \(call)]")
        // Equal calls are made once.
        #expect(turn.calls.map(\.name) == ["get_weather"])
        #expect(turn.calls.map(\.arguments.text) == [#"{"place":"Rome"}"#])
        turn.expectEnd()
    }

    @Test func messagesToNobodyAreAnswered() throws {
        let turn = try decided(untrained(), [-20, -30, -19])
        #expect(turn.step.phase?.output == .answer && turn.step.phase?.isFree == true)
    }

    /// A model that thinks first is asked afterwards.
    @Test func messagesHaveRecipientsAfterReasoningToo() throws {
        var request = TurnTestBytes.request
        request.tokens = TurnTestBytes.encode("Why?<think>\n")
        var chat = try untrained()
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        var turn = TestTurn(request, chat: chat)
        #expect(turn.step.phase?.output == .thought)
        try turn.writes("Hm", until: "</think>")
        let question = try #require(turn.step.phase?.question)
        #expect(question.tokens == chat.tools.message)
    }

    @Test func shortenedListsAreNoCalls() throws {
        let turn = try decided(untrained(), [-20, -30, -25])
        for reason in [StopReason.contextFull, .maximumTokens] {
            var turn = turn
            #expect(throws: GenerationFailure.argumentTooLong(tool: "get_weather", argument: nil, contextSize: 4_096)) {
                try turn.ends(PhaseEnd(reason: reason, text: "[]"))
            }
        }
        var full = turn
        #expect(throws: GenerationFailure.grammarTooComplex) { try full.ends(PhaseEnd(reason: .grammarLimit, text: "[]")) }
    }

    /// The only tool of a request that must call one is not asked about.
    @Test func theOnlyToolIsCalledAtOnce() throws {
        var chat = try untrained(mustCall: true)
        chat.tools.recipients.removeLast(2)
        #expect(TestTurn(chat: chat).step.phase?.grammar != nil)
        // Nothing can be said of an empty message.
        chat = try untrained()
        chat.tools.message = []
        #expect(TestTurn(chat: chat).step.phase?.output == .answer)
    }
}
