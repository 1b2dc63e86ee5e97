internal import Foundation
internal import JSON

/// What happens next in a model's turn.
struct TurnStep {
    /// The number of tokens of the turn that remain, with those of the phase that has ended.
    var keep: Int
    /// The tokens that follow them.
    var append: [TokenID]
    /// What the last phase made certain.
    var events: [TurnEvent] = []
    /// The next phase; nil if the turn ends, for `reason`.
    var phase: TurnPhase?
    var reason = StopReason.endOfTurn
}

/// Decides what follows each phase of a turn: reasoning, the answer, calls of tools in the format that the model was trained
/// for. The calls are in extensions.
///
/// A value without I/O: it is told how a phase ended and says which tokens remain and which phase is next. Text is unconstrained until
/// the model begins a call. From there on each part is constrained: the name of one of the tools, arguments that the tool's schema
/// accepts, and the delimiters between them.
struct TurnPlan {
    enum State {
        case thought
        /// Which tool a message is for, of a model that was not trained to call tools.
        case recipient(RecipientChoice)
        /// All calls of such a model.
        case callList([ChatTool])
        /// Whether the model begins a call before a guided answer.
        case decision
        case answer
        case call(CallState, CallPart)
    }

    let request: GenerationRequest
    let chat: ChatTurn
    let vocabulary: TurnVocabulary
    let makeIdentifier: @Sendable () -> String
    var state = State.answer
    var events: [TurnEvent] = []
    /// The tokens that had been generated when the last phase ended.
    private var generatedTokens = 0
    /// The tokens that had been generated when the reasoning ended; nil if there is none.
    private var thoughtTokens: Int?
    private var hasText = false
    /// Whether the model has begun a call whose result it has.
    private var hasResult = false

    // The tokens of the turn: how many of the driver's remain, and those after them.
    private var kept = 0
    private var appended: [TokenID] = []

    init(
        _ request: GenerationRequest, _ chat: ChatTurn = ChatTurn(), _ vocabulary: TurnVocabulary,
        makeIdentifier: @escaping @Sendable () -> String = ToolFormat.identifier
    ) {
        self.request = request
        self.chat = chat
        self.vocabulary = vocabulary
        self.makeIdentifier = makeIdentifier
    }

    /// The tools that may be called now.
    var tools: [ChatTool] { hasResult ? [] : chat.tools.callable }

    /// The first phase of the turn.
    mutating func begin() -> TurnStep {
        if let thinking = chat.thinkingFormat, isInside(thinking, request.tokens) { return thought(thinking) }
        return chooseRecipient() ?? requiredCall() ?? answer()
    }

    /// The step after a phase.
    ///
    /// - Throws: ``GenerationFailure/argumentTooLong(tool:argument:contextSize:)``, or ``GenerationFailure/grammarTooComplex``.
    mutating func next(after end: PhaseEnd) throws -> TurnStep {
        kept += appended.count
        appended = []
        generatedTokens = end.generatedTokens
        switch state {
        case .thought:
            keep(end)
            // An answer follows the reasoning also where the model ends its turn instead of the reasoning, or never ends it.
            guard [.stopString, .endOfTurn, .loop].contains(end.reason), let thinking = chat.thinkingFormat else {
                return finish(end.reason)
            }
            write(thinking.close)
            thoughtTokens = end.generatedTokens
            return chooseRecipient() ?? requiredCall() ?? answer()
        case .recipient(let choice): return next(after: choice, end)
        case .callList(let tools): return try calls(of: tools, end)
        case .decision:
            return try call(end) ?? constrainedAnswer()
        case .answer: return try afterAnswer(end)
        case .call(var calls, let part):
            guard let format = chat.toolFormat else { return finish(end.reason) }
            return try next(after: part, end, &calls, format)
        }
    }

    /// The error if a phase cannot begin because its shortest text does not fit.
    func failure(needed: Int, available: Int) -> GenerationFailure {
        guard case .call(let calls, let part) = state, let tool = calls.tool else {
            return .budgetTooSmall(needed: needed, available: available)
        }
        var argument: String?
        if case .value(let property, _, _) = part { argument = property.name }
        return .argumentTooLong(tool: tool.name, argument: argument, contextSize: chat.contextSize)
    }

    // MARK: - Steps

    /// The number of tokens of the turn.
    var count: Int { kept + appended.count }

    /// The tokens of the phase become part of the turn.
    mutating func keep(_ end: PhaseEnd) { kept += end.tokens.count }

    /// Removes all tokens after the first `count`.
    mutating func cut(to count: Int) { (kept, appended) = (count, []) }

    mutating func write(_ text: String) { if !text.isEmpty { write(vocabulary.encode(text)) } }
    mutating func write(_ tokens: [TokenID]) { appended += tokens }

