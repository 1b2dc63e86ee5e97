import Foundation
import Inference

/// Measures the throughput of several conversations at once: each has its own prompt and generates a fixed number of
/// tokens.
struct ConcurrencyBench {
    let model: LoadedModel
    let adapter: LowRankAdapter?
    let format: CacheFormat
    var promptTokens = 200
    var responseTokens = 128

    struct Figures: Encodable {
        var concurrency: Int
        var threads: Int
        /// Generated tokens of all conversations per second, from the first request to the last token.
        var tokensPerSecond: Double
        /// Prompt and generated tokens per second.
        var processedTokensPerSecond: Double
        /// Seconds from the start to the first token: the median and the maximum of all conversations.
        var firstTokenSeconds: Double
        var worstFirstTokenSeconds: Double
    }

    func measure(_ concurrency: Int) async throws -> Figures {
        let start = ContinuousClock.now
        let firsts = try await withThrowingTaskGroup(of: Double.self) { group in
            for number in 0..<concurrency { group.addTask { try await converse(number) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }.sorted()
        let seconds = (ContinuousClock.now - start).seconds
        let generated = Double(concurrency * responseTokens)
        return Figures(
            concurrency: concurrency, threads: model.threads, tokensPerSecond: generated / seconds,
            processedTokensPerSecond: Double(concurrency * (promptTokens + responseTokens)) / seconds,
            firstTokenSeconds: firsts[firsts.count / 2], worstFirstTokenSeconds: firsts.last ?? 0)
    }

    /// Runs one conversation. Returns the seconds until its first token, including those in the queue.
    private func converse(_ number: Int) async throws -> Double {
        let vocabulary = model.tokenizer.vocabulary.count
        let prompt = (0..<promptTokens).map { TokenID(($0 * 7919 + 113 + 1_009 * number) % vocabulary) }
        var request = GenerationRequest(tokens: prompt, sampling: .greedy, maximumTokens: responseTokens)
        // All conversations have the same length and process the same number of tokens.
        request.detectsLoops = false
        request.proposesTokens = false
        request.bannedTokens = Array(model.tokenizer.stopTokens)
        let sequence = try model.makeSequence(
            contextSize: promptTokens + responseTokens + 1, format: format, adapter: adapter, sharesCache: false)
        let result = try await model.generate(request, in: sequence) { _ in true }
        return result.usage.queueSeconds + result.usage.promptSeconds
    }
}
