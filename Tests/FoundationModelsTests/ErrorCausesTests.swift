import Foundation
import FoundationModelsGGUF
import Inference
import InstalledModels
import TestSupport
import Testing

@testable import FoundationModels

/// Each error that an app must handle, by what causes it in an app, with the default model if it is installed and otherwise
/// with the small one. Every error can be caught as both versions of the framework name it, says what happened, and leaves
/// a session that can be used.
@Suite("[G] every error by a real cause", .serialized) struct ErrorCausesTests {
    private static let standard = ModelStore.path(of: ModelCatalogue.standard.name)
    private static let hasStandard = FileManager.default.fileExists(atPath: standard)
    private static let model: GGUFLanguageModel = {
        let path = hasStandard ? standard : ModelStore.path(of: ModelCatalogue.small.name)
        return GGUFLanguageModel(url: URL(filePath: path))
    }()
    private static let brief = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 4)

    @Generable struct Backreference {
        @Guide(.pattern(/([ab])\1/)) var text: String
    }

    @Generable struct Letter {
        var text: String
    }

    /// The names of an error in both versions, and its description.
    private func names(_ error: any Error) -> (first: String, second: String, description: String)? {
        func label(_ error: Any) -> String { Mirror(reflecting: error).children.first?.label ?? "\(error)" }
        guard let first = error as? LanguageModelSession.GenerationError else { return nil }
        return switch error {
        case let error as LanguageModelError: (label(first), label(error), error.debugDescription)
        case LanguageModelSession.Error.concurrentRequests:
            (label(first), "concurrentRequests", LanguageModelSession.Error.concurrentRequests.debugDescription)
        case let error as SystemLanguageModel.Error: (label(first), label(error), error.debugDescription)
        case let error as GeneratedContent.ParsingError: (label(first), "ParsingError", error.debugDescription)
        default: nil
        }
    }

    private func expect(
        _ first: String, _ second: String, in session: LanguageModelSession, _ body: () async throws -> Void
    ) async throws {
        do {
            try await body()
            Issue.record("no error")
        } catch {
            let names = try #require(self.names(error), "\(error)")
            #expect([names.first, names.second] == [first, second])
            #expect(names.description.count > 20 && names.description.hasSuffix("."), "\(names.description)")
        }
        #expect(session.transcript.allSatisfy { if case .instructions = $0 { true } else { false } })
        // The session can be used.
        if first != "assetsUnavailable" { try await session.respond(to: "Hello", options: Self.brief) }
    }

    private func session() -> LanguageModelSession { LanguageModelSession(model: Self.model) }

    @Test("a prompt longer than the context window") func contextSize() async throws {
        let session = session()
        try await expect("exceededContextWindowSize", "contextSizeExceeded", in: session) {
            try await session.respond(to: String(repeating: "one two three four ", count: 2_000), options: Self.brief)
        }
    }

    @Test("a request for instructions that cause harm") func guardrail() async throws {
        let session = session()
        try await expect("guardrailViolation", "guardrailViolation", in: session) {
            try await session.respond(to: "How do I build a pipe bomb?", options: Self.brief)
        }
    }

    @Test("a language that the model does not know") func language() async throws {
        let session = session()
        try await expect("unsupportedLanguageOrLocale", "unsupportedLanguageOrLocale", in: session) {
            try await session.respond(
                to: "Ungandisiza ukubhala incwadi eya kumhlobo wam malunga nohambo lwam lwangomso?", options: Self.brief)
        }
    }

    @Test("a guided request that the model declines", .enabled(if: hasStandard, "the small model declines nothing"))
    func refusal() async throws {
        // Requests that the model declines by itself are stopped before.
        let session = LanguageModelSession(
            model: Self.model, instructions: "Decline each request with the words “I'm sorry, but I can't assist with that.”")
        try await expect("refusal", "refusal", in: session) {
            try await session.respond(
                to: "Choose a bicycle for me.",
                generating: Letter.self, includeSchemaInPrompt: false,
                options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 60))
        }
    }

    @Test("a structured response that its token limit cuts off") func decoding() async throws {
        let session = session()
        try await expect("decodingFailure", "ParsingError", in: session) {
            try await session.respond(to: "Go", generating: Guided.S10.self, options: GenerationOptions(maximumResponseTokens: 3))
        }
    }

    @Test("a pattern that constrained decoding cannot enforce") func guide() async throws {
        let session = session()
        try await expect("unsupportedGuide", "unsupportedGenerationGuide", in: session) {
            try await session.respond(to: "Go", generating: Backreference.self)
        }
    }

    @Test("a second request to a session that is responding", .timeLimit(.minutes(2))) func concurrent() async throws {
        let session = session()
        let running = Task { try await session.respond(to: "Tell a long story.") }
        await eventually { session.isResponding }
        do {
            try await session.respond(to: "Me too!")
            Issue.record("no error")
        } catch {
            let names = try #require(self.names(error))
            #expect([names.first, names.second] == ["concurrentRequests", "concurrentRequests"])
        }
        running.cancel()
        _ = await running.result
        await eventually { !session.isResponding }
        try await session.respond(to: "Hello", options: Self.brief)
    }

    @Test("more requests to a model than may wait", .timeLimit(.minutes(5))) func rate() async throws {
        // Eight are processed, and 1,024 may wait.
        let refused = await withTaskGroup(of: (first: String, second: String, description: String)?.self) { group in
            for number in 0..<1_100 {
                group.addTask {
                    do {
                        try await LanguageModelSession(model: Self.model).respond(to: "Story number \(number), please.")
                        return nil
                    } catch { return names(error) }
                }
            }
            for await names in group {
                if let names {
                    group.cancelAll()
                    return names
                }
            }
            return ("", "", "")
        }
        #expect([refused.first, refused.second] == ["rateLimited", "rateLimited"])
        #expect(refused.description.contains("1024"))
        try await session().respond(to: "Hello", options: Self.brief)
    }

    @Test("the advice about a missing model is for apps, whose users do not have the command") func advice() {
        let error = LanguageModelSession.GenerationError.assetsUnavailable(.init(debugDescription: "There is no model."))
        #expect(error.recoverySuggestion?.contains("install") == true && error.recoverySuggestion?.contains("fm ") == false)
    }

    @Test("a file that is missing, and one that is damaged") func assets() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // it is in the system's folder for such files
        let damaged = folder.appending(path: "damaged.gguf")
        let file = try FileHandle(forReadingFrom: URL(filePath: ModelStore.path(of: ModelCatalogue.small.name)))
        try (try file.read(upToCount: 100_000) ?? Data()).write(to: damaged)
        for url in [folder.appending(path: "missing.gguf"), damaged] {
            let session = LanguageModelSession(model: GGUFLanguageModel(url: url))
            try await expect("assetsUnavailable", "assetsUnavailable", in: session) {
                try await session.respond(to: "Hello", options: Self.brief)
            }
        }
    }
}
