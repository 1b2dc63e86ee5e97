import EvaluationCore
import Foundation
import FoundationModels
import Grammar
import ModelPrompts
import Safety
import Synchronization
import TextScreening
internal import JSON

/// Answers the samples of a data set, several at once.
struct EvalRunner: Sendable {
    var samples: [EvalSample]
    var seeds: [UInt64?]
    /// Of answers with a seed.
    var temperature: Double
    var parallel: Int
    var checks: EvalChecks
    var model: SystemLanguageModel
    var denyLists: DenyListStore
    var instructions: String?
    var spotlighting: Spotlighting?
    var maxTokens: Int

    /// Runs what a run does not contain yet.
    ///
    /// - Parameter progress: called with each result, from any task.
    func run(_ run: EvalRun, progress: @escaping @Sendable (EvalRun.Entry) -> Void) async throws {
        let known = Set(run.entries.map(\.key))
        var work = seeds.flatMap { seed in samples.map { ($0, seed) } }.filter { sample, seed in
            !known.contains("\(sample.id ?? "")#\(seed.map(String.init) ?? "")")
        }[...]
        try await withThrowingTaskGroup(of: Void.self) { group in
            func addNext() {
                guard let (sample, seed) = work.popFirst() else { return }
                group.addTask {
                    let entry = try await result(of: sample, seed)
                    try run.append(entry)
                    progress(entry)
                }
            }
            for _ in 0..<parallel { addNext() }
            while try await group.next() != nil { addNext() }
        }
    }

    private func result(of sample: EvalSample, _ seed: UInt64?) async throws -> EvalRun.Entry {
        let started = Date().ISO8601Format()
        let answer = try await answer(sample, seed)
        return EvalRun.Entry(
            id: sample.id ?? "", seed: seed, class: sample.class, prompt: answer.prompt,
            request: spotlighting == nil || sample.context == nil ? nil : sample.fullPrompt(), instructions: answer.instructions,
            calls: answer.calls.isEmpty
                ? nil
                : answer.calls.map { call in
                    let output = answer.outputs.first { $0.id == call.id }
                    return .init(name: call.toolName, arguments: call.arguments.jsonString, output: output?.segments.modelText)
                },
            response: answer.text, layer: answer.layer,
            checks: try await checks.results(for: sample, answer), detail: answer.detail, started: started,
            seconds: answer.seconds,
            inputTokens: answer.inputTokens, outputTokens: answer.outputTokens, stopReason: answer.stopReason)
    }

    private func answer(_ sample: EvalSample, _ seed: UInt64?) async throws -> EvalAnswer {
        var answer = EvalAnswer(prompt: sample.fullPrompt(spotlighting), text: "")
        var instructions = sample.instructions ?? self.instructions
        if sample.context != nil, let spotlighting {
            instructions = [instructions, spotlighting.instructions].compactMap { $0 }.joined(separator: "\n")
        }
        answer.instructions = instructions
        let calls = CallCount()
        let tools = try (sample.tools ?? []).map { try EvalTool($0, calls) }
        let guarded = GuardedLanguageModel(model, denyLists: denyLists)
        let session =
            if tools.isEmpty {
                LanguageModelSession(model: guarded, instructions: instructions)
            } else {
                LanguageModelSession(
                    profile: EvalProfile(
                        model: guarded, instructions: instructions, tools: tools, spotlighting: spotlighting,
                        requiresTool: sample.requiresTool ?? false, calls: calls))
            }
        let options = GenerationOptions(
            samplingMode: seed.map { .random(probabilityThreshold: 0.9, seed: $0) } ?? .greedy,
            temperature: seed == nil ? nil : temperature,
            maximumResponseTokens: sample.maxTokens ?? maxTokens)
        let clock = ContinuousClock()
        let start = clock.now
        do {
            if let schema = sample.schema {
                let responses = session.streamResponse(
                    to: Prompt("\(answer.prompt)\n\n\(SchemaDescription.request(for: schema))"),
                    format: ResponseFormat(.schema(schema)), options: options)
                answer.text = try await responses.collect().content
            } else {
                answer.text = try await session.respond(to: answer.prompt, options: options).content
                if RefusalText.isRefusal(answer.text) { (answer.layer, answer.detail) = (.refusal, "The model declined.") }
            }
        } catch {
            try Task.checkCancellation()
            // Without a model there is nothing to evaluate.
            if case SystemLanguageModel.Error.assetsUnavailable = error { throw error }
            (answer.layer, answer.detail) = Self.layer(of: error)
        }
        answer.seconds = (clock.now - start) / .seconds(1)
        if answer.layer == .language, let language = sample.language {
            answer.isUnsupportedLanguage = !model.supportsLocale(Locale(identifier: language))
        }
        let transcript = session.transcript.structuredTranscript
        (answer.calls, answer.outputs) = (transcript.toolCalls, transcript.toolOutputs)
        answer.inputTokens = session.usage.input.totalTokenCount
        answer.outputTokens = session.usage.output.totalTokenCount
        answer.stopReason = RunReport.stopReason(session.usage)
        return answer
    }

