internal import CKernels

/// Generates text without a grammar.
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
    /// Tokens in the sequence, including those that `next` has named.
    private var position: Int
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
        position = request.tokens.count
    }

    var prompt: [TokenID] { request.tokens }
    var wantsPromptLogits: Bool { true }

    func begin(cachedTokens: Int) {
        result.usage.cachedTokens = cachedTokens
        times.begin(&result.usage)
    }

    func next(_ tokens: inout [TokenID]) -> WantedLogits? {
        if !isEnded, position == contextSize { end(.contextFull) }
        guard !isEnded, let last = result.tokens.last else {
            text.finish(emit)
            times.finish(&result.usage)
            return nil
        }
        tokens.append(last)
        position += 1
        return .last
    }

    func take(_ logits: UnsafeMutableBufferPointer<Float>) throws {
        times.takeLogits(&result.usage)
        if limit <= 0 { return end(.maximumTokens) }
        for token in request.bannedTokens { logits[Int(token)] = -.infinity }
        if result.usage.generatedTokens == 0 { for token in request.bannedFirstTokens { logits[Int(token)] = -.infinity } }
        guard let token = sampler.next(logits, kernels: kernels) else { throw GenerationFailure.unusableLogits }
        result.usage.generatedTokens += 1
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
