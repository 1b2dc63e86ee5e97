import Foundation
import FoundationModelsTesting
import Inference
import InstalledModels
import Synchronization
import TestSupport
import Testing

@testable import FoundationModels

/// Tools with scripted models, and with the default model where its behaviour matters.
struct ToolTests {
    struct Adder: Tool {
        let name = "add"
        let description = "Adds two integers."
        @Generable struct Arguments {
            var a: Int
            var b: Int
        }
        func call(arguments: Arguments) async throws -> String { "\(arguments.a + arguments.b)" }
    }

    @Test("the tool for a message is chosen after its introduction, also with a template without system messages")
    func introductionsBeforeTheMessage() throws {
        let system = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}"
        let noSystem =
            "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
            + "[{{ m.role }}] {{ m.content | trim }}{% endfor %}"
        let transcript = Transcript(entries: [.prompt(.init(segments: [.text(.init(content: "Add 1 and 2.\n"))]))])
        let choice = try #require(
            ToolChoice(transcript: transcript, tools: [Transcript.ToolDefinition(tool: Adder())], allowsResponse: true))
        for (source, before) in [(system, "[user] "), (noSystem, "\n\n")] {
            let template = try ChatTemplate(source: source, beginningText: "", endText: "")
            for recipient in choice.recipients {
                let text = try choice.prompt(for: recipient, template).map { piece in
                    switch piece {
                    case .template(let text), .user(let text): text
                    }
                }.joined()
                #expect(text.hasSuffix(recipient.introduction + before))
            }
        }
        #expect(choice.recipients.count == 2 && choice.recipients[0].introduction != choice.recipients[1].introduction)
        #expect(choice.message == "Add 1 and 2.")
    }

    /// Each call waits until all calls of its round have begun, and the first one until the others have ended, to check
    /// that outputs keep the order of the calls.
    final class Slow: Tool {
        let name = "slow"
        let description = "Takes its time."
        @Generable struct Arguments { var id: Int }
        let callsPerRound: Int
        let state = Mutex((begun: 0, ended: 0))

        init(callsPerRound: Int) { self.callsPerRound = callsPerRound }

        func call(arguments: Arguments) async throws -> String {
            state.withLock { $0.begun += 1 }
            await eventually { state.withLock { $0.begun % callsPerRound == 0 } }
            if arguments.id == 1 { await eventually { state.withLock { $0.ended % callsPerRound == callsPerRound - 1 } } }
            state.withLock { $0.ended += 1 }
            return "done \(arguments.id)"
        }
    }

    actor Memory: Tool {
        nonisolated let name = "remember"
        nonisolated let description = "Remembers a word."
        @Generable struct Arguments { var word: String }
        @Generable struct Words { var words: [String] }
        private var words: [String] = []
        private func add(_ word: String) -> [String] {
            words.append(word)
            return words
        }
        nonisolated func call(arguments: Arguments) async -> Words { Words(words: await add(arguments.word)) }
    }

    struct Broken: Tool {
        struct Failure: Error, Equatable {}
        let description = "Always fails."
        @Generable struct Arguments { var x: Int }
        func call(arguments: Arguments) async throws -> String { throw Failure() }
    }

    private static func call(_ name: String, _ arguments: GeneratedContent) -> ScriptedLanguageModel.Call {
        .init(name: name, arguments: arguments)
    }

    final class NextPage: Tool {
        let description = "Gives the next page."
        @Generable struct Arguments {}
        let pages: Mutex<[String]>
        init(_ pages: [String]) { self.pages = Mutex(pages) }
        func call(arguments: Arguments) async -> String { pages.withLock { $0.isEmpty ? "the end" : $0.removeFirst() } }
    }

    @Test("[C4] a call may be repeated; only where it is wanted, not after three identical outputs in a row")
    func again() async throws {
        let tool = NextPage(["one", "two", "three"])
        let call = Self.call("NextPage", GeneratedContent(properties: [:]))
        // Three pages, and three times the same output.
        let model = ScriptedLanguageModel(Array(repeating: .toolCalls([call]), count: 6) + [.text("Read all of it.")])
        let session = LanguageModelSession(model: model, tools: [tool])
        #expect(try await session.respond(to: "Read on").content == "Read all of it.")
        let outputs = session.transcript.compactMap { entry -> String? in
            if case .toolOutput(let output) = entry { output.segments.map(\.description).joined() } else { nil }
        }
        #expect(outputs == ["one", "two", "three", "the end", "the end", "the end"])
        // A seventeenth round is an error.
        let stubborn = ScriptedLanguageModel(Array(repeating: .toolCalls([call]), count: 17))
        let patient = NextPage((0..<20).map { "page \($0)" })
        await #expect(throws: (any Error).self) {
            try await LanguageModelSession(model: stubborn, tools: [patient]).respond(to: "Read on")
        }
        #expect(patient.pages.withLock { $0.first } == "page 16")

        // With the guard, three pages are three different outputs; the third identical one is the last.
        let repeated = Transcript.ToolCall(id: "a", toolName: "NextPage", arguments: GeneratedContent(properties: [:]))
        let short = NextPage(["one"])
        for stops in [true, false] {
            var rounds = ToolRounds()
            rounds.stopsRepeatedCalls = stops
            var count = 0
            while !rounds.isExhausted {
                _ = try await rounds.run([repeated], tools: [short], callbacks: .init())
                count += 1
            }
            // The first round returned "one" only for the first of the two.
            #expect(count == (stops ? 4 : 16))
        }
        // The prompt after the second of two identical rounds has one of them, and no tools.
        let output = Transcript.ToolOutput(id: "a", toolName: "NextPage", segments: [.text(.init(content: "one"))])
        let other = Transcript.ToolOutput(id: "a", toolName: "NextPage", segments: [.text(.init(content: "two"))])
        let start: [Transcript.Entry] = [
            .instructions(
                .init(
                    segments: [.text(.init(content: "Be brief."))], toolDefinitions: [Transcript.ToolDefinition(tool: short)])),
            .prompt(.init(segments: [.text(.init(content: "Read on"))])), .toolCalls(.init([repeated])), .toolOutput(output),
        ]
        #expect(Transcript(entries: start).withoutRepeatedCalls == nil)
        #expect(Transcript(entries: start + [.toolCalls(.init([repeated])), .toolOutput(other)]).withoutRepeatedCalls == nil)
        let shortened = Transcript(entries: start + [.toolCalls(.init([repeated])), .toolOutput(output)]).withoutRepeatedCalls
        #expect(shortened?.count == 4 && shortened?.instructions?.toolDefinitions.isEmpty == true)
        // The small model needs the guard; a program can say otherwise.
        let path = ModelStore.path(of: "small")
        #expect(await LocalModel(path: path, maximumContext: 4096).stopsRepeatedCalls)
        #expect(await !LocalModel(path: path, maximumContext: 4096, stopsRepeatedCalls: false).stopsRepeatedCalls)
    }

    @Test("[C2] calls of one round run concurrently, outputs are in order, then the response follows")
    func concurrent() async throws {
        let slow = Slow(callsPerRound: 3)
        let calls = (1...3).map { Self.call("slow", GeneratedContent(properties: ["id": $0])) }
        let model = ScriptedLanguageModel([.toolCalls(calls), .text("All done.")])
        let session = LanguageModelSession(model: model, tools: [slow])
        let response = try await session.respond(to: "Go")
        #expect(response.content == "All done.")
        let outputs = session.transcript.compactMap { entry -> String? in
            guard case .toolOutput(let output) = entry, case .text(let text)? = output.segments.first else { return nil }
            return text.content
        }
        #expect(outputs == ["done 1", "done 2", "done 3"])
        #expect(response.transcriptEntries.count == 6)
    }

    @Test("[C1] a generable output is a structured segment; an actor as a tool keeps its state") func structured() async throws {
        let calls = ["a", "b"].map { Self.call("remember", GeneratedContent(properties: ["word": $0])) }
        let model = ScriptedLanguageModel([.toolCalls([calls[0]]), .toolCalls([calls[1]]), .text("Two words.")])
        let session = LanguageModelSession(model: model, tools: [Memory()])
        try await session.respond(to: "Go")
        let outputs = session.transcript.compactMap { entry -> GeneratedContent? in
            guard case .toolOutput(let output) = entry, case .structure(let value)? = output.segments.first else { return nil }
            #expect(value.schemaName == "Words")
            return value.content
        }
        #expect(try outputs.last?.value([String].self, forProperty: "words") == ["a", "b"])
    }

    @Test("[C3] the error of a tool contains the tool, the transcript is reverted, the session remains usable")
    func failing() async throws {
        let model = ScriptedLanguageModel([
            .toolCalls([Self.call("Broken", GeneratedContent(properties: ["x": 1]))]), .text("Hello again."),
        ])
        let session = LanguageModelSession(model: model, tools: [Broken()], instructions: "Be kind.")
        let before = session.transcript
        do {
            try await session.respond(to: "Go")
            Issue.record("the error was not thrown")
        } catch let error as LanguageModelSession.ToolCallError {
            #expect(error.tool.name == "Broken")
            #expect(error.underlyingError is Broken.Failure)
        }
        #expect(session.transcript == before)
        #expect(!session.isResponding)
        #expect(try await session.respond(to: "Again").content == "Hello again.")
    }

    @Test("[C3] with the preserving policy the calls remain in the transcript") func preserving() async throws {
        let model = ScriptedLanguageModel([.toolCalls([Self.call("Broken", GeneratedContent(properties: ["x": 1]))])])
        let session = LanguageModelSession(model: model, tools: [Broken()])
        session.transcriptErrorHandlingPolicy = .preserveTranscript
        await #expect(throws: LanguageModelSession.ToolCallError.self) { try await session.respond(to: "Go") }
        #expect(session.transcript.contains { if case .toolCalls = $0 { true } else { false } })
    }

    @Test("[C2] a tool that does not exist is an error with its name") func unknown() async throws {
        let model = ScriptedLanguageModel([.toolCalls([Self.call("nothing", GeneratedContent(properties: [:]))])])
        let session = LanguageModelSession(model: model, tools: [Adder()])
        do {
            try await session.respond(to: "Go")
            Issue.record("the call was accepted")
        } catch let error as LanguageModelSession.ToolCallError {
            #expect(error.tool.name == "nothing")
        }
    }

    @Test("[C4] a model that does not stop calling tools is stopped") func endless() async throws {
        let slow = Slow(callsPerRound: 1)
        let steps = (0..<40).map { id in
            ScriptedLanguageModel.Step.toolCalls([Self.call("slow", GeneratedContent(properties: ["id": id]))])
        }
        let session = LanguageModelSession(model: ScriptedLanguageModel(steps), tools: [slow])
        await #expect(throws: (any Error).self) { try await session.respond(to: "Go") }
        #expect(slow.state.withLock { $0.begun } <= 16)
        #expect(!session.isResponding)
    }

    @Test("tool calling modes: disallowed hides the tools, required without tools is an error") func modes() async throws {
        let session = LanguageModelSession(model: ScriptedLanguageModel([.text("Words.")]), tools: [Adder()])
        let quiet = GenerationOptions(toolCallingMode: .disallowed)
        #expect(try await session.respond(to: "2+2?", options: quiet).content == "Words.")
        let required = GenerationOptions(toolCallingMode: .required)
        await #expect(throws: LanguageModelError.self) {
            try await LanguageModelSession().respond(to: "Hello", options: required)
        }
    }

    /// The example of the documentation. Models that are told to call a tool in each round never answer.
    @Test("[C6] a required call is followed by an answer in words") func requiredThenWords() async throws {
        let real = LanguageModelSession(tools: [Adder()])
        let answer = try await real.respond(
            to: "What is 12 plus 30?",
            options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 40, toolCallingMode: .required))
        #expect(!answer.content.isEmpty)
        #expect(real.transcript.contains { if case .toolCalls = $0 { true } else { false } })
    }

    @Test("[C2] the default model calls a calculator for sums, and no tool for small talk") func realModel() async throws {
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 60)
        let session = LanguageModelSession(tools: [Adder()])
        try await session.respond(to: "What is 12 plus 30?", options: options)
        let calls = session.transcript.compactMap { if case .toolCalls(let calls) = $0 { calls } else { nil } }
        #expect(calls.first?.first?.toolName == "add")
        let arguments = try calls.first?.first?.arguments.value(Adder.Arguments.self)
        #expect(arguments?.a == 12 && arguments?.b == 30)
        guard case .response? = session.transcript.last else {
            Issue.record("there is no response")
            return
        }
        let greeting = LanguageModelSession(tools: [Adder()])
        try await greeting.respond(to: "Hello, how are you?", options: options)
        #expect(greeting.transcript.map { if case .toolCalls = $0 { 1 } else { 0 } }.reduce(0, +) == 0)
    }

    @Test("[C2] required calls are always made, with valid arguments") func requiredOnRealModel()
        async throws
    {
        let session = LanguageModelSession(tools: [Broken()])
        let options = GenerationOptions(maximumResponseTokens: 60, toolCallingMode: .required)
        await #expect(throws: LanguageModelSession.ToolCallError.self) {
            try await session.respond(to: "Tell me a joke.", options: options)
        }
    }

    @Test("[C5] token counts of tool definitions are exact") func counted() async throws {
        var options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 4)
        let session = LanguageModelSession(tools: [Adder()], instructions: "Be brief.")
        let with = try await session.respond(to: "Hello, how are you?", options: options).usage.input.totalTokenCount
        #expect(!session.transcript.contains { if case .toolCalls = $0 { true } else { false } })
        let without = try await LanguageModelSession(instructions: "Be brief.")
            .respond(to: "Hello, how are you?", options: options).usage.input.totalTokenCount
        options.toolCallingMode = .disallowed
        let hidden = try await LanguageModelSession(tools: [Adder()], instructions: "Be brief.")
            .respond(to: "Hello, how are you?", options: options).usage.input.totalTokenCount
        #expect(hidden == without)
        let model = SystemLanguageModel.default
        #expect(try await model.tokenCount(for: [Adder()] as [any Tool]) == with - without)
        let instructions = try await model.tokenCount(for: Instructions("Be brief."))
        let prompt = try await model.tokenCount(for: "Hello, how are you?")
        #expect(instructions + prompt == without)
    }
}
