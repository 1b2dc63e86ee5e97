import Foundation
import FoundationModels

/// A model with scripted turns, one for each request, for demonstrations without a network.
struct ScriptedModel: LanguageModel {
    enum Step: Sendable {
        case text(String)
        case replaceText(String)
        case reasoning(String)
        case signature(Data)
        case call(id: String, tool: String, arguments: [String])
        case callMetadata(id: String, tool: String, [String: String])
        case removeCall(id: String)
        case metadata([String: String])
        case usage(input: Int, cached: Int, output: Int)
        case failure(any Error)
        /// Waits until the gate is opened.
        case wait(Gate)
    }

    let script: Script
    let capabilities: LanguageModelCapabilities

    init(
        _ turns: [Step]...,
        capabilities: [LanguageModelCapabilities.Capability] = [.guidedGeneration, .reasoning, .toolCalling, .vision]
    ) {
        self.init(Script(turns), capabilities: capabilities)
    }

    init(
        _ script: Script,
        capabilities: [LanguageModelCapabilities.Capability] = [.guidedGeneration, .reasoning, .toolCalling, .vision]
    ) {
        self.script = script
        self.capabilities = LanguageModelCapabilities(capabilities)
    }

    var executorConfiguration: ScriptedExecutor.Configuration {
        ScriptedExecutor.Configuration(script: script)
    }

    typealias Executor = ScriptedExecutor
}

/// The scripted turns, and the requests received so far.
actor Script {
    private var turns: [[ScriptedModel.Step]]
    private(set) var requests: [LanguageModelExecutorGenerationRequest] = []
    private(set) var prewarmed: [Transcript] = []
    private(set) var executors = 0

    /// Whether the last turn is repeated for all further requests.
    private let hasEncore: Bool

    init(_ turns: [[ScriptedModel.Step]], encore: Bool = false) {
        self.turns = turns
        hasEncore = encore
    }

    func begin(_ request: LanguageModelExecutorGenerationRequest) -> [ScriptedModel.Step] {
        requests.append(request)
        guard let turn = turns.first else { return [] }
        if turns.count > 1 || !hasEncore { turns.removeFirst() }
        return turn
    }

    func executorWasMade() {
        executors += 1
    }

    func prewarm(_ transcript: Transcript) {
        prewarmed.append(transcript)
    }
}

/// Suspends requests until it is opened.
actor Gate {
    private(set) var isOpen = false
    private(set) var arrivals = 0
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func open() {
        isOpen = true
        waiting.forEach { $0.resume() }
        waiting = []
    }

    /// Waits for `open()`, or until the task is cancelled.
    func pass() async throws {
        arrivals += 1
        guard !isOpen else { return }
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiting.append($0) }
        } onCancel: {
            Task { await self.open() }
        }
        try Task.checkCancellation()
    }
}

struct ScriptedExecutor: LanguageModelExecutor {
    struct Configuration: Hashable, Sendable {
        let script: Script

        static func == (lhs: Self, rhs: Self) -> Bool { lhs.script === rhs.script }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(script)) }
    }

    private let registration: Task<Void, Never>

    init(configuration: Configuration) {
        registration = Task { await configuration.script.executorWasMade() }
    }

    func prewarm(model: ScriptedModel, transcript: Transcript) {
        Task { await model.script.prewarm(transcript) }
    }

    func respond(
        to request: LanguageModelExecutorGenerationRequest,
        model: ScriptedModel,
        streamingInto channel: LanguageModelExecutorGenerationChannel
    ) async throws {
        await registration.value
        for step in await model.script.begin(request) {
            try Task.checkCancellation()
            try await play(step, into: channel)
        }
    }

    private func play(_ step: ScriptedModel.Step, into channel: LanguageModelExecutorGenerationChannel) async throws {
        switch step {
        case .text(let text):
            await channel.send(.response(action: .appendText(text, tokenCount: 1)))
        case .replaceText(let text):
            await channel.send(.response(action: .replaceTextSegment(text, tokenCount: 1)))
        case .reasoning(let text):
            await channel.send(.reasoning(action: .appendText(text, tokenCount: 1)))
        case .signature(let signature):
            await channel.send(.reasoning(action: .updateSignature(signature, tokenCount: 0)))
        case .call(let id, let tool, let arguments):
            for fragment in arguments {
                await channel.send(
                    .toolCalls(
                        action: .toolCall(id: id, name: tool, action: .appendArguments(fragment, tokenCount: 1))))
            }
        case .callMetadata(let id, let tool, let values):
            await channel.send(.toolCalls(action: .toolCall(id: id, name: tool, action: .updateMetadata(values))))
        case .removeCall(let id):
            await channel.send(.toolCalls(action: .removeToolCall(id: id)))
        case .metadata(let values):
            await channel.send(.response(action: .updateMetadata(values)))
        case .usage(let input, let cached, let output):
            await channel.send(
                .response(
                    action: .updateUsage(
                        input: LanguageModelExecutorGenerationChannel.Usage.Input(
                            totalTokenCount: input, cachedTokenCount: cached),
                        output: LanguageModelExecutorGenerationChannel.Usage.Output(
                            totalTokenCount: output, reasoningTokenCount: 0),
                        metadata: ["unit": "token"])))
        case .failure(let error):
            throw error
        case .wait(let gate):
            try await gate.pass()
        }
    }
}
