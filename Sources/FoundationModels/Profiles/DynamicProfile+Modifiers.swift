extension LanguageModelSession.DynamicProfile {
    /// Lets bodies say `Profile`.
    public typealias Profile = LanguageModelSession.Profile
    /// Lets bodies say `some DynamicProfile`.
    public typealias DynamicProfile = LanguageModelSession.DynamicProfile
    /// Lets conforming types say `@SessionProperty`.
    public typealias SessionProperty = LanguageModelSession.SessionProperty

    private func changed(_ change: @escaping (inout ResolvedProfile) -> Void) -> ChangedProfile<Self> {
        ChangedProfile(content: self, change: change)
    }

    /// The profile as a modifier of your own makes it.
    public func modifier<Modifier>(_ modifier: Modifier) -> some LanguageModelSession.DynamicProfile
    where Modifier: LanguageModelSession.DynamicProfileModifier {
        LanguageModelSession.ModifiedDynamicProfile(content: self, modifier: modifier)
    }

    // Of several modifiers for one value, the one nearest to the profile counts; nil has no opinion. What is passed with a
    // request goes before all of them.

    /// The model that answers.
    public func model(_ model: any LanguageModel) -> some LanguageModelSession.DynamicProfile {
        changed { $0.model = model }
    }

    /// The model that answers.
    public func model(_ model: some LanguageModel) -> some LanguageModelSession.DynamicProfile {
        changed { $0.model = model }
    }

    /// How free the choice of tokens is, from 0 to 2; nil has no opinion.
    public func temperature(_ temperature: Double?) -> some LanguageModelSession.DynamicProfile {
        changed { $0.options.temperature = temperature ?? $0.options.temperature }
    }

    /// How the next token is chosen; nil has no opinion.
    public func samplingMode(_ samplingMode: GenerationOptions.SamplingMode?) -> some LanguageModelSession.DynamicProfile {
        changed { $0.options.samplingMode = samplingMode ?? $0.options.samplingMode }
    }

    /// Tokens after which responses are cut; nil has no opinion.
    public func maximumResponseTokens(_ maximumResponseTokens: Int?) -> some LanguageModelSession.DynamicProfile {
        changed { $0.options.maximumResponseTokens = maximumResponseTokens ?? $0.options.maximumResponseTokens }
    }

    /// How long the model thinks before it answers; nil has no opinion.
    public func reasoningLevel(_ reasoningLevel: ContextOptions.ReasoningLevel?) -> some LanguageModelSession.DynamicProfile {
        changed { $0.reasoningLevel = reasoningLevel ?? $0.reasoningLevel }
    }

    /// Whether the model may, must or must not call tools; nil has no opinion.
    public func toolCallingMode(
        _ toolCallingMode: GenerationOptions.ToolCallingMode?
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.options.toolCallingMode = toolCallingMode ?? $0.options.toolCallingMode }
    }

    /// What the model sees of the conversation. The transcript itself stays as it is.
    public func historyTransform(
        _ transform: @escaping ([Transcript.Entry]) -> [Transcript.Entry]
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.historyTransforms.append(transform) }
    }

    /// What becomes of the transcript when a request fails, where the session does not say; nil has no opinion.
    public func transcriptErrorHandlingPolicy(
        _ transcriptErrorHandlingPolicy: TranscriptErrorHandlingPolicy?
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.policy = transcriptErrorHandlingPolicy ?? $0.policy }
    }

    // Callbacks add up; the outermost runs first. What they throw ends the request.

    /// Called when a prompt is in the transcript, before the model is asked.
    public func onPrompt(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onPrompt.append { _ in try await action() } }
    }

    /// Called when a prompt is in the transcript, before the model is asked.
    public func onPrompt(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.Prompt) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onPrompt.append(action) }
    }

    /// Called when the model has answered.
    public func onResponse(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onResponse.append { _ in try await action() } }
    }

    /// Called when the model has answered.
    public func onResponse(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.Response) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onResponse.append(action) }
    }

    /// Called when the model has thought.
    public func onReasoning(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onReasoning.append { _ in try await action() } }
    }

    /// Called when the model has thought.
    public func onReasoning(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.Reasoning) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onReasoning.append(action) }
    }

    /// Called before a tool runs.
    public func onToolCall(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onToolCall.append { _ in try await action() } }
    }

    /// Called before a tool runs.
    public func onToolCall(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.ToolCall) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onToolCall.append(action) }
    }

    /// Called when a tool has run.
    public func onToolOutput(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onToolOutput.append { _, _ in try await action() } }
    }

    /// Called when a tool has run.
    public func onToolOutput(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.ToolCall, Transcript.ToolOutput) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onToolOutput.append(action) }
    }

    /// Called when this profile becomes the active one.
    public func onActivate(
        @_inheritActorContext perform action: sending @escaping @isolated(any) () async -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onActivate.append(action) }
    }

    /// Called when another profile becomes the active one.
    public func onDeactivate(
        @_inheritActorContext perform action: sending @escaping @isolated(any) () async -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onDeactivate.append(action) }
    }
}

/// A profile with one thing changed.
private struct ChangedProfile<Content: LanguageModelSession.DynamicProfile>: LanguageModelSession.DynamicProfile,
    PrimitiveProfile
{
    let content: Content
    let change: (inout ResolvedProfile) -> Void

    var body: Never { unreachableBody() }

    /// From the outside in: what is nearer to the profile is said later.
    func resolve(into profile: inout ResolvedProfile) {
        change(&profile)
        profile.resolve(content)
    }
}

extension LanguageModelSession {
    /// A change of profiles that can be used again.
    public protocol DynamicProfileModifier {
        /// What the modifier makes of a profile; the compiler infers it.
        associatedtype Body: LanguageModelSession.DynamicProfile
        /// The profile that the modifier is applied to.
        typealias Content = LanguageModelSession.DynamicProfileModifierContent<Self>
        /// The profile with the modifier applied. Asked for before each request to the model, and perhaps more often.
        @LanguageModelSession.DynamicProfileBuilder func body(content: Self.Content) -> Self.Body
    }

    /// The profile that a modifier is applied to.
    public struct DynamicProfileModifierContent<Modifier>: LanguageModelSession.DynamicProfile, PrimitiveProfile
    where Modifier: LanguageModelSession.DynamicProfileModifier {
        fileprivate let content: any LanguageModelSession.DynamicProfile

        /// There is none: asking for it stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into profile: inout ResolvedProfile) { profile.resolve(content) }
    }

    /// A profile with a modifier applied.
    public struct ModifiedDynamicProfile<Content, Modifier>: LanguageModelSession.DynamicProfile, PrimitiveProfile
    where Content: LanguageModelSession.DynamicProfile, Modifier: LanguageModelSession.DynamicProfileModifier {
        let content: Content
        let modifier: Modifier

        /// There is none: asking for it stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into profile: inout ResolvedProfile) {
            profile.resolve(modifier.body(content: DynamicProfileModifierContent(content: content)))
        }
    }
}

extension LanguageModelSession.DynamicProfileModifier {
    /// Lets modifiers say `some DynamicProfile`.
    public typealias DynamicProfile = LanguageModelSession.DynamicProfile
    /// Lets modifiers say `@SessionProperty`.
    public typealias SessionProperty = LanguageModelSession.SessionProperty
}
