public import Foundation
public import FoundationModels
public import TokenCounts
import ModelPrompts
import TextSearch

/// A text larger than any window, which is summarized or searched for values in chunks.
///
/// ```swift
/// let book = LongDocument(contentsOf: url)
/// let summary = try await book.summary(in: 300) { print($0) }
/// ```
///
/// The text is read in pieces: a book of a thousand pages needs no more memory than a letter.
public struct LongDocument: Sendable {
    private let reader: DocumentReader

    /// How the results of the chunks are combined.
    public enum Strategy: String, Sendable, Codable {
        /// Each chunk is processed alone; the results are merged in groups until one is left.
        case mapReduce
        /// Each chunk is processed together with the summary of all previous chunks.
        case refine
    }

    /// The progress of the work.
    public struct Progress: Sendable {
        /// Number of processed chunks.
        public var chunks: Int
        /// Tokens of the processed chunks, including overlaps.
        public var tokens: Int
        /// The newest summary. With ``Strategy/refine`` it covers all chunks so far.
        public var summary: String
    }

    /// What is said of the requests of the work while it is done.
    public enum Notice: Sendable {
        /// The model has answered a request; the usage says how.
        case answered(LanguageModelSession.Usage)
        /// The model has rejected a text, and the work goes on without it.
        case rejected(Rejection)
    }

    /// A text that the model may not or does not answer. It would be rejected each time.
    public struct Rejection: Sendable {
        /// The number of the chunk, from 1; nil for results of several chunks, of which the longest is kept.
        public var chunk: Int?
        /// The text: the chunk, or a part of it.
        public var text: String
        /// A violation of the guardrails, a refusal, or a language that the model does not support.
        public var error: LanguageModelError
    }

    /// Creates a document from a file of UTF-8 text. The file is read when the document is processed.
    public init(contentsOf url: URL) { reader = DocumentReader(.file(url)) }

    /// Creates a document from a text in memory.
    public init(text: String) { reader = DocumentReader(.text(text)) }

    // MARK: - Chunks

    /// Calls the closure with chunks of at most this many tokens, cut between sentences. A chunk is read after the
    /// closure has processed the previous one.
    ///
    /// - Parameters:
    ///   - overlap: Number of tokens at the end of a chunk that the next chunk repeats.
    ///   - body: Receives a chunk and its number of tokens.
    /// - Throws: ``LongDocumentError``, `CancellationError`, or what `body` throws.
    public func forEachChunk(
        of tokens: Int, overlap: Int = 0, model: some TokenCounting = SystemLanguageModel.default,
        _ body: (_ chunk: String, _ tokens: Int) async throws -> Void
    ) async throws {
        // Counts the text next to another text, so that the tokens of the template around a message are not included.
        func entries(_ text: String) -> [Transcript.Entry] {
            [.instructions(.init(segments: [.text(.init(content: "x\n" + text))], toolDefinitions: []))]
        }
        let around = try await model.tokenCount(for: entries("x")) - 1
        var chunker = TextChunker(limit: tokens, overlap: overlap) { text in
            try await model.tokenCount(for: entries(text)) - around
        }
        func give(_ chunks: [(text: String, tokens: Int)]) async throws {
            for chunk in chunks {
                try Task.checkCancellation()
                try await body(chunk.text, chunk.tokens)
            }
        }
        try await reader.forEachPiece { try await give(chunker.append($0)) }
        try await give(chunker.finish())
    }

    // MARK: - Summaries

    /// Summarizes the whole document.
    ///
    /// - Parameters:
    ///   - tokens: Maximum number of tokens of the summary.
    ///   - instructions: The instructions of the model; nil for a text that works with small models.
    ///   - checkpoint: A file for intermediate results. The same call resumes from it. It is removed when the work is
    ///     done.
    ///   - progress: Called after each chunk.
    ///   - notice: Called after each request. Texts that the model rejects are then left out, and told again when the work is resumed;
    ///     without a closure, the first of them is an error, also then. If all chunks are rejected, the last error is thrown.
    /// - Throws: ``LongDocumentError``, `CancellationError`, or what sessions throw.
    public func summary(
        in tokens: Int = 300, strategy: Strategy = .mapReduce,
        model: some TokenCounting = SystemLanguageModel.default, instructions: String? = nil,
        checkpoint: URL? = nil, progress: @Sendable (Progress) -> Void = { _ in }, notice: (@Sendable (Notice) -> Void)? = nil
    ) async throws -> String {
        try await combined(nil, tokens, strategy, model, instructions, checkpoint, progress, notice)
    }

