public import Foundation
public import FoundationModels
internal import Synchronization

/// A model that says what it was told to say: an app's tests run with it everywhere, at once, and always the same.
///
/// ```swift
/// let model = ScriptedLanguageModel([
///     .toolCalls([.init(name: "Weather", arguments: GeneratedContent(properties: ["city": "Rome"]))]),
///     .text("It is sunny in Rome."),
/// ])
/// let session = LanguageModelSession(model: model, tools: [Weather()])
/// ```
public struct ScriptedLanguageModel: LanguageModel {
    /// A call of a tool.
    public struct Call: Sendable {
        var name: String
        var arguments: GeneratedContent

        /// A call with these arguments, which nothing checks before the tool reads them.
        public init(name: String, arguments: GeneratedContent) {
            self.name = name
            self.arguments = arguments
        }
    }

    /// What the model does with one request.
    public enum Step: Sendable {
        /// Answers with a text, word by word.
        case text(String)
        /// Answers with a value, as JSON.
        case content(GeneratedContent)
        /// Thinks; what follows in the script belongs to the same request.
        case reasoning(String)
        /// Calls tools.
        case toolCalls([Call])
        /// Fails.
        case failure(any Error)
        /// Says nothing until it is cancelled.
        case silence
    }

    /// Why a script cannot go on.
    public enum ScriptError: LocalizedError, Equatable {
        /// All steps have been used.
        case endOfScript(situation: String)
        /// Nothing was recorded for this.
        case notRecorded(situation: String)

        public var errorDescription: String? {
            switch self {
            case .endOfScript(let situation): "The script has no step left for: \(situation)"
            case .notRecorded(let situation): "The recording has no response to: \(situation)"
            }
        }
    }

    fileprivate enum Source: Sendable {
        case steps([Step])
        /// By situation; what was said several times in one comes in that order, the last again and again.
        case recording([String: [Recording.Exchange]])
    }

    fileprivate final class Script: Sendable, Hashable {
        let source: Mutex<Source>

        init(_ source: Source) { self.source = Mutex(source) }
        static func == (a: Script, b: Script) -> Bool { a === b }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    private let script: Script
    public let capabilities: LanguageModelCapabilities

    /// A model that takes these steps, one for each request, in this order.
    public init(
        _ steps: [Step],
        capabilities: LanguageModelCapabilities = .init([.guidedGeneration, .toolCalling, .reasoning, .vision])
    ) {
        script = Script(.steps(steps))
        self.capabilities = capabilities
    }

    /// A model that says again what was recorded, found by the prompt and the outputs of tools.
    public init(
        _ recording: Recording,
        capabilities: LanguageModelCapabilities = .init([.guidedGeneration, .toolCalling, .reasoning, .vision])
    ) {
        script = Script(.recording(Dictionary(grouping: recording.exchanges, by: \.situation)))
        self.capabilities = capabilities
    }

    public var executorConfiguration: Executor.Configuration { Executor.Configuration(script: script) }

    /// Takes the steps of the script.
    public struct Executor: LanguageModelExecutor {
        /// The model whose requests it answers.
        public typealias Model = ScriptedLanguageModel

        /// The script: copies of a model go on with the same one.
        public struct Configuration: Hashable, Sendable {
            fileprivate let script: Script
        }

        private let script: Script

        /// Called by sessions.
        public init(configuration: Configuration) { script = configuration.script }

        /// - Throws: ``ScriptError``, or the error of a step.
        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: ScriptedLanguageModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            let situation = Recording.situation(of: request.transcript)
            for step in try next(situation) { try await take(step, channel) }
        }

        /// The steps for one request.
        private func next(_ situation: String) throws -> [Step] {
            try script.source.withLock { source in
                switch source {
                case .steps(var steps):
                    let count = (steps.firstIndex { if case .reasoning = $0 { false } else { true } } ?? steps.count) + 1
                    guard !steps.isEmpty else { throw ScriptError.endOfScript(situation: situation) }
                    let taken = Array(steps.prefix(count))
                    steps.removeFirst(min(count, steps.count))
                    source = .steps(steps)
                    return taken
                case .recording(var known):
                    guard var exchanges = known[situation], let first = exchanges.first else {
                        throw ScriptError.notRecorded(situation: situation)
                    }
                    if exchanges.count > 1 {
                        exchanges.removeFirst()
                        known[situation] = exchanges
                        source = .recording(known)
                    }
                    return first.said.flatMap(Step.steps)
                }
            }
        }

        private nonisolated(nonsending) func take(
            _ step: Step, _ channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            switch step {
            case .text(let text): try await say(text, channel)
            case .content(let content): try await say(content.jsonString, channel)
            case .reasoning(let text): await channel.send(.reasoning(action: .appendText(text, tokenCount: 1)))
            case .toolCalls(let calls):
                for call in calls {
                    await channel.send(
                        .toolCalls(
                            action: .toolCall(
                                id: UUID().uuidString, name: call.name,
                                action: .appendArguments(call.arguments.jsonString, tokenCount: 1))))
                }
            case .failure(let error): throw error
            case .silence: try await Task.sleep(for: .seconds(3600))
            }
        }

        /// Word by word, as a model would.
        private nonisolated(nonsending) func say(
            _ text: String, _ channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            var rest = text[...]
            while !rest.isEmpty {
                try Task.checkCancellation()
                let end = rest.dropFirst().firstIndex(of: " ") ?? rest.endIndex
                await channel.send(.response(action: .appendText(String(rest[..<end]), tokenCount: 1)))
                rest = rest[end...]
            }
        }
    }
}

extension ScriptedLanguageModel.Step {
    /// What a recorded entry comes down to.
    fileprivate static func steps(_ entry: Transcript.Entry) -> [ScriptedLanguageModel.Step] {
        switch entry {
        case .response(let response): [.text(response.segments.modelText)]
        case .reasoning(let reasoning): [.reasoning(reasoning.segments.modelText)]
        case .toolCalls(let calls): [.toolCalls(calls.map { .init(name: $0.toolName, arguments: $0.arguments) })]
        default: []
        }
    }
}
