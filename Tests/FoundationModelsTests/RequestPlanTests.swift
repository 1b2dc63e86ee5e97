import Foundation
import Inference
import JSON
import Testing

@testable import FoundationModels

/// What a request sends to a model, computed without one.
struct RequestPlanTests {
    struct Weather: Tool {
        let name = "weather"
        let description = "Says how the weather is."
        @Generable struct Arguments { var place: String }
        func call(arguments: Arguments) async throws -> String { "warm" }
    }

    struct Clock: Tool {
        let name = "clock"
        let description = "Says what time it is."
        @Generable struct Arguments { var zone: String? }
        func call(arguments: Arguments) async throws -> String { "noon" }
    }

    private let tools = [Transcript.ToolDefinition(tool: Weather()), Transcript.ToolDefinition(tool: Clock())]

    private func text(_ content: String) -> [Transcript.Segment] { [.text(.init(content: content))] }

    private func facts(tools: Bool = true) -> ModelFacts {
        ModelFacts(
            hasToolFormat: tools,
            defaults: ModelDefaults(temperature: 0.3, topK: 5, repetitionPenalty: 1.1, instructions: "Be brief."))
    }

    private func plan(
        _ facts: ModelFacts, _ entries: [Transcript.Entry], mode: GenerationOptions.ToolCallingMode? = nil,
        schema: GenerationSchema? = nil, _ change: (inout GenerationOptions) -> Void = { _ in }
    ) throws -> RequestPlan {
        var options = GenerationOptions()
        options.toolCallingMode = mode
        change(&options)
        let instructions = Transcript.Entry.instructions(.init(segments: text("Help."), toolDefinitions: tools))
        let request = LanguageModelExecutorGenerationRequest(
            id: UUID(), transcript: Transcript(entries: [instructions] + entries), enabledTools: tools, schema: schema,
            generationOptions: options, contextOptions: ContextOptions(), metadata: [:])
        return try RequestPlan(request, TranscriptRenderer(facts), facts)
    }

    private var question: Transcript.Entry { .prompt(.init(segments: text("Is it warm in Rome?"))) }

    private func called() throws -> [Transcript.Entry] {
        let arguments = try GeneratedContent(json: #"{"place": "Rome"}"#)
        return [
            question, .toolCalls(.init(id: "1", [.init(id: "a", toolName: "weather", arguments: arguments)])),
            .toolOutput(.init(id: "a", toolName: "weather", segments: text("31 degrees"))),
        ]
    }

    @Test func aQuestion() throws {
        let plan = try plan(facts(), [question])
        #expect(plan.prompt.messages.map(\.role) == [.system, .user] && plan.prompt.tools.map(\.name) == ["weather", "clock"])
        #expect(plan.choice == nil)
        #expect(plan.tools.callable.map(\.name) == ["weather", "clock"] && plan.tools.areInPrompt && !plan.tools.mustCall)
        #expect(plan.tools.madeCalls.isEmpty && plan.format == nil && plan.maximumTokens == nil)
        #expect(plan.sampling.temperature == 0.3 && plan.sampling.topK == 5 && plan.sampling.penalties.repetition == 1.1)
    }

    @Test func options() throws {
        let plan = try plan(facts(), [question]) { options in
            options.sampling = .greedy
            options.maximumResponseTokens = 0
        }
        #expect(plan.sampling.isGreedy && plan.sampling.penalties.repetition == nil && plan.maximumTokens == 1)
        let schema = try self.plan(facts(), [question], schema: Weather.Arguments.generationSchema)
        #expect(schema.format != nil)
    }

    @Test func toolsThatMustAndMustNotBeCalled() throws {
        let required = try plan(facts(), [question], mode: .required)
        #expect(required.tools.mustCall && required.tools.callable.count == 2)
        let none = try plan(facts(), [question], mode: .disallowed)
        #expect(none.tools.callable.isEmpty && none.tools.areInPrompt && !none.tools.mustCall)
    }

    @Test func resultsOfCalls() throws {
        let plan = try plan(facts(), called())
        #expect(plan.tools.madeCalls.map(\.name) == ["weather"] && plan.tools.callable.count == 2)
        #expect(plan.prompt.messages.map(\.role) == [.system, .user, .assistant, .tool])
        #expect(plan.prompt.messages.last?.content == "31 degrees")
        // Where nothing may be called any more, the prompt is the same.
        let only = try self.plan(facts(), called(), mode: .disallowed)
        #expect(only.prompt == plan.prompt && only.tools.callable.isEmpty && only.tools.areInPrompt)
        // The results of another prompt are none of this one.
        let next = try self.plan(facts(), called() + [.response(.init(assetIDs: [], segments: text("Yes."))), question])
        #expect(next.tools.madeCalls.isEmpty)
    }

    /// Calls of tools that are hidden now must not be imitated.
    @Test func callsInThePromptWithoutTools() throws {
        let request = LanguageModelExecutorGenerationRequest(
            id: UUID(), transcript: Transcript(entries: try called()), enabledTools: [], schema: nil,
            generationOptions: GenerationOptions(), contextOptions: ContextOptions(), metadata: [:])
        let plan = try RequestPlan(request, TranscriptRenderer(facts()), facts())
        #expect(plan.prompt.tools.isEmpty && plan.tools.areInPrompt)
    }

    @Test func modelsThatWereNotTrainedToCallTools() throws {
        let plan = try plan(facts(tools: false), [question])
        #expect(plan.prompt.tools.isEmpty && !plan.tools.areInPrompt)
        #expect(plan.choice?.recipients.map { $0.tool?.name } == ["weather", "clock", nil])
        let required = try self.plan(facts(tools: false), [question], mode: .required)
        #expect(required.choice?.recipients.map { $0.tool?.name } == ["weather", "clock"])
        #expect(try self.plan(facts(tools: false), [question], mode: .disallowed).choice == nil)
        // Each tool is called once; the results are part of the question.
        let called = try self.plan(facts(tools: false), called())
        #expect(called.choice?.recipients.map { $0.tool?.name } == ["clock", nil])
        #expect(called.prompt.messages.last?.content.contains("31 degrees") == true)
    }
}
