internal import Grammar

/// Generates text that a grammar constrains.
///
/// Forced tokens are collected and processed together with the next token that has alternatives, and so are tokens that a
/// ``LookupDraft`` proposes. The rows after the first difference are ignored, so the response is the same.
final class GrammarDecoding: Decoding {
    private let request: GenerationRequest
    private let tokenizer: Tokenizer
    private let operations: any Operations
    private let limit: Int
    private let emit: (GeneratedText) -> Bool

    private var decoder: ConstrainedDecoder
    private let chooser: TokenChooser
    private var sampler: Sampler
    private var text: TextOutput
    private(set) var result: GenerationResult
    private var times = DecodingTimes()
    /// Tokens of the response that are not yet in the KV cache.
    private var pending: [TokenID] = []
    /// The step whose logits are being computed.
    private var step: ConstrainedDecoder.Step?
    private var proposal: Proposal
    /// The number of proposed tokens before the next row of logits.
    private var row = 0
    /// The tokens of the prompt and the response in the sequence, including those that `next` has named, without
    /// proposals that did not become part of the response.
    private var valid: Int
    private var isEnded = false

    /// - Parameter logitCount: the number of logits, which may exceed the number of tokens in the vocabulary.
    /// - Throws: ``GenerationFailure/budgetTooSmall(needed:available:)``
    init(
        _ request: GenerationRequest, under grammar: Grammar, tokenizer: Tokenizer, operations: any Operations,
        contextSize: Int, logitCount: Int, emit: @escaping (GeneratedText) -> Bool
    ) throws {
        self.request = request
        self.tokenizer = tokenizer
        self.operations = operations
        self.emit = emit
        decoder = ConstrainedDecoder(grammar) { tokenizer.encode(bytes: $0) }
        limit = min(request.maximumTokens ?? .max, contextSize - request.tokens.count)
        let needed = decoder.minimumTokenCount
        if needed > limit { throw GenerationFailure.budgetTooSmall(needed: needed, available: max(0, limit)) }
        chooser = TokenChooser(vocabulary: grammar.vocabulary, count: logitCount)
        sampler = Sampler(request.sampling)
        text = TextOutput(stops: request.stopStrings)
        result = GenerationResult(stopReason: .endOfTurn, usage: GenerationUsage())
        result.usage.promptTokens = request.tokens.count
        valid = request.tokens.count
        proposal = Proposal(prompt: request.proposesTokens && request.batchesForcedTokens ? request.tokens : nil)
    }

    var prompt: [TokenID] { request.tokens }
    var wantsPromptLogits: Bool { true }
    var validLength: Int? { valid }

    func begin(cachedTokens: Int) {
        result.usage.cachedTokens = cachedTokens
        times.begin(&result.usage)
    }

    func next(_ tokens: inout [TokenID], draft: DraftBudget) throws -> WantedLogits? {
        proposal.finish()
        row = 0
        while !isEnded {
            if !request.batchesForcedTokens, !pending.isEmpty {
                flush(&tokens)
                return .last(1)
            }
            switch nextStep() {
            case .end: isEnded = true
            case .forced(let forced):
                try accept(forced)
                // Long forced texts are processed in parts, so that other requests and a cancellation need not wait.
                guard pending.count >= DecoderModel.batchSize else { continue }
                flush(&tokens)
                return WantedLogits.none
            case .few(let few):
                step = .few(few)
                flush(&tokens)
                return .candidates(few)
            case .many:
                step = .many
                flush(&tokens)
                return .last(1 + proposal.propose(draft, maximum: remaining - 1, into: &tokens, &result.usage))
            }
        }
        text.finish(emit)
        times.finish(&result.usage)
        return nil
    }

    /// Names the pending tokens.
    private func flush(_ tokens: inout [TokenID]) {
        tokens += pending
        valid += pending.count
        pending.removeAll(keepingCapacity: true)
    }

    private var remaining: Int { limit - result.usage.generatedTokens }

    private func nextStep() -> ConstrainedDecoder.Step {
        if remaining <= 0 {
            result.stopReason = decoder.isComplete ? .endOfTurn : .maximumTokens
            return .end
        }
        return decoder.next(remaining: remaining)
    }

    var canPrepare: Bool { if case .many? = step { !chooser.isPrepared } else { false } }

    func prepare() { chooser.prepareMask(&decoder) }

    func take(_ logits: UnsafeMutableBufferPointer<Float>) throws {
        times.takeLogits(&result.usage)
        // Rows within forced tokens are not needed.
        defer { row += 1 }
        if proposal.isRejected || row < proposal.accepted { return }
        while !isEnded {
            let step = self.step ?? nextStep()
            self.step = nil
            switch step {
            case .end: isEnded = true
            case .forced(let forced): return try accept(forced)
            case .few, .many:
                if let token = chooser.choose(step, &decoder, &sampler, logits, remaining: remaining, operations) {
                    guard !tokenizer.stopTokens.contains(token) else {
                        result.usage.generatedTokens += 1
                        isEnded = true
                        return
                    }
                    return try accept(CollectionOfOne(token), isForced: false)
                }
                // Finite logits without an allowed token: the grammar has reached its limits.
                guard logits.contains(where: \.isFinite) else { throw GenerationFailure.unusableLogits }
                guard decoder.endEarly() else { throw GenerationFailure.grammarTooComplex }
            }
        }
    }

    private func accept(_ forced: ArraySlice<TokenID>) throws {
        if request.batchesForcedTokens { return try accept(forced, isForced: true) }
        try accept(forced.prefix(1), isForced: true)
    }

    private func accept(_ tokens: some Collection<TokenID>, isForced: Bool) throws {
        for token in tokens {
            result.tokens.append(token)
            proposal.append(token)
            guard decoder.accept(token) else { throw GenerationFailure.grammarTooComplex }
            result.usage.generatedTokens += 1
            if isForced { result.usage.forcedTokens += 1 }
            if proposal.contains(token, &result.usage) { valid += 1 } else { pending.append(token) }
            if let end = text.append(token, tokenizer.text(of: token), emit) {
                result.stopReason = end
                isEnded = true
                return
            }
        }
    }
}
