internal import Foundation
internal import Grammar

/// Generates a turn of a model: the phases of a ``TurnPlan``, with one sampler, one proposal and one account of usage.
///
/// Tokens that a ``LookupDraft`` proposes, and those that are forced by a grammar or fixed by the plan, are processed together
/// with the latest token. Each row of logits is sampled as if there were no proposals, and the rows after the first difference
/// are ignored, so the response is the same.
final class TurnDecoding: SequenceWork {
    private let request: GenerationRequest
    private let tokenizer: Tokenizer
    private let contextSize: Int
    private let logitCount: Int
    private let send: (TurnEvent) -> Void
    /// Whether nobody wants the rest of the turn.
    private let isUnwanted: () -> Bool

    private var plan: TurnPlan
    private var sampler: Sampler
    private var proposal: Proposal
    private var times = WorkTimes()
    private(set) var result = GenerationResult(stopReason: .endOfTurn, usage: GenerationUsage())

    let prompt: [TokenID]
    /// The tokens of the prompt and of the turn.
    private var tokens: [TokenID]
    /// The number of them that are in the sequence or that ``next(_:draft:)`` has named, without proposals that did not become
    /// part of the turn.
    private var valid: Int
    private(set) var position: Int?

    // The current phase.
    private var phase: TurnPhase
    private var state: PhaseState
    private var text: TextOutput
    /// Chooses the tokens of constrained phases; kept, because it has two arrays of the vocabulary's size.
    private var chooser: TokenChooser?
    /// The first token of the phase.
    private var start: Int
    /// The tokens that the phase has generated, including one that ended it.
    private var generated = 0
    private var end: PhaseEnd?
    private var isEnded = false
    /// Whether the logits after the prompt are those of a token that is fixed.
    private var skipsPromptLogits: Bool
    /// The number of rows of logits of the current pass that have been taken.
    private var row = 0

    /// - Parameters:
    ///   - logitCount: the number of logits, which may exceed the number of tokens in the vocabulary.
    ///   - send: called with each event, on the engine's executor.
    /// - Throws: ``GenerationFailure/budgetTooSmall(needed:available:)``, or ``GenerationFailure/promptTooLong(tokens:contextSize:)``
    ///   if the prompt leaves no room for the tokens with which the turn begins in any case and one more.
    init(
        _ request: GenerationRequest, plan: TurnPlan, tokenizer: Tokenizer, contextSize: Int,
        logitCount: Int, isUnwanted: @escaping () -> Bool = { false }, send: @escaping (TurnEvent) -> Void
    ) throws {
        self.request = request
        self.tokenizer = tokenizer
        self.contextSize = contextSize
        self.logitCount = logitCount
        self.isUnwanted = isUnwanted
        self.send = send
        var plan = plan
        let first = plan.begin()
        self.plan = plan
        tokens = request.tokens + first.written
        guard tokens.count < contextSize else {
            throw GenerationFailure.promptTooLong(tokens: tokens.count, contextSize: contextSize)
        }
        // Tokens with which the turn begins in any case are processed with the prompt, unless the states after the request's last
        // token are wanted.
        skipsPromptLogits = !request.stateLayers.isEmpty && !first.written.isEmpty
        prompt = skipsPromptLogits ? request.tokens : tokens
        tokens.reserveCapacity(tokens.count + max(0, min(request.maximumTokens ?? .max, Self.expectedTokens)))
        valid = prompt.count
        start = tokens.count
        sampler = Sampler(request.sampling) { token in
            tokenizer.text(of: token).contains { Self.breaks.contains($0) }
        }
        proposal = Proposal(prompt: request.proposesTokens && request.batchesForcedTokens ? tokens : nil)
        result.usage.promptTokens = request.tokens.count
        phase = first.phase ?? TurnPhase(kind: .free)
        state = .comparison
        text = TextOutput()
        try begin(first)
    }

    /// The characters that end what DRY compares.
    private static let breaks = Set("\n:\"*".utf8)

    /// The number of tokens for which there is room without another allocation.
    private static let expectedTokens = 512

    var wantsPromptLogits: Bool { true }
    func tokens(in range: Range<Int>) -> ArraySlice<TokenID> { tokens[range] }

    func begin(cachedTokens: Int) {
        result.usage.cachedTokens = cachedTokens
        times.begin(&result.usage)
    }

    var stateLayers: [Int] { request.stateLayers }
    func takeState(_ state: [Float], layer: Int) { send(.state(state, layer: layer)) }

    // MARK: - Phases

