extension LanguageModelSession {
    /// How a session behaves: instructions, tools, model and options, which may change between requests.
    ///
    /// ```swift
    /// struct Assistant: LanguageModelSession.DynamicProfile {
    ///     @SessionProperty(\.isBrainstorming) var isBrainstorming
    ///     var body: some DynamicProfile {
    ///         if isBrainstorming {
    ///             Profile { Instructions("Be bold.") }.temperature(1.2)
    ///         } else {
    ///             Profile { Instructions("Be exact.") }.temperature(0.1)
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// The body is asked for before each model request, so it should do nothing but say what holds.
    @_typeEraser(AnyDynamicProfile)
    public protocol DynamicProfile {
        /// What the body is; the compiler infers it.
        associatedtype Body: LanguageModelSession.DynamicProfile
        /// The profile that holds now. Asked for before each request to the model, and perhaps more often.
        @LanguageModelSession.DynamicProfileBuilder var body: Self.Body { get }
    }

    /// Instructions and tools as a profile.
    public struct Profile: LanguageModelSession.DynamicProfile, PrimitiveProfile {
        private let gathered: GatheredInstructions

        /// Calls the builder at once: a profile says what holds when it is made.
        public init(@DynamicInstructionsBuilder _ dynamicInstructions: () -> some DynamicInstructions) {
            var gathered = GatheredInstructions()
            gathered.gather(dynamicInstructions())
            self.gathered = gathered
        }

        /// There is none: asking for it stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into profile: inout ResolvedProfile) {
            profile.instructions = gathered
            profile.hasProfile = true
        }
    }

    /// Chooses one profile.
    @resultBuilder
    public struct DynamicProfileBuilder {
        /// The profile: kept as it is. There can be only one.
        public static func buildBlock<T>(_ content: T) -> T where T: LanguageModelSession.DynamicProfile { content }

        /// An `if` with `else`, or a `switch`: the first branch was taken.
        public static func buildEither<TrueContent, FalseContent>(
            first content: TrueContent
        ) -> LanguageModelSession.ConditionalDynamicProfile<TrueContent, FalseContent>
        where TrueContent: LanguageModelSession.DynamicProfile, FalseContent: LanguageModelSession.DynamicProfile {
            ConditionalDynamicProfile(isFirst: true, content: content)
        }

        /// An `if` with `else`, or a `switch`: the other branch was taken.
        public static func buildEither<TrueContent, FalseContent>(
            second content: FalseContent
        ) -> LanguageModelSession.ConditionalDynamicProfile<TrueContent, FalseContent>
        where TrueContent: LanguageModelSession.DynamicProfile, FalseContent: LanguageModelSession.DynamicProfile {
            ConditionalDynamicProfile(isFirst: false, content: content)
        }

        @available(*, unavailable, message: "A session has one profile at a time: choose with if and else, or a switch.")
        public static func buildBlock<each Content>(_ contents: repeat each Content) -> Never
        where repeat each Content: LanguageModelSession.DynamicProfile { unreachableBody() }

        /// An `if #available`: the type is forgotten, so that older systems need not know it.
        public static func buildLimitedAvailability(
            _ component: some LanguageModelSession.DynamicProfile
        ) -> LanguageModelSession.AnyDynamicProfile {
            AnyDynamicProfile(erasing: component)
        }
    }

    /// A profile of any type.
    public struct AnyDynamicProfile: LanguageModelSession.DynamicProfile, PrimitiveProfile {
        private let profile: any LanguageModelSession.DynamicProfile

        /// Wraps a profile whose type is known at run time only.
        public init(_ dynamicProfile: any LanguageModelSession.DynamicProfile) { profile = dynamicProfile }
        /// Wraps a profile; the compiler calls it where a type has to be forgotten.
        public init(erasing dynamicProfile: some DynamicProfile) { profile = dynamicProfile }

        /// There is none: asking for it stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into resolved: inout ResolvedProfile) { resolved.resolve(profile) }
    }

    /// One of two profiles.
    public struct ConditionalDynamicProfile<TrueContent, FalseContent>: LanguageModelSession.DynamicProfile, PrimitiveProfile
    where TrueContent: LanguageModelSession.DynamicProfile, FalseContent: LanguageModelSession.DynamicProfile {
        fileprivate let isFirst: Bool
        fileprivate let content: any LanguageModelSession.DynamicProfile

        /// There is none: asking for it stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into profile: inout ResolvedProfile) {
            profile.identity.append(isFirst ? "1" : "2")
            profile.resolve(content)
        }
    }
}

extension Never: LanguageModelSession.DynamicProfile {}

/// What a profile comes down to for one model request.
struct ResolvedProfile {
    var instructions = GatheredInstructions()
    var hasProfile = false
    /// The way to the active profile: it changes when another one is active.
    var identity = ""
    var model: (any LanguageModel)?
    var options = GenerationOptions()
    var reasoningLevel: ContextOptions.ReasoningLevel?
    var policy: TranscriptErrorHandlingPolicy?
    /// Outermost first, like all that follow.
    var historyTransforms: [([Transcript.Entry]) -> [Transcript.Entry]] = []
    var callbacks = ProfileCallbacks()

    mutating func resolve(_ profile: some LanguageModelSession.DynamicProfile) {
        if let primitive = profile as? any PrimitiveProfile {
            primitive.resolve(into: &self)
        } else {
            identity += "\(type(of: profile))/"
            resolve(profile.body)
        }
    }
}

/// A profile without a body: it says itself what it changes.
protocol PrimitiveProfile {
    func resolve(into profile: inout ResolvedProfile)
}

/// What a profile wants to be told.
struct ProfileCallbacks {
    var onPrompt: [nonisolated(nonsending) (Transcript.Prompt) async throws -> Void] = []
    var onResponse: [nonisolated(nonsending) (Transcript.Response) async throws -> Void] = []
    var onReasoning: [nonisolated(nonsending) (Transcript.Reasoning) async throws -> Void] = []
    var onToolCall: [nonisolated(nonsending) (Transcript.ToolCall) async throws -> Void] = []
    var onToolOutput: [nonisolated(nonsending) (Transcript.ToolCall, Transcript.ToolOutput) async throws -> Void] = []
    var onActivate: [@isolated(any) () async -> Void] = []
    var onDeactivate: [@isolated(any) () async -> Void] = []
}
