extension LanguageModelSession.DynamicProfile {
    /// Makes `Profile` available in bodies.
    public typealias Profile = LanguageModelSession.Profile
    /// Makes `some DynamicProfile` available in bodies.
    public typealias DynamicProfile = LanguageModelSession.DynamicProfile
    /// Makes `@SessionProperty` available in conforming types.
    public typealias SessionProperty = LanguageModelSession.SessionProperty

    private func changed(_ change: @escaping (inout ResolvedProfile) -> Void) -> ChangedProfile<Self> {
        ChangedProfile(content: self, change: change)
    }

    /// Applies a custom modifier to the profile.
    public func modifier<Modifier>(_ modifier: Modifier) -> some LanguageModelSession.DynamicProfile
    where Modifier: LanguageModelSession.DynamicProfileModifier {
        LanguageModelSession.ModifiedDynamicProfile(content: self, modifier: modifier)
    }

    // If several modifiers set the same value, the one nearest to the profile applies; nil leaves the value unset.
    // Options of a request take precedence over all modifiers.

    /// Sets the model.
    public func model(_ model: any LanguageModel) -> some LanguageModelSession.DynamicProfile {
        changed { $0.model = model }
    }

    /// Sets the model.
    public func model(_ model: some LanguageModel) -> some LanguageModelSession.DynamicProfile {
        changed { $0.model = model }
    }

    /// Sets the sampling temperature, from 0 to 2; nil leaves it unset.
    public func temperature(_ temperature: Double?) -> some LanguageModelSession.DynamicProfile {
        changed { $0.options.temperature = temperature ?? $0.options.temperature }
    }

    /// Sets how the next token is sampled; nil leaves it unset.
    public func samplingMode(_ samplingMode: GenerationOptions.SamplingMode?) -> some LanguageModelSession.DynamicProfile {
        changed { $0.options.samplingMode = samplingMode ?? $0.options.samplingMode }
    }

    /// Sets the maximum number of tokens in a response; nil leaves it unset.
    public func maximumResponseTokens(_ maximumResponseTokens: Int?) -> some LanguageModelSession.DynamicProfile {
        changed { $0.options.maximumResponseTokens = maximumResponseTokens ?? $0.options.maximumResponseTokens }
    }

    /// Sets how much the model reasons before it responds; nil leaves it unset.
    public func reasoningLevel(_ reasoningLevel: ContextOptions.ReasoningLevel?) -> some LanguageModelSession.DynamicProfile {
        changed { $0.reasoningLevel = reasoningLevel ?? $0.reasoningLevel }
    }

