extension LanguageModelSession {
    /// The configuration of a session: instructions, tools, model and options, which may change between requests.
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
    /// The body is evaluated before each model request, so it should have no side effects.
    @_typeEraser(AnyDynamicProfile)
    public protocol DynamicProfile {
        /// The type of the body; the compiler infers it.
        associatedtype Body: LanguageModelSession.DynamicProfile
        /// The current profile. Evaluated at least once before each model request.
        @LanguageModelSession.DynamicProfileBuilder var body: Self.Body { get }
    }

    /// A profile of instructions and tools.
    public struct Profile: LanguageModelSession.DynamicProfile, PrimitiveProfile {
        private let gathered: ResolvedInstructions

        /// Creates a profile and evaluates the builder immediately.
        public init(@DynamicInstructionsBuilder _ dynamicInstructions: () -> some DynamicInstructions) {
            var gathered = ResolvedInstructions()
            gathered.gather(dynamicInstructions())
            self.gathered = gathered
        }

        /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into profile: inout ResolvedProfile) {
            profile.instructions = gathered
            profile.hasProfile = true
        }
    }

    /// Selects one profile.
    @resultBuilder
    public struct DynamicProfileBuilder {
        /// The only profile, unchanged.
        public static func buildBlock<T>(_ content: T) -> T where T: LanguageModelSession.DynamicProfile { content }

        /// The first branch of an `if` with `else`, or of a `switch`.
        public static func buildEither<TrueContent, FalseContent>(
            first content: TrueContent
        ) -> LanguageModelSession.ConditionalDynamicProfile<TrueContent, FalseContent>
        where TrueContent: LanguageModelSession.DynamicProfile, FalseContent: LanguageModelSession.DynamicProfile {
            ConditionalDynamicProfile(isFirst: true, content: content)
        }

        /// The second branch of an `if` with `else`, or of a `switch`.
        public static func buildEither<TrueContent, FalseContent>(
            second content: FalseContent
        ) -> LanguageModelSession.ConditionalDynamicProfile<TrueContent, FalseContent>
        where TrueContent: LanguageModelSession.DynamicProfile, FalseContent: LanguageModelSession.DynamicProfile {
            ConditionalDynamicProfile(isFirst: false, content: content)
        }

        @available(*, unavailable, message: "A session has one profile at a time: choose with if and else, or a switch.")
        public static func buildBlock<each Content>(_ contents: repeat each Content) -> Never
        where repeat each Content: LanguageModelSession.DynamicProfile { unreachableBody() }

        /// An `if #available`: erases the type, so that it need not exist on older systems.
        public static func buildLimitedAvailability(
            _ component: some LanguageModelSession.DynamicProfile
        ) -> LanguageModelSession.AnyDynamicProfile {
            AnyDynamicProfile(erasing: component)
        }
    }

    /// A type-erased profile.
    public struct AnyDynamicProfile: LanguageModelSession.DynamicProfile, PrimitiveProfile {
        private let profile: any LanguageModelSession.DynamicProfile

        /// Wraps a profile whose type is known only at run time.
        public init(_ dynamicProfile: any LanguageModelSession.DynamicProfile) { profile = dynamicProfile }
        /// Wraps a profile; called by the compiler for type erasure.
        public init(erasing dynamicProfile: some DynamicProfile) { profile = dynamicProfile }

        /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into resolved: inout ResolvedProfile) { resolved.resolve(profile) }
    }

    /// One of two alternative profiles.
    public struct ConditionalDynamicProfile<TrueContent, FalseContent>: LanguageModelSession.DynamicProfile, PrimitiveProfile
    where TrueContent: LanguageModelSession.DynamicProfile, FalseContent: LanguageModelSession.DynamicProfile {
        fileprivate let isFirst: Bool
        fileprivate let content: any LanguageModelSession.DynamicProfile

        /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
        public var body: Never { unreachableBody() }
        func resolve(into profile: inout ResolvedProfile) {
            profile.identity.append(isFirst ? "1" : "2")
            profile.resolve(content)
        }
    }
}

extension Never: LanguageModelSession.DynamicProfile {}

/// The result of evaluating a profile for one model request.
struct ResolvedProfile: @unchecked Sendable {  // Belongs to one request, which uses it in one task at a time.
    var instructions = ResolvedInstructions()
    var hasProfile = false
    /// Identifies the active profile by its path; differs when another profile becomes active.
    var identity = ""
    var model: (any LanguageModel)?
    var options = GenerationOptions()
    var reasoningLevel: ContextOptions.ReasoningLevel?
    var policy: TranscriptErrorHandlingPolicy?
    /// Outermost first, like the callbacks.
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

/// A profile without a body, which applies its values directly.
protocol PrimitiveProfile {
    func resolve(into profile: inout ResolvedProfile)
}

/// The callbacks of a profile.
struct ProfileCallbacks {
    var onPrompt: [nonisolated(nonsending) (Transcript.Prompt) async throws -> Void] = []
    var onResponse: [nonisolated(nonsending) (Transcript.Response) async throws -> Void] = []
    var onReasoning: [nonisolated(nonsending) (Transcript.Reasoning) async throws -> Void] = []
    var onToolCall: [nonisolated(nonsending) (Transcript.ToolCall) async throws -> Void] = []
    var onToolOutput: [nonisolated(nonsending) (Transcript.ToolCall, Transcript.ToolOutput) async throws -> Void] = []
    var onActivate: [@isolated(any) () async -> Void] = []
    var onDeactivate: [@isolated(any) () async -> Void] = []
}