    /// Begins the phase of a step; ends the turn if it has none.
    private func begin(_ step: TurnStep) throws {
        for event in step.events { send(event) }
        guard let next = step.phase else {
            isEnded = true
            result.stopReason = step.reason
            return
        }
        phase = next
        start = tokens.count
        generated = 0
        text = TextOutput(
            stops: phase.stopStrings, openings: phase.openings, trimsStart: phase.trimsStart, callableTools: phase.callableTools)
        switch phase.kind {
        case .free: state = .free(FreeState(loops: phase.detectsLoops ? LoopDetector() : nil))
        case .constrained(let grammar):
            let decoder = GrammarCursor(grammar) { [tokenizer] in tokenizer.encode(bytes: $0) }
            let limit = min(phase.maximumTokens ?? .max, contextSize - tokens.count)
            let needed = decoder.minimumTokenCount
            if needed > limit { throw plan.failure(needed: needed, available: max(0, limit)) }
            let chooser =
                chooser ?? TokenChooser(vocabulary: grammar.vocabulary, count: logitCount, nullBias: request.nullBias)
            chooser.reset()
            self.chooser = chooser
            state = .constrained(
                ConstrainedState(
                    decoder: decoder, chooser: chooser, limit: limit, loops: phase.detectsLoops ? LoopDetector() : nil))
        case .choice(let options): state = .choice(options: options)
        case .comparison: state = .comparison
        }
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
        end.tokens = keptTokens(end)
        if phase.output == .answer {
            (result.stopToken, result.stopString) = (end.stopToken, end.stopString)
        }
        if phase.output == .thought { result.thoughtTokens = result.usage.generatedTokens }
        if isUnwanted() {
            isEnded = true
            result.stopReason = .unwanted
            return
        }
        let step = try plan.next(after: end)
        // The plan may have removed or replaced tokens.
        let known = tokens[request.tokens.count...]
        let common = zip(known, step.written).prefix { $0 == $1 }.count
        tokens.removeLast(known.count - common)
        for token in step.written[common...] {
            tokens.append(token)
            proposal.append(token)
        }
        valid = min(valid, request.tokens.count + common)
        try begin(step)
    }

    /// The tokens of the phase whose text is not part of the stop string that ended it.
    private func keptTokens(_ end: PhaseEnd) -> [TokenID] {
        var kept = Array(tokens[start...])
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

    /// The text of a phase that is a part of a call.
    private var collected = ""

    private func emit(_ part: GeneratedText) {
        switch phase.output {
        case .answer: send(.text(part))
        case .thought: send(.thought(part))
        case .call: collected += part.text
        }
    }

    // MARK: - Tokens to process

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
        position = valid
        result.tokens = Array(self.tokens[request.tokens.count...])
        times.finish(&result.usage)
        return nil
    }

    /// Names the tokens whose logits the phase needs next; nil if it has ended, or if it made progress without logits.
    private func request(_ tokens: inout [TokenID], _ draft: DraftBudget) throws -> WantedLogits? {
        if self.tokens.count > contextSize {
            end = PhaseEnd(reason: .contextFull)
            return nil
        }
        switch state {
        case .free:
            flush(&tokens)
            let room = min(contextSize - valid, (phase.maximumTokens ?? .max) - generated - 1)
            return .last(1 + proposal.propose(draft, maximum: room, into: &tokens, &result.usage))
        case .comparison:
            guard case .comparison(let one, let other) = phase.kind else { return nil }
            flush(&tokens)
            return .candidates([min(one, other), max(one, other)])
        case .choice(let options):
            let open = following(options)
            if open.isEmpty {
                end = PhaseEnd(reason: .endOfTurn)
                return nil
            }
            if open.count == 1 {
                accept(open[0], isForced: true)
                return nil
            }
            flush(&tokens)
            return wantsAllLogits ? .last(1) : .candidates(open)
        case .constrained(var constrained):
            if !request.batchesForcedTokens, self.tokens.count > valid {
                flush(&tokens)
                return .last(1)
            }
            state = .comparison  // the decoder must not be copied
            defer { state = .constrained(constrained) }
            switch nextStep(&constrained) {
            case .end: end = PhaseEnd(reason: endReason(constrained), shortenedAt: constrained.decoder.shortenedAt)
            case .forced(let forced):
                try accept(request.batchesForcedTokens ? forced : forced.prefix(1), isForced: true, in: &constrained)
                // Long forced texts are processed in parts, so that other requests and a cancellation need not wait.
                guard self.tokens.count - valid >= EngineLimits.passTokens else { return nil }
                flush(&tokens)
                return WantedLogits.processOnly
            case .few(let few):
                constrained.step = .few(few)
                flush(&tokens)
                return wantsAllLogits ? .last(1) : .candidates(few)
            case .many:
                constrained.step = .many
                flush(&tokens)
                return .last(
                    1
                        + proposal.propose(
                            draft, maximum: constrained.limit - generated - 1, into: &tokens, &result.usage))
            }
            return nil
        }
    }

