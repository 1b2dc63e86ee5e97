import Foundation
import FoundationModels

/// A chat that continues when its context window is full.
actor LongChat {
    private(set) var session: LanguageModelSession
    private(set) var restarts = 0
    private let renew: @Sendable (Transcript) -> LanguageModelSession

    /// - Parameter renew: Creates a session that continues from a transcript.
    init(
        _ session: LanguageModelSession,
        renew: @escaping @Sendable (Transcript) -> LanguageModelSession = { LanguageModelSession(transcript: $0) }
    ) {
        self.session = session
        self.renew = renew
    }

    /// Retries once with a condensed transcript. A second overflow is thrown to the caller.
    func send(_ text: String) async throws -> String {
        do {
            return try await session.respond(to: text).content
        } catch LanguageModelSession.GenerationError.exceededContextWindowSize {
            restarts += 1
            session = renew(Self.condensed(session.transcript))
            return try await session.respond(to: text).content
        }
    }

    /// The first entry (usually the instructions) and the last entry.
    static func condensed(_ transcript: Transcript) -> Transcript {
        var entries: [Transcript.Entry] = []
        if let first = transcript.first {
            entries.append(first)
        }
        if transcript.count > 1, let last = transcript.last {
            entries.append(last)
        }
        return Transcript(entries: entries)
    }
}

/// Counts tokens before a request.
struct PreflightCheck {
    var model = SystemLanguageModel.default
    var share = 0.85

    struct Report: Equatable {
        var used: Int
        var limit: Int
        var fits: Bool { used <= limit }
    }

    func check(_ session: LanguageModelSession, adding prompt: String) async throws -> Report {
        let history = try await model.tokenCount(for: session.transcript)
        let next = try await model.tokenCount(for: prompt)
        return Report(used: history + next, limit: Int(Double(model.contextSize) * share))
    }

    /// The token counts of the parts, before a session exists.
    func cost(
        instructions: Instructions, tools: [any Tool], schema: GenerationSchema?, prompt: Prompt
    ) async throws -> [String: Int] {
        var cost = [
            "instructions": try await model.tokenCount(for: instructions),
            "tools": try await model.tokenCount(for: tools),
            "prompt": try await model.tokenCount(for: prompt),
        ]
        if let schema {
            cost["schema"] = try await model.tokenCount(for: schema)
        }
        return cost
    }

    func cost(of entries: [Transcript.Entry]) async throws -> Int {
        try await model.tokenCount(for: entries)
    }

    /// Starts a new session with a summary before the window is full.
    func compact(_ session: LanguageModelSession, before prompt: String) async throws -> LanguageModelSession {
        guard try await !check(session, adding: prompt).fits else { return session }
        let summary = try await summarize(session.transcript)
        return LanguageModelSession {
            "Go on with a conversation. This is what was said so far:"
            summary
        }
    }

    private func summarize(_ transcript: Transcript) async throws -> String {
        let lines = transcript.compactMap { entry -> String? in
            switch entry {
            case .prompt(let prompt): "Person: \(prompt.plainText)"
            case .response(let response): "You: \(response.plainText)"
            default: nil
            }
        }
        let writer = LanguageModelSession(instructions: "Summarize conversations in three sentences.")
        return try await writer.respond(to: lines.joined(separator: "\n")).content
    }
}

extension Transcript.Prompt {
    var plainText: String { segments.plainText }
}

extension Transcript.Response {
    var plainText: String { segments.plainText }
}

extension [Transcript.Segment] {
    /// The text segments, one line each.
    var plainText: String {
        compactMap { segment in
            guard case .text(let text) = segment else { return nil }
            return text.content
        }
        .joined(separator: "\n")
    }
}
