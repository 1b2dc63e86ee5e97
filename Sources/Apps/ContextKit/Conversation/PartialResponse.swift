import FoundationModels
import Synchronization

/// The content that a stream has generated so far. When a request is cancelled, its stream ends immediately, but the
/// session ends later: after the current token, or when a tool that ignores cancellation returns.
final class PartialResponse: Sendable {
    private let content = Mutex<GeneratedContent?>(nil)
    private let first = Mutex<(entries: [Transcript.Entry], text: String?)?>(nil)

    func set(_ value: GeneratedContent) { content.withLock { $0 = value } }

    /// The answer is started again after an attempt that generated these entries.
    func startAgain(after entries: [Transcript.Entry]) {
        let text = text
        first.withLock { $0 = (entries, text) }
        content.withLock { $0 = nil }
    }

    /// What was generated before the answer was started again; nil in the first attempt.
    var firstAttempt: (entries: [Transcript.Entry], text: String?)? { first.withLock { $0 } }

    /// Waits for a complete response.
    nonisolated(nonsending) func collect<Content>(
        _ stream: LanguageModelSession.ResponseStream<Content>
    ) async throws -> sending LanguageModelSession.Response<Content> {
        for try await snapshot in stream { set(snapshot.rawContent) }
        return try await stream.collect()
    }

    var text: String? {
        content.withLock { $0 }.map { content in
            // Text, unless it is a structure.
            if case .string(let text) = content.kind { text } else { content.jsonString }
        }
    }
}

extension Transcript.Entry {
    /// Whether the entry is a response with this text.
    func isResponse(_ text: String) -> Bool {
        guard case .response(let response) = self else { return false }
        return response.segments.contains { if case .text(let segment) = $0 { segment.content == text } else { false } }
    }
}
