/// Writes text without a grammar: an answer, a thought, an argument that is a string.
final class FreeWriter: PhaseWriter {
    private let phase: TurnPhase
    private let tokenizer: Tokenizer
    private let topScores: Int?
    private var loops: LoopDetector?
    /// A token that is taken instead of a sampled one.
    private var replacement: TokenID?

    init(_ phase: TurnPhase, _ tokenizer: Tokenizer, topScores: Int?) {
        self.phase = phase
        self.tokenizer = tokenizer
        self.topScores = topScores
        loops = phase.detectsLoops ? LoopDetector() : nil
    }

    private var limit: Int { phase.maximumTokens ?? .max }

    func next(generated: Int) -> PhaseNeed { .logits(proposals: limit - generated - 1) }

    func take(_ logits: HostLogits, generated: Int, _ sampler: inout Sampler) throws -> PhaseStep {
        if limit <= 0 { return .end(PhaseEnd(reason: .maximumTokens)) }
        let score = RowScores(logits, top: topScores)
        for token in phase.bannedTokens { logits[Int(token)] = -.infinity }
        if generated == 0 {
            if let end = decideCall(logits) { return .end(end) }
            for token in phase.bannedFirstTokens { logits[Int(token)] = -.infinity }
        }
        guard let token = replacement ?? sampler.next(logits) else { throw GenerationFailure.unusableLogits }
        replacement = nil
        // Checked before the model's stop tokens, because a stop token of the phase may be one of them.
        if phase.stopTokens.contains(token) || generated == 0 && token == phase.firstStopToken {
            return .stop(PhaseEnd(reason: .stopString, stopToken: token))
        }
        if tokenizer.stopTokens.contains(token) { return .stop(PhaseEnd(reason: .endOfTurn)) }
        return .token(token, score?.score(of: token))
    }

    /// Decides by the probability of the tokens with which calls begin whether the text begins with one of them; see
    /// ``TurnPhase/callTokens``.
    ///
    /// - Returns: the end of the phase, if the model is to make a call.
    private func decideCall(_ logits: HostLogits) -> PhaseEnd? {
        guard let (tokens, fences, minimum) = phase.callTokens else { return nil }
        if logits.probability(of: tokens) < minimum {
            for token in tokens { logits[Int(token)] = -.infinity }
        } else if let best = tokens.max(by: { logits[Int($0)] < logits[Int($1)] }), fences.contains(best) {
            replacement = best
        } else {
            return PhaseEnd(reason: .endOfTurn, wantsCall: true)
        }
        return nil
    }

    func end(after token: TokenID, generated: Int) -> PhaseEnd? {
        if generated == limit { return PhaseEnd(reason: .maximumTokens) }
        if loops?.append(token) == true, limit - generated > LoopDetector.nearLimit { return PhaseEnd(reason: .loop) }
        return nil
    }
}
