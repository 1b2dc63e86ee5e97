internal import Grammar

/// Generates a turn of a model. It asks the ``TurnPlan`` which phase is next, lets a ``PhaseWriter`` choose the tokens of the phase, and
/// keeps the account of tokens, text and usage, with one sampler and one source of proposals for the whole turn.
///
/// Tokens that are proposed, and those that are forced by a grammar or fixed by the plan, are processed together with the latest token.
/// Each row of logits is sampled as if there were no proposals, and the rows after the first difference are ignored, so the response
/// is the same.
final class TurnDriver: SequenceWork {
    private let request: GenerationRequest
    private let tokenizer: Tokenizer
    private let settings: ConstrainedWriter.Settings
    private let contextSize: Int
    private let send: (TurnEvent) -> Void
    /// Whether nobody wants the rest of the turn.
    private let isUnwanted: () -> Bool
    /// Makes the engine go on, after it had to wait.
    private let wake: @Sendable () -> Void

    private var plan: TurnPlan
    private let sampler: Sampler
    private var proposal: Proposal
    private var times = WorkTimes()
    private(set) var result = GenerationResult(stopReason: .endOfTurn, usage: GenerationUsage())

    let prompt: ModelInput
    private var sequence: TurnSequence
    private(set) var branch: WorkBranch?
    private var branches = 0

    // The current phase.
    private var phase: TurnPhase
    /// Nil in a phase that is a question, or that waits for its grammar.
    private var writer: (any PhaseWriter)?
    private var question: AskedQuestion?
    private var grammar: PendingGrammar?
    private var text = TextOutput()
    /// The text of a phase that is a part of a call.
    private var collected = ""
    /// Whether the phase has no text but white space.
    private var isBlank = true
    /// The first token of the phase.
    private var start: Int
    /// The tokens that the phase has generated, including one that ended it.
    private var generated = 0
    private var end: PhaseEnd?
    private var isEnded = false
    /// Kept, because it has two arrays of the vocabulary's size.
    private var chooser: TokenChooser?
    /// Whether the logits after the prompt are those of a token that is fixed.
    private var skipsPromptLogits: Bool
    /// The number of rows of logits of the current pass that have been taken.
    private var row = 0

    /// - Parameters:
    ///   - logitCount: the number of logits, which may exceed the number of tokens in the vocabulary.
    ///   - head: proposes tokens; nil to look them up.
    ///   - isUnwanted: whether nobody wants the rest of the turn.
    ///   - wake: called on any thread when ``isBlocked`` may have become false.
    ///   - send: called with each event, on the engine's executor.
    /// - Throws: ``GenerationFailure/promptTooLong(tokens:contextSize:)`` if the prompt leaves no room for the tokens with which the
    ///   turn begins in any case and one more.
    init(
        _ request: GenerationRequest, plan: TurnPlan, tokenizer: Tokenizer, contextSize: Int,
        logitCount: Int, head: PredictionHead? = nil, isUnwanted: @escaping () -> Bool = { false },
        wake: @escaping @Sendable () -> Void = {},
        send: @escaping (TurnEvent) -> Void
    ) throws {
        self.request = request
        self.tokenizer = tokenizer
        self.contextSize = contextSize
        self.isUnwanted = isUnwanted
        self.wake = wake
        self.send = send
        var plan = plan
        let first = plan.begin()
        self.plan = plan
        settings = ConstrainedWriter.Settings(
            topScores: request.topScores, endsAtLimit: request.endsAtLimit, batchesForcedTokens: request.batchesForcedTokens,
            logitCount: logitCount,
            encode: { [tokenizer] in tokenizer.encode(bytes: $0) }, stopTokens: tokenizer.stopTokens)
        let tokens = request.tokens + first.append
        guard tokens.count < contextSize else {
            throw GenerationFailure.promptTooLong(tokens: tokens.count, contextSize: contextSize)
        }
        // Tokens with which the turn begins in any case are processed with the prompt, unless the states after the request's last
        // token are wanted.
        skipsPromptLogits = !request.stateLayers.isEmpty && !first.append.isEmpty
        var prompt = request.input
        if !skipsPromptLogits { prompt.append(first.append) }
        self.prompt = prompt
        sequence = TurnSequence(
            tokens, promptCount: request.tokens.count, valid: prompt.count, maximumTokens: request.maximumTokens)
        start = tokens.count
        sampler = Sampler(request.sampling) { [tokenizer] token in
            tokenizer.text(of: token).contains { Self.breaks.contains($0) }
        }
        proposal = Self.proposal(request, head, after: tokens, contextSize: contextSize)
        result.usage.promptTokens = request.tokens.count
        phase = first.phase ?? TurnPhase(kind: .free)
        begin(first)
    }

    /// The characters that end what DRY compares.
    private static let breaks = Set("\n:\"*".utf8)

