/// Generates text without a grammar.
///
/// Tokens that a ``LookupDraft`` proposes are processed together with the latest token. Each row of logits is sampled as
/// if there were no proposals, and the rows after the first difference are ignored, so the response is the same.
final class FreeDecoding: Decoding {
    private let request: GenerationRequest
    private let tokenizer: Tokenizer
    private let operations: any Operations
    private let contextSize: Int
    private let limit: Int
    private let emit: (GeneratedText) -> Bool

    private var sampler: Sampler
    private var text: TextOutput
    private var loops = LoopDetector()
    private(set) var result: GenerationResult
    private var times = DecodingTimes()
    /// Number of text bytes before each token.
    private var offsets: [Int] = []
    private var bytes = 0
    private var proposal: Proposal
    /// The tokens of the prompt and the response in the sequence, including those that `next` has named, without
    /// proposals that were not sampled.
    private var valid: Int
    private var isEnded = false

    init(
        _ request: GenerationRequest, tokenizer: Tokenizer, operations: any Operations, contextSize: Int,
        emit: @escaping (GeneratedText) -> Bool
    ) {
        self.request = request
        self.tokenizer = tokenizer
        self.operations = operations
        self.contextSize = contextSize
        self.emit = emit
        limit = request.maximumTokens ?? .max
        sampler = Sampler(request.sampling)
        text = TextOutput(stops: request.stopStrings)
        result = GenerationResult(stopReason: .maximumTokens, usage: GenerationUsage())
        result.usage.promptTokens = request.tokens.count
        valid = request.tokens.count
        proposal = Proposal(prompt: request.proposesTokens ? request.tokens : nil)
        let expected = max(0, min(limit, Self.expectedTokens))
        result.tokens.reserveCapacity(expected)
        offsets.reserveCapacity(expected)
    }

    /// The number of tokens for which there is room without another allocation.
    private static let expectedTokens = 512

    var prompt: [TokenID] { request.tokens }
    var wantsPromptLogits: Bool { true }
    var validLength: Int? { valid }

    func begin(cachedTokens: Int) {
        result.usage.cachedTokens = cachedTokens
        times.begin(&result.usage)
    }

    func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? {
        proposal.finish()
        if !isEnded, valid == contextSize { end(.contextFull) }
        guard !isEnded, let last = result.tokens.last else {
            text.finish(emit)
            times.finish(&result.usage)
            return nil
        }
        tokens.append(last)
        valid += 1
        let room = min(contextSize - valid, limit - result.usage.generatedTokens - 1)
        return .last(1 + proposal.propose(draft, maximum: room, into: &tokens, &result.usage))
    }

    func take(_ logits: UnsafeMutableBufferPointer<Float>) throws {
        times.takeLogits(&result.usage)
        if isEnded || proposal.isRejected { return }
        if limit <= 0 { return end(.maximumTokens) }
        for token in request.bannedTokens { logits[Int(token)] = -.infinity }
        if result.usage.generatedTokens == 0 { for token in request.bannedFirstTokens { logits[Int(token)] = -.infinity } }
        guard let token = sampler.next(logits, operations) else { throw GenerationFailure.unusableLogits }
        result.usage.generatedTokens += 1
        if proposal.contains(token, &result.usage) { valid += 1 }
        // Checked before the model's stop tokens, because a stop token of the request may be one of them.
        if request.stopTokens.contains(token) {
            result.stopToken = token
            return end(.stopString)
        }
        if tokenizer.stopTokens.contains(token) { return end(.endOfTurn) }
        let piece = tokenizer.text(of: token)
        if let reason = text.append(token, piece, emit) {
            result.stopString = text.stopString
            return end(reason)
        }
        result.tokens.append(token)
        proposal.append(token)
        offsets.append(bytes)
        bytes += piece.count
        if request.detectsLoops, let kept = loops.append(token) {
            result.byteCountBeforeLoop = offsets[kept]
            return end(.loop)
        }
        if result.usage.generatedTokens == limit { end(.maximumTokens) }
    }

    private func end(_ reason: StopReason) {
        result.stopReason = reason
        isEnded = true
    }
}
