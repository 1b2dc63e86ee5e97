internal import Waiting
public import FoundationModels

// A prompt is a text, a `Prompt`, or another value that can be part of one. Every function calls `answer` or `stream`.

extension Conversation {
    /// Answers a prompt with text. Requests of several tasks are answered in order; the wait ends if the task is cancelled.
    ///
    /// - Parameters:
    ///   - contextOptions: The level of reasoning, for models that support it.
    ///   - metadata: Passed to the model, and stored with the turn.
    /// - Throws: ``ConversationError``, or the errors of the session. It throws
    ///   `LanguageModelSession.Error.concurrentRequests` while tools of another request are running, because such a tool
    ///   may be waiting for this request, and
    ///   `LanguageModelError.contextSizeExceeded` only if the response is longer than the space that a compacted
    ///   context leaves, or if tools have already run.
    @discardableResult
    public nonisolated(nonsending) func respond(
        to prompt: some PromptRepresentable, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(), metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) async throws -> LanguageModelSession.Response<String> {
        try await answer(Request(prompt, options: options, contextOptions: contextOptions, metadata: metadata)) {
            $0.stream($1, generating: String.self)
        }
    }

    /// Answers a prompt, built by a result builder, with text.
    ///
    /// - Throws: The errors of `prompt`, and those of ``respond(to:options:contextOptions:metadata:)``.
    @discardableResult
    public nonisolated(nonsending) func respond(
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<String> {
        try await respond(to: prompt(), options: options, contextOptions: contextOptions, metadata: metadata)
    }

    /// Answers a prompt with content that conforms to a schema.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - includeSchemaInPrompt: Whether the prompt contains the schema; `contextOptions` takes precedence.
    ///   - contextOptions: Whether the prompt contains the schema, and the level of reasoning.
    ///   - metadata: Passed to the model, and stored with the turn.
    /// - Throws: The errors of ``respond(to:options:contextOptions:metadata:)``.
    @discardableResult
    public nonisolated(nonsending) func respond(
        to prompt: some PromptRepresentable, schema: GenerationSchema, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) async throws -> LanguageModelSession.Response<GeneratedContent> {
        let request = Request(
            prompt, schema: schema, includesSchema: includeSchemaInPrompt, options: options, contextOptions: contextOptions,
            metadata: metadata)
        return try await answer(request) { $0.stream($1, schema: schema) }
    }

    /// Answers a prompt, built by a result builder, with content that conforms to a schema.
    ///
    /// - Throws: The errors of `prompt`, and those of ``respond(to:options:contextOptions:metadata:)``.
    @discardableResult
    public nonisolated(nonsending) func respond(
        schema: GenerationSchema, includeSchemaInPrompt: Bool = true, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(), metadata: [String: any ConvertibleToGeneratedContent] = [:],
        @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<GeneratedContent> {
        try await respond(
            to: prompt(), schema: schema, includeSchemaInPrompt: includeSchemaInPrompt, options: options,
            contextOptions: contextOptions, metadata: metadata)
    }

    /// Answers a prompt with a value of a type.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is text without a schema.
    ///   - includeSchemaInPrompt: Whether the prompt contains the type's schema; `contextOptions` takes precedence.
    ///   - contextOptions: Whether the prompt contains the type's schema, and the level of reasoning.
    ///   - metadata: Passed to the model, and stored with the turn.
    /// - Throws: The errors of ``respond(to:options:contextOptions:metadata:)``.
    @discardableResult
    public nonisolated(nonsending) func respond<Content: Generable & Sendable>(
        to prompt: some PromptRepresentable, generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) async throws -> LanguageModelSession.Response<Content> {
        let request = Request(
            prompt, schema: Content.responseSchema, includesSchema: includeSchemaInPrompt, options: options,
            contextOptions: contextOptions, metadata: metadata)
        return try await answer(request) { $0.stream($1, generating: Content.self) }
    }

    /// Answers a prompt, built by a result builder, with a value of a type.
    ///
    /// - Throws: The errors of `prompt`, and those of ``respond(to:options:contextOptions:metadata:)``.
    @discardableResult
    public nonisolated(nonsending) func respond<Content: Generable & Sendable>(
        generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> LanguageModelSession.Response<Content> {
        try await respond(
            to: prompt(), generating: type, includeSchemaInPrompt: includeSchemaInPrompt, options: options,
            contextOptions: contextOptions, metadata: metadata)
    }

    // MARK: - Streams

    /// Answers a prompt with text, as a stream. Prompts are answered in the order of the calls. If the window is exceeded during the
    /// answer, the answer is started again, once.
    ///
    /// The request begins immediately; the errors of ``respond(to:options:contextOptions:metadata:)`` are thrown while the stream is
    /// read.
    ///
    /// - Parameters:
    ///   - contextOptions: The level of reasoning, for models that support it.
    ///   - metadata: Passed to the model, and stored with the turn.
    public nonisolated func streamResponse(
        to prompt: some PromptRepresentable, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(), metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> ResponseStream<String> {
        stream(Request(prompt, options: options, contextOptions: contextOptions, metadata: metadata)) {
            $0.stream($1, generating: String.self)
        }
    }

    /// Answers a prompt, built by a result builder, with text, as a stream.
    ///
    /// - Throws: Only the errors of `prompt`.
    public nonisolated func streamResponse(
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> ResponseStream<String> {
        streamResponse(to: try prompt(), options: options, contextOptions: contextOptions, metadata: metadata)
    }

    /// Answers a prompt with content that conforms to a schema, as a stream.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - includeSchemaInPrompt: Whether the prompt contains the schema; `contextOptions` takes precedence.
    ///   - contextOptions: Whether the prompt contains the schema, and the level of reasoning.
    ///   - metadata: Passed to the model, and stored with the turn.
    public nonisolated func streamResponse(
        to prompt: some PromptRepresentable, schema: GenerationSchema, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> ResponseStream<GeneratedContent> {
        let request = Request(
            prompt, schema: schema, includesSchema: includeSchemaInPrompt, options: options, contextOptions: contextOptions,
            metadata: metadata)
        return stream(request) { $0.stream($1, schema: schema) }
    }

    /// Answers a prompt, built by a result builder, with content that conforms to a schema, as a stream.
    ///
    /// - Throws: Only the errors of `prompt`.
    public nonisolated func streamResponse(
        schema: GenerationSchema, includeSchemaInPrompt: Bool = true, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(), metadata: [String: any ConvertibleToGeneratedContent] = [:],
        @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> ResponseStream<GeneratedContent> {
        streamResponse(
            to: try prompt(), schema: schema, includeSchemaInPrompt: includeSchemaInPrompt, options: options,
            contextOptions: contextOptions, metadata: metadata)
    }

    /// Answers a prompt with a value of a type, as a stream of partial values.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is text without a schema.
    ///   - includeSchemaInPrompt: Whether the prompt contains the type's schema; `contextOptions` takes precedence.
    ///   - contextOptions: Whether the prompt contains the type's schema, and the level of reasoning.
    ///   - metadata: Passed to the model, and stored with the turn.
    public nonisolated func streamResponse<Content: Generable & Sendable>(
        to prompt: some PromptRepresentable, generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> ResponseStream<Content> {
        let request = Request(
            prompt, schema: Content.responseSchema, includesSchema: includeSchemaInPrompt, options: options,
            contextOptions: contextOptions, metadata: metadata)
        return stream(request) { $0.stream($1, generating: Content.self) }
    }

    /// Answers a prompt, built by a result builder, with a value of a type, as a stream of partial values.
    ///
    /// - Throws: Only the errors of `prompt`.
    public nonisolated func streamResponse<Content: Generable & Sendable>(
        generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> ResponseStream<Content> {
        streamResponse(
            to: try prompt(), generating: type, includeSchemaInPrompt: includeSchemaInPrompt, options: options,
            contextOptions: contextOptions, metadata: metadata)
    }

    /// Sends a request in the background.
    private nonisolated func stream<Content>(
        _ request: Request, _ send: @escaping Sender<Content>
    ) -> ResponseStream<Content> {
        let (snapshots, continuation) = AsyncThrowingStream.makeStream(
            of: PartialAnswer.self, throwing: (any Error).self, bufferingPolicy: .bufferingNewest(1))
        // The request has its place before the function returns, so that a later one is not answered first.
        let place = lock.reserve()
        let answer = Task {
            do {
                let response = try await self.answer(request, at: place, showing: { continuation.yield($0) }, send)
                continuation.finish()
                return response
            } catch {
                continuation.finish(throwing: error)
                throw error
            }
        }
        continuation.onTermination = { _ in answer.cancel() }
        return ResponseStream(snapshots: snapshots, answer: answer)
    }
}

extension LanguageModelSession {
    fileprivate func stream<Content>(
        _ message: Message, generating type: Content.Type
    ) -> sending LanguageModelSession.ResponseStream<Content> {
        streamResponse(
            to: message.prompt, generating: type, options: message.request.options,
            contextOptions: message.request.contextOptions, metadata: message.request.metadata)
    }

    fileprivate func stream(
        _ message: Message, schema: GenerationSchema
    ) -> sending LanguageModelSession.ResponseStream<GeneratedContent> {
        streamResponse(
            to: message.prompt, schema: schema, options: message.request.options,
            contextOptions: message.request.contextOptions, metadata: message.request.metadata)
    }
}

extension Generable {
    /// The schema of a response; nil for text, for which none is sent.
    fileprivate static var responseSchema: GenerationSchema? { Self.self == String.self ? nil : generationSchema }
}
