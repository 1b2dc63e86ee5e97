internal import Grammar

/// Writes text that conforms to a grammar.
///
/// What the grammar allows next usually takes microseconds. It never holds up the other sequences of a pass: a step of the grammar that takes
/// more than ``workInPass`` is repeated on another thread, while the model computes. If it is not there when the logits are, they are kept,
/// and the sequence waits alone.
final class ConstrainedWriter: PhaseWriter {
    /// What is the same for all constrained phases of a turn.
    struct Settings {
        var topScores: Int?
        /// Whether a text for which there is no room ends the phase instead of being an error.
        var endsAtLimit = false
        /// Whether forced tokens are processed in one batch.
        var batchesForcedTokens: Bool
        /// The number of logits, which may exceed the number of tokens in the vocabulary.
        var logitCount: Int
        var encode: @Sendable ([UInt8]) -> [TokenID]
        /// The tokens that end the model's turn.
        var stopTokens: Set<TokenID>
    }

    /// The work that a step of the grammar may do while other sequences wait, in units of about half a microsecond.
    private static let workInPass = 2_000

    private let settings: Settings
    private let grammar: Grammar
    /// The number of tokens for which there is room.
    private let limit: Int
    /// The maximum number of tokens of the phase.
    private let maximumTokens: Int?
    private var loops: LoopDetector?
    private var cursor: GrammarCursor
    let chooser: TokenChooser
    /// The step whose logits are being computed.
    private var step: GrammarCursor.Step?
    /// Whether the value was closed because it was a loop.
    private var endedLoop = false
    /// Whether the shortest text fits.
    private let hasRoom: Bool
    /// Whether nothing had to be added to close it.
    private var isOver = false
    /// The work that is left in this pass.
    private var work = workInPass
    /// The step, while another thread computes it: nobody else uses the grammar then.
    private var pendingStep: Pending<GrammarCursor.Step>?
    /// The choice from logits that were kept, while another thread makes it.
    private var pendingChoice: Pending<PhaseStep>?
    /// Logits that wait for the step.
    private var keptLogits: [Float]?

    /// A value whose shortest ending has more tokens than this must go on: its schema asks for more elements.
    private static let maximumEnding = 16

    /// - Parameters:
    ///   - room: the number of tokens that the context has room for.
    ///   - chooser: that of an earlier phase, which has two arrays of the vocabulary's size.
    ///   - failure: the error if the shortest text has more tokens than there is room for.
    init(
        _ grammar: Grammar, _ phase: TurnPhase, room: Int, _ chooser: TokenChooser?, _ settings: Settings,
        failure: (_ needed: Int, _ available: Int) -> GenerationFailure
    ) throws {
        self.settings = settings
        maximumTokens = phase.maximumTokens
        limit = min(phase.maximumTokens ?? .max, room)
        loops = phase.detectsLoops ? LoopDetector() : nil
        self.grammar = grammar
        cursor = GrammarCursor(grammar, encode: settings.encode)
        let needed = grammar.minimumTokenCount
        hasRoom = needed <= limit
        if !hasRoom, !settings.endsAtLimit { throw failure(needed, max(0, limit)) }
        self.chooser = chooser ?? TokenChooser(vocabulary: grammar.vocabulary, count: settings.logitCount)
    }

    // MARK: - Steps

    func next(generated: Int, _ sampler: Sampler) throws -> PhaseNeed {
        if let pendingChoice {
            guard let choice = try pendingChoice.value else { return .nothing }
            self.pendingChoice = nil
            return .step(choice)
        }
        if let pendingStep {
            guard var logits = keptLogits else { return .logits(proposals: 0) }
            guard let step = try pendingStep.value else { return .nothing }
            self.step = step
            (self.pendingStep, keptLogits) = (nil, nil)
            return .step(try logits.withUnsafeMutableBufferPointer { try take($0, generated: generated, sampler) })
        }
        do {
            let need = try limited { try self.need(generated) }
            // Forced tokens that follow each other before the next pass share the work.
            if case .forced = need {} else { work = Self.workInPass }
            return need
        } catch is GrammarBusy {
            work = Self.workInPass
            let writer = Exclusive(self)
            pendingStep = Pending(onAnotherThread: { try writer.value.nextStep(generated) })
            return .logits(proposals: 0)
        }
    }

    private func limited<Result>(_ body: () throws -> Result) throws -> Result {
        try grammar.attempt(cursor.work, upTo: work) {
            defer { work = cursor.work.remaining ?? 0 }
            return try body()
        }
    }

    private func need(_ generated: Int) throws -> PhaseNeed {
        let next = try nextStep(generated)
        step = nil
        switch next {
        case .end: return .end(ended)
        case .forced(let forced): return .forced(try accept(forced, generated))
        case .few(let few):
            step = next
            return settings.topScores == nil ? .candidates(few) : .logits(proposals: 0)
        case .many:
            step = next
            return .logits(proposals: limit - generated - 1)
        }
    }

