import Foundation
import Grammar
import JSON
import TestSupport
import Testing

@testable import Inference

/// The memory of a sequence of a ``TableModel``: a list of tokens.
private final class TableMemory: SequenceMemory {
    fileprivate(set) var rows = InputRows()
    let capacity: Int
    let format: CacheFormat
    let adapter: LowRankAdapter?
    let isRecurrent = false
    var registration: Int?
    var domain: UInt64 = 0
    private(set) var reserved = 0

    init(capacity: Int, format: CacheFormat, adapter: LowRankAdapter?) {
        (self.capacity, self.format, self.adapter) = (capacity, format, adapter)
    }

    func reusablePrefix(of other: InputRows, limit: Int) -> Int { rows.commonPrefix(with: other, limit: limit) }

    func rewind(to length: Int) -> Int {
        rows.truncate(to: length)
        reserved = min(reserved, tokens.count)
        return tokens.count
    }

    func addCheckpoint() {}
    func isCompatible(with other: any SequenceMemory) -> Bool { other is TableMemory && isOf(other.format, other.adapter) }
    func copyPrefix(of other: any SequenceMemory, count: Int, in room: MemoryReservation?) {
        rows = other.rows.prefix(min(count, capacity))
    }
    func bytesToReserve(_ count: Int, withCheckpoint: Bool) -> Int { 0 }
    func bytesToCopy(_ count: Int) -> Int { 0 }
    var isEmpty: Bool { rows.count == 0 }

    func takeContents() -> Any {
        defer { rows = InputRows() }
        return rows
    }

    func reserve(_ count: Int, in room: MemoryReservation?, withCheckpoint: Bool) throws {
        reserved = tokens.count + count
        if reserved > capacity { throw GenerationFailure.promptTooLong(tokens: reserved, contextSize: capacity) }
    }

    var layout: SequenceLayout { SequenceLayout(pageBytes: 0, stateBytes: 0, elementBits: 0, usesLongFactors: false) }
    var checkpointPositions: [Int] { [] }
    func begin(_ rows: InputRows, checkpoints: [Int], reserve: (Int) throws -> MemoryReservation?) { self.rows = rows }
    func forEachPart(_ body: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {}
}

/// A model without weights: a token says which one follows it. Its logit is 4, those of all others are 0.
private final class TableModel: TokenModel {
    let limits: TokenModelLimits
    private let following: (TokenID) -> TokenID
    /// The tokens of the last pass.
    private var rows: [TokenID] = []
    private let memory: HostLogits
    /// What the engine asked for: the tokens of each sequence in each pass, the rows and candidates of each call for logits.
    private(set) var passes: [[Int]] = []
    private(set) var calls: [(rows: Int, candidates: [TokenID]?)] = []
    /// Called in each pass.
    var whileComputing: () -> Void = {}

    init(
        vocabulary: Int = 300, passTokens: Int = 64, sequences: Int = 8, logitRows: Int = 4,
        _ following: @escaping (TokenID) -> TokenID
    ) {
        limits = TokenModelLimits(
            passTokens: passTokens, sequences: sequences, logitRows: logitRows, vocabularySize: vocabulary, contextLength: 1_000)
        memory = .allocate(capacity: vocabulary * logitRows)
        self.following = following
    }

    deinit { memory.deallocate() }

    func makeMemory(capacity: Int, format: CacheFormat, adapter: LowRankAdapter?) -> any SequenceMemory {
        TableMemory(capacity: capacity, format: format, adapter: adapter)
    }

    func forward(
        _ tokens: UnsafeBufferPointer<TokenID>, parts: [PassPart], states: inout [RowState], isCancelled: () -> Bool
    ) throws(CancellationError) {
        #expect(tokens.count <= limits.passTokens && parts.count <= limits.sequences)
        #expect(parts.reduce(0) { $0 + $1.count } == tokens.count)
        whileComputing()
        if isCancelled() { throw CancellationError() }
        var rest = Array(tokens)
        rows = rest
        for part in parts {
            guard let memory = part.cache as? TableMemory else { continue }
            #expect(memory.reserved >= memory.tokens.count + part.count)
            memory.rows.append(rest.prefix(part.count))
            rest.removeFirst(part.count)
        }
        passes.append(parts.map(\.count))
        for index in states.indices { states[index].values = [Float(rows[states[index].row])] }
    }

