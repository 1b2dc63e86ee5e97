import FoundationModels
import Synchronization
import TokenCounts

/// Counts the tokens of texts that become part of a prompt: with the model that reads them if it counts tokens, else by an upper estimate.
final class TextTokens: Sendable {
    private let model: (any TokenCounting)?
    /// The tokens that the template puts around a text; nil before they were counted.
    private let template = Mutex<Int?>(nil)

    init(_ model: some LanguageModel) { self.model = model as? any TokenCounting }

    /// The window of the model; nil if it is not known.
    var contextSize: Int? { model?.contextSize }

    /// - Throws: The errors of the model.
    @Sendable func count(_ text: String) async throws -> Int {
        guard let model else { return TokenEstimate.count(text) }
        func whole(_ text: String) async throws -> Int {
            try await model.tokenCount(for: [.prompt(.init(segments: [.text(.init(content: text))]))])
        }
        let around: Int
        if let known = template.withLock({ $0 }) {
            around = known
        } else {
            // A text of one token: some templates reject an empty one.
            around = try await whole("x") - 1
            template.withLock { $0 = around }
        }
        return max(0, try await whole(text) - around)
    }
}
