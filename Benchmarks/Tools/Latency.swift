import Foundation
import FoundationModels
import Synchronization

/// Measures how soon a person sees something: the first text after the results of tools, and the first event of a guided response.
struct Latency {
    /// How long each tool runs.
    var delay: Duration
    var rounds: Int

    /// A tool that takes its time.
    private final class Lookup: Tool {
        let name = "find_orders"
        let description = "Finds the orders of a customer by the customer's name."
        let parameters: GenerationSchema
        private let delay: Duration
        let returned = Mutex<ContinuousClock.Instant?>(nil)

        init(_ parameters: GenerationSchema, delay: Duration) { (self.parameters, self.delay) = (parameters, delay) }

        func call(arguments: GeneratedContent) async throws -> String {
            try await Task.sleep(for: delay)
            returned.withLock { $0 = .now }
            return "Order 4711: two lamps, sent on Monday. Order 4712: a desk, waiting for wood."
        }
    }

    private static let customers = ["Ada Byron", "Max Born", "Lise Meitner", "Emmy Noether", "Otto Hahn", "Rosa Luxemburg"]

    func run() async throws {
        let system = SystemLanguageModel.default
        // The first request loads the model.
        _ = try await LanguageModelSession().respond(to: "Hello", options: GenerationOptions(maximumResponseTokens: 1))
        var (tools, guided): ([Duration], [Duration]) = ([], [])
        for round in 0..<rounds {
            if let found = try await afterResults(round) { tools.append(found) }
            guided.append(try await guidedResponse(round, system))
        }
        print("first text after the results of a tool that runs for \(delay): \(Self.text(tools))")
        print("first event of a guided response to a new schema: \(Self.text(guided))")
    }

    private static func text(_ durations: [Duration]) -> String {
        let sorted = durations.sorted()
        guard let first = sorted.first, let last = sorted.last else { return "none" }
        func milliseconds(_ duration: Duration) -> String { String(format: "%.0f ms", duration / .milliseconds(1)) }
        return
            "\(milliseconds(sorted[sorted.count / 2])) (\(milliseconds(first)) to \(milliseconds(last)), \(sorted.count) times)"
    }

    /// The time from the return of the tool to the first text; nil if the model calls nothing.
    private func afterResults(_ round: Int) async throws -> Duration? {
        let properties = [DynamicGenerationSchema.Property(name: "customer", schema: DynamicGenerationSchema(type: String.self))]
        let parameters = try GenerationSchema(
            root: DynamicGenerationSchema(name: "find_orders", properties: properties), dependencies: [])
        let tool = Lookup(parameters, delay: delay)
        let session = LanguageModelSession(
            tools: [tool],
            instructions: """
                You work in the customer service of a shop for furniture. You are friendly and brief. Orders are sent from Monday to Friday. \
                Returns are free for thirty days. Lamps come with a bulb. Desks are made to order and take three weeks.
                """)
        let stream = session.streamResponse(
            to: "Which orders does \(Self.customers[round % Self.customers.count]) have?",
            options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 8))
        for try await snapshot in stream {
            guard let returned = tool.returned.withLock({ $0 }), !snapshot.content.isEmpty else { continue }
            return .now - returned
        }
        return nil
    }

    /// The time from the request to the first event of a response with a schema that no other request has.
    private func guidedResponse(_ round: Int, _ model: SystemLanguageModel) async throws -> Duration {
        let names = ["title", "author", "year", "pages", "genre", "summary", "publisher", "language"].map { "\($0)_\(round)" }
        let properties = names.map {
            DynamicGenerationSchema.Property(name: $0, schema: DynamicGenerationSchema(type: String.self))
        }
        let schema = try GenerationSchema(
            root: DynamicGenerationSchema(name: "Book\(round)", properties: properties), dependencies: [])
        let prompt = "Describe book number \(round) of a small library in a village by the sea."
        let request = LanguageModelExecutorGenerationRequest(
            id: UUID(), transcript: Transcript(entries: [.prompt(.init(segments: [.text(.init(content: prompt))]))]),
            enabledTools: [], schema: schema,
            generationOptions: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 200),
            contextOptions: ContextOptions(),
            metadata: [:])
        let executor = SystemLanguageModel.Executor(configuration: model.executorConfiguration)
        let first = First()
        let channel = LanguageModelExecutorGenerationChannel(receiver: { _ in first.note() })
        let start = ContinuousClock.now
        try await executor.respond(to: request, model: model, streamingInto: channel)
        return (first.time ?? .now) - start
    }

    private final class First: Sendable {
        private let state = Mutex<ContinuousClock.Instant?>(nil)
        var time: ContinuousClock.Instant? { state.withLock { $0 } }
        func note() { state.withLock { $0 = $0 ?? .now } }
    }
}