    func take(_ logits: HostLogits, generated: Int, _ sampler: Sampler) throws -> PhaseStep {
        // Until ``next(generated:_:)`` collects what becomes of a row, those after it are of no use.
        if pendingChoice != nil || keptLogits != nil { return .nothing }
        if let pendingStep {
            guard let step = try pendingStep.value else {
                keptLogits = Array(logits)
                return .nothing
            }
            self.step = step
            self.pendingStep = nil
        }
        let random = sampler.random
        work = Self.workInPass
        do {
            return try limited { try choose(logits, generated, sampler) }
        } catch is GrammarBusy {
            sampler.random = random
            let parts = Exclusive((writer: self, sampler: sampler, logits: Array(logits)))
            pendingChoice = Pending(onAnotherThread: {
                var logits = parts.value.logits
                return try logits.withUnsafeMutableBufferPointer {
                    try parts.value.writer.choose($0, generated, parts.value.sampler)
                }
            })
            return .nothing
        }
    }

    private func choose(_ logits: HostLogits, _ generated: Int, _ sampler: Sampler) throws -> PhaseStep {
        let score = RowScores(logits, top: settings.topScores)
        while true {
            let step = try self.step ?? nextStep(generated)
            switch step {
            case .end: return .end(ended)
            case .forced(let forced): return .forced(try accept(forced, generated))
            case .few, .many:
                let remaining = limit - generated
                if let token = try chooser.choose(step, &cursor, sampler, logits, remaining: remaining) {
                    if settings.stopTokens.contains(token) { return .stop(ended) }
                    try accept(token, generated + 1)
                    if case .many = step, chooser.isWord(token) { sampler.remember(token) }
                    return .token(token, score?.score(of: token))
                }
                // Finite logits without an allowed token: the grammar has reached its limits.
                guard logits.contains(where: \.isFinite) else { throw GenerationFailure.unusableLogits }
                guard try cursor.endEarly(atLimit: true) else { throw GenerationFailure.grammarTooComplex }
                self.step = nil
            }
        }
    }

    var isWaiting: Bool {
        if let pendingChoice { return !pendingChoice.isReady }
        return keptLogits != nil && pendingStep?.isReady == false
    }

    func whenReady(_ body: @escaping @Sendable () -> Void) {
        if let pendingChoice { return pendingChoice.whenReady(body) }
        if let pendingStep { pendingStep.whenReady(body) } else { body() }
    }

    /// What another thread uses while the engine leaves it alone.
    private struct Exclusive<Value>: @unchecked Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private func nextStep(_ generated: Int) throws -> GrammarCursor.Step {
        if isOver || !hasRoom || generated >= limit { return .end }
        return try cursor.next(remaining: limit - generated)
    }

    /// Why the text ends: it is complete, or it was closed because it was endless or because there was no room for what the model
    /// wanted to write.
    private var ended: PhaseEnd {
        let reason: StopReason =
            if endedLoop {
                .loop
            } else if cursor.isClosedAtLimit {
                .grammarLimit
            } else if cursor.isComplete, cursor.shortenedAt == nil {
                .endOfTurn
            } else {
                limit == maximumTokens ? .maximumTokens : .contextFull
            }
        return PhaseEnd(reason: reason, shortenedAt: cursor.shortenedAt)
    }

    /// Reads the forced tokens that come next, as far as the work of the step allows.
    private func accept(_ forced: ArraySlice<TokenID>, _ generated: Int) throws -> ArraySlice<TokenID> {
        let tokens = settings.batchesForcedTokens ? forced : forced.prefix(1)
        for (index, token) in zip(tokens.indices, tokens) {
            do {
                if try accept(token, generated + index - tokens.startIndex + 1) { return tokens[...index] }
            } catch is GrammarBusy where index > tokens.startIndex {
                return tokens[..<index]
            }
        }
        return tokens
    }

    /// Reads a token; `generated` includes it.
    ///
    /// - Returns: whether the value is closed after it, because it repeats itself endlessly: nothing of what was written changes.
    @discardableResult private func accept(_ token: TokenID, _ generated: Int) throws -> Bool {
        guard try cursor.accept(token) else { throw GenerationFailure.grammarTooComplex }
        step = nil
        guard loops?.append(token) == true, (maximumTokens ?? .max) - generated > LoopDetector.nearLimit,
            !cursor.isInsideCharacter
        else { return false }
        // Asked again after as many tokens as make a loop.
        loops = LoopDetector()
        return try cursor.work.withUsualLimit {
            guard try cursor.minimumTokenCount <= Self.maximumEnding else { return false }
            endedLoop = true
            loops = nil
            isOver = try !cursor.endEarly()
            return true
        }
    }
}
