extension LanguageModelSession {
    // Every overload ends in one of these two.

    nonisolated(nonsending) private func answer<Content>(_ request: SessionRequest) async throws -> Response<Content> {
        let progress = ResponseProgress(schemaName: request.schema?.name)
        return try Response(try await run(request.validated(as: Content.self), progress))
    }

    func stream<Content>(_ request: SessionRequest) -> sending ResponseStream<Content> {
        let progress = ResponseProgress(schemaName: request.schema?.name)
        let validated = request.validated(as: Content.self)
        let running = progress.run { try await self.run(validated, $0) }
        return ResponseStream(progress: progress, request: running)
    }
}

// Text, content that a schema describes, or a value of a type; a prompt, a string, or a builder.

extension LanguageModelSession {
    /// Answers a prompt with text.
    ///
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; `CancellationError` when the task is cancelled.
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
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; `CancellationError` when the task is cancelled.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: Prompt(prompt), options: options))
    }

    /// Answers a prompt, put together by a builder, with text.
    ///
    /// - Throws: what `prompt` throws; ``LanguageModelError`` and its like, see <doc:ErrorHandling>; `CancellationError` when
    ///   the task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond(
        options: GenerationOptions = GenerationOptions(), @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(
            SessionRequest(
                prompt: prompt(), options: options))
    }

    /// Answers a prompt with content that a schema describes.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - includeSchemaInPrompt: Whether the model is told the schema; the response is held to it all the same.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError`` if the response
    ///   is no such content; `CancellationError` when the task is cancelled.
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

    /// Answers a prompt, given as a string, with content that a schema describes.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - includeSchemaInPrompt: Whether the model is told the schema; the response is held to it all the same.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError`` if the response
    ///   is no such content; `CancellationError` when the task is cancelled.
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

    /// Answers a prompt, put together by a builder, with content that a schema describes.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - includeSchemaInPrompt: Whether the model is told the schema; the response is held to it all the same.
    /// - Throws: what `prompt` throws; ``LanguageModelError`` and its like, see <doc:ErrorHandling>;
    ///   ``GeneratedContent/ParsingError`` if the response is no such content; `CancellationError` when the task is cancelled.
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
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - includeSchemaInPrompt: Whether the model is told the type's schema; the response is held to it all the same.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError`` if the response
    ///   is no such value; `CancellationError` when the task is cancelled.
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
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - includeSchemaInPrompt: Whether the model is told the type's schema; the response is held to it all the same.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError`` if the response
    ///   is no such value; `CancellationError` when the task is cancelled.
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

    /// Answers a prompt, put together by a builder, with a value of a type.
    ///
    /// - Parameters:
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - includeSchemaInPrompt: Whether the model is told the type's schema; the response is held to it all the same.
    /// - Throws: what `prompt` throws; ``LanguageModelError`` and its like, see <doc:ErrorHandling>;
    ///   ``GeneratedContent/ParsingError`` if the response is no such value; `CancellationError` when the task is cancelled.
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
    /// Answers a prompt with text.
    ///
    /// - Parameters:
    ///   - contextOptions: How long the model thinks before it answers, if it can.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; `CancellationError` when the task is cancelled.
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
    ///   - contextOptions: How long the model thinks before it answers, if it can.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; `CancellationError` when the task is cancelled.
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

    /// Answers a prompt, put together by a builder, with text.
    ///
    /// - Parameters:
    ///   - contextOptions: How long the model thinks before it answers, if it can.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: what `prompt` throws; ``LanguageModelError`` and its like, see <doc:ErrorHandling>; `CancellationError` when
    ///   the task is cancelled.
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

    /// Answers a prompt with content that a schema describes.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - contextOptions: Whether the model is told the schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError`` if the response
    ///   is no such content; `CancellationError` when the task is cancelled.
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

    /// Answers a prompt, given as a string, with content that a schema describes.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - contextOptions: Whether the model is told the schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError`` if the response
    ///   is no such content; `CancellationError` when the task is cancelled.
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

    /// Answers a prompt, put together by a builder, with content that a schema describes.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - contextOptions: Whether the model is told the schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: what `prompt` throws; ``LanguageModelError`` and its like, see <doc:ErrorHandling>;
    ///   ``GeneratedContent/ParsingError`` if the response is no such content; `CancellationError` when the task is cancelled.
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
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - contextOptions: Whether the model is told the type's schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError`` if the response
    ///   is no such value; `CancellationError` when the task is cancelled.
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
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - contextOptions: Whether the model is told the type's schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: ``LanguageModelError`` and its like, see <doc:ErrorHandling>; ``GeneratedContent/ParsingError`` if the response
    ///   is no such value; `CancellationError` when the task is cancelled.
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

    /// Answers a prompt, put together by a builder, with a value of a type.
    ///
    /// - Parameters:
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - contextOptions: Whether the model is told the type's schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: what `prompt` throws; ``LanguageModelError`` and its like, see <doc:ErrorHandling>;
    ///   ``GeneratedContent/ParsingError`` if the response is no such value; `CancellationError` when the task is cancelled.
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

extension SessionRequest {
    fileprivate func validated<Content: Generable>(as type: Content.Type) -> SessionRequest {
        var request = self
        request.validate = { _ = try Content($0) }
        return request
    }
}

extension Generable {
    /// What a response is held to; nil for plain text.
    static var responseSchema: GenerationSchema? { Self.self == String.self ? nil : generationSchema }
}
