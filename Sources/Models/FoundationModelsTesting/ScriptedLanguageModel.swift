public import Foundation
public import FoundationModels
internal import Synchronization
public import TokenCounts

/// A model that returns predefined responses, so that the tests of an app are fast, deterministic and need no model.
///
/// ```swift
/// let model = ScriptedLanguageModel([
///     .toolCalls([.init(name: "Weather", arguments: GeneratedContent(properties: ["city": "Rome"]))]),
///     .text("It is sunny in Rome."),
/// ])
/// let session = LanguageModelSession(model: model, tools: [Weather()])
/// ```
///
/// Its tokens are those of `TokenEstimate`, so that tests do not depend on a tokenizer. It has a window, but answers longer prompts too; the
/// step `.failure` throws the error of a model that does not.
public struct ScriptedLanguageModel: TokenCounting {
    /// A tool call.
    public struct Call: Sendable {
        var name: String
        var arguments: GeneratedContent

        /// Creates a call. The arguments are not checked before the tool parses them.
        public init(name: String, arguments: GeneratedContent) {
            self.name = name
            self.arguments = arguments
        }
    }

    /// The response to one request, or a part of it.
    public enum Step: Sendable {
        /// Responds with a text, streamed word by word.
        case text(String)
        /// Responds with a value as JSON.
        case content(GeneratedContent)
        /// Emits reasoning. The next step belongs to the same request.
        case reasoning(String)
        /// Calls tools.
        case toolCalls([Call])
        /// Throws an error.
        case failure(any Error)
        /// Emits nothing for one hour or until the request is cancelled.
        case silence
    }

    /// An error of a script that has no response to a request.
    public enum ScriptError: LocalizedError, Equatable {
        /// All steps have been used. `requestKey` identifies the request, see ``Recording/Exchange/requestKey``.
        case endOfScript(requestKey: String)
        /// The recording contains no exchange for this request.
        case notRecorded(requestKey: String)

        public var errorDescription: String? {
            switch self {
            case .endOfScript(let requestKey): "The script has no step left for: \(requestKey)"
            case .notRecorded(let requestKey): "The recording has no response to: \(requestKey)"
            }
        }
    }

    fileprivate enum Source: Sendable {
        case steps([Step])
        /// Exchanges by request key. Several exchanges of one key are used in order, the last one repeatedly.
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
    public let contextSize: Int

    /// Creates a model that uses the steps in this order, one for each request (reasoning steps together with the next
    /// one).
    ///
    /// - Parameter contextSize: The size of the window, by which conversations and prompts with search results are planned.
    public init(
        _ steps: [Step],
        capabilities: LanguageModelCapabilities = .init([.guidedGeneration, .toolCalling, .reasoning, .vision]),
        contextSize: Int = 4096
    ) {
        script = Script(.steps(steps))
        self.capabilities = capabilities
        self.contextSize = contextSize
    }

    /// Creates a model that replays a recording. Responses are selected by the prompt and the tool outputs.
    ///
    /// - Parameter contextSize: The size of the window; that of the recorded model if the same conversations are to be compacted at the
    ///   same places.
    public init(
        _ recording: Recording,
        capabilities: LanguageModelCapabilities = .init([.guidedGeneration, .toolCalling, .reasoning, .vision]),
        contextSize: Int = 4096
    ) {
        script = Script(.recording(Dictionary(grouping: recording.exchanges, by: \.requestKey)))
        self.capabilities = capabilities
        self.contextSize = contextSize
    }

    /// The estimate of `TokenEstimate`.
    public nonisolated(nonsending) func tokenCount(
        for transcriptEntries: some Collection<Transcript.Entry>
    ) async throws -> Int {
        TokenEstimate.count(transcriptEntries)
    }

    public var executorConfiguration: Executor.Configuration { Executor.Configuration(script: script) }

    /// Responds to requests with the steps of the script.
    public struct Executor: LanguageModelExecutor {
        /// The model that this executor runs.
        public typealias Model = ScriptedLanguageModel

        /// The script, shared by copies of the model.
        public struct Configuration: Hashable, Sendable {
            fileprivate let script: Script
        }

        private let script: Script

        /// Called by sessions.
        public init(configuration: Configuration) { script = configuration.script }

        /// - Throws: ``ScriptError``, or the error of a ``Step/failure(_:)`` step.
        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: ScriptedLanguageModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            let key = Recording.requestKey(of: request.transcript)
            for step in try next(key) { try await take(step, channel) }
        }

        /// The steps for one request.
        private func next(_ requestKey: String) throws -> [Step] {
            try script.source.withLock { source in
                switch source {
                case .steps(var steps):
                    let count = (steps.firstIndex { if case .reasoning = $0 { false } else { true } } ?? steps.count) + 1
                    guard !steps.isEmpty else { throw ScriptError.endOfScript(requestKey: requestKey) }
                    let taken = Array(steps.prefix(count))
                    steps.removeFirst(min(count, steps.count))
                    source = .steps(steps)
                    return taken
                case .recording(var known):
                    guard var exchanges = known[requestKey], let first = exchanges.first else {
                        throw ScriptError.notRecorded(requestKey: requestKey)
                    }
                    if exchanges.count > 1 {
                        exchanges.removeFirst()
                        known[requestKey] = exchanges
                        source = .recording(known)
                    }
                    return first.response.flatMap(Step.steps)
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

        /// Streams the text word by word.
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
    /// The steps that replay a recorded entry.
    fileprivate static func steps(_ entry: Transcript.Entry) -> [ScriptedLanguageModel.Step] {
        switch entry {
        case .response(let response): [.text(response.segments.modelText)]
        case .reasoning(let reasoning): [.reasoning(reasoning.segments.modelText)]
        case .toolCalls(let calls): [.toolCalls(calls.map { .init(name: $0.toolName, arguments: $0.arguments) })]
        default: []
        }
    }
}