    func computeLogits(ofRows wanted: ArraySlice<Int>, candidates: [TokenID]?) {
        #expect(wanted.count <= limits.logitRows)
        if let candidates { #expect(zip(candidates, candidates.dropFirst()).allSatisfy(<)) }
        memory.update(repeating: .nan)
        for (index, row) in wanted.enumerated() {
            for token in candidates ?? (0..<TokenID(limits.vocabularySize)).map(\.self) {
                logits(index)[Int(token)] = token == following(rows[row]) ? 4 : 0
            }
        }
        calls.append((wanted.count, candidates))
    }

    func logits(_ index: Int) -> HostLogits {
        HostLogits(rebasing: memory[index * limits.vocabularySize..<(index + 1) * limits.vocabularySize])
    }

    /// The logarithm of the probability of the token that follows.
    var logProbability: Double { 4 - log(exp(4) + Double(limits.vocabularySize - 1)) }
}

/// Chooses one of a few tokens after its prompt.
private final class ChoiceWork: SequenceWork {
    let prompt: ModelInput
    let wantsPromptLogits = false
    let candidates: [TokenID]
    private(set) var taken: [Float] = []

    init(after prompt: [TokenID], among candidates: [TokenID]) {
        (self.prompt, self.candidates) = (ModelInput(prompt), candidates)
    }

    func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? {
        guard taken.isEmpty else { return nil }
        tokens.append(prompt.ids[0])
        return .candidates(candidates)
    }

