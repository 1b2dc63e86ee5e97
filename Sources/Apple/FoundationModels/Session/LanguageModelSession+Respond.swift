internal import Dispatch
internal import Foundation

extension LanguageModelSession {
    // Every overload calls one of these two functions.

    nonisolated(nonsending) private func answer<Content>(_ request: SessionRequest) async throws -> Response<Content> {
        let progress = ResponseProgress(schemaName: request.schema?.name)
        let value = ResponseValue<Content>()
        let request = request.making(value, on: #isolation)
        return try Response(try await run(request, progress), value)
    }

    func stream<Content>(_ request: SessionRequest) -> sending ResponseStream<Content> {
        let progress = ResponseProgress(schemaName: request.schema?.name)
        let value = ResponseValue<Content>()
        // A synchronous function has no other way to learn its caller's actor. It evaluates the first profile itself, because the
        // caller may be a thread of a program that does not run the main queue.
        let profile = behavior.isFixed ? nil : SessionPropertyValues.$current.withValue(properties) { behavior.resolved() }
        let request = request.making(value, on: MainQueue.isCurrent ? MainActor.shared : nil, profile: profile)
        let running = progress.run { try await self.run(request, $0) }
        return ResponseStream(progress: progress, value: value, request: running)
    }
}

// The overloads: text, content with a schema, or a value of a type; from a prompt, a string, or a builder.

extension LanguageModelSession {
    /// Answers a prompt with text.
    ///
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; `CancellationError` when the task
    ///   is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond(
        to prompt: Prompt, options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: prompt, options: options))
    }

    /// Answers a prompt, given as a string, with text.
    ///
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; `CancellationError` when the task
    ///   is cancelled.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: Prompt(prompt), options: options))
    }

    /// Answers a prompt, built by a result builder, with text.
    ///
    /// - Throws: Any error that `prompt` throws; ``LanguageModelError`` or a related error, see <doc:ErrorHandling>;
    ///   `CancellationError` when the task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond(
        options: GenerationOptions = GenerationOptions(), @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: prompt(), options: options))
    }

    /// Answers a prompt with content that conforms to a schema.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - includeSchemaInPrompt: Whether the prompt contains the schema. The schema constrains the response in either
    ///     case.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError``
    ///   if the response does not conform to the schema; `CancellationError` when the task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond(
        to prompt: Prompt, schema: GenerationSchema, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<GeneratedContent> {
        try await answer(
            SessionRequest(
                prompt: prompt, schema: schema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, given as a string, with content that conforms to a schema.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - includeSchemaInPrompt: Whether the prompt contains the schema. The schema constrains the response in either
    ///     case.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError``
    ///   if the response does not conform to the schema; `CancellationError` when the task is cancelled.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond(
        to prompt: String, schema: GenerationSchema, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<GeneratedContent> {
        try await answer(
            SessionRequest(
                prompt: Prompt(prompt), schema: schema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, built by a result builder, with content that conforms to a schema.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - includeSchemaInPrompt: Whether the prompt contains the schema. The schema constrains the response in either
    ///     case.
    /// - Throws: Any error that `prompt` throws; ``LanguageModelError`` or a related error, see <doc:ErrorHandling>;
    ///   ``GeneratedContent/ParsingError`` if the response does not conform to the schema; `CancellationError` when the
    ///   task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond(
        schema: GenerationSchema, includeSchemaInPrompt: Bool = true, options: GenerationOptions = GenerationOptions(),
        @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<GeneratedContent> {
        try await answer(
            SessionRequest(
                prompt: prompt(), schema: schema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt with a value of a type.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - includeSchemaInPrompt: Whether the prompt contains the type's schema. The schema constrains the response in
    ///     either case.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError``
    ///   if the response is not a value of the type; `CancellationError` when the task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond<Content>(
        to prompt: Prompt, generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<Content> where Content: Generable {
        try await answer(
            SessionRequest(
                prompt: prompt, schema: Content.responseSchema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, given as a string, with a value of a type.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - includeSchemaInPrompt: Whether the prompt contains the type's schema. The schema constrains the response in
    ///     either case.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError``
    ///   if the response is not a value of the type; `CancellationError` when the task is cancelled.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond<Content>(
        to prompt: String, generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<Content> where Content: Generable {
        try await answer(
            SessionRequest(
                prompt: Prompt(prompt), schema: Content.responseSchema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, built by a result builder, with a value of a type.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - includeSchemaInPrompt: Whether the prompt contains the type's schema. The schema constrains the response in
    ///     either case.
    /// - Throws: Any error that `prompt` throws; ``LanguageModelError`` or a related error, see <doc:ErrorHandling>;
    ///   ``GeneratedContent/ParsingError`` if the response is not a value of the type; `CancellationError` when the
    ///   task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond<Content>(
        generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions(), @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<Content> where Content: Generable {
        try await answer(
            SessionRequest(
                prompt: prompt(), schema: Content.responseSchema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }
}

// The same overloads with context options, and metadata for the model.

extension LanguageModelSession {
    /// Answers a prompt with text.
    ///
    /// - Parameters:
    ///   - contextOptions: The level of reasoning, for models that support it.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; `CancellationError` when the task
    ///   is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond(
        to prompt: Prompt, options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: prompt, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, given as a string, with text.
    ///
    /// - Parameters:
    ///   - contextOptions: The level of reasoning, for models that support it.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; `CancellationError` when the task
    ///   is cancelled.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond(
        to prompt: String, options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: Prompt(prompt), options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, built by a result builder, with text.
    ///
    /// - Parameters:
    ///   - contextOptions: The level of reasoning, for models that support it.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: Any error that `prompt` throws; ``LanguageModelError`` or a related error, see <doc:ErrorHandling>;
    ///   `CancellationError` when the task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond(
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: prompt(), options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt with content that conforms to a schema.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - contextOptions: Whether the prompt contains the schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError``
    ///   if the response does not conform to the schema; `CancellationError` when the task is cancelled.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond(
        to prompt: Prompt, schema: GenerationSchema, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) async throws -> LanguageModelSession.Response<GeneratedContent> {
        try await answer(
            SessionRequest(
                prompt: prompt, schema: schema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, given as a string, with content that conforms to a schema.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - contextOptions: Whether the prompt contains the schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError``
    ///   if the response does not conform to the schema; `CancellationError` when the task is cancelled.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond(
        to prompt: String, schema: GenerationSchema, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) async throws -> LanguageModelSession.Response<GeneratedContent> {
        try await answer(
            SessionRequest(
                prompt: Prompt(prompt), schema: schema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, built by a result builder, with content that conforms to a schema.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - contextOptions: Whether the prompt contains the schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: Any error that `prompt` throws; ``LanguageModelError`` or a related error, see <doc:ErrorHandling>;
    ///   ``GeneratedContent/ParsingError`` if the response does not conform to the schema; `CancellationError` when the
    ///   task is cancelled.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond(
        schema: GenerationSchema, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<GeneratedContent> {
        try await answer(
            SessionRequest(
                prompt: prompt(), schema: schema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt with a value of a type.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - contextOptions: Whether the prompt contains the type's schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError``
    ///   if the response is not a value of the type; `CancellationError` when the task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond<Content>(
        to prompt: Prompt, generating type: Content.Type = Content.self, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) async throws -> LanguageModelSession.Response<Content> where Content: Generable {
        try await answer(
            SessionRequest(
                prompt: prompt, schema: Content.responseSchema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, given as a string, with a value of a type.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - contextOptions: Whether the prompt contains the type's schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: ``LanguageModelError`` or a related error, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError``
    ///   if the response is not a value of the type; `CancellationError` when the task is cancelled.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond<Content>(
        to prompt: String, generating type: Content.Type = Content.self, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) async throws -> LanguageModelSession.Response<Content> where Content: Generable {
        try await answer(
            SessionRequest(
                prompt: Prompt(prompt), schema: Content.responseSchema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, built by a result builder, with a value of a type.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - contextOptions: Whether the prompt contains the type's schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: Any error that `prompt` throws; ``LanguageModelError`` or a related error, see <doc:ErrorHandling>;
    ///   ``GeneratedContent/ParsingError`` if the response is not a value of the type; `CancellationError` when the
    ///   task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond<Content>(
        generating type: Content.Type = Content.self, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<Content> where Content: Generable {
        try await answer(
            SessionRequest(
                prompt: prompt(), schema: Content.responseSchema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }
}

/// The queue on which the main actor runs. On Linux it need not be that of the main thread.
private enum MainQueue {
    private static let key: DispatchSpecificKey<Void> = {
        let key = DispatchSpecificKey<Void>()
        DispatchQueue.main.setSpecific(key: key, value: ())
        return key
    }()

    static var isCurrent: Bool { DispatchQueue.getSpecific(key: key) != nil || Thread.isMainThread }
}

extension SessionRequest {
    fileprivate func making<Content: Generable>(
        _ value: ResponseValue<Content>, on actor: (any Actor)?, profile: ResolvedProfile? = nil
    ) -> SessionRequest {
        var request = self
        (request.isolation, request.profile) = (actor, profile)
        request.validate = { try value.make(from: $0) }
        return request
    }
}

extension Generable {
    /// The schema of a response; nil for plain text.
    static var responseSchema: GenerationSchema? { Self.self == String.self ? nil : generationSchema }
}
