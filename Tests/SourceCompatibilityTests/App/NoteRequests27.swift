import Foundation
import FoundationModels

/// The same requests with the additions of the second release: context options and metadata.
struct AnnotatedNoteRequests {
    let session: LanguageModelSession
    var requestID = "note-1"

    private var metadata: [String: any ConvertibleToGeneratedContent] {
        ["requestID": requestID, "attempt": 1, "tags": ["notes", "work"]]
    }

    // MARK: Text

    func summary(of note: String) async throws -> String {
        try await session.respond(to: "Summarize: \(note)", metadata: ["requestID": requestID]).content
    }

    func reasonedSummary(of note: String) async throws -> LanguageModelSession.Response<String> {
        try await session.respond(
            to: Prompt("Summarize: \(note)"),
            options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 200),
            contextOptions: ContextOptions(reasoningLevel: .moderate),
            metadata: metadata
        )
    }

    func summary(of notes: [String]) async throws -> String {
        try await session.respond(contextOptions: ContextOptions(), metadata: metadata) {
            "Summarize:"
            notes
        }.content
    }

    // MARK: A type

    func outline(of note: String) async throws -> LanguageModelSession.Response<NoteSummary> {
        try await session.respond(
            to: note,
            generating: NoteSummary.self,
            contextOptions: ContextOptions(includeSchemaInPrompt: false)
        )
    }

    func outline(of prompt: Prompt) async throws -> NoteSummary {
        try await session.respond(to: prompt, generating: NoteSummary.self, metadata: metadata).content
    }

    func outline(of notes: [String]) async throws -> NoteSummary {
        try await session.respond(generating: NoteSummary.self, contextOptions: .init(includeSchemaInPrompt: true)) {
            notes
        }.content
    }

    // MARK: A schema

    func content(of note: String, like schema: GenerationSchema) async throws -> GeneratedContent {
        try await session.respond(to: note, schema: schema, contextOptions: ContextOptions()).content
    }

    func content(of prompt: Prompt, like schema: GenerationSchema) async throws -> GeneratedContent {
        try await session.respond(to: prompt, schema: schema, metadata: metadata).content
    }

    func content(of notes: [String], like schema: GenerationSchema) async throws -> GeneratedContent {
        try await session.respond(schema: schema, metadata: metadata) { notes }.content
    }

    // MARK: Streams

    func summaryStream(of note: String) -> LanguageModelSession.ResponseStream<String> {
        session.streamResponse(to: note, contextOptions: ContextOptions(reasoningLevel: .light), metadata: metadata)
    }

    func outlineStream(of prompt: Prompt) -> LanguageModelSession.ResponseStream<NoteSummary> {
        session.streamResponse(to: prompt, generating: NoteSummary.self, metadata: metadata)
    }

    func outlineStream(of notes: [String]) -> LanguageModelSession.ResponseStream<NoteSummary> {
        session.streamResponse(generating: NoteSummary.self, contextOptions: .init(includeSchemaInPrompt: false)) {
            notes
        }
    }

    func contentStream(of note: String, like schema: GenerationSchema) -> LanguageModelSession.ResponseStream<GeneratedContent> {
        session.streamResponse(to: note, schema: schema, contextOptions: .init(includeSchemaInPrompt: false))
    }

    func contentStream(of notes: [String], like schema: GenerationSchema) -> LanguageModelSession.ResponseStream<GeneratedContent>
    {
        session.streamResponse(schema: schema, metadata: metadata) { notes }
    }
}

/// Options with their newer names.
enum NoteSampling {
    static let exact = GenerationOptions(samplingMode: .greedy)
    static let short = GenerationOptions(samplingMode: .random(top: 20, seed: 7), maximumResponseTokens: 60)
    static let mustLookUp = GenerationOptions(samplingMode: nil, temperature: 0.3, toolCallingMode: .required)
    static let offline = GenerationOptions(toolCallingMode: .disallowed)

    /// Describes a sampling mode for the debug overlay.
    static func label(of options: GenerationOptions) -> String {
        guard let mode = options.samplingMode else { return "model's own" }
        switch mode.kind {
        case .greedy:
            return "greedy"
        case .randomTopK(let count, let seed):
            return "top \(count)" + (seed.map { ", seed \($0)" } ?? "")
        case .randomProbabilityThreshold(let threshold, seed: let seed):
            return "p \(threshold)" + (seed.map { ", seed \($0)" } ?? "")
        @unknown default:
            return "other"
        }
    }

    static func label(of mode: GenerationOptions.ToolCallingMode?) -> String {
        switch mode?.kind {
        case .allowed: "tools allowed"
        case .required: "tools required"
        case .disallowed: "no tools"
        case nil: "tools as the model likes"
        @unknown default: "unknown"
        }
    }

    static func label(of level: ContextOptions.ReasoningLevel) -> String {
        switch level {
        case .light: "light"
        case .moderate: "moderate"
        case .deep: "deep"
        case .custom(let name): name
        @unknown default: "unknown"
        }
    }

    static func warmer(than options: GenerationOptions) -> GenerationOptions {
        var copy = options
        copy.temperature = (options.temperature ?? 0.5) + 0.25
        copy.samplingMode = .random(probabilityThreshold: 0.95)
        copy.toolCallingMode = .allowed
        return copy
    }
}
