/// Writes text without a grammar: an answer, a thought, an argument that is a string.
final class FreeWriter: PhaseWriter {
    private let phase: TurnPhase
    private let tokenizer: Tokenizer
    private let topScores: Int?
    private var loops: LoopDetector?

    init(_ phase: TurnPhase, _ tokenizer: Tokenizer, topScores: Int?) {
        self.phase = phase
        self.tokenizer = tokenizer
        self.topScores = topScores
        loops = phase.detectsLoops ? LoopDetector() : nil
    }

    private var limit: Int { phase.maximumTokens ?? .max }

    func next(generated: Int, _ sampler: Sampler) -> PhaseNeed { .logits(proposals: limit - generated - 1) }

    func take(_ logits: HostLogits, generated: Int, _ sampler: Sampler) throws -> PhaseStep {
        if limit <= 0 { return .end(PhaseEnd(reason: .maximumTokens)) }
        let score = RowScores(logits, top: topScores)
        for token in phase.bannedTokens { logits[Int(token)] = -.infinity }
        if generated == 0 { for token in phase.bannedFirstTokens { logits[Int(token)] = -.infinity } }
        if generated < phase.minimumTokens { for token in tokenizer.stopTokens { logits[Int(token)] = -.infinity } }
        guard let token = sampler.next(logits) else { throw GenerationFailure.unusableLogits }
        // Checked before the model's stop tokens, because a stop token of the phase may be one of them.
        if phase.stopTokens.contains(token) || generated == 0 && token == phase.firstStopToken {
            return .stop(PhaseEnd(reason: .stopString, stopToken: token))
        }
        if tokenizer.stopTokens.contains(token) { return .stop(PhaseEnd(reason: .endOfTurn)) }
        return .token(token, score?.score(of: token))
    }

    func end(after token: TokenID, generated: Int) -> PhaseEnd? {
        if generated == limit { return PhaseEnd(reason: .maximumTokens) }
        if loops?.append(token) == true, limit - generated > LoopDetector.nearLimit { return PhaseEnd(reason: .loop) }
        return nil
    }
}