    /// The possible next tokens of a choice, in ascending order; none if one of the options is complete.
    private func following(_ options: [[TokenID]]) -> [TokenID] {
        let chosen = tokens[start...]
        let open = options.filter { $0.starts(with: chosen) }
        return open.contains { $0.count == chosen.count } ? [] : Set(open.map { $0[chosen.count] }).sorted()
    }

    /// Names the tokens that are not in the sequence yet, or the last token again if there are none.
    private func flush(_ named: inout [TokenID]) {
        valid = min(valid, tokens.count - 1)
        position = valid
        named += tokens[valid...]
        valid = tokens.count
    }

    private var wantsAllLogits: Bool { request.topScores != nil }

    // MARK: - Logits

    func take(_ logits: UnsafeMutableBufferPointer<Float>) throws {
        times.takeLogits(&result.usage)
        // Rows within forced tokens are not needed.
        defer { row += 1 }
        if skipsPromptLogits {
            skipsPromptLogits = false
            return
        }
        if isEnded || end != nil || proposal.isRejected || row < proposal.accepted { return }
        switch state {
        case .free(var free):
            state = .comparison  // the arrays must not be copied
            defer { state = .free(free) }
            try takeFree(logits, &free)
        case .constrained(var constrained):
            state = .comparison
            defer { state = .constrained(constrained) }
            try takeConstrained(logits, &constrained)
        case .choice(let options):
            let open = following(options)
            // After the prompt there is nothing to choose yet if all options begin in the same way.
            guard open.count > 1 else { return }
            let score = RowScores(logits, top: request.topScores)
            guard let token = sampler.next(logits, among: open) else { throw GenerationFailure.unusableLogits }
            accept(token, isForced: false, score?.score(of: token))
        case .comparison:
            guard case .comparison(let one, let other) = phase.kind else { return }
            // The logits after the prompt are those of a comparison only if the turn begins with it.
            end = PhaseEnd(reason: .endOfTurn, logOdds: Double(logits[Int(one)]) - Double(logits[Int(other)]))
        }
    }

    private func takeFree(_ logits: UnsafeMutableBufferPointer<Float>, _ free: inout FreeState) throws {
        let limit = phase.maximumTokens ?? .max
        if limit <= 0 {
            end = PhaseEnd(reason: .maximumTokens)
            return
        }
        let score = RowScores(logits, top: request.topScores)
        for token in phase.bannedTokens { logits[Int(token)] = -.infinity }
        if generated == 0 {
            if let (tokens, fences, minimum) = phase.callTokens {
                if logits.probability(of: tokens) < minimum {
                    for token in tokens { logits[Int(token)] = -.infinity }
                } else if let best = tokens.max(by: { logits[Int($0)] < logits[Int($1)] }), fences.contains(best) {
                    free.replacement = best
                } else {
                    end = PhaseEnd(reason: .endOfTurn, wantsCall: true)
                    return
                }
            }
            for token in phase.bannedFirstTokens { logits[Int(token)] = -.infinity }
        }
        guard let token = free.replacement ?? sampler.next(logits) else { throw GenerationFailure.unusableLogits }
        free.replacement = nil
        count()
        // Checked before the model's stop tokens, because a stop token of the phase may be one of them.
        if phase.stopTokens.contains(token) || generated == 1 && token == phase.firstStopToken {
            end = PhaseEnd(reason: .stopString, stopToken: token)
            return
        }
        if tokenizer.stopTokens.contains(token) {
            end = PhaseEnd(reason: .endOfTurn)
            return
        }
        append(token)
        write(token, tokenizer.text(of: token), score?.score(of: token))
        if end != nil { return }
        if generated == limit {
            end = PhaseEnd(reason: .maximumTokens)
        } else if isLoop(after: token, &free.loops, limit: limit) {
            end = PhaseEnd(reason: .loop)
        }
    }

    /// A phase that has no more tokens left than this is not ended as a loop: its limit ends it soon.
    private static let nearLimit = 256
    /// A value whose shortest ending has more tokens than this must go on: its schema asks for more elements.
    private static let maximumEnding = 16

    /// Whether the phase must end because it repeats itself endlessly.
    private func isLoop(after token: TokenID, _ loops: inout LoopDetector?, limit: Int) -> Bool {
        loops?.append(token) == true && limit - generated > Self.nearLimit
    }

