internal import Foundation
internal import Synchronization

/// Where a session takes its instructions, tools and model from.
struct SessionBehavior: @unchecked Sendable {  // Profiles were sent to the session, which asks them one at a time: see `lock`.
    enum Source {
        /// Instructions are part of the transcript and stay.
        case fixed(model: any LanguageModel, tools: [any Tool])
        /// Asked for anew before each model request.
        case profile(any LanguageModelSession.DynamicProfile)
        case instructions(any DynamicInstructions, model: any LanguageModel)
    }

    let source: Source
    /// Recursive, because a profile may ask its session for something.
    private let lock = NSRecursiveLock()

    init(source: Source) { self.source = source }

    /// What holds now.
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
    /// A transcript with the instructions and tools that hold now.
    func completed(_ transcript: Transcript, _ profile: ResolvedProfile) -> Transcript {
        var transcript = transcript
        let tools = profile.instructions.tools
        if profile.hasProfile {
            transcript.setInstructions(
                Transcript.Instructions(
                    id: transcript.instructions?.id,
                    parts: profile.instructions.parts.isEmpty ? nil : profile.instructions.parts, tools: tools))
        } else if !tools.isEmpty {
            // A transcript that is continued may know other tools, or none.
            var instructions = transcript.instructions ?? Transcript.Instructions(segments: [], toolDefinitions: [])
            instructions.toolDefinitions = tools.map { Transcript.ToolDefinition(tool: $0) }
            transcript.setInstructions(instructions)
        }
        return transcript
    }
}

extension Transcript {
    /// Takes the definitions of tools out of the instructions.
    mutating func hideTools() {
        guard var instructions else { return }
        instructions.toolDefinitions = []
        setInstructions(instructions.segments.isEmpty ? nil : instructions)
    }
}

/// The executors of a session, one for each distinct configuration.
final class ExecutorStore: Sendable {
    private struct Key: Hashable, @unchecked Sendable {  // A configuration is Sendable; its box does not know.
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
