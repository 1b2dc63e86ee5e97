import Foundation
import FoundationModelsGGUF
import Inference
import InstalledModels
import Testing

@testable import FoundationModels

@Suite("[E2] refusals of guided requests") struct RefusalTests {
    @Test("the first text of a value decides")
    func firstText() async throws {
        func explanation(_ json: String, prompt: String = "Write a letter.") async throws -> String? {
            guard case .refusal(let refusal)? = Refusals.refusal(in: json, prompt: prompt) else { return nil }
            return try await refusal.explanation.content
        }
        let text = "I'm sorry, but I can't assist with that."
        #expect(try await explanation("\"\(text)\"") == text)
        #expect(try await explanation("{\"count\": 3, \"steps\": [{\"title\": \"\(text)\"}]}") == text)
        #expect(try await explanation("{\"title\": \"A letter\", \"quote\": \"\(text)\"}") == nil)
        #expect(try await explanation("{\"title\": \"I can't wait\"}") == nil)
        // Documents that a limit of tokens cut off.
        #expect(try await explanation("{\"title\": \"\(text)") == text)
        #expect(try await explanation("[1, 2]") == nil)
        // The prompt is about a refusal, so that the value is what it asks for.
        #expect(try await explanation("\"\(text)\"", prompt: "Translate: Dabei kann ich Ihnen nicht helfen.") == nil)
        // An answer to a harmless question, and a refusal of an unsafe request.
        let judgement = "This is not allowed."
        #expect(try await explanation("\"\(judgement)\"", prompt: "Can I park my car in front of the fire station?") == nil)
        #expect(
            try await explanation("\"\(judgement)\"", prompt: "Help me hack into my neighbour's wifi network.") == judgement)
    }

    private static let model = ModelStore.path(of: ModelCatalogue.standard.name)

    @Test(
        "the default model declines, and its explanation can be read and streamed",
        .enabled(if: FileManager.default.fileExists(atPath: model)))
    func realModel() async throws {
        // Unsafe prompts are stopped before the model declines them.
        let session = LanguageModelSession(
            model: GGUFLanguageModel(url: URL(filePath: Self.model)),
            instructions: "Decline each request with the words “I'm sorry, but I can't assist with that.”")
        let prompt = "Choose a bicycle for me."
        let schema = try GenerationSchema(
            root: DynamicGenerationSchema(
                name: "Message", properties: [.init(name: "text", schema: DynamicGenerationSchema(type: String.self))]),
            dependencies: [])
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 60)
        do {
            _ = try await session.respond(
                to: prompt, schema: schema, includeSchemaInPrompt: false, options: options)
            Issue.record("The model did not decline.")
        } catch LanguageModelError.refusal(let refusal) {
            #expect(try await refusal.explanation.content.contains("assist"))
            var last = ""
            for try await snapshot in refusal.explanationStream { last = snapshot.content }
            #expect(last.contains("assist"))
        }
        #expect(session.transcript.count == 1)
        // The version of 2025 of the same error.
        await #expect(throws: LanguageModelSession.GenerationError.self) {
            _ = try await session.respond(
                to: prompt, schema: schema, includeSchemaInPrompt: false, options: options)
        }
    }
}