    /// Does a task with each chunk and combines the results: “List the dates and what happened.”
    ///
    /// The task is put after the text of each chunk, and after the results of several chunks. A question about a detail is better
    /// answered from the passages that a search finds.
    ///
    /// - Parameters:
    ///   - task: What to do, as for a text that fits the window.
    ///   - tokens: Maximum number of tokens of the result.
    ///   - instructions: The instructions of the model; nil for a text that works with small models.
    ///   - checkpoint: A file for intermediate results. The same call resumes from it. It is removed when the work is
    ///     done.
    ///   - progress: Called after each chunk.
    ///   - notice: Called after each request. Texts that the model rejects are then left out, and told again when the work is resumed;
    ///     without a closure, the first of them is an error, also then. If all chunks are rejected, the last error is thrown.
    /// - Throws: ``LongDocumentError``, `CancellationError`, or what sessions throw.
    public func result(
        of task: String, in tokens: Int = 300, strategy: Strategy = .mapReduce,
        model: some TokenCounting = SystemLanguageModel.default, instructions: String? = nil,
        checkpoint: URL? = nil, progress: @Sendable (Progress) -> Void = { _ in }, notice: (@Sendable (Notice) -> Void)? = nil
    ) async throws -> String {
        try await combined(task, tokens, strategy, model, instructions, checkpoint, progress, notice)
    }

    private func combined(
        _ task: String?, _ tokens: Int, _ strategy: Strategy, _ model: some TokenCounting, _ instructions: String?,
        _ checkpoint: URL?, _ progress: @Sendable (Progress) -> Void, _ notice: (@Sendable (Notice) -> Void)?
    ) async throws -> String {
        let tokens = max(1, min(tokens, model.contextSize))
        let instructions = instructions ?? ModelPrompts.assistant
        let writer = SummaryWriter(model: model, instructions: instructions, limit: tokens, task: task, notice: notice)
        let room = try await writer.room(
            carrying: strategy == .refine ? tokens : 0, atLeast: strategy == .refine ? 32 : 2 * tokens + 16)
        let work = Checkpoint.Work(
            document: reader.identity, model: try await Self.identity(of: model), kind: task ?? "summary",
            strategy: strategy.rawValue,
            limit: tokens, room: room, instructions: instructions
        )
        var state = try Checkpoint.read(checkpoint, work, notice)
        var index = 0
        try await forEachChunk(of: room, overlap: min(64, room / 10), model: model) { chunk, tokens in
            index += 1
            guard index > state.chunks else { return }
            let carried = strategy == .refine ? state.parts.last?.text ?? "" : ""
            var summary = ""
            do { summary = try await writer.summary(of: chunk, after: carried) } catch {
                try state.leaveOut(chunk, chunk: index, error, notice)
            }
            // An empty summary of a chunk is ignored, so that it does not replace the previous summary.
            if !summary.isEmpty {
                if strategy == .refine { state.parts = [] }
                state.parts.append(.init(level: 0, text: summary))
                if strategy == .mapReduce { try await writer.reduce(&state, room: room, isLast: false) }
            }
            state.chunks = index
            state.tokens += tokens
            try state.write(checkpoint)
            progress(Progress(chunks: state.chunks, tokens: state.tokens, summary: state.parts.last?.text ?? ""))
        }
        try Self.checkResumed(state, chunks: index)
        try await writer.reduce(&state, room: room, isLast: true)
        Checkpoint.remove(checkpoint)
        try state.checkResult()
        return state.parts.last?.text ?? ""
    }

    // MARK: - Values

    /// Extracts values from the chunks and merges them.
    ///
    /// - Parameters:
    ///   - instructions: States what to extract.
    ///   - responseTokens: Maximum number of tokens of the value of one chunk.
    ///   - checkpoint: A file for intermediate results, as for
    ///     ``summary(in:strategy:model:instructions:checkpoint:progress:notice:)``.
    ///   - progress: Called after each chunk with the number of processed chunks.
    ///   - notice: Called after each request, as for
    ///     ``summary(in:strategy:model:instructions:checkpoint:progress:notice:)``.
    ///   - merge: Merges the value of all previous chunks with the value of a chunk.
    /// - Returns: Nil for an empty document.
    /// - Throws: ``LongDocumentError``, `CancellationError`, or what sessions or `merge` throw.
    public func extract<Value: Generable & Sendable>(
        _ type: Value.Type, instructions: String, model: some TokenCounting = SystemLanguageModel.default,
        responseTokens: Int = 400, checkpoint: URL? = nil, progress: @Sendable (Int) -> Void = { _ in },
        notice: (@Sendable (Notice) -> Void)? = nil, merging merge: (Value, Value) throws -> Value
    ) async throws -> Value? {
        try await extract(
            schema: Value.generationSchema, instructions: instructions, model: model, responseTokens: responseTokens,
            checkpoint: checkpoint, progress: progress, notice: notice
        ) { try merge(Value($0), Value($1)).generatedContent }.map { try Value($0) }
    }

