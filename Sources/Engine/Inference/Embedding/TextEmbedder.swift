/// A model in memory that computes vectors of texts. All its computation runs in this actor, on its own executor.
///
/// Texts are sorted by length and processed in batches; the vector of a text does not depend on the others.
package actor TextEmbedder {
    package nonisolated let path: String
    package nonisolated let shape: ModelShape
    package nonisolated let tokenizer: Tokenizer
    package nonisolated let prompts: EmbeddingPrompts
    /// Identifies the weights: the file's size, metadata and some of its data.
    package nonisolated let fingerprint: String
    /// The maximum number of tokens of a text, including those that mark its beginning and end.
    package nonisolated let maximumTokens: Int
    private nonisolated let pooling: ModelShape.Pooling
    /// Identifies the file.
    nonisolated let identity: UInt64
    private let model: NeuralModel
    /// The caches of the texts of a batch. All layers share their memory.
    private var caches: [KVCache] = []
    /// The adapter of the last ranker, and caches that use it.
    private var ranking: (adapter: LowRankAdapter?, caches: [KVCache]) = (nil, [])
    private nonisolated let executor: EngineExecutor
    /// The memory of the weights; nil if nobody counts it. Given back last.
    private nonisolated let room: MemoryReservation?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The largest text in tokens. Attention takes time that grows with the square of the length.
    private static let maximumLength = 8192
    static let batchTexts = 64
    /// Texts that are sorted by length together.
    private static let partTexts = 4096

    /// Opens, validates and packs the model at `path`.
    ///
    /// - Parameters:
    ///   - threads: number of worker threads; nil for the pool that all models share.
    ///   - memory: the memory that the weights are a part of; nil if nobody counts it. What a batch needs beside them is small.
    /// - Throws: ``ModelError`` if the file cannot be used, or computes no embeddings, or `CancellationError`.
    static func load(path: String, threads: Int? = nil, memory: PoolMemory? = nil) async throws -> TextEmbedder {
        let executor = EngineExecutor()
        let (file, pool, bytes) = try await executor.run {
            let file = try GGUFFile(path: path)
            let pool = try threads.map { try WorkerPool(threads: $0) } ?? .shared()
            return (file, pool, try Weights.check(file, ModelShape(file: file), pool))
        }
        let room = try await memory?.reserveWeights(bytes)
        return try await executor.load { isCancelled in
            try TextEmbedder(file, pool: pool, executor: executor, room: room, isCancelled: isCancelled)
        }
    }

    private init(
        _ file: GGUFFile, pool: WorkerPool, executor: EngineExecutor, room: MemoryReservation?,
        isCancelled: @escaping @Sendable () -> Bool
    ) throws {
        let shape = try ModelShape(file: file)
        guard let pooling = shape.pooling, !shape.isRecurrent else {
            throw ModelError.unsupported(
                field: "\(shape.architecture).pooling_type", value: "none",
                supported: "models that compute embeddings, such as all-MiniLM-L6-v2")
        }
        maximumTokens = min(shape.contextLength, Self.maximumLength)
        model = try NeuralModel(
            file: file, pool: pool, cache: PackedCache.standard, batchSize: max(EngineLimits.passTokens, maximumTokens),
            isCancelled: isCancelled)
        tokenizer = try Tokenizer(file: file)
        guard tokenizer.vocabulary.count <= shape.vocabularySize else {
            throw ModelError.invalid(
                field: "tokenizer.ggml.tokens",
                reason: "has \(tokenizer.vocabulary.count) tokens, more than the \(shape.vocabularySize) embeddings")
        }
        prompts = try EmbeddingPrompts(file: file)
        fingerprint = try file.fingerprint()
        (path, self.shape, self.pooling, self.executor, self.room) = (file.path, shape, pooling, executor, room)
        identity = file.identity
    }

    /// The tokens of a text as the model processes them: with those that mark its beginning and end, and cut off at
    /// ``maximumTokens``.
    package nonisolated func tokens(of text: String) -> [TokenID] {
        var tokens = tokenizer.encode([.user(text)], addsBoundaryTokens: true)
        if tokens.isEmpty {
            tokens = [tokenizer.addsBeginning ? tokenizer.beginningToken : nil, tokenizer.endMark].compactMap(\.self)
        }
        guard tokens.count > maximumTokens else { return tokens }
        tokens.removeLast(tokens.count - maximumTokens)
        if let end = tokenizer.endMark { tokens[tokens.count - 1] = end }
        return tokens
    }

    /// The number of tokens of each text, without those that are cut off.
    package func tokenCounts(of texts: [String]) -> [Int] { texts.map { tokens(of: $0).count } }

    /// Computes the vectors of texts: see ``embed(_:)``.
    package func embed(texts: [String]) async throws -> [[Float]] {
        // Tokenised in parts, so that a large list does not delay the texts of others.
        var vectors: [[Float]] = []
        vectors.reserveCapacity(texts.count)
        for start in stride(from: 0, to: texts.count, by: Self.partTexts) {
            let part = texts[start..<min(start + Self.partTexts, texts.count)].map { tokens(of: $0) }
            vectors += try await embed(part)
        }
        return vectors
    }

    /// Computes the vectors of texts, each of length 1, in the order of the texts. A text without tokens has a vector of
    /// zeros.
    ///
    /// - Throws: `CancellationError`, or ``ModelError/outOfMemory(bytes:)``.
    package func embed(_ texts: [[TokenID]]) async throws -> [[Float]] {
        try await compute(texts, width: shape.embeddingWidth) { model, tokens, parts, output in
            try model.embed(tokens, parts: parts, pooling: pooling, into: output, isCancelled: { Task.isCancelled })
        }
    }

    /// Whether the model reads a question and a text together, and has a score for both.
    package nonisolated var readsPairs: Bool { shape.hasClassifier }

    /// The score of each pair of texts, of any size: the higher, the better the second answers the first. The model must read pairs.
    ///
    /// - Parameter pairs: the tokens of both texts with the marks around them; of longer ones than ``maximumTokens``, the beginning is read.
    /// - Throws: as ``embed(_:)``.
    package func scores(of pairs: [[TokenID]]) async throws -> [Double] {
        try await compute(pairs, width: 1) { model, tokens, parts, output in
            try model.score(tokens, parts: parts, pooling: pooling, into: output, isCancelled: { Task.isCancelled })
        }.map { Double($0[0]) }
    }

    /// Computes `width` numbers for each text, in passes of texts of about the same length. A text without tokens has zeros.
    private func compute(
        _ texts: [[TokenID]], width: Int,
        _ body: (
            NeuralModel, UnsafeBufferPointer<TokenID>, [(cache: KVCache, count: Int)], UnsafeMutablePointer<Float>
        ) throws -> Void
    ) async throws -> [[Float]] {
        var vectors = [[Float]](repeating: [], count: texts.count)
        let order = texts.indices.sorted { texts[$0].count < texts[$1].count }
        var next = 0
        while next < order.count {
            if Task.isCancelled { throw CancellationError() }
            var tokens: [TokenID] = []
            var batch: [Int] = []
            while next < order.count, batch.count < Self.batchTexts {
                let text = texts[order[next]].prefix(maximumTokens)
                if !batch.isEmpty, tokens.count + text.count > EngineLimits.passTokens { break }
                if text.isEmpty {
                    vectors[order[next]] = [Float](repeating: 0, count: width)
                } else {
                    tokens += text
                    batch.append(order[next])
                }
                next += 1
            }
            if batch.isEmpty { continue }
            var output = [Float](repeating: 0, count: batch.count * width)
            let counts = batch.map { min(texts[$0].count, maximumTokens) }
            try prepare(&caches, counts, adapter: nil)
            try tokens.withUnsafeBufferPointer { tokens in
                try output.withUnsafeMutableBufferPointer { output in
                    if let start = output.baseAddress { try body(model, tokens, Array(zip(caches, counts)), start) }
                }
            }
            for (index, text) in batch.enumerated() { vectors[text] = Array(output[index * width..<(index + 1) * width]) }
            // Other callers need not wait for all texts.
            await Task.yield()
        }
        return vectors
    }

    private func prepare(_ caches: inout [KVCache], _ counts: [Int], adapter: LowRankAdapter?) throws {
        while caches.count < counts.count {
            caches.append(try KVCache(shape: shape, capacity: maximumTokens, adapter: adapter, sharesLayers: true))
        }
        for (cache, count) in zip(caches, counts) { try cache.reserve(count) }
    }

    // MARK: - Ranking

    /// - Throws: ``ModelError`` if the ranker does not fit the model.
    func adapter(of ranker: RankerFile) throws(ModelError) -> LowRankAdapter? {
        guard let file = ranker.adapter else { return nil }
        if let adapter = ranking.adapter, adapter.identity == file.identity { return adapter }
        guard let adapter = try model.adapter(file, file: GGUFFile(path: path)) else {
            throw .invalid(field: "the ranker", reason: "changes matrices that cannot be changed beside the weights")
        }
        return adapter
    }

    /// Computes the vectors of all tokens of texts that fit into one pass, each of length 1.
    ///
    /// - Parameter body: receives the vectors `[tokens][width]` and the rows of each text.
    func embedTokens(
        _ texts: [[TokenID]], _ adapter: LowRankAdapter?, _ body: (UnsafeBufferPointer<Float>, [Range<Int>]) -> Void
    ) throws {
        let counts = texts.map(\.count)
        guard !counts.contains(0) else { return }
        // Another ranker may have been used in the meantime.
        var caches = ranking.adapter === adapter ? ranking.caches : []
        try prepare(&caches, counts, adapter: adapter)
        ranking = (adapter, caches)
        let rows = try texts.flatMap(\.self).withUnsafeBufferPointer { tokens in
            try model.embedTokens(tokens, parts: Array(zip(caches, counts)), isCancelled: { Task.isCancelled })
        }
        var places: [Range<Int>] = []
        for count in counts { places.append((places.last?.upperBound ?? 0)..<(places.last?.upperBound ?? 0) + count) }
        body(rows, places)
    }
}

/// The texts that a model expects before a query and before a document.
package struct EmbeddingPrompts: Sendable, Equatable {
    package var query = ""
    package var document = ""

    /// The prompts in the file's metadata, else those that the model's publisher documents.
    init(file: GGUFFile) throws(ModelError) {
        let query = try file.metadata.string(Self.queryKey)
        let document = try file.metadata.string(Self.documentKey)
        if query != nil || document != nil {
            (self.query, self.document) = (query ?? "", document ?? "")
            return
        }
        let name = (try file.metadata.string("general.name") ?? "").lowercased()
        switch try file.metadata.string("general.architecture") {
        case "nomic-bert": (self.query, self.document) = ("search_query: ", "search_document: ")
        case "gemma-embedding": (self.query, self.document) = ("task: search result | query: ", "title: none | text: ")
        case "qwen3":
            self.query =
                "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
        case "bert" where name.contains("e5"): (self.query, self.document) = ("query: ", "passage: ")
        case "bert" where name.contains("bge") && name.contains("en"), "bert" where name.contains("arctic"):
            self.query = "Represent this sentence for searching relevant passages: "
        default: break
        }
    }

    package static let queryKey = "embedding.prompt.query"
    package static let documentKey = "embedding.prompt.document"
}
