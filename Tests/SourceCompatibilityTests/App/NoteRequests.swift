import Foundation
import FoundationModels

@Generable(description: "What a note is about")
struct NoteSummary: Equatable {
    @Guide(description: "A title of a few words")
    var title: String

    @Guide(description: "Things left to do", .maximumCount(4))
    var tasks: [String]
}

/// All variants of requests about a note, with the API of the first release.
struct NoteRequests {
    let session: LanguageModelSession
    var options = GenerationOptions()

    // MARK: Text

    func summary(of note: String) async throws -> String {
        let response = try await session.respond(to: "Summarize this note: \(note)")
        return response.content
    }

    func summary(of prompt: Prompt) async throws -> String {
        try await session.respond(to: prompt, options: options).content
    }

    func summary(of notes: [String], for reader: String?) async throws -> String {
        let response = try await session.respond(options: options) {
            "Summarize these notes."
            if let reader {
                "The reader is \(reader)."
            }
            for note in notes {
                note
            }
        }
        return response.content
    }

    /// Only the transcript is used, so the response is discarded.
    func remember(_ fact: String) async throws {
        try await session.respond(to: fact)
        try await session.respond { "Remember this too: \(fact)" }
    }

    // MARK: A type

    func outline(of note: String) async throws -> NoteSummary {
        let response = try await session.respond(to: note, generating: NoteSummary.self)
        return response.content
    }

    func outline(of prompt: Prompt) async throws -> NoteSummary {
        try await session.respond(
            to: prompt,
            generating: NoteSummary.self,
            includeSchemaInPrompt: false,
            options: options
        ).content
    }

    func outline(of notes: [String]) async throws -> NoteSummary {
        try await session.respond(generating: NoteSummary.self, options: options) {
            "Make one outline of all these notes."
            notes
        }.content
    }

    /// The type can be inferred from the context.
    func inferredOutline(of note: String) async throws -> NoteSummary {
        let response: LanguageModelSession.Response<NoteSummary> = try await session.respond(to: note)
        return response.content
    }

    func numberOfTasks(in note: String) async throws -> Int {
        try await session.respond(to: "How many tasks are in this note? \(note)", generating: Int.self).content
    }

    func isUrgent(_ note: String) async throws -> Bool {
        try await session.respond(to: "Is this urgent? \(note)", generating: Bool.self).content
    }

    func outlines(of note: String) async throws -> [NoteSummary] {
        try await session.respond(to: note, generating: [NoteSummary].self).content
    }

    // MARK: A schema

    func content(of note: String, like schema: GenerationSchema) async throws -> GeneratedContent {
        try await session.respond(to: note, schema: schema).content
    }

    func content(of prompt: Prompt, like schema: GenerationSchema) async throws -> GeneratedContent {
        try await session.respond(
            to: prompt,
            schema: schema,
            includeSchemaInPrompt: false,
            options: options
        ).content
    }

    func content(of notes: [String], like schema: GenerationSchema) async throws -> GeneratedContent {
        try await session.respond(schema: schema, options: options) {
            for note in notes {
                Prompt(note)
            }
        }.content
    }
}

/// The options of the settings screen.
enum NoteStyle: CaseIterable {
    case exact, balanced, inventive, sameAsYesterday, untouched

    var options: GenerationOptions {
        switch self {
        case .exact:
            GenerationOptions(sampling: .greedy)
        case .balanced:
            GenerationOptions(sampling: .random(top: 40), temperature: 0.7, maximumResponseTokens: 400)
        case .inventive:
            GenerationOptions(temperature: 2)
        case .sameAsYesterday:
            GenerationOptions(sampling: .random(probabilityThreshold: 0.9, seed: 20_250_915))
        case .untouched:
            GenerationOptions()
        }
    }
}
