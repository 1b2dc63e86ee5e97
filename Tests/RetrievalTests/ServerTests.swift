import ContextKit
import Foundation
import FoundationModels
import FoundationModelsOpenAI
import FoundationModelsTesting
import Retrieval
import Synchronization
import Testing
import TokenCounts

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

private let serverAddress = ProcessInfo.processInfo.environment["FM_TEST_SERVER"]

/// What this package does with a model on a server that is not ours: `FM_TEST_SERVER=http://127.0.0.1:8000/v1`.
/// `Tests/Tools/check_server.sh` starts one with a small model and a window of 2,048 tokens. What it answers does not matter here.
@Suite(.enabled(if: serverAddress != nil, "FM_TEST_SERVER names no server"), .serialized, .timeLimit(.minutes(10)))
struct ServerTests {
    private static let window = 2_048

    private let model = OpenAILanguageModel(
        name: "small", url: serverAddress ?? "", timeout: .seconds(300), contextSize: ServerTests.window)

    private func options(_ tokens: Int) -> GenerationOptions {
        GenerationOptions(samplingMode: .greedy, maximumResponseTokens: tokens)
    }

    private func session(tools: [any Tool] = []) -> LanguageModelSession {
        LanguageModelSession(model: model, tools: tools, instructions: "You are a helpful assistant. Be brief.")
    }

    // MARK: - Sessions

    @Test("texts, with a limit, and in several turns") func texts() async throws {
        let session = session()
        for number in 1...3 {
            let response = try await session.respond(to: "Name animal number \(number).", options: options(16))
            #expect(!response.content.isEmpty)
        }
        #expect(session.transcript.count == 7)
    }

    @Test("a text is streamed in parts") func stream() async throws {
        let session = session()
        let stream = session.streamResponse(to: "Name five colours.", options: options(40))
        var texts: [String] = []
        for try await snapshot in stream { texts.append(snapshot.content) }
        #expect(texts.count > 1 && zip(texts, texts.dropFirst()).allSatisfy { $1.hasPrefix($0) })
        #expect(try await stream.collect().content == texts.last)
    }

    @Generable struct Colour {
        @Guide(.anyOf(["red", "green", "blue"])) var name: String
        var isWarm: Bool
    }

    @Test("values follow the schema") func values() async throws {
        let session = session()
        for _ in 1...2 {
            let colour = try await session.respond(to: "Choose a colour.", generating: Colour.self, options: options(200)).content
            #expect(["red", "green", "blue"].contains(colour.name))
        }
    }

    struct Weather: Tool {
        let description = "Tells the weather of a city."
        @Generable struct Arguments { var city: String }
        func call(arguments: Arguments) async throws -> String { "It is sunny in \(arguments.city)." }
    }

    @Test("tools can be offered") func tools() async throws {
        let response = try await session(tools: [Weather()]).respond(to: "How is the weather in Rome?", options: options(60))
        #expect(!response.content.isEmpty)
    }

    @Test("a response can be cancelled, and the session goes on") func cancellation() async throws {
        let session = session()
        let reading = Task {
            let stream = session.streamResponse(to: "Count from 1 to 300.", options: options(1_000))
            for try await snapshot in stream where !snapshot.content.isEmpty { return }
        }
        try await reading.value
        while session.isResponding { try await Task.sleep(for: .milliseconds(20)) }  // limited by the time of the suite
        #expect(!(try await session.respond(to: "Name an animal.", options: options(16)).content.isEmpty))
    }

    // MARK: - Tokens