    /// Sets whether the model may, must or must not call tools; nil leaves it unset.
    public func toolCallingMode(
        _ toolCallingMode: GenerationOptions.ToolCallingMode?
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.options.toolCallingMode = toolCallingMode ?? $0.options.toolCallingMode }
    }

    /// Transforms the history that the model receives. The transcript itself does not change.
    public func historyTransform(
        _ transform: @escaping ([Transcript.Entry]) -> [Transcript.Entry]
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.historyTransforms.append(transform) }
    }

    /// Sets how a failed request affects the transcript, unless the session's own policy is set; nil leaves it unset.
    public func transcriptErrorHandlingPolicy(
        _ transcriptErrorHandlingPolicy: TranscriptErrorHandlingPolicy?
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.policy = transcriptErrorHandlingPolicy ?? $0.policy }
    }

    // All callbacks run, the outermost first. An error that one throws ends the request.

    /// Adds a callback that runs when a prompt is in the transcript, before the model request.
    public func onPrompt(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onPrompt.append { _ in try await action() } }
    }

    /// Adds a callback that runs when a prompt is in the transcript, before the model request.
    public func onPrompt(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.Prompt) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onPrompt.append(action) }
    }

    /// Adds a callback that runs after the model's response.
    public func onResponse(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onResponse.append { _ in try await action() } }
    }

    /// Adds a callback that runs after the model's response.
    public func onResponse(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.Response) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onResponse.append(action) }
    }

    /// Adds a callback that runs after the model's reasoning.
    public func onReasoning(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onReasoning.append { _ in try await action() } }
    }

    /// Adds a callback that runs after the model's reasoning.
    public func onReasoning(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.Reasoning) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onReasoning.append(action) }
    }

    /// Adds a callback that runs before a tool call.
    public func onToolCall(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onToolCall.append { _ in try await action() } }
    }

    /// Adds a callback that runs before a tool call.
    public func onToolCall(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.ToolCall) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onToolCall.append(action) }
    }

    /// Adds a callback that runs after a tool call.
    public func onToolOutput(
        @_inheritActorContext perform action: nonisolated(nonsending) sending @escaping () async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onToolOutput.append { _, _ in try await action() } }
    }

    /// Adds a callback that runs after a tool call.
    public func onToolOutput(
        @_inheritActorContext perform action:
            nonisolated(nonsending) sending @escaping (Transcript.ToolCall, Transcript.ToolOutput) async throws -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onToolOutput.append(action) }
    }

    /// Adds a callback that runs when this profile becomes active.
    public func onActivate(
        @_inheritActorContext perform action: sending @escaping @isolated(any) () async -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onActivate.append(action) }
    }

    /// Adds a callback that runs when another profile becomes active.
    public func onDeactivate(
        @_inheritActorContext perform action: sending @escaping @isolated(any) () async -> Void
    ) -> some LanguageModelSession.DynamicProfile {
        changed { $0.callbacks.onDeactivate.append(action) }
    }
}

/// A profile with one change applied.
private struct ChangedProfile<Content: LanguageModelSession.DynamicProfile>: LanguageModelSession.DynamicProfile,
    PrimitiveProfile
{
    let content: Content
    let change: (inout ResolvedProfile) -> Void

    var body: Never { unreachableBody() }

    /// Applies outer changes first, so that changes nearer to the profile override them.
    func resolve(into profile: inout ResolvedProfile) {
        change(&profile)
        profile.resolve(content)
    }
}

extension LanguageModelSession {
    /// A reusable modification of profiles.
    public protocol DynamicProfileModifier {
        /// The type of the modified profile; the compiler infers it.
        associatedtype Body: LanguageModelSession.DynamicProfile
        /// The profile that the modifier is applied to.
        typealias Content = LanguageModelSession.DynamicProfileModifierContent<Self>
        /// The modified profile. Evaluated at least once before each model request.
        @LanguageModelSession.DynamicProfileBuilder func body(content: Self.Content) -> Self.Body
    }

    /// The profile that a modifier is applied to.
    public struct DynamicProfileModifierContent<Modifier>: LanguageModelSession.DynamicProfile, PrimitiveProfile
    where Modifier: LanguageModelSession.DynamicProfileModifier {
        fileprivate let content: any LanguageModelSession.DynamicProfile

        /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into profile: inout ResolvedProfile) { profile.resolve(content) }
    }

    /// A profile with a modifier applied.
    public struct ModifiedDynamicProfile<Content, Modifier>: LanguageModelSession.DynamicProfile, PrimitiveProfile
    where Content: LanguageModelSession.DynamicProfile, Modifier: LanguageModelSession.DynamicProfileModifier {
        let content: Content
        let modifier: Modifier

        /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into profile: inout ResolvedProfile) {
            profile.resolve(modifier.body(content: DynamicProfileModifierContent(content: content)))
        }
    }
}

extension LanguageModelSession.DynamicProfileModifier {
    /// Makes `some DynamicProfile` available in modifiers.
    public typealias DynamicProfile = LanguageModelSession.DynamicProfile
    /// Makes `@SessionProperty` available in modifiers.
    public typealias SessionProperty = LanguageModelSession.SessionProperty
}
