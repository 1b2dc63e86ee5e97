// Text, content that a schema describes, or a value of a type; a prompt, a string, or a builder.

extension LanguageModelSession {
    /// Answers a prompt with text, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    public func streamResponse(
        to prompt: Prompt, options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<String> {
        stream(
            SessionRequest(
                prompt: prompt, options: options))
    }

    /// Answers a prompt, given as a string, with text, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    @_disfavoredOverload
    public func streamResponse(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<String> {
        stream(
            SessionRequest(
                prompt: Prompt(prompt), options: options))
    }

    /// Answers a prompt, put together by a builder, with text, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Throws: what `prompt` throws, and nothing else.
    public func streamResponse(
        options: GenerationOptions = GenerationOptions(), @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending LanguageModelSession.ResponseStream<String> {
        try stream(
            SessionRequest(
                prompt: prompt(), options: options))
    }

    /// Answers a prompt with content that a schema describes, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - includeSchemaInPrompt: Whether the model is told the schema; the response is held to it all the same.
    public func streamResponse(
        to prompt: Prompt, schema: GenerationSchema, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<GeneratedContent> {
        stream(
            SessionRequest(
                prompt: prompt, schema: schema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, given as a string, with content that a schema describes, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - includeSchemaInPrompt: Whether the model is told the schema; the response is held to it all the same.
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

    /// Answers a prompt, put together by a builder, with content that a schema describes, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - includeSchemaInPrompt: Whether the model is told the schema; the response is held to it all the same.
    /// - Throws: what `prompt` throws, and nothing else.
    public func streamResponse(
        schema: GenerationSchema, includeSchemaInPrompt: Bool = true, options: GenerationOptions = GenerationOptions(),
        @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending LanguageModelSession.ResponseStream<GeneratedContent> {
        try stream(
            SessionRequest(
                prompt: prompt(), schema: schema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt with a value of a type, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - includeSchemaInPrompt: Whether the model is told the type's schema; the response is held to it all the same.
    public func streamResponse<Content>(
        to prompt: Prompt, generating type: Content.Type = Content.self, includeSchemaInPrompt: Bool = true,
        options: GenerationOptions = GenerationOptions()
    ) -> sending LanguageModelSession.ResponseStream<Content> where Content: Generable {
        stream(
            SessionRequest(
                prompt: prompt, schema: Content.responseSchema, options: options,
                contextOptions: ContextOptions(includeSchemaInPrompt: includeSchemaInPrompt)))
    }

    /// Answers a prompt, given as a string, with a value of a type, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - includeSchemaInPrompt: Whether the model is told the type's schema; the response is held to it all the same.
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

    /// Answers a prompt, put together by a builder, with a value of a type, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - includeSchemaInPrompt: Whether the model is told the type's schema; the response is held to it all the same.
    /// - Throws: what `prompt` throws, and nothing else.
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

// The same with options about what the prompt contains, and metadata for the model.

extension LanguageModelSession {
    /// Answers a prompt with text, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - contextOptions: How long the model thinks before it answers, if it can.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    public func streamResponse(
        to prompt: Prompt, options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) -> sending LanguageModelSession.ResponseStream<String> {
        stream(
            SessionRequest(
                prompt: prompt, options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt, given as a string, with text, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - contextOptions: How long the model thinks before it answers, if it can.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
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

    /// Answers a prompt, put together by a builder, with text, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - contextOptions: How long the model thinks before it answers, if it can.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: what `prompt` throws, and nothing else.
    public func streamResponse(
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:], @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending LanguageModelSession.ResponseStream<String> {
        try stream(
            SessionRequest(
                prompt: prompt(), options: options, contextOptions: contextOptions,
                metadata: metadata.mapValues(\.generatedContent)))
    }

    /// Answers a prompt with content that a schema describes, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - contextOptions: Whether the model is told the schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
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

    /// Answers a prompt, given as a string, with content that a schema describes, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - contextOptions: Whether the model is told the schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
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

    /// Answers a prompt, put together by a builder, with content that a schema describes, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - schema: What the response is held to, token by token.
    ///   - contextOptions: Whether the model is told the schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: what `prompt` throws, and nothing else.
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

    /// Answers a prompt with a value of a type, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - contextOptions: Whether the model is told the type's schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
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

    /// Answers a prompt, given as a string, with a value of a type, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - contextOptions: Whether the model is told the type's schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
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

    /// Answers a prompt, put together by a builder, with a value of a type, piece by piece.
    ///
    /// The request begins at once; its errors come while the stream is read.
    ///
    /// - Parameters:
    ///   - type: What is generated. A `String` is plain text, held to nothing.
    ///   - contextOptions: Whether the model is told the type's schema, and how long it thinks before it answers.
    ///   - metadata: Given to the model's executor and kept in the transcript. The built-in model does not read it.
    /// - Throws: what `prompt` throws, and nothing else.
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
