public import Foundation
public import FoundationModels

/// A text larger than any window: summarised, or searched for values, chunk by chunk.
///
/// ```swift
/// let book = LongDocument(contentsOf: url)
/// let summary = try await book.summary(in: 300) { print($0) }
/// ```
///
/// The text is read piece by piece: a book of a thousand pages needs no more memory than a letter.
public struct LongDocument: Sendable {
    private let reader: DocumentReader

    /// How chunks become one result.
    public enum Strategy: String, Sendable, Codable {
        /// Each chunk is worked on alone; the results are put together in groups until one is left.
        case mapReduce
        /// Each chunk is worked on with the summary of all before it.
        case refine
    }

    /// How far the work is.
    public struct Progress: Sendable {
        /// Chunks that are done.
        public var chunks: Int
        /// Tokens of the text that are done.
        public var tokens: Int
        /// The result so far.
        public var summary: String
    }

    /// A document in a file of UTF-8 text. It is read when it is worked on.
    public init(contentsOf url: URL) { reader = DocumentReader(.file(url)) }

    /// A document in memory.
    public init(text: String) { reader = DocumentReader(.text(text)) }

    // MARK: - Chunks

    /// The document in chunks of at most so many tokens, cut between sentences.
    ///
    /// - Parameter overlap: Tokens that a chunk repeats from the one before it.
    public func chunks(
        of tokens: Int, overlap: Int = 0, model: some WindowedLanguageModel = SystemLanguageModel.default
    ) -> AsyncThrowingStream<String, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    try await self.forEachChunk(limit: tokens, overlap: overlap, model) { chunk, _ in
                        if case .terminated = continuation.yield(chunk) { throw CancellationError() }
                    }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    private func forEachChunk(
        limit: Int, overlap: Int, _ model: any WindowedLanguageModel, _ body: (String, Int) async throws -> Void
    ) async throws {
        // Beside a text, so that what the template adds around a message does not count.
        func entries(_ text: String) -> [Transcript.Entry] {
            [.instructions(.init(segments: [.text(.init(content: "x\n" + text))], toolDefinitions: []))]
        }
        let around = try await model.tokenCount(for: entries("x")) - 1
        var chunker = TextChunker(limit: limit, overlap: overlap) { text in
            try await model.tokenCount(for: entries(text)) - around
        }
        var index = 0
        func give(_ chunks: [String]) async throws {
            for chunk in chunks {
                try Task.checkCancellation()
                try await body(chunk, index)
                index += 1
            }
        }
        try await reader.forEachPiece { try await give(chunker.append($0)) }
        try await give(chunker.finish())
    }

    // MARK: - Summaries

    /// A summary of the whole document.
    ///
    /// - Parameters:
    ///   - tokens: Tokens that the summary may have.
    ///   - instructions: What the model is told; nil for a text that works with small models.
    ///   - checkpoint: A file in which unfinished work is kept: the same call goes on from it. Removed when the work is done.
    ///   - progress: Told after each chunk.
    /// - Throws: ``LongDocumentError``, `CancellationError`, or what sessions throw.
    public func summary(
        in tokens: Int = 300, strategy: Strategy = .mapReduce,
        model: some WindowedLanguageModel = SystemLanguageModel.default, instructions: String? = nil,
        checkpoint: URL? = nil, progress: @Sendable (Progress) -> Void = { _ in }
    ) async throws -> String {
        let told = instructions ?? "You summarise texts. Write short plain sentences with the names, numbers and events."
        let writer = SummaryWriter(model: model, instructions: told, limit: tokens)
        let room = try await writer.room(
            carrying: strategy == .refine ? tokens : 0, atLeast: strategy == .refine ? 32 : 2 * tokens + 16)
        let work = Checkpoint.Work(
            document: reader.identity, kind: "summary", strategy: strategy.rawValue, limit: tokens, room: room, instructions: told
        )
        var state = try Checkpoint.read(checkpoint, work) ?? Checkpoint(work: work)
        let fresh = state.chunks
        try await forEachChunk(limit: room, overlap: min(64, room / 10), model) { chunk, index in
            guard index >= fresh else { return }
            switch strategy {
            case .refine:
                let carried = state.parts.last?.text ?? ""
                state.parts = [.init(level: 0, text: try await writer.summary(of: chunk, after: carried))]
            case .mapReduce:
                state.parts.append(.init(level: 0, text: try await writer.summary(of: chunk, after: "")))
                try await writer.reduce(&state.parts, room: room, isLast: false)
            }
            state.chunks = index + 1
            state.tokens += try await writer.count(chunk)
            try state.write(checkpoint)
            progress(Progress(chunks: state.chunks, tokens: state.tokens, summary: state.parts.last?.text ?? ""))
        }
        try await writer.reduce(&state.parts, room: room, isLast: true)
        Checkpoint.remove(checkpoint)
        return state.parts.last?.text ?? ""
    }

    // MARK: - Values

    /// Values found in the chunks, put together.
    ///
    /// - Parameters:
    ///   - instructions: What to look for.
    ///   - responseTokens: Tokens that the value of one chunk may have.
    ///   - checkpoint: As for summaries.
    ///   - merge: Puts the value of a chunk to that of all before it.
    /// - Returns: Nil for an empty document.
    public func extract<Value: Generable & Sendable>(
        _ type: Value.Type, instructions: String, model: some WindowedLanguageModel = SystemLanguageModel.default,
        responseTokens: Int = 400, checkpoint: URL? = nil, progress: @Sendable (Int) -> Void = { _ in },
        merging merge: (Value, Value) throws -> Value
    ) async throws -> Value? {
        let schema = Value.generationSchema
        let fixed = try await model.tokenCount(for: [
            .instructions(.init(segments: [.text(.init(content: instructions))], toolDefinitions: [])),
            .prompt(.init(segments: [.text(.init(content: "x"))], responseFormat: .init(schema: schema))),
        ])
        let room = model.contextSize - fixed - responseTokens
        guard room >= 32 else {
            throw LongDocumentError.windowTooSmall(contextSize: model.contextSize, needed: fixed + responseTokens)
        }
        let work = Checkpoint.Work(
            document: reader.identity, kind: "extract \(schema.debugDescription)", strategy: "", limit: responseTokens,
            room: room, instructions: instructions)
        var state = try Checkpoint.read(checkpoint, work) ?? Checkpoint(work: work)
        var value = try state.parts.first.map { try Value(GeneratedContent(json: $0.text)) }
        let fresh = state.chunks
        try await forEachChunk(limit: room, overlap: min(64, room / 10), model) { chunk, index in
            guard index >= fresh else { return }
            let session = LanguageModelSession(model: model, instructions: instructions)
            let found = try await session.respond(
                to: chunk, generating: type,
                options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: responseTokens))
            value = try value.map { try merge($0, found.content) } ?? found.content
            state.parts = value.map { [.init(level: 0, text: $0.generatedContent.jsonString)] } ?? []
            state.chunks = index + 1
            try state.write(checkpoint)
            progress(state.chunks)
        }
        Checkpoint.remove(checkpoint)
        return value
    }
}