    mutating func step(_ phase: TurnPhase?, _ reason: StopReason = .endOfTurn) -> TurnStep {
        defer { events = [] }
        return TurnStep(keep: kept, append: appended, events: events, phase: phase, reason: reason)
    }

    mutating func finish(_ reason: StopReason) -> TurnStep { step(nil, reason) }

    mutating func report(_ call: ChatToolCall) { events.append(.call(call)) }

    /// The rest of the request's limit, which applies to reasoning and answer.
    private var left: Int? {
        request.maximumTokens.map { limit in thoughtTokens.map { max(1, limit - $0) } ?? limit }
    }

    /// The rest of the limit for calls; nil if there is none.
    var leftForCalls: Int? {
        request.endsAtLimit ? request.maximumTokens.map { max(1, $0 - generatedTokens) } : nil
    }

    /// Whether no token is left for another call.
    var hasReachedLimit: Bool { request.endsAtLimit && request.maximumTokens.map { generatedTokens >= $0 } ?? false }

    // MARK: - Reasoning

    /// Whether a prompt ends with the opening delimiter of reasoning, and white space.
    private func isInside(_ format: ThinkingFormat, _ prompt: [TokenID]) -> Bool {
        let open = opening(format)
        // Line breaks may follow it, each a token or two in one.
        let spaces = Set(["\n", "\n\n", " "].flatMap { vocabulary.encode($0) })
        let tail = prompt.suffix(open.count + 2)
        return (0...2).contains { count in
            tail.dropLast(count).suffix(open.count).elementsEqual(open) && tail.suffix(count).allSatisfy(spaces.contains)
        }
    }

    /// The tokens with which reasoning begins.
    private func opening(_ format: ThinkingFormat) -> [TokenID] {
        vocabulary.encode(format.open.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    private mutating func thought(_ format: ThinkingFormat) -> TurnStep {
        state = .thought
        var phase = TurnPhase(kind: .free, output: .thought)
        phase.maximumTokens = request.maximumTokens
        phase.trimsStart = true
        phase.detectsLoops = request.detectsLoops
        let close = vocabulary.encode(format.close)
        if close.count == 1 { phase.stopTokens = Set(close) } else { phase.stopStrings = [format.close] }
        return step(phase)
    }

    // MARK: - The answer

    mutating func answer() -> TurnStep {
        let format = tools.isEmpty ? nil : chat.toolFormat
        if request.grammar != nil, format == nil { return constrainedAnswer() }
        var phase = TurnPhase(kind: .free)
        phase.maximumTokens = left
        phase.minimumTokens = request.minimumTokens
        phase.stopStrings = request.stopStrings
        phase.stopTokens = request.stopTokens
        phase.bannedTokens = request.bannedTokens
        phase.bannedFirstTokens = request.bannedFirstTokens
        phase.detectsLoops = request.detectsLoops
        // Line breaks between the reasoning and the answer belong to neither.
        phase.trimsStart = thoughtTokens != nil
        if let format {
            callTriggers(format, in: &phase)
        } else if let format = chat.toolFormat, chat.tools.areInPrompt {
            // Tools that must not be called now must not be called in the answer text either.
            if let token = vocabulary.specialToken(format.trigger) { phase.bannedTokens.append(token) }
        }
        if request.grammar != nil {
            state = .decision
            phase.output = .call
            phase.endsWithText = true
            return step(phase)
        }
        state = .answer
        // The model decides whether it begins with reasoning.
        if thoughtTokens == nil, let thinking = chat.thinkingFormat {
            let open = opening(thinking)
            if open.count == 1 { phase.firstStopToken = open.first }
        }
        return step(phase)
    }

    private mutating func constrainedAnswer() -> TurnStep {
        state = .answer
        var phase = TurnPhase(kind: request.grammar.map { .constrained($0) } ?? .free)
        phase.maximumTokens = left
        phase.stopStrings = request.stopStrings
        phase.detectsLoops = request.detectsLoops
        return step(phase)
    }

    private mutating func afterAnswer(_ end: PhaseEnd) throws -> TurnStep {
        keep(end)
        hasText = hasText || !end.isBlank
        if end.calledTool != nil { return try call(end) ?? finish(end.reason) }
        guard end.reason == .stopString else { return finish(end.reason) }
        if let thinking = chat.thinkingFormat, let token = end.stopToken, end.tokens.isEmpty, thoughtTokens == nil,
            opening(thinking) == [token]
        {
            write([token])
            return thought(thinking)
        }
        return try call(end) ?? finish(.stopString)
    }

    /// The turn ends without a call whose result the prompt has; if it has nothing else, the model answers in its place.
    mutating func leaveOutCall(_ calls: CallState) -> TurnStep {
        if hasText || !calls.calls.isEmpty { return finish(.endOfTurn) }
        hasResult = true
        cut(to: calls.start)
        return answer()
    }
}
