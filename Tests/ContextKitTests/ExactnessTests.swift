import Foundation
import Synchronization
import FoundationModels
import FoundationModelsGGUF
import TestSupport
import Testing

@testable import ContextKit

/// Compares token counts with the tokens that the engine processed, and cached results with results computed without a
/// cache. The model has random weights: its text is meaningless, but its arithmetic and its window are real.
struct ExactnessTests {
    struct Tool1: Tool {
        let name = "weather"
        let description = "Tells the weather of a city — in any language: 天気."
        func call(arguments: GeneratedContent) async throws -> String { "Sunny." }
    }
    struct Tool2: Tool {
        let name = "add"
        let description = "Adds numbers."
        @Generable struct Arguments {
            @Guide(.count(1...3)) var numbers: [Int]
            var note: String?
        }
        func call(arguments: Arguments) async throws -> String { "\(arguments.numbers.count)" }
    }
    @Generable struct Verdict {
        var isTrue: Bool
        var isSure: Bool
    }

    private static let pieces = [
        "the", " thing", "\n", "\n\n", "  ", "é", "e\u{301}", "日本", "🦊", "<|im_end|>", "<|im_start|>user\n", "12", "\t", "\u{0}",
        "x", "…", "\"quoted\"", "{}", "ß", "\u{200D}",
    ]

    private static func text(_ random: inout SeededGenerator, most: Int) -> String {
        (0..<Int.random(in: 1...most, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
    }

    @Test("[D2] token counts equal the processed tokens in 1,500 random conversations with tools, schemas and any characters")
    func accounting() async throws {
        let file = try TinyModel().file()
        let model = GGUFLanguageModel(url: URL(filePath: file.path), checksText: false)
        var random = SeededGenerator(11)
        var compared = 0
        for _ in 0..<1_500 {
            var entries: [Transcript.Entry] = []
            let tools: [any Tool] = [[], [], [Tool1()], [Tool1(), Tool2()]].randomElement(using: &random) ?? []
            if Bool.random(using: &random) || !tools.isEmpty {
                let definitions = tools.map { Transcript.ToolDefinition(tool: $0) }
                entries.append(
                    .instructions(
                        .init(segments: [.text(.init(content: Self.text(&random, most: 8)))], toolDefinitions: definitions)))
            }
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                entries.append(.prompt(.init(segments: [.text(.init(content: Self.text(&random, most: 10)))])))
                entries.append(.response(.init(segments: [.text(.init(content: Self.text(&random, most: 10)))])))
            }
            let prompt = Self.text(&random, most: 12)
            let isGuided = Bool.random(using: &random)
            let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: isGuided ? 40 : 2)
            let asked = Transcript.Prompt(
                segments: [.text(.init(content: prompt))], options: options,
                responseFormat: isGuided ? .init(type: Verdict.self) : nil)
            let counted = try await model.tokenCount(for: entries + [.prompt(asked)])
            let session = LanguageModelSession(model: model, tools: tools, transcript: Transcript(entries: entries))
            let usage: LanguageModelSession.Usage
            let made: ArraySlice<Transcript.Entry>
            do {
                if isGuided {
                    let response = try await session.respond(to: prompt, generating: Verdict.self, options: options)
                    (usage, made) = (response.usage, response.transcriptEntries)
                } else {
                    let response = try await session.respond(to: prompt, options: options)
                    (usage, made) = (response.usage, response.transcriptEntries)
                }
            } catch LanguageModelError.contextSizeExceeded(let context) {
                // Calls in random text may be as long as the window.
                if tools.isEmpty { #expect(counted + 2 > 512, "counted \(counted), \(context.debugDescription)") }
                continue
            } catch is GeneratedContent.ParsingError {
                continue  // random arguments that the tool rejects
            } catch is LanguageModelSession.ToolCallError {
                continue  // see above
            }
            // With calls, the request consisted of several rounds.
            if made.contains(where: { if case .toolCalls = $0 { true } else { false } }) { continue }
            #expect(usage.input.totalTokenCount == counted, "\(prompt.debugDescription)")
            compared += 1
        }
        #expect(compared > 1_000)
    }

    @Test("[D4] answers after edits and compactions equal those of a new session, byte for byte, in at least 200 cases")
    func cache() async throws {
        let file = try TinyModel().file()
        let model = GGUFLanguageModel(url: URL(filePath: file.path), checksText: false)
        let data = try Data(contentsOf: URL(filePath: file.path))
        var random = SeededGenerator(5)
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 12)
        var cached = 0
        var compared = 0
        var conversation = try await Conversation(model: model, instructions: "Be brief.")
        for round in 0..<330 {
            switch Int.random(in: 0...9, using: &random) {
            case 0: await conversation.compact()
            case 1: try await conversation.pin("Fact \(round).")
            case 2: for fact in await conversation.pinned { await conversation.unpin(fact) }
            case 3: conversation = try await Conversation(model: model, instructions: "Be brief. \(round)")
            default: break
            }
            let before = await conversation.transcript
            let response = try await conversation.respond(to: Self.text(&random, most: 12), options: options)
            cached += response.usage.input.cachedTokenCount
            // The same request to another model instance with an empty cache.
            let asked = try #require(response.transcriptEntries.first)
            guard case .prompt(let prompt) = asked else { continue }
            let copy = try TemporaryFile(Array(data), suffix: ".gguf")
            let fresh = LanguageModelSession(
                model: GGUFLanguageModel(url: URL(filePath: copy.path), checksText: false),
                transcript: before)
            let text = prompt.segments.plainText
            // A compaction may have happened between reading the transcript and the answer.
            let after = await conversation.transcript
            guard Array(after.dropLast(2)) == Array(before) else { continue }
            let again = try await fresh.respond(to: text, options: options)
            #expect(again.usage.input.cachedTokenCount == 0)
            #expect(again.content == response.content)
            compared += 1
        }
        #expect(cached > 5_000 && compared >= 200, "cached \(cached), compared \(compared)")
    }

