internal import CKernels

/// Generates text without a grammar.
///
/// Tokens that a ``LookupDraft`` proposes are processed together with the latest token. Each row of logits is sampled as
/// if there were no proposals, and the rows after the first difference are ignored, so the response is the same.
final class FreeDecoding: Decoding {
    private let request: GenerationRequest
    private let tokenizer: Tokenizer
    private let kernels: UnsafePointer<ck_kernels>
    private let contextSize: Int
    private let limit: Int
    private let emit: (String) -> Bool

    private var sampler: Sampler
    private var text: TextOutput
    private var loops = LoopDetector()
    private(set) var result: GenerationResult
    private var times = DecodingTimes()
    /// Number of text bytes before each token.
    private var offsets: [Int] = []
    private var bytes = 0
    private var draft: LookupDraft?
    /// The proposed tokens that are being processed, and the number of them that were sampled so far.
    private var proposed: [TokenID] = []
    private var accepted = 0
    private var isRejected = false
    /// The tokens of the prompt and the response in the sequence, including those that `next` has named, without
    /// proposals that were not sampled.
    private var valid: Int
    private var isEnded = false

    init(
        _ request: GenerationRequest, tokenizer: Tokenizer, kernels: UnsafePointer<ck_kernels>, contextSize: Int,
        emit: @escaping (String) -> Bool
    ) {
        self.request = request
        self.tokenizer = tokenizer
        self.kernels = kernels
        self.contextSize = contextSize
        self.emit = emit
        limit = request.maximumTokens ?? .max
        sampler = Sampler(request.sampling)
        text = TextOutput(stops: request.stopStrings)
        result = GenerationResult(stopReason: .maximumTokens, usage: GenerationUsage())
        result.usage.promptTokens = request.tokens.count
        valid = request.tokens.count
        if request.proposesTokens { draft = LookupDraft(prompt: request.tokens) }
    }

    var prompt: [TokenID] { request.tokens }
    var wantsPromptLogits: Bool { true }
    var validLength: Int? { valid }

    func begin(cachedTokens: Int) {
        result.usage.cachedTokens = cachedTokens
        times.begin(&result.usage)
    }

    func next(_ tokens: inout [TokenID], draftLimit: Int) -> WantedLogits? {
        if !proposed.isEmpty {
            draft?.learn(accepted: accepted, of: proposed.count)
            proposed.removeAll(keepingCapacity: true)
            (accepted, isRejected) = (0, false)
        }
        if !isEnded, valid == contextSize { end(.contextFull) }
        guard !isEnded, let last = result.tokens.last else {
            text.finish(emit)
            times.finish(&result.usage)
            return nil
        }
        tokens.append(last)
        valid += 1
        let room = min(draftLimit, contextSize - valid, limit - result.usage.generatedTokens - 1)
        guard let count = draft?.propose(maximum: room, into: &proposed), count > 0 else { return .last(1) }
        tokens.append(contentsOf: proposed)
        result.usage.proposedTokens += count
        return .last(count + 1)
    }

    func take(_ logits: UnsafeMutableBufferPointer<Float>) throws {
        times.takeLogits(&result.usage)
        if isEnded || isRejected { return }
        if limit <= 0 { return end(.maximumTokens) }
        for token in request.bannedTokens { logits[Int(token)] = -.infinity }
        if result.usage.generatedTokens == 0 { for token in request.bannedFirstTokens { logits[Int(token)] = -.infinity } }
        guard let token = sampler.next(logits, kernels: kernels) else { throw GenerationFailure.unusableLogits }
        result.usage.generatedTokens += 1
        if accepted < proposed.count {
            if token == proposed[accepted] {
                accepted += 1
                valid += 1
                result.usage.acceptedTokens += 1
            } else {
                isRejected = true
            }
        }
        // Checked before the model's stop tokens, because a stop token of the request may be one of them.
        if request.stopTokens.contains(token) {
            result.stopToken = token
            return end(.stopString)
        }
        if tokenizer.stopTokens.contains(token) { return end(.endOfTurn) }
        let piece = tokenizer.text(of: token)
        if let reason = text.append(piece, emit) {
            result.stopString = text.stopString
            return end(reason)
        }
        result.tokens.append(token)
        draft?.append(token)
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

/// The times of a response, for its usage.
struct DecodingTimes {
    private var start = ContinuousClock.now
    private var firstLogits: ContinuousClock.Instant?

    /// Ends the time in the queue.
    mutating func begin(_ usage: inout GenerationUsage) {
        let now = ContinuousClock.now
        usage.queueSeconds = (now - start).seconds
        start = now
    }

    mutating func takeLogits(_ usage: inout GenerationUsage) {
        if firstLogits != nil { return }
        let now = ContinuousClock.now
        firstLogits = now
        usage.promptSeconds = (now - start).seconds
    }

    func finish(_ usage: inout GenerationUsage) {
        if let firstLogits { usage.generationSeconds = (.now - firstLogits).seconds }
    }
}