    private static func layer(of error: any Error) -> (EvalAnswer.Layer, String) {
        switch error {
        case LanguageModelError.guardrailViolation(let violation):
            if violation.metadata["list"] != nil { return (.denyList, violation.debugDescription) }
            return (
                violation.debugDescription.hasPrefix("The prompt") ? .guardrailPrompt : .guardrailResponse,
                violation.debugDescription
            )
        case LanguageModelError.refusal(let refusal): return (.refusal, refusal.debugDescription)
        case LanguageModelError.unsupportedLanguageOrLocale(let failure): return (.language, failure.debugDescription)
        case LanguageModelError.contextSizeExceeded(let failure): return (.contextWindow, failure.debugDescription)
        case LanguageModelError.unsupportedGenerationGuide(let failure): return (.decoding, failure.debugDescription)
        case LanguageModelError.unsupportedCapability(let failure): return (.decoding, failure.debugDescription)
        case let error as GeneratedContent.ParsingError: return (.decoding, error.debugDescription)
        default: return (.error, "\(error)")
        }
    }
}

/// The number of tool calls of a sample.
final class CallCount: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }
    func add() { count.withLock { $0 += 1 } }
}

/// The model, instructions and tools of a sample.
private struct EvalProfile: LanguageModelSession.DynamicProfile {
    var model: GuardedLanguageModel<SystemLanguageModel>
    var instructions: String?
    var tools: [EvalTool]
    var spotlighting: Spotlighting?
    /// Whether the first round must call a tool.
    var requiresTool: Bool
    var calls: CallCount

    var body: some LanguageModelSession.DynamicProfile {
        LanguageModelSession.Profile {
            if let instructions { Instructions(instructions) }
            tools
        }
        .model(model)
        .historyTransform { [spotlighting] in spotlighting?.marked($0) ?? $0 }
        .toolCallingMode(requiresTool && calls.value == 0 ? .required : .allowed)
    }
}

/// A tool of a data set, with a fixed output.
struct EvalTool: Tool {
    typealias Arguments = GeneratedContent
    let name: String
    let description: String
    let parameters: GenerationSchema
    private let output: String
    private let calls: CallCount

    init(_ tool: EvalSample.StaticTool, _ calls: CallCount = CallCount()) throws {
        self.calls = calls
        name = tool.name
        description = tool.description
        output = tool.output
        guard let schema = tool.parameters, schema != .null else {
            parameters = try GenerationSchema(root: DynamicGenerationSchema(name: "Arguments", properties: []), dependencies: [])
            return
        }
        if case .string(let type)? = schema["type"], type != "object" {
            throw EvalError("The parameters of the tool “\(tool.name)” must be an object, “type”: “object”")
        }
        do throws(JSONSchemaError) { parameters = try GenerationSchema(jsonSchema: schema) } catch {
            throw EvalError("The parameters of the tool “\(tool.name)” cannot be used: \(error)")
        }
    }

    func call(arguments: GeneratedContent) async throws -> String {
        calls.add()
        return output
    }
}
