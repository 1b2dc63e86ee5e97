/// Writes one of several sequences of tokens, none of which begins with another one.
final class ChoiceWriter: PhaseWriter {
    private let options: [[TokenID]]
    private let topScores: Int?
    private var chosen: [TokenID] = []

    init(_ options: [[TokenID]], topScores: Int?) {
        self.options = options
        self.topScores = topScores
    }

    func next(generated: Int, _ sampler: Sampler) -> PhaseNeed {
        let open = following
        if open.isEmpty { return .end(PhaseEnd(reason: .endOfTurn)) }
        if open.count == 1 {
            chosen.append(open[0])
            return .forced(open[...])
        }
        return topScores == nil ? .candidates(open) : .logits(proposals: 0)
    }

    func take(_ logits: HostLogits, generated: Int, _ sampler: Sampler) throws -> PhaseStep {
        let open = following
        // After the prompt there is nothing to choose yet if all options begin in the same way.
        guard open.count > 1 else { return .nothing }
        let score = RowScores(logits, top: topScores)
        guard let token = sampler.next(logits, among: open) else { throw GenerationFailure.unusableLogits }
        chosen.append(token)
        return .token(token, score?.score(of: token))
    }

    /// The possible next tokens, in ascending order; none if one of the options is complete.
    private var following: [TokenID] {
        let open = options.filter { $0.starts(with: chosen) }
        return open.contains { $0.count == chosen.count } ? [] : Set(open.map { $0[chosen.count] }).sorted()
    }
}
