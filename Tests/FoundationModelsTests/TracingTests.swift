import FoundationModels
import FoundationModelsTesting
import InMemoryTracing
import Testing
import Tracing

/// Spans of requests, with attribute names from the OpenTelemetry conventions for generative AI.
struct TracingTests {
    struct Clock: Tool {
        let name = "clock"
        let description = "Tells the time."
        func call(arguments: GeneratedContent) async throws -> String { "Noon." }
    }

    /// The tracer of this process, which can be set only once.
    private static let tracer: InMemoryTracer = {
        let tracer = InMemoryTracer()
        InstrumentationSystem.bootstrap(tracer)
        return tracer
    }()

    @Test("[D10] a request is a span, and a tool call is a child span") func spans() async throws {
        let tracer = Self.tracer
        tracer.clearFinishedSpans()
        let model = ScriptedLanguageModel([
            .toolCalls([.init(name: "clock", arguments: GeneratedContent(properties: [:]))]), .text("It is noon."),
            .failure(LanguageModelError.timeout(.init(debugDescription: "too late"))),
        ])
        let session = LanguageModelSession(model: model, tools: [Clock()])
        try await session.respond(to: "What time is it?")
        let spans = tracer.finishedSpans
        let tool = try #require(spans.first { $0.operationName == "execute_tool clock" })
        let chat = try #require(spans.first { $0.operationName == "chat" })
        #expect(tool.traceID == chat.traceID && tool.parentSpanID == chat.spanID)
        #expect(tool.attributes["gen_ai.tool.name"]?.toSpanAttribute() == "clock")
        #expect(chat.attributes["gen_ai.operation.name"]?.toSpanAttribute() == "chat")
        #expect(chat.attributes["gen_ai.usage.output_tokens"] != nil)
        await #expect(throws: (any Error).self) { try await session.respond(to: "And now?") }
        let failed = try #require(tracer.finishedSpans.last { $0.operationName == "chat" })
        #expect(failed.attributes["error.type"] != nil && !failed.errors.isEmpty)
    }
}
