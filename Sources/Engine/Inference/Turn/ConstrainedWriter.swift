internal import Grammar

/// Writes text that conforms to a grammar.
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

    private let settings: Settings
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
        cursor = GrammarCursor(grammar, encode: settings.encode)
        let needed = cursor.minimumTokenCount
        hasRoom = needed <= limit
        if !hasRoom, !settings.endsAtLimit { throw failure(needed, max(0, limit)) }
        self.chooser = chooser ?? TokenChooser(vocabulary: grammar.vocabulary, count: settings.logitCount)
        self.chooser.reset()
    }

    func next(generated: Int) throws -> PhaseNeed {
        let next = nextStep(generated)
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

    func take(_ logits: HostLogits, generated: Int, _ sampler: inout Sampler) throws -> PhaseStep {
        let score = RowScores(logits, top: settings.topScores)
        while true {
            let step = self.step ?? nextStep(generated)
            self.step = nil
            switch step {
            case .end: return .end(ended)
            case .forced(let forced): return .forced(try accept(forced, generated))
            case .few, .many:
                let remaining = limit - generated
                if let token = chooser.choose(step, &cursor, &sampler, logits, remaining: remaining) {
                    if settings.stopTokens.contains(token) { return .stop(ended) }
                    try accept(token, generated + 1)
                    return .token(token, score?.score(of: token))
                }
                // Finite logits without an allowed token: the grammar has reached its limits.
                guard logits.contains(where: \.isFinite) else { throw GenerationFailure.unusableLogits }
                guard cursor.endEarly(atLimit: true) else { throw GenerationFailure.grammarTooComplex }
            }
        }
    }

    private func nextStep(_ generated: Int) -> GrammarCursor.Step {
        isOver || !hasRoom || generated >= limit ? .end : cursor.next(remaining: limit - generated)
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

    /// Reads the forced tokens that come next.
    private func accept(_ forced: ArraySlice<TokenID>, _ generated: Int) throws -> ArraySlice<TokenID> {
        let tokens = settings.batchesForcedTokens ? forced : forced.prefix(1)
        for (index, token) in zip(tokens.indices, tokens) {
            if try accept(token, generated + index - tokens.startIndex + 1) { return tokens[...index] }
        }
        return tokens
    }

    /// Reads a token; `generated` includes it.
    ///
    /// - Returns: whether the value is closed after it, because it repeats itself endlessly: nothing of what was written changes.
    @discardableResult private func accept(_ token: TokenID, _ generated: Int) throws -> Bool {
        guard cursor.accept(token) else { throw GenerationFailure.grammarTooComplex }
        guard loops?.append(token) == true, (maximumTokens ?? .max) - generated > LoopDetector.nearLimit,
            !cursor.isInsideCharacter, cursor.minimumTokenCount <= Self.maximumEnding
        else { return false }
        endedLoop = true
        loops = nil
        isOver = !cursor.endEarly()
        return true
    }

    var canPrepare: Bool { if case .many? = step { !chooser.isPrepared } else { false } }
    func prepare() { chooser.prepareMask(&cursor) }
}