    func take(_ logits: UnsafeMutableBufferPointer<Float>) { taken = candidates.map { logits[Int($0)] } }
}

/// What the engine does with any model: here with one whose answers are known.
@Suite struct TokenModelTests {
    /// Runs work to its end. Returns what each ended with.
    private func run(
        _ works: [any SequenceWork], in memories: [any SequenceMemory], _ engine: Engine,
        signals: RequestSignals = RequestSignals()
    ) throws -> [Result<Void, any Error>] {
        var results: [Int: Result<Void, any Error>] = [:]
        for (index, work) in works.enumerated() {
            try engine.submit(work, in: memories[index], priority: .interactive, signals: signals) { results[index] = $0 }
        }
        for _ in 0..<10_000 where results.count < works.count { _ = engine.step() }
        return try works.indices.map { try #require(results[$0]) }
    }

    private func engine(_ model: TableModel) -> Engine {
        Engine(model: model, memory: PoolMemory())
    }

    private func memories(_ model: TableModel, _ count: Int, capacity: Int = 500) -> [any SequenceMemory] {
        (0..<count).map { _ in model.makeMemory(capacity: capacity, format: .binary16, adapter: nil) }
    }

    /// The text repeats itself, so that tokens are proposed; some are right, and what is wrong leaves the memory.
    @Test func turns() throws {
        let file = try TinyModel().file()
        let tokenizer = try Tokenizer(file: GGUFFile(path: file.path))
        let letters = Array("abcdefghijklmnopqrstuvwxyz".utf8).map { TokenID($0) }
        let model = TableModel { token in letters.firstIndex(of: token).map { letters[($0 + 1) % 26] } ?? letters[0] }
        let engine = engine(model)
        // The prompt has other letters after some.
        let prompt = letters + [letters[0], letters[1], letters[7], letters[8]] + letters[..<3]
        var request = GenerationRequest(tokens: prompt, sampling: .greedy, maximumTokens: 60)
        var text = ""
        func turn() throws -> TurnDriver {
            try TurnDriver(
                request, plan: TurnPlan(request, ChatTurn(), TurnVocabulary(tokenizer)), tokenizer: tokenizer, contextSize: 500,
                logitCount: model.limits.vocabularySize
            ) { event in if case .text(let piece) = event { text += piece.text } }
        }
        let memory = memories(model, 1)[0]
        let decoding = try turn()
        for result in try run([decoding], in: [memory], engine) { try result.get() }
        let expected = (0..<60).map { letters[($0 + 3) % 26] }
        #expect(decoding.result.tokens == expected && decoding.result.stopReason == .maximumTokens)
        #expect(text == String(decoding: expected.map { UInt8($0) }, as: UTF8.self))
        #expect(decoding.result.usage.acceptedTokens > 20)
        #expect((prompt + expected).starts(with: memory.tokens))
        let passes = model.passes.count
        #expect(passes < 40)
        // Without proposals, a token is a pass; the prompt is known but for its last token.
        request.proposesTokens = false
        let alone = try turn()
        for result in try run([alone], in: [memory], engine) { try result.get() }
        #expect(alone.result.tokens == expected && alone.result.usage.cachedTokens == prompt.count - 1)
        #expect(model.passes.count == passes + 60)
    }

    /// Passes, sequences and rows of logits stay within the limits of the model, whatever the scheduler allows.
    @Test func limits() throws {
        let model = TableModel(passTokens: 8, sequences: 2, logitRows: 3) { $0 + 1 }
        let works = (1...5 as ClosedRange<TokenID>).map { first in
            ScoringWork(of: Array(first + 1...first + 19), after: [9, 9, 9, 9, first])
        }
        for result in try run(works, in: memories(model, 5), engine(model)) { try result.get() }
        for work in works { #expect(abs(work.logProbability - 19 * model.logProbability) < 1e-3) }
        #expect(model.passes.contains { $0.count == 2 } && model.passes.contains { $0.reduce(0, +) == 8 })
    }

    /// The few logits that several sequences want after the same pass are computed in one call.
    @Test func candidates() throws {
        let model = TableModel { $0 + 1 }
        let works = [
            ChoiceWork(after: [10, 2], among: [11, 20]), ChoiceWork(after: [19, 3], among: [5, 20, 30]),
            ChoiceWork(after: [29, 4], among: [5, 11]),
        ]
        let engine = engine(model)
        for result in try run(works, in: memories(model, 3), engine) { try result.get() }
        #expect(works.map(\.taken) == [[4, 0], [0, 4, 0], [0, 0]])
        #expect(model.calls.map(\.rows) == [3])
        #expect(model.calls.first?.candidates == [5, 11, 20, 30])
        // One sequence alone has its own list.
        for result in try run([ChoiceWork(after: [10, 2], among: [7, 11])], in: memories(model, 1), engine) { try result.get() }
        #expect(model.calls.last?.candidates == [7, 11])
        #expect(model.passes == [[2, 2, 2], [1, 1, 1], [2], [1]])
    }

    /// A sequence begins with what another one knows.
    @Test func equalBeginnings() throws {
        let model = TableModel { $0 + 1 }
        let pool = PoolMemory()
        let engine = Engine(model: model, memory: pool)
        let prompt = (0..<60).map { TokenID($0 + 1) }
        let memories = memories(model, 2)
        let sequences = memories.map {
            SequenceState(cache: $0, contextSize: 500, memory: pool, model: 0, isShared: true)
        }
        for (memory, end) in zip(memories, [100, 200] as [TokenID]) {
            for result in try run([PrefillWork(prompt: ModelInput(prompt + [end]))], in: [memory], engine) { try result.get() }
            #expect(memory.tokens == prompt + [end])
        }
        #expect(model.passes == [[61], [1]])
        withExtendedLifetime(sequences) {}
    }

    @Test func failures() throws {
        let model = TableModel { $0 + 1 }
        let engine = engine(model)
        let works = [PrefillWork(prompt: ModelInput([1, 2, 3])), PrefillWork(prompt: ModelInput([4, 5]))]
        // A sequence without room fails alone.
        let results = try run(works, in: memories(model, 1, capacity: 2) + memories(model, 1), engine)
        #expect(throws: GenerationFailure.promptTooLong(tokens: 3, contextSize: 2)) { try results[0].get() }
        try results[1].get()
        // A pass ends if all its requests are cancelled, and leaves nothing behind.
        let signals = RequestSignals()
        model.whileComputing = { signals.cancel() }
        let memories = memories(model, 2)
        for result in try run(works, in: memories, engine, signals: signals) {
            #expect(throws: CancellationError.self) { try result.get() }
        }
        #expect(memories.allSatisfy { $0.tokens.isEmpty })
    }

    /// The residual stream of the prompt's last token comes before its logits.
    @Test func states() throws {
        final class StateWork: SequenceWork {
            let prompt = ModelInput([7, 8, 9])
            let wantsPromptLogits = true
            let stateLayers = [0, 3]
            var events: [String] = []
            func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? { nil }
            func take(_ logits: UnsafeMutableBufferPointer<Float>) { events.append("\(logits.indexOfMaximum)") }
            func takeState(_ state: [Float], layer: Int) { events.append("\(layer): \(state)") }
        }
        let model = TableModel { $0 + 1 }
        let work = StateWork()
        for result in try run([work], in: memories(model, 1), engine(model)) { try result.get() }
        #expect(work.events == ["0: [9.0]", "3: [9.0]", "10"])
    }

    /// A question on a branch begins with what the sequence knows, and leaves it as it is.
    @Test func branches() throws {
        final class QuestionWork: SequenceWork {
            let prompt = ModelInput([1, 2, 3])
            let wantsPromptLogits = false
            private(set) var branch: WorkBranch?
            private(set) var position: Int?
            private var steps = 0
            private(set) var answers: [Int] = []

            func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? {
                steps += 1
                position = nil
                guard steps <= 2 else { return nil }
                // Other tokens follow the second one; then the sequence itself goes on.
                (branch, position) = steps == 1 ? (WorkBranch(number: 1, keptTokens: 2), 2) : (nil, 3)
                tokens = steps == 1 ? [50] : [4]
                return .last(1)
            }

            func take(_ logits: UnsafeMutableBufferPointer<Float>) { answers.append(logits.indexOfMaximum) }
        }
        let model = TableModel { $0 + 1 }
        let work = QuestionWork()
        let memory = memories(model, 1)[0]
        for result in try run([work], in: [memory], engine(model)) { try result.get() }
        #expect(work.answers == [51, 5])
        #expect(model.passes == [[3], [1], [1]] && memory.tokens == [1, 2, 3, 4])
    }

    // MARK: Turns that call

    private let letters = Array("abcdefghijklmnopqrstuvwxyz".utf8).map { TokenID($0) }

    private func tool(_ name: String, _ parameters: String) throws -> ChatTool {
        ChatTool(name: name, description: "", parameters: try JSONParser.parse(parameters))
    }

    private func calling(_ tools: [ChatTool], _ tokenizer: Tokenizer) -> ChatTurn {
        var chat = ChatTurn()
        chat.toolFormat = ToolFormat(template: TurnTestTemplate.hermes) { _ in false }
        chat.tools.callable = tools
        let vocabulary = TokenVocabulary(tokenizer)
        chat.grammar = { tool, _, after in
            let options = GrammarOptions(isSpaced: true, allowsZeroFraction: false)
            let source = GrammarSource.framed(before: " ", schema: tool.parameters, after: after)
            // Without a grammar, the turn ends without a call.
            return (try? Grammar(source, vocabulary: vocabulary, options: options)).map { PendingGrammar($0) }
        }
        return chat
    }

    /// The tokens of a name that the model has chosen are in memory already: it does not matter that the plan writes them.
    @Test func namesOfToolsAreProcessedOnce() throws {
        let file = try TinyModel().file()
        let tokenizer = try Tokenizer(file: GGUFFile(path: file.path))
        let (underscore, letter) = (TokenID(UInt8(ascii: "_")), TokenID(UInt8(ascii: "x")))
        let model = TableModel { [letters] token in token == underscore ? letters[1] : letter }
        let nothing = #"{"type": "object", "properties": {}, "additionalProperties": false}"#
        var chat = try calling([tool("get_a", nothing), tool("get_b", nothing)], tokenizer)
        chat.tools.mustCall = true
        chat.contextSize = 500
        var request = GenerationRequest(tokens: Array(letters[..<8]), sampling: .greedy)
        request.proposesTokens = false
        var calls: [ChatToolCall] = []
        let turn = try TurnDriver(
            request, plan: TurnPlan(request, chat, TurnVocabulary(tokenizer)), tokenizer: tokenizer, contextSize: 500,
            logitCount: model.limits.vocabularySize
        ) { event in if case .call(let call) = event { calls.append(call) } }
        let memory = memories(model, 1)[0]
        for result in try run([turn], in: [memory], engine(model)) { try result.get() }
        #expect(calls.map(\.name) == ["get_b"])
        #expect(model.passes.flatMap(\.self).reduce(0, +) == memory.tokens.count)
    }

    /// Work that waits for something else than the model takes no place of work that could go on.
    @Test func workThatWaitsHoldsUpNoOther() throws {
        final class WaitingWork: SequenceWork {
            let prompt: ModelInput
            let wantsPromptLogits = false
            var isBlocked = true
            init(_ prompt: [TokenID]) { self.prompt = ModelInput(prompt) }
            func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? { isBlocked ? .blocked : nil }
            func take(_ logits: UnsafeMutableBufferPointer<Float>) {}
        }
        let model = TableModel(sequences: 2) { $0 + 1 }
        let engine = engine(model)
        let waiting = (1...2).map { WaitingWork([TokenID($0), 9]) }
        let works: [any SequenceWork] = waiting + [PrefillWork(prompt: ModelInput([5, 6, 7]))]
        let memories = memories(model, works.count)
        var ended: [Int] = []
        for (index, work) in works.enumerated() {
            try engine.submit(work, in: memories[index], priority: .interactive, signals: RequestSignals()) { _ in
                ended.append(index)
            }
        }
        for _ in 0..<100 { _ = engine.step() }
        #expect(ended == [2])
        // All rest until somebody wakes the engine.
        #expect(!engine.step())
        for work in waiting { work.isBlocked = false }
        for _ in 0..<100 { _ = engine.step() }
        #expect(ended.sorted() == [0, 1, 2])
    }

    /// Files contain the sequences of any model.
    @Test func files() throws {
        let model = TableModel { $0 + 1 }
        let memory = memories(model, 1)[0]
        for result in try run([PrefillWork(prompt: ModelInput([3, 4, 5]))], in: [memory], engine(model)) { try result.get() }
        let written = try TemporaryFile([])
        let file = CacheFile(url: URL(fileURLWithPath: written.path), model: 1)
        try file.write(memory)
        let read = try file.read(for: model)
        #expect(read.tokens == [3, 4, 5] && read.capacity == 500)
    }
}