    private static func proposal(
        _ request: GenerationRequest, _ head: PredictionHead?, after tokens: [TokenID], contextSize: Int
    ) -> Proposal {
        guard request.proposesTokens, request.batchesForcedTokens else { return Proposal(nil) }
        // A head knows tokens only. Without memory for what it sees, the text is looked up.
        if let head, !tokens.contains(InputRows.embedded), let draft = try? HeadDraft(head, prompt: tokens, capacity: contextSize)
        {
            return Proposal(draft)
        }
        return Proposal(LookupDraft(prompt: tokens))
    }

    var wantsPromptLogits: Bool { true }
    var input: ModelInput { question == nil ? prompt : ModelInput() }
    var position: Int? { question?.position ?? sequence.position }
    func tokens(in range: Range<Int>) -> ArraySlice<TokenID> { (question?.tokens ?? sequence.tokens)[range] }

    func begin(cachedTokens: Int) {
        if question != nil { return }
        result.usage.cachedTokens = cachedTokens
        times.begin(&result.usage)
    }

    var stateLayers: [Int] { request.stateLayers }
    func takeState(_ state: [Float], layer: Int) { send(.state(state, layer: layer)) }

    var wantsHiddenRows: Bool { question == nil && proposal.wantsHiddenRows }
    func takeHidden(_ hidden: UnsafePointer<Float>, rows: Int, position: Int) {
        proposal.take(hidden, rows: rows, position: position)
    }

    // MARK: - Phases

    /// Begins the phase of a step; ends the turn if it has none.
    private func begin(_ step: TurnStep) {
        for event in step.events { send(event) }
        guard let next = step.phase else {
            isEnded = true
            result.stopReason = step.reason
            (question, branch) = (nil, nil)
            return
        }
        phase = next
        start = sequence.count
        generated = 0
        isBlank = true
        text = TextOutput(
            stops: phase.stopStrings, openings: phase.openings, trimsStart: phase.trimsStart, callableTools: phase.callableTools)
        (writer, question, grammar) = (nil, nil, nil)
        switch phase.kind {
        case .free: writer = FreeWriter(phase, tokenizer, topScores: request.topScores)
        case .constrained(let pending): grammar = pending
        case .choice(let options): writer = ChoiceWriter(options, topScores: request.topScores)
        case .question(let asked): question = AskedQuestion(asked)
        }
        // A question has a branch of its own; everything else goes on where the turn is.
        branch = question.map { WorkBranch(number: branches, keptTokens: $0.promptCount) }
        branches += 1
    }

    /// Asks the plan what follows the phase that has ended.
    private func advance(_ end: PhaseEnd) throws {
        var end = end
        if let rest = text.finish() { emit(rest) }
        end.text = collected
        collected = ""
        end.stopString = text.stopString
        end.calledTool = text.calledTool
        end.generatedTokens = result.usage.generatedTokens
        end.isBlank = isBlank && phase.output == .answer
        end.tokens = keptTokens(end)
        if phase.output == .answer {
            (result.stopToken, result.stopString) = (end.stopToken, end.stopString)
        }
        if phase.output == .thought { result.thoughtTokens = result.usage.generatedTokens }
        if isUnwanted() {
            isEnded = true
            result.stopReason = .unwanted
            (question, branch) = (nil, nil)
            return
        }
        let step = try plan.next(after: end)
        // What the plan writes may be what the phase has: those tokens are not processed again.
        let keep = sequence.promptCount + step.keep
        let first = min(start, keep)
        let following = end.tokens.prefix(keep - first) + step.append
        let common = zip(sequence.tokens[first...], following).prefix { $0 == $1 }.count
        sequence.keep(first + common)
        proposal.keep(sequence.count)
        for token in following.dropFirst(common) {
            sequence.append(token)
            proposal.append(token)
        }
        begin(step)
    }

    /// The tokens of the phase whose text is not a part of what ended it.
    private func keptTokens(_ end: PhaseEnd) -> [TokenID] {
        var kept = Array(sequence.tokens[start...])
        guard end.stopString != nil || end.calledTool != nil else { return kept }
        let count = text.ends.firstIndex { $0 > text.bytes } ?? text.ends.count
        // A token may contain the end of the text and the beginning of the stop string.
        let last = kept.indices.contains(count) ? kept[count] : nil
        kept.removeLast(max(0, kept.count - count))
        let rest = text.bytes - (count > 0 ? text.ends[count - 1] : 0)
        if let last, rest > 0 {
            kept += tokenizer.encode(continuation: String(decoding: tokenizer.text(of: last).prefix(rest), as: UTF8.self))
        }
        return kept
    }

    private func emit(_ part: GeneratedText) {
        if isBlank { isBlank = !part.text.contains { !$0.isWhitespace } }
        switch phase.output {
        case .answer: send(.text(part))
        case .thought: send(.thought(part))
        case .call: collected += part.text
        }
    }

    // MARK: - Tokens to process

    /// Whether the grammar of the phase is being compiled, or another thread computes what it allows.
    var isBlocked: Bool {
        let waits = if let grammar { !grammar.isReady } else { writer?.isWaiting ?? false }
        return waits && !isUnwanted()
    }

