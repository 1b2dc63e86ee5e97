internal import Foundation
internal import Synchronization

/// The source of a session's instructions, tools and model.
struct SessionBehavior: @unchecked Sendable {  // Profiles were sent to the session, and `lock` serializes their use.
    enum Source {
        /// The instructions are part of the transcript and do not change.
        case fixed(model: any LanguageModel, tools: [any Tool])
        /// Evaluated before each model request.
        case profile(any LanguageModelSession.DynamicProfile)
        case instructions(any DynamicInstructions, model: any LanguageModel)
    }

    let source: Source
    /// Recursive, because evaluating a profile may call the session.
    private let lock = NSRecursiveLock()

    init(source: Source) { self.source = source }

    /// Whether instructions and tools do not change.
    var isFixed: Bool { if case .fixed = source { true } else { false } }

    /// Evaluates the current profile on the actor of the code that made the request, whose executor must run.
    func resolved(on actor: (any Actor)?) async -> ResolvedProfile {
        // Fixed instructions and tools need no actor, which may be busy.
        isFixed ? resolved() : await evaluated(on: actor)
    }

    private func evaluated(on actor: isolated (any Actor)?) -> ResolvedProfile { resolved() }

    /// Evaluates the current profile.
    func resolved() -> ResolvedProfile {
        lock.lock()
        defer { lock.unlock() }
        var profile = ResolvedProfile()
        switch source {
        case .fixed(let model, let tools):
            profile.model = model
            profile.instructions.tools = tools
        case .profile(let dynamic): profile.resolve(dynamic)
        case .instructions(let dynamic, let model):
            profile.model = model
            profile.instructions.gather(dynamic)
            profile.hasProfile = true
        }
        return profile
    }
}

extension SessionBehavior {
    /// The transcript with the current instructions and tools.
    func completed(_ transcript: Transcript, _ profile: ResolvedProfile) -> Transcript {
        var transcript = transcript
        let tools = profile.instructions.tools
        if profile.hasProfile {
            transcript.setInstructions(
                Transcript.Instructions(
                    id: transcript.instructions?.id,
                    parts: profile.instructions.parts.isEmpty ? nil : profile.instructions.parts, tools: tools))
        } else if !tools.isEmpty {
            // The tools of a continued transcript may differ from the session's tools.
            var instructions = transcript.instructions ?? Transcript.Instructions(segments: [], toolDefinitions: [])
            instructions.toolDefinitions = tools.map { Transcript.ToolDefinition(tool: $0) }
            transcript.setInstructions(instructions)
        }
        return transcript
    }
}

extension Transcript {
    /// Removes the tool definitions from the instructions.
    mutating func hideTools() {
        guard var instructions else { return }
        instructions.toolDefinitions = []
        setInstructions(instructions.segments.isEmpty ? nil : instructions)
    }
}

/// The executors of a session, one for each distinct configuration.
final class ExecutorStore: Sendable {
    private struct Key: Hashable, @unchecked Sendable {  // Configurations are Sendable; AnyHashable does not declare it.
        let executor: ObjectIdentifier
        let configuration: AnyHashable
    }

    private let executors = Mutex<[Key: any LanguageModelExecutor]>([:])

    func executor<Model: LanguageModel>(for model: Model) throws -> Model.Executor {
        let configuration = model.executorConfiguration
        let key = Key(executor: ObjectIdentifier(Model.Executor.self), configuration: AnyHashable(configuration))
        return try executors.withLock { executors in
            if let known = executors[key] as? Model.Executor { return known }
            let made = try Model.Executor(configuration: configuration)
            executors[key] = made
            return made
        }
    }
}
