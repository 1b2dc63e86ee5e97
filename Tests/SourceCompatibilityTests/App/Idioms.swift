import Foundation
import FoundationModels

/// A tool whose argument is a plain string; it declares its own parameter schema.
struct NicknameTool: Tool {
    let name = "nickname"
    let description = "Makes a nickname."

    var parameters: GenerationSchema { String.generationSchema }

    func call(arguments: String) async throws -> String {
        String(arguments.prefix(2)) + "i"
    }
}

/// Common Swift patterns with sessions: sequences, task groups, closures.
struct Idioms {
    let session: LanguageModelSession

    /// One session for each text, concurrently.
    static func answers(
        to texts: [String], in makeSession: @escaping @Sendable () -> LanguageModelSession
    ) async throws -> [String: String] {
        try await withThrowingTaskGroup(of: (String, String).self) { group in
            for text in texts {
                group.addTask { (text, try await makeSession().respond(to: text).content) }
            }
            var answers: [String: String] = [:]
            for try await (text, answer) in group {
                answers[text] = answer
            }
            return answers
        }
    }

    static func pair(on model: some LanguageModel) async throws -> (String, String) {
        let left = LanguageModelSession(model: model), right = LanguageModelSession(model: model)
        async let first = left.respond(to: "left").content
        async let second = right.respond(to: "right").content
        return try await (first, second)
    }

    /// Streams are asynchronous sequences with all their methods.
    func lengths(_ text: String) async throws -> [Int] {
        try await session.streamResponse(to: text)
            .map { $0.content.count }
            .reduce(into: []) { $0.append($1) }
    }

    func firstSentence(_ text: String) async throws -> String? {
        try await session.streamResponse(to: text).first { $0.content.contains(".") }?.content
    }

    func multiline(_ name: String) async throws -> String {
        try await session.respond(
            to: """
                Write a greeting.
                It is for \(name).
                """,
            options: .init(temperature: 1)
        ).content
    }

    func joined(_ words: [Substring]) async throws -> String {
        try await session.respond(to: "Join: " + words.joined(separator: " ")).content
    }

    func next(after answer: LanguageModelSession.Response<String>) async throws -> String {
        let prompt = Prompt {
            "Go on from here:"; answer.content
        }
        return try await session.respond(to: prompt).content
    }

    /// The response can be sent to another task.
    @MainActor
    static func onMainActor(_ session: LanguageModelSession) async throws -> LanguageModelSession.Response<NoteSummary> {
        let task = Task.detached { try await session.respond(to: "note", generating: NoteSummary.self) }
        return try await task.value
    }

    func firstAndLast() -> LanguageModelSession {
        LanguageModelSession(
            transcript: Transcript(entries: session.transcript.prefix(1) + session.transcript.suffix(1)))
    }

    func shortened(to count: Int, on model: some LanguageModel) -> LanguageModelSession {
        LanguageModelSession(model: model, transcript: Transcript(entries: session.transcript.suffix(count)))
    }

    func firstQuestion() -> Transcript.Entry? {
        session.transcript.first { entry in
            if case .prompt = entry { return true }
            return false
        }
    }

    func counts(by model: SystemLanguageModel) async throws -> [Int] {
        [
            try await model.tokenCount(for: session.transcript.dropLast()),
            try await model.tokenCount(for: ["one", "two"]),
            try await model.tokenCount(for: Instructions { "Be brief." }),
            try await model.tokenCount(
                for: Prompt {
                    "one"; "two"
                }),
        ]
    }
}
