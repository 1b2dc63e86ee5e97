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
        /// Tokens of the chunks that are done, with what they repeat.
        public var tokens: Int
        /// The result so far.
        public var summary: String
    }

    /// A document in a file of UTF-8 text. It is read when it is worked on.
    public init(contentsOf url: URL) { reader = DocumentReader(.file(url)) }

    /// A document in memory.
    public init(text: String) { reader = DocumentReader(.text(text)) }

    // MARK: - Chunks

    /// Gives the document in chunks of at most so many tokens, cut between sentences. The next one is read when the one
    /// before it has been dealt with.
    ///
    /// - Parameters:
    ///   - overlap: Tokens that a chunk repeats from the one before it.
    ///   - body: Takes a chunk and its tokens.
    /// - Throws: ``LongDocumentError``, `CancellationError`, or what `body` throws.
    public func forEachChunk(
        of tokens: Int, overlap: Int = 0, model: some WindowedLanguageModel = SystemLanguageModel.default,
        _ body: (_ chunk: String, _ tokens: Int) async throws -> Void
    ) async throws {
        // Beside a text, so that what the template adds around a message does not count.
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

    /// A summary of the whole document.
    ///
    /// - Parameters:
    ///   - tokens: Tokens that the summary may have.
    ///   - instructions: What the model is told; nil for a text that works with small models.
    ///   - checkpoint: A file in which unfinished work is kept: the same call goes on from it. Removed when the work is
    ///     done.
    ///   - progress: Told after each chunk.
    /// - Throws: ``LongDocumentError``, `CancellationError`, or what sessions throw.
    public func summary(
        in tokens: Int = 300, strategy: Strategy = .mapReduce,
        model: some WindowedLanguageModel = SystemLanguageModel.default, instructions: String? = nil,
        checkpoint: URL? = nil, progress: @Sendable (Progress) -> Void = { _ in }
    ) async throws -> String {
        let tokens = max(1, min(tokens, model.contextSize))
        let told = instructions ?? "You summarise texts. Write short plain sentences with the names, numbers and events."
        let writer = SummaryWriter(model: model, instructions: told, limit: tokens)
        let room = try await writer.room(
            carrying: strategy == .refine ? tokens : 0, atLeast: strategy == .refine ? 32 : 2 * tokens + 16)
        let work = Checkpoint.Work(
            document: reader.identity, model: try await Self.identity(of: model), kind: "summary", strategy: strategy.rawValue,
            limit: tokens, room: room, instructions: told
        )
        var state = try Checkpoint.read(checkpoint, work) ?? Checkpoint(work: work)
        var index = 0
        try await forEachChunk(of: room, overlap: min(64, room / 10), model: model) { chunk, tokens in
            index += 1
            guard index > state.chunks else { return }
            let carried = strategy == .refine ? state.parts.last?.text ?? "" : ""
            let summary = try await writer.summary(of: chunk, after: carried)
            // A chunk about which the model says nothing adds nothing: it does not take away what was there.
            if !summary.isEmpty {
                if strategy == .refine { state.parts = [] }
                state.parts.append(.init(level: 0, text: summary))
                if strategy == .mapReduce { try await writer.reduce(&state.parts, room: room, isLast: false) }
            }
            state.chunks = index
            state.tokens += tokens
            try state.write(checkpoint)
            progress(Progress(chunks: state.chunks, tokens: state.tokens, summary: state.parts.last?.text ?? ""))
        }
        try Self.checkResumed(state, chunks: index)
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
        let responseTokens = max(1, min(responseTokens, model.contextSize))
        let schema = Value.generationSchema
        let fixed = try await model.tokenCount(for: [
            .instructions(.init(segments: [.text(.init(content: instructions))], toolDefinitions: [])),
            .prompt(.init(segments: [.text(.init(content: "x"))], responseFormat: .init(schema: schema))),
        ])
        // Joins of texts may cost a few tokens more than the texts do.
        let room = model.contextSize - fixed - responseTokens - 8
        guard room >= 32 else {
            throw LongDocumentError.windowTooSmall(contextSize: model.contextSize, needed: fixed + responseTokens)
        }
        let work = Checkpoint.Work(
            document: reader.identity, model: try await Self.identity(of: model), kind: "extract \(schema.debugDescription)",
            strategy: "",
            limit: responseTokens,
            room: room, instructions: instructions)
        var state = try Checkpoint.read(checkpoint, work) ?? Checkpoint(work: work)
        var value = try state.parts.first.map { try Value(GeneratedContent(json: $0.text)) }
        let finder = ValueFinder<Value>(model: model, instructions: instructions, limit: responseTokens)
        var index = 0
        try await forEachChunk(of: room, overlap: min(64, room / 10), model: model) { chunk, _ in
            index += 1
            guard index > state.chunks else { return }
            for found in try await finder.values(in: chunk) { value = try value.map { try merge($0, found) } ?? found }
            state.parts = value.map { [.init(level: 0, text: $0.generatedContent.jsonString)] } ?? []
            state.chunks = index
            try state.write(checkpoint)
            progress(state.chunks)
        }
        try Self.checkResumed(state, chunks: index)
        Checkpoint.remove(checkpoint)
        return value
    }

    /// Another model may cut a text in other places: what it is called, and what it makes of a text of many kinds.
    private static func identity(of model: some WindowedLanguageModel) async throws -> String {
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

/// Finds values in chunks, each in a session of its own.
private struct ValueFinder<Value: Generable & Sendable> {
    let model: any WindowedLanguageModel
    let instructions: String
    /// Tokens that a value may have.
    let limit: Int

    /// Usually one; where a value does not fit into its tokens, those of the halves of the text.
    func values(in text: String) async throws -> [Value] {
        let session = LanguageModelSession(model: model, instructions: instructions)
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: limit)
        do {
            return [try await session.respond(to: text, generating: Value.self, options: options).content]
        } catch let error where error is GeneratedContent.ParsingError || error.isOverflow {
            let sentences = TextUnits.sentences(of: text)
            guard sentences.count > 1 else { throw error }
            let middle = sentences.count / 2
            return try await values(in: sentences[..<middle].joined()) + values(in: sentences[middle...].joined())
        }
    }
}
