// The overloads: text, content with a schema, or a value of a type; from a prompt, a string, or a builder.

extension LanguageModelSession {
    /// Answers a prompt with text, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    public func streamResponse(
        to prompt: Prompt, options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<String> {
        stream(
            SessionRequest(
                prompt: prompt, options: options))
    }

    /// Answers a prompt, given as a string, with text, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    @_disfavoredOverload
    public func streamResponse(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<String> {
        stream(
            SessionRequest(
                prompt: Prompt(prompt), options: options))
    }

    /// Answers a prompt, built by a result builder, with text, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Throws: Only errors that `prompt` throws.
    public func streamResponse(
        options: GenerationOptions = GenerationOptions(), @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending LanguageModelSession.ResponseStream<String> {
        try stream(
            SessionRequest(
                prompt: prompt(), options: options))
    }

    /// Answers a prompt with content that conforms to a schema, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - includeSchemaInPrompt: Whether the prompt contains the schema. The schema constrains the response in either
    ///     case.
    public func streamResponse(
        to prompt: Prompt, schema: GenerationSchema, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<GeneratedContent> {
        stream(
            SessionRequest(
                prompt: prompt, schema: schema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, given as a string, with content that conforms to a schema, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - includeSchemaInPrompt: Whether the prompt contains the schema. The schema constrains the response in either
    ///     case.
    @_disfavoredOverload
    public func streamResponse(
        to prompt: String, schema: GenerationSchema, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<GeneratedContent> {
        stream(
            SessionRequest(
                prompt: Prompt(prompt), schema: schema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, built by a result builder, with content that conforms to a schema, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - includeSchemaInPrompt: Whether the prompt contains the schema. The schema constrains the response in either
    ///     case.
    /// - Throws: Only errors that `prompt` throws.
    public func streamResponse(
        schema: GenerationSchema, includeSchemaInPrompt: Bool = true, options: GenerationOptions = GenerationOptions(),
        @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending LanguageModelSession.ResponseStream<GeneratedContent> {
        try stream(
            SessionRequest(
                prompt: prompt(), schema: schema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt with a value of a type, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - includeSchemaInPrompt: Whether the prompt contains the type's schema. The schema constrains the response in
    ///     either case.
    public func streamResponse<Content>(
        to prompt: Prompt, generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<Content> where Content: Generable {
        stream(
            SessionRequest(
                prompt: prompt, schema: Content.responseSchema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, given as a string, with a value of a type, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - includeSchemaInPrompt: Whether the prompt contains the type's schema. The schema constrains the response in
    ///     either case.
    @_disfavoredOverload
    public func streamResponse<Content>(
        to prompt: String, generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<Content> where Content: Generable {
        stream(
            SessionRequest(
                prompt: Prompt(prompt), schema: Content.responseSchema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, built by a result builder, with a value of a type, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - includeSchemaInPrompt: Whether the prompt contains the type's schema. The schema constrains the response in
    ///     either case.
    /// - Throws: Only errors that `prompt` throws.
    public func streamResponse<Content>(
        generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions(), @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending LanguageModelSession.ResponseStream<Content> where Content: Generable {
        try stream(
            SessionRequest(
                prompt: prompt(), schema: Content.responseSchema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }
}

// The same overloads with context options, and metadata for the model.

extension LanguageModelSession {
    /// Answers a prompt with text, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - contextOptions: The level of reasoning, for models that support it.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    public func streamResponse(
        to prompt: Prompt, options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> sending LanguageModelSession.ResponseStream<String> {
        stream(
            SessionRequest(
                prompt: prompt, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, given as a string, with text, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - contextOptions: The level of reasoning, for models that support it.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    @_disfavoredOverload
    public func streamResponse(
        to prompt: String, options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> sending LanguageModelSession.ResponseStream<String> {
        stream(
            SessionRequest(
                prompt: Prompt(prompt), options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, built by a result builder, with text, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - contextOptions: The level of reasoning, for models that support it.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: Only errors that `prompt` throws.
    public func streamResponse(
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending LanguageModelSession.ResponseStream<String> {
        try stream(
            SessionRequest(
                prompt: prompt(), options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt with content that conforms to a schema, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - contextOptions: Whether the prompt contains the schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    @_disfavoredOverload
    public func streamResponse(
        to prompt: Prompt, schema: GenerationSchema, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> sending LanguageModelSession.ResponseStream<GeneratedContent> {
        stream(
            SessionRequest(
                prompt: prompt, schema: schema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, given as a string, with content that conforms to a schema, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - contextOptions: Whether the prompt contains the schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    @_disfavoredOverload
    public func streamResponse(
        to prompt: String, schema: GenerationSchema, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> sending LanguageModelSession.ResponseStream<GeneratedContent> {
        stream(
            SessionRequest(
                prompt: Prompt(prompt), schema: schema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, built by a result builder, with content that conforms to a schema, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: The schema that constrains the response, token by token.
    ///   - contextOptions: Whether the prompt contains the schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: Only errors that `prompt` throws.
    @_disfavoredOverload
    public func streamResponse(
        schema: GenerationSchema, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending LanguageModelSession.ResponseStream<GeneratedContent> {
        try stream(
            SessionRequest(
                prompt: prompt(), schema: schema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt with a value of a type, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - contextOptions: Whether the prompt contains the type's schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    public func streamResponse<Content>(
        to prompt: Prompt, generating type: Content.Type = Content.self, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> sending LanguageModelSession.ResponseStream<Content> where Content: Generable {
        stream(
            SessionRequest(
                prompt: prompt, schema: Content.responseSchema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, given as a string, with a value of a type, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - contextOptions: Whether the prompt contains the type's schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    @_disfavoredOverload
    public func streamResponse<Content>(
        to prompt: String, generating type: Content.Type = Content.self, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> sending LanguageModelSession.ResponseStream<Content> where Content: Generable {
        stream(
            SessionRequest(
                prompt: Prompt(prompt), schema: Content.responseSchema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, built by a result builder, with a value of a type, as a stream.
    ///
    /// The request starts immediately; its errors are thrown while the stream is read.
    ///
    /// - Parameters:
    ///   - type: The type to generate. A `String` is plain text without constraints.
    ///   - contextOptions: Whether the prompt contains the type's schema, and the level of reasoning.
    ///   - metadata: Passed to the model's executor and stored in the transcript. The built-in model ignores it.
    /// - Throws: Only errors that `prompt` throws.
    public func streamResponse<Content>(
        generating type: Content.Type = Content.self, options: GenerationOptions = GenerationOptions(),
        contextOptions: ContextOptions = ContextOptions(includeSchemaInPrompt: true),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending LanguageModelSession.ResponseStream<Content> where Content: Generable {
        try stream(
            SessionRequest(
                prompt: prompt(), schema: Content.responseSchema, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }
}