    /// The number of tokens of a prompt that the server reports.
    private func reported(_ messages: [[String: String]]) async throws -> Int {
        let address = try #require(serverAddress)
        var request = URLRequest(url: try #require(URL(string: address + "/chat/completions")))
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = try JSONSerialization.data(
            withJSONObject: ["model": "small", "messages": messages, "max_tokens": 1] as [String: Any])
        let (data, _) = try await URLSession.shared.data(for: request)
        let usage = try GeneratedContent(json: String(decoding: data, as: UTF8.self)).value(
            GeneratedContent.self, forProperty: "usage")
        return try usage.value(Int.self, forProperty: "prompt_tokens")
    }

    @Test(
        "no fewer tokens are counted than the server reads",
        arguments: [
            "Hi", "The quick brown fox jumps over the lazy dog.\n\n- one\n- two\n\n\tfunc f(x: Int) -> Int { x + 1_000 }",
            "Der Fluß führt Hochwasser. Ну и что? 猫在沙发上睡觉。 🙂",
            String(repeating: "A longer text with many words in it. ", count: 60),
        ])
    func counts(text: String) async throws {
        func segments(_ text: String) -> [Transcript.Segment] { [.text(.init(content: text))] }
        let entries: [Transcript.Entry] = [
            .instructions(.init(segments: segments("Be brief."), toolDefinitions: [])), .prompt(.init(segments: segments("One"))),
            .response(.init(assetIDs: [], segments: segments("Two"))), .prompt(.init(segments: segments(text))),
        ]
        let counted = try await model.tokenCount(for: entries)
        let reported = try await reported([
            ["role": "system", "content": "Be brief."], ["role": "user", "content": "One"],
            ["role": "assistant", "content": "Two"], ["role": "user", "content": text],
        ])
        #expect(counted >= reported && counted <= reported + 200, "\(counted) of \(reported)")
    }

    // MARK: - Conversations and documents

    @Test("a conversation goes beyond the window, and recalls") func conversation() async throws {
        let recorder = RecordingLanguageModel(model)
        let compactions = Mutex(0)
        let conversation = try await Conversation(
            model: recorder, instructions: "You are a helpful assistant. Be brief.",
            onCompaction: { _ in compactions.withLock { $0 += 1 } })
        try await conversation.respond(to: "My cat is called Quorra, and she likes fish.", options: options(16))
        let filler = String(repeating: "The river flows through the valley, past the old mill and the church. ", count: 8)
        for number in 1...25 {
            try await conversation.respond(to: "Note \(number): \(filler)", options: options(16))
            #expect(try await conversation.tokenCount() <= Self.window)
        }
        await conversation.compact()
        #expect(compactions.withLock { $0 } > 0)
        try await conversation.respond(to: "What is the name of my cat Quorra, who likes fish?", options: options(16))
        // In front of the prompt, or among the notable sentences.
        let context = await conversation.transcript.map(\.description)
        let read = ([recorder.recording.exchanges.last?.requestKey ?? ""] + context).joined(separator: "\n")
        #expect(read.contains("My cat is called Quorra"))
        #expect(recorder.recording.exchanges.count == 27)
    }

    @Test("a search tool and a cited answer fit the window") func documents() async throws {
        let folder = try TemporaryFolder()
        let index = try await SearchIndex(url: folder.url.appendingPathComponent("test.index"), model: WordEmbedder())
        for number in 1...30 {
            let text =
                "Passports of district \(number) are renewed at the town hall on square \(number). The fee is \(number) euros."
            try await index.add(ExtractedText(text, format: .plain), path: "district\(number).txt")
        }
        let tool = SearchTool(index: index, tokens: 300, model: model)
        let output = try await tool.call(
            arguments: SearchTool.Arguments(GeneratedContent(properties: ["query": "passports renewed town hall"])))
        #expect(output.contains("town hall") && TokenEstimate.count(output) < 900)
        let response = try await session(tools: [tool]).respond(to: "What is the fee in district 7?", options: options(40))
        #expect(!response.content.isEmpty)
        do {
            let answer = try await CitedAnswer(question: "Where are passports of district 7 renewed?", from: index, model: model)
            #expect(answer.statements.allSatisfy { statement in answer.sources.contains { $0.number == statement.source } })
        } catch is GeneratedContent.ParsingError {
            // A model this small may write a statement until the limit of tokens.
        }
    }
}
