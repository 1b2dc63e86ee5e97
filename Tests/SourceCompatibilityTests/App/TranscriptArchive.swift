import Foundation
import FoundationModels

/// Conversations in files.
struct TranscriptArchive {
    let folder: URL

    func save(_ transcript: Transcript, as name: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try encoder.encode(transcript).write(to: url(of: name), options: .atomic)
    }

    func transcript(named name: String) throws -> Transcript {
        try JSONDecoder().decode(Transcript.self, from: Data(contentsOf: url(of: name)))
    }

    /// Tools are code and not part of the file, so they must be passed again.
    func session(named name: String, on model: some LanguageModel, tools: [any Tool]) throws -> LanguageModelSession {
        LanguageModelSession(model: model, tools: tools, transcript: try transcript(named: name))
    }

    private func url(of name: String) -> URL {
        folder.appendingPathComponent(name).appendingPathExtension("json")
    }
}

/// Transcripts created in code, as the start of a session.
enum SampleTranscripts {
    static let text = Transcript(entries: [
        .instructions(
            Transcript.Instructions(
                id: "i-1", segments: [.text(.init(id: "s-1", content: "You are a librarian."))], toolDefinitions: [])),
        .prompt(Transcript.Prompt(id: "p-1", segments: [.text(.init(id: "s-2", content: "A book about rain?"))])),
        .response(
            Transcript.Response(id: "r-1", assetIDs: [], segments: [.text(.init(id: "s-3", content: "Try “Drops”."))])),
    ])

    /// One entry of each kind.
    static func everything() -> Transcript {
        let tool = Transcript.ToolDefinition(
            name: "findBook", description: "Finds a book.", parameters: BookQuery.generationSchema)
        let instructions = Transcript.Instructions(
            id: "i-1", segments: [.text(.init(id: "s-1", content: "You are a librarian."))], toolDefinitions: [tool])

        let prompt = Transcript.Prompt(
            id: "p-1",
            metadata: ["requestID": "42"],
            segments: [.text(.init(id: "s-2", content: "A book about rain?"))],
            options: GenerationOptions(
                samplingMode: .random(top: 5, seed: 9), temperature: 0.5, maximumResponseTokens: 80,
                toolCallingMode: .required),
            responseFormat: Transcript.ResponseFormat(type: BookQuery.self),
            contextOptions: ContextOptions(includeSchemaInPrompt: true, reasoningLevel: .deep))

        let reasoning = Transcript.Reasoning(
            id: "t-1", segments: [.text(.init(id: "s-3", content: "Rain is weather."))], signature: Data([1, 2, 3]))

        let calls = Transcript.ToolCalls(
            id: "c-1",
            [
                Transcript.ToolCall(
                    id: "call-1", metadata: ["index": 0], toolName: "findBook",
                    arguments: GeneratedContent(properties: ["subject": "rain", "year": 1999])),
                Transcript.ToolCall(
                    id: "call-2", toolName: "findBook", arguments: GeneratedContent(properties: ["subject": "snow"])),
            ])

        let outputs = [
            Transcript.ToolOutput(
                id: "call-1", toolName: "findBook", segments: [.text(.init(id: "s-4", content: "Drops"))]),
            Transcript.ToolOutput(
                id: "call-2", toolName: "findBook",
                segments: [
                    .structure(
                        Transcript.StructuredSegment(
                            id: "s-5", schemaName: "BookQuery", content: GeneratedContent(properties: ["subject": "ice"])))
                ]),
        ]

        let response = Transcript.Response(
            id: "r-1", metadata: ["modelID": "shelf"], segments: [.text(.init(id: "s-6", content: "Try “Drops”."))])

        return Transcript(
            entries: [.instructions(instructions), .prompt(prompt), .reasoning(reasoning), .toolCalls(calls)]
                + outputs.map(Transcript.Entry.toolOutput) + [.response(response)])
    }

    /// The format of the first release, with `source` and asset identifiers.
    static func early() -> Transcript {
        let segment = Transcript.StructuredSegment(
            id: "s-1", source: "BookQuery", content: BookQuery(subject: "rain", year: nil).generatedContent)
        return Transcript(entries: [
            .prompt(
                .init(
                    segments: [.text(.init(content: "A book?"))],
                    options: GenerationOptions(temperature: 0.2),
                    responseFormat: .init(schema: BookQuery.generationSchema))),
            .response(.init(assetIDs: ["asset-1"], segments: [.structure(segment)])),
        ])
    }
}

@Generable
struct BookQuery: Equatable {
    @Guide(description: "What the book is about")
    var subject: String
    @Guide(.range(1900...2030)) var year: Int?
}