    @Test("[D3] with a schema, a window one token too small is rejected immediately with exact counts, an exact fit accepted")
    func schemaBoundary() async throws {
        let file = try TinyModel().file()
        func model(_ size: Int) -> GGUFLanguageModel {
            GGUFLanguageModel(url: URL(filePath: file.path), contextSize: size, checksText: false)
        }
        let reserve = 40
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: reserve)
        let asked = Transcript.Prompt(
            segments: [.text(.init(content: "Is it so?"))], options: options, responseFormat: .init(type: Verdict.self))
        let counted = try await model(512).tokenCount(for: [.prompt(asked)])
        for excess in -1...1 {
            var policy = ContextPolicy.standard
            policy.responseReserve = reserve
            let conversation = try await Conversation(model: model(counted + reserve - excess), policy: policy)
            if excess > 0 {
                do {
                    try await conversation.respond(to: "Is it so?", generating: Verdict.self, options: options)
                    Issue.record("the prompt was accepted")
                } catch ConversationError.promptTooLarge(let size) {
                    #expect(size.excess == 1 && size.promptTokens + size.fixedTokens == counted)
                }
            } else {
                let response = try await conversation.respond(to: "Is it so?", generating: Verdict.self, options: options)
                #expect(response.usage.input.totalTokenCount == counted)
            }
        }
    }

    struct Reader: Tool {
        let words: Int
        let calls = Calls()
        let name = "read"
        let description = "Reads a page."
        @Generable struct Arguments { @Guide(.range(1...2)) var page: Int }
        func call(arguments: Arguments) async throws -> String {
            calls.count.withLock { $0 += 1 }
            return (0..<words).map { "\($0)" }.joined(separator: " ")
        }
    }

    final class Calls: Sendable {
        let count = Mutex(0)
    }

    @Test("[D3] a tool output that does not fit throws an error; the output is kept, and the tool is not run again")
    func toolOutput() async throws {
        let file = try TinyModel().file()
        let model = GGUFLanguageModel(url: URL(filePath: file.path), checksText: false)
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 4, toolCallingMode: .required)
        let reader = Reader(words: 2_000)
        let conversation = try await Conversation(model: model, tools: [reader], instructions: "Read.")
        await #expect(throws: (any Error).self) { try await conversation.respond(to: "Read page 1.", options: options) }
        let turns = try conversation.archive.turns(of: conversation.id)
        let calls = reader.calls.count.withLock { $0 }
        let called = turns.flatMap(\.entries).flatMap { entry -> [Transcript.ToolCall] in
            if case .toolCalls(let calls) = entry { Array(calls) } else { [] }
        }
        // One round: each call has run once and is recorded.
        #expect(calls > 0 && turns.count == 1 && called.count == calls)
        // The conversation can be continued.
        let next = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 4, toolCallingMode: .disallowed)
        try await conversation.respond(to: "Never mind.", options: next)
        #expect(try await conversation.tokenCount() <= 512)
    }

    @Test("[D3] a tool output that fills the window exactly, with one token less and one more")
    func toolOutputBoundary() async throws {
        let file = try TinyModel().file()
        let reader = Reader(words: 40)
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 1)
        func ask(_ size: Int) async throws -> LanguageModelSession {
            let model = GGUFLanguageModel(url: URL(filePath: file.path), contextSize: size, checksText: false)
            // The tool call is in the transcript, so that the model only has to answer.
            let told = Transcript.Instructions(
                segments: [.text(.init(content: "Read."))], toolDefinitions: [.init(tool: reader)])
            let call = Transcript.ToolCall(id: "1", toolName: "read", arguments: GeneratedContent(properties: ["page": 1]))
            let output = Transcript.ToolOutput(
                id: "1", toolName: "read",
                segments: [.text(.init(content: try await reader.call(arguments: .init(page: 1))))])
            return LanguageModelSession(
                model: model,
                transcript: Transcript(entries: [
                    .instructions(told), .prompt(.init(segments: [.text(.init(content: "Go."))])),
                    .toolCalls(.init([call])), .toolOutput(output),
                    .response(.init(segments: [.text(.init(content: "Done."))])),
                ]))
        }
        let large = try await ask(512)
        let model = GGUFLanguageModel(url: URL(filePath: file.path), checksText: false)
        let entries = Array(large.transcript) + [.prompt(.init(segments: [.text(.init(content: "And?"))], options: options))]
        let counted = try await model.tokenCount(for: entries)
        #expect(try await large.respond(to: "And?", options: options).usage.input.totalTokenCount == counted)
        // One or two tokens are left for the response, or none.
        for room in [1, 2] {
            let response = try await ask(counted + room).respond(to: "And?", options: options)
            #expect(response.usage.input.totalTokenCount == counted && response.usage.output.totalTokenCount <= 1)
        }
        for room in [0, -1] {
            let session = try await ask(counted + room)
            do {
                try await session.respond(to: "And?", options: options)
                Issue.record("the request was accepted with a window of \(counted + room)")
            } catch LanguageModelError.contextSizeExceeded(let context) {
                #expect(context.contextSize == counted + room && context.tokenCount >= counted)
            }
            // The transcript has not changed.
            #expect(session.transcript.count == 5)
        }
    }
}