    func next(_ tokens: inout [TokenID], draft: DraftBudget) throws -> WantedLogits? {
        proposal.finish()
        row = 0
        while !isEnded {
            if let end {
                self.end = nil
                try advance(end)
            } else if isUnwanted() {
                end = PhaseEnd(reason: .unwanted)
            } else if let wanted = try request(&tokens, draft) {
                return wanted
            }
        }
        sequence.finish()
        result.tokens = Array(sequence.turn)
        times.finish(&result.usage)
        return nil
    }

    /// Names the tokens whose logits the phase needs next; nil if it has ended, or if it made progress without logits.
    private func request(_ tokens: inout [TokenID], _ draft: DraftBudget) throws -> WantedLogits? {
        if let question { return try ask(question, &tokens) }
        if sequence.count > contextSize {
            end = PhaseEnd(reason: .contextFull)
            return nil
        }
        guard let writer = try readyWriter() else {
            grammar?.whenReady(wake)
            return .blocked
        }
        // For the comparison with what is the same in one batch, forced tokens are processed one by one.
        if !request.batchesForcedTokens, writer is ConstrainedWriter, sequence.open > 0 {
            sequence.name(into: &tokens)
            return .last(1)
        }
        switch try writer.next(generated: generated, sampler) {
        case .logits(let proposals):
            sequence.name(into: &tokens)
            let room = min(contextSize - sequence.count, proposals)
            return .last(1 + proposal.propose(draft, maximum: room, into: &tokens, &result.usage))
        case .candidates(let candidates):
            sequence.name(into: &tokens)
            return .candidates(candidates)
        case .forced(let forced):
            accept(forced)
            // Long forced texts are processed in parts, so that other requests and a cancellation need not wait.
            guard sequence.open >= EngineLimits.passTokens else { return nil }
            sequence.name(into: &tokens)
            return .processOnly
        case .step(let step):
            apply(step, of: writer)
            return nil
        case .nothing:
            writer.whenReady(wake)
            return .blocked
        case .end(let end):
            self.end = end
            return nil
        }
    }

    /// The writer of the phase; nil while its grammar is being compiled.
    ///
    /// - Throws: the error of the grammar, or that of a text for which there is no room.
    private func readyWriter() throws -> (any PhaseWriter)? {
        if let writer { return writer }
        guard let compiled = try grammar?.value else { return nil }
        grammar = nil
        let made = try ConstrainedWriter(
            compiled, phase, room: contextSize - sequence.count, chooser, settings
        ) { plan.failure(needed: $0, available: $1) }
        (writer, chooser) = (made, made.chooser)
        return made
    }

    private func ask(_ question: AskedQuestion, _ tokens: inout [TokenID]) throws -> WantedLogits? {
        guard question.tokens.count <= contextSize else {
            throw GenerationFailure.promptTooLong(tokens: question.tokens.count + 1, contextSize: contextSize)
        }
        if let value = question.value {
            end = PhaseEnd(reason: .endOfTurn, logValue: value)
            return nil
        }
        question.isAsked = true
        tokens += question.tokens[question.position...]
        return question.wanted
    }

    // MARK: - Logits

    func take(_ logits: HostLogits) throws {
        times.takeLogits(&result.usage)
        // Rows within forced tokens are not needed.
        defer { row += 1 }
        if skipsPromptLogits {
            skipsPromptLogits = false
            return
        }
        if isEnded || end != nil || proposal.isRejected || row < proposal.accepted { return }
        if let question {
            // The logits after the prompt are not those of a question.
            if question.isAsked { question.take(logits) }
            return
        }
        // Without the grammar, the last token is processed again when it is there.
        guard let writer = try readyWriter() else { return }
        apply(try writer.take(logits, generated: generated, sampler), of: writer)
    }

    private func apply(_ step: PhaseStep, of writer: any PhaseWriter) {
        switch step {
        case .nothing: break
        case .token(let token, let score):
            accept(token, isForced: false, score)
            if end == nil { end = writer.end(after: token, generated: generated) }
        case .forced(let forced): accept(forced)
        case .stop(let end):
            count()
            self.end = end
        case .end(let end): self.end = end
        }
    }

    private func accept(_ forced: ArraySlice<TokenID>) {
        for token in forced {
            accept(token, isForced: true, request.topScores == nil ? nil : TokenScore(token: token, logProbability: nil))
            if end != nil { return }
        }
    }

    /// Appends a token of the phase, passes its text on, and ends the phase at a stop string.
    private func accept(_ token: TokenID, isForced: Bool, _ score: TokenScore?) {
        count()
        if isForced { result.usage.forcedTokens += 1 }
        sequence.append(token, isNamed: sequence.open == 0 && proposal.contains(token, &result.usage))
        proposal.append(token)
        let (part, stopped) = text.append(token, tokenizer.text(of: token), score)
        if let part {
            emit(part)
            if phase.endsWithText, part.text.contains(where: { !$0.isWhitespace }) { end = PhaseEnd(reason: .endOfTurn) }
        }
        if stopped { end = PhaseEnd(reason: .stopString) }
    }

    private func count() {
        generated += 1
        result.usage.generatedTokens += 1
    }
}
