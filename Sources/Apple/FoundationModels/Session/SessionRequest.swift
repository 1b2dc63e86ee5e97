/// The parameters of a request to a session.
struct SessionRequest: Sendable {
    var prompt: Prompt
    var schema: GenerationSchema?
    var options: GenerationOptions
    var contextOptions = ContextOptions()
    var metadata: [String: GeneratedContent] = [:]
    /// A format that schemas cannot express.
    var format: ResponseFormat?
    /// The actor of the code that made the request. Profiles are evaluated there, because their bodies may read its state.
    var isolation: (any Actor)?
    /// The profile of the first round, if it was evaluated by the function that made the request.
    var profile: ResolvedProfile?
    /// Throws if the response cannot be converted to the requested type.
    var validate: @Sendable (GeneratedContent) throws -> Void = { _ in }

    var entry: Transcript.Prompt {
        Transcript.Prompt(
            metadata: metadata, segments: prompt.parts.segments, options: options,
            responseFormat: schema.map { Transcript.ResponseFormat(schema: $0) }, contextOptions: contextOptions)
    }
}