    /// Extracts values of a schema that is known only when the program runs.
    ///
    /// - Parameters: As for ``extract(_:instructions:model:responseTokens:checkpoint:progress:notice:merging:)``.
    /// - Returns: Nil for an empty document.
    /// - Throws: ``LongDocumentError``, `CancellationError`, or what sessions or `merge` throw.
    public func extract(
        schema: GenerationSchema, instructions: String, model: some TokenCounting = SystemLanguageModel.default,
        responseTokens: Int = 400, checkpoint: URL? = nil, progress: @Sendable (Int) -> Void = { _ in },
        notice: (@Sendable (Notice) -> Void)? = nil,
        merging merge: (GeneratedContent, GeneratedContent) throws -> GeneratedContent
    ) async throws -> GeneratedContent? {
        let responseTokens = max(1, min(responseTokens, model.contextSize))
        let fixed = try await model.tokenCount(for: [
            .instructions(.init(segments: [.text(.init(content: instructions))], toolDefinitions: [])),
            .prompt(.init(segments: [.text(.init(content: "x"))], responseFormat: .init(schema: schema))),
        ])
        // Joined texts may have a few more tokens than the sum of the parts.
        let room = model.contextSize - fixed - responseTokens - 8
        guard room >= 32 else {
            throw LongDocumentError.windowTooSmall(contextSize: model.contextSize, needed: fixed + responseTokens)
        }
        let work = Checkpoint.Work(
            document: reader.identity, model: try await Self.identity(of: model), kind: "extract \(schema.debugDescription)",
            strategy: "",
            limit: responseTokens,
            room: room, instructions: instructions)
        var state = try Checkpoint.read(checkpoint, work, notice)
        var value = try state.parts.first.map { try GeneratedContent(json: $0.text) }
        let finder = ValueFinder(model: model, schema: schema, instructions: instructions, limit: responseTokens, notice: notice)
        var index = 0
        try await forEachChunk(of: room, overlap: min(64, room / 10), model: model) { chunk, _ in
            index += 1
            guard index > state.chunks else { return }
            let values = try await finder.values(in: chunk) { try state.leaveOut($0, chunk: index, $1, notice) }
            for part in values { value = try value.map { try merge($0, part) } ?? part }
            state.parts = value.map { [.init(level: 0, text: $0.jsonString)] } ?? []
            state.chunks = index
            try state.write(checkpoint)
            progress(state.chunks)
        }
        try Self.checkResumed(state, chunks: index)
        Checkpoint.remove(checkpoint)
        try state.checkResult()
        return value
    }

    /// Identifies a model by its type, its window and the tokens of a sample text: another model may cut the document
    /// into different chunks.
    private static func identity(of model: some TokenCounting) async throws -> String {
        let sample = "The 3 quick brown foxes — über den Zaun, 狐は跳ぶ, лисица, 🦊 {\"a\": 1.5e3}"
        let tokens = try await model.tokenCount(for: [.prompt(.init(segments: [.text(.init(content: sample))]))])
        return "\(type(of: model)) \(model.contextSize) \(tokens)"
    }

    private static func checkResumed(_ state: Checkpoint, chunks: Int) throws {
        if chunks < state.chunks {
            throw LongDocumentError.checkpoint(reason: "the document has fewer chunks than were done; it has changed.")
        }
    }
}

/// Extracts values from chunks, each in a separate session.
private struct ValueFinder {
    let model: any TokenCounting
    let schema: GenerationSchema
    let instructions: String
    /// Maximum number of tokens of a value.
    let limit: Int
    let notice: (@Sendable (LongDocument.Notice) -> Void)?

    /// Usually one value. If the value does not fit into its token limit, one for each half of the text.
    ///
    /// - Parameter leaveOut: Called with a text and its error; it throws the error unless the text is to be left out. What the other half
    ///   has is kept.
    func values(in text: String, leavingOut leaveOut: (String, any Error) throws -> Void) async throws -> [GeneratedContent] {
        let session = LanguageModelSession(model: model, instructions: instructions)
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: limit)
        do {
            let response = try await session.respond(to: text, schema: schema, options: options)
            notice?(.answered(response.usage))
            return [response.content]
        } catch let error where error is GeneratedContent.ParsingError || error.isOverflow {
            let sentences = TextUnits.sentences(of: text)
            guard sentences.count > 1 else { throw error }
            let middle = sentences.count / 2
            return try await values(in: sentences[..<middle].joined(), leavingOut: leaveOut)
                + values(in: sentences[middle...].joined(), leavingOut: leaveOut)
        } catch {
            try leaveOut(text, error)
            return []
        }
    }
}
