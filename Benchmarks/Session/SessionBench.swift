import ArgumentParser
import Foundation
import FoundationModels

/// Measures the overhead of a session compared with the model, and how it grows with the length of the response.
@main
struct SessionBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session-bench",
        abstract: "Measures the overhead of a session, and how it grows with the length of the response.")

    @Option(help: "Maximum number of tokens of each response of the real model.")
    var tokens = 256

    func run() async throws {
        try await overhead()
        try await growth()
    }

    /// Compares the time of requests with the computing time that the engine reports.
    private func overhead() async throws {
        let session = LanguageModelSession(instructions: "You tell stories.")
        try await session.respond(to: "Hello", options: GenerationOptions(maximumResponseTokens: 4))
        var whole = 0.0
        var engine = 0.0
        var count = 0
        for subject in ["the sea", "a mountain", "a lost key", "winter", "a robot"] {
            let start = ContinuousClock.now
            let stream = LanguageModelSession(instructions: "You tell stories.").streamResponse(
                to: "Tell a long story about \(subject).",
                options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: tokens))
            for try await _ in stream {}
            let usage = try await stream.collect().usage
            whole += seconds(ContinuousClock.now - start)
            engine += try usage.metadata["promptSeconds"]?.value(Double.self) ?? 0
            engine += try usage.metadata["generationSeconds"]?.value(Double.self) ?? 0
            count += usage.output.totalTokenCount
        }
        print(
            String(
                format: "session overhead: %.2f %% of %.2f s for %d streamed tokens (%.1f µs per token)",
                100 * (whole - engine) / whole,
                whole, count, 1e6 * (whole - engine) / Double(count)))
    }

    /// Streams structured responses of increasing length from a model without computation, so that only the time of the
    /// session is measured.
    private func growth() async throws {
        print("streamed structure     tokens   snapshots    ms total   µs / token")
        for count in [1_000, 2_000, 4_000, 8_000] {
            let session = LanguageModelSession(model: InstantModel(count: count))
            let start = Self.processorSeconds
            var snapshots = 0
            for try await _ in session.streamResponse(to: "Go", generating: Report.self) { snapshots += 1 }
            let time = Self.processorSeconds - start
            print(
                String(
                    format: "                       %6d      %6d    %8.1f     %8.2f", count, snapshots, time * 1e3,
                    time * 1e6 / Double(count)))
        }
    }

    /// CPU time of the process in seconds, on all cores, without waiting.
    private static var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }

    private func seconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
    }
}

@Generable
struct Report {
    @Generable
    struct Line {
        var title: String
        var amount: Int
    }

    var lines: [Line]
}

/// A model that responds with a list of about `count` tokens, one event per token.
struct InstantModel: LanguageModel {
    let count: Int

    var capabilities: LanguageModelCapabilities { LanguageModelCapabilities([.guidedGeneration]) }
    var executorConfiguration: Int { count }

    struct Executor: LanguageModelExecutor {
        typealias Model = InstantModel
        let count: Int

        init(configuration: Int) { count = configuration }

        func respond(
            to request: LanguageModelExecutorGenerationRequest, model: InstantModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            let line = ["{\"", "title", "\":\"", "A", " line", " of", " text", "\",\"", "amount", "\":", "42", "}"]
            await channel.send(.response(action: .appendText("{\"lines\":[", tokenCount: 1)))
            for index in 0..<max(1, count / line.count) {
                if index > 0 { await channel.send(.response(action: .appendText(",", tokenCount: 1))) }
                for token in line {
                    await channel.send(.response(action: .appendText(token, tokenCount: 1)))
                    // A pause, so that the reader receives each token separately, as with a real model.
                    try await Task.sleep(for: .microseconds(100))
                }
            }
            await channel.send(.response(action: .appendText("]}", tokenCount: 1)))
        }
    }
}
