extension LanguageModelSession {
    // Every overload ends in one of these two.

    nonisolated(nonsending) private func answer<Content>(_ request: SessionRequest) async throws -> Response<Content> {
        let progress = ResponseProgress(schemaName: request.schema?.name)
        return try Response(try await run(request, progress))
    }

    func stream<Content>(_ request: SessionRequest) -> sending ResponseStream<Content> {
        let progress = ResponseProgress(schemaName: request.schema?.name)
        let running = progress.run { try await self.run(request, $0) }
        return ResponseStream(progress: progress, request: running)
    }
}

/// Answers a prompt: with text, with content that a schema describes, or with a value of a type.
///
/// All of them throw ``LanguageModelError`` and its like (see there), or `CancellationError` when the task is cancelled.
extension LanguageModelSession {
    @discardableResult
    public nonisolated(nonsending) func respond(
        to prompt: Prompt, options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: prompt, options: options))
    }

    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: Prompt(prompt), options: options))
    }

    @discardableResult
    public nonisolated(nonsending) func respond(
        options: GenerationOptions = GenerationOptions(), @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: prompt(), options: options))
    }

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

// The same with options about what the prompt contains, and metadata for the model.

extension LanguageModelSession {
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

extension Generable {
    /// What a response is held to; nil for plain text.
    static var responseSchema: GenerationSchema? { Self.self == String.self ? nil : generationSchema }
}