    private func takeConstrained(
        _ logits: UnsafeMutableBufferPointer<Float>, _ constrained: inout ConstrainedState
    ) throws {
        let score = RowScores(logits, top: request.topScores)
        while end == nil {
            let step = constrained.step ?? nextStep(&constrained)
            constrained.step = nil
            switch step {
            case .end: end = PhaseEnd(reason: endReason(constrained), shortenedAt: constrained.decoder.shortenedAt)
            case .forced(let forced):
                return try accept(request.batchesForcedTokens ? forced : forced.prefix(1), isForced: true, in: &constrained)
            case .few, .many:
                let remaining = constrained.limit - generated
                if let token = constrained.chooser.choose(
                    step, &constrained.decoder, &sampler, logits, remaining: remaining)
                {
                    guard !tokenizer.stopTokens.contains(token) else {
                        count()
                        end = PhaseEnd(reason: endReason(constrained), shortenedAt: constrained.decoder.shortenedAt)
                        return
                    }
                    return try accept(CollectionOfOne(token), isForced: false, score?.score(of: token), in: &constrained)
                }
                // Finite logits without an allowed token: the grammar has reached its limits.
                guard logits.contains(where: \.isFinite) else { throw GenerationFailure.unusableLogits }
                guard constrained.decoder.endEarly(atLimit: true) else { throw GenerationFailure.grammarTooComplex }
            }
        }
    }

    private func nextStep(_ constrained: inout ConstrainedState) -> GrammarCursor.Step {
        let remaining = constrained.limit - generated
        return remaining <= 0 ? .end : constrained.decoder.next(remaining: remaining)
    }

    /// Why a constrained text ends: it is complete, or it was closed because it was endless or because there was no room for what
    /// the model wanted to write.
    private func endReason(_ constrained: ConstrainedState) -> StopReason {
        if constrained.endedLoop { return .loop }
        if constrained.decoder.isClosedAtLimit { return .grammarLimit }
        if constrained.decoder.isComplete, constrained.decoder.shortenedAt == nil { return .endOfTurn }
        return constrained.limit == phase.maximumTokens ? .maximumTokens : .contextFull
    }

    private func accept(
        _ tokens: some Collection<TokenID>, isForced: Bool, _ score: TokenScore? = nil,
        in constrained: inout ConstrainedState
    ) throws {
        for token in tokens {
            guard constrained.decoder.accept(token) else { throw GenerationFailure.grammarTooComplex }
            accept(token, isForced: isForced, score)
            if end != nil { return }
            if isLoop(after: token, &constrained.loops, limit: phase.maximumTokens ?? .max),
                !constrained.decoder.isInsideCharacter, constrained.decoder.minimumTokenCount <= Self.maximumEnding
            {
                // The value is closed where it is: nothing of what was written changes.
                constrained.endedLoop = true
                constrained.loops = nil
                constrained.step = nil
                if !constrained.decoder.endEarly() { end = PhaseEnd(reason: .loop) }
                return
            }
        }
    }

    /// Appends a token of a choice or of a constrained text.
    private func accept(_ token: TokenID, isForced: Bool, _ score: TokenScore? = nil) {
        count()
        if isForced { result.usage.forcedTokens += 1 }
        append(token)
        let forced = request.topScores == nil ? nil : TokenScore(token: token, logProbability: nil)
        write(token, tokenizer.text(of: token), score ?? forced)
    }

    private func count() {
        generated += 1
        result.usage.generatedTokens += 1
    }

    private func append(_ token: TokenID) {
        tokens.append(token)
        if valid == tokens.count - 1, proposal.contains(token, &result.usage) { valid += 1 }
        proposal.append(token)
    }

    /// Passes the text of a token on, and ends the phase at a stop string.
    private func write(_ token: TokenID, _ bytes: ArraySlice<UInt8>, _ score: TokenScore?) {
        let (part, stopped) = text.append(token, bytes, score)
        if let part {
            emit(part)
            if phase.endsWithText, part.text.contains(where: { !$0.isWhitespace }) { end = PhaseEnd(reason: .endOfTurn) }
        }
        if stopped { end = PhaseEnd(reason: .stopString) }
    }

    // MARK: - Masks

    var canPrepare: Bool {
        if case .constrained(let constrained) = state, case .many? = constrained.step {
            !constrained.chooser.isPrepared
        } else {
            false
        }
    }

    func prepare() {
        guard case .constrained(var constrained) = state else { return }
        state = .comparison  // the decoder must not be copied
        constrained.chooser.prepareMask(&constrained.decoder)
        state = .constrained(constrained)
    }
}
