internal import Embeddings
internal import Foundation
internal import Hummingbird
internal import Inference
internal import JSON
internal import Logging

/// Vectors of texts, and documents in the order in which they fit a query.
extension ModelServer {
    var embeddingRoutes: [Route] {
        [
            .api(.post, "/embeddings") { [self] exchange in
                exchange.large(
                    try await embeddings(try await exchange.body(), exchange),
                    stall: .seconds(configuration.idleConnectionSeconds))
            },
            Route(
                method: .post, paths: ["/v1/rerank", "/rerank", "/v1/reranking", "/reranking", "/v2/rerank"], name: "/rerank"
            ) { [self] exchange in .json(try await rerank(try await exchange.body(), exchange)) },
        ]
    }

    /// The maximum number of texts of a request.
    private static let maximumTexts = 2_048

    /// The model in memory, for one request.
    func embedder(named name: String) async throws -> ModelLease<TextEmbedder> {
        let path = try directory.embedder(named: name)
        do { return try await ModelPool.shared.embedder(path: path) } catch let error as CancellationError {
            throw error
        } catch {
            ServerLog.logger.error("A model cannot be used", metadata: ["model": "\(name)", "reason": "\(error)"])
            throw RequestError(
                503, type: "server_error", code: "model_unavailable", param: "model",
                "The model “\(name)” cannot be loaded now. The server's log says why.")
        }
    }

    /// Computes vectors when the client's turn has come.
    func vectors(_ texts: [[TokenID]], _ embedder: TextEmbedder, _ exchange: Exchange) async throws -> [[Float]] {
        guard !embedder.readsPairs else {
            throw RequestError.unsupportedValue("model", "it ranks texts for a question (/v1/rerank), and makes no vectors.")
        }
        return try await computing(texts, exchange) { try await embedder.embed(texts) }
    }

    private func computing<Value: Sendable>(
        _ texts: [[TokenID]], _ exchange: Exchange, _ body: () async throws -> Value
    ) async throws -> Value {
        let place = try await gate.enter(exchange.client)
        let count = texts.reduce(0) { $0 + $1.count }
        defer { place.leave(tokens: count) }
        do { return try await body() } catch let error as CancellationError { throw error } catch {
            ServerLog.logger.error("Vectors cannot be computed", metadata: ["reason": "\(error)"])
            throw RequestError(503, type: "server_error", code: "overloaded", "There is not enough memory now.", retryAfter: 5)
        }
    }

    private func embeddings(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        var fields = try Fields(body)
        let name = try fields.string("model") ?? "default"
        guard let input = fields.value("input") else { throw RequestError.invalid("input", "“input” is missing.") }
        let isBase64 = try fields.choice("encoding_format", ["float", "base64"]) == "base64"
        let dimensions = try fields.int("dimensions", in: 1...65_536)
        // Some models distinguish texts that search from those that are searched.
        let use = try fields.choice(
            "input_type", ["query", "document", "passage", "search_query", "search_document", "classification", "clustering"])
        let truncates = try fields.bool("truncate") ?? fields.has("truncate_prompt_tokens")
        fields.ignore("user", "truncate_prompt_tokens", "priority", "request_id")
        try fields.finish()

        let lease = try await embedder(named: name)
        let embedder = lease.model
        let prefix = use?.hasSuffix("query") == true ? embedder.prompts.query : embedder.prompts.document
        let texts = try Self.texts(input, embedder, prefix: use == nil ? embedder.prompts.document : prefix, truncates: truncates)
        let width = embedder.shape.embeddingWidth
        if let dimensions, dimensions != width {
            throw RequestError.unsupportedValue(
                "dimensions", "the vectors of this model have \(width) numbers, and lose their meaning with fewer.")
        }
        let vectors = try await vectors(texts, embedder, exchange)
        let data = vectors.enumerated().map { index, vector in
            JSONValue.object([
                .init("object", .string("embedding")), .init("index", .int(index)),
                .init(
                    "embedding", isBase64 ? .string(Self.base64(vector)) : .array(vector.map { .double(Double($0)) })),
            ])
        }
        let count = texts.reduce(0) { $0 + $1.count }
        take(tokens: count, of: exchange.client)
        return .object([
            .init("object", .string("list")), .init("data", .array(data)), .init("model", .string(name)),
            .init("usage", .object([.init("prompt_tokens", .int(count)), .init("total_tokens", .int(count))])),
        ])
    }

    /// The numbers as little-endian binary32.
    private static func base64(_ vector: [Float]) -> String {
        var data = Data(capacity: 4 * vector.count)
        for number in vector { withUnsafeBytes(of: number.bitPattern.littleEndian) { data.append(contentsOf: $0) } }
        return data.base64EncodedString()
    }

    private static func texts(
        _ input: JSONValue, _ embedder: TextEmbedder, prefix: String, truncates: Bool
    ) throws -> [[TokenID]] {
        let wrong = RequestError.invalid(
            "input", "“input” must be a text, a list of tokens, or a list of these, none of them empty.")
        func tokens(_ value: JSONValue) throws -> [TokenID] {
            if let text = value.string {
                guard !text.isEmpty else { throw wrong }
                return try checked(
                    embedder.tokenizer.encode([.user(prefix + text)], addsBoundaryTokens: true), text: prefix + text)
            }
            guard case .array(let values) = value, !values.isEmpty else { throw wrong }
            var tokens: [TokenID] = []
            for value in values {
                guard let token = value.integer.flatMap({ TokenID(exactly: $0) }), token >= 0,
                    Int(token) < embedder.tokenizer.vocabulary.count
                else { throw wrong }
                tokens.append(token)
            }
            return try checked(tokens, text: nil)
        }
        func checked(_ tokens: [TokenID], text: String?) throws -> [TokenID] {
            if tokens.count <= embedder.maximumTokens { return tokens }
            guard truncates else {
                throw RequestError.tooLong(tokens: tokens.count, contextSize: embedder.maximumTokens, param: "input")
            }
            return text.map { embedder.tokens(of: $0) } ?? Array(tokens.prefix(embedder.maximumTokens))
        }
        guard case .array(let values) = input else { return [try tokens(input)] }
        guard let first = values.first, values.count <= maximumTexts || first.integer != nil else {
            throw values.isEmpty ? wrong : .invalid("input", "“input” has more than \(maximumTexts) texts.")
        }
        if first.integer != nil { return [try tokens(input)] }
        return try values.map { try tokens($0) }
    }

    // MARK: - Reranking

    /// Documents in the order in which they answer the query: by a ranker that reads both, or if there is none for the model, by the
    /// similarity of their meaning. Serves the clients of llama.cpp, Jina, Cohere and vLLM.
    private func rerank(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        var fields = try Fields(body)
        let name = try fields.string("model") ?? "default"
        let query = try fields.string(required: "query")
        let values = try fields.array("documents")
        // The name of text-embeddings-inference.
        let isTEI = values == nil && fields.has("texts")
        let listed = try isTEI ? fields.array("texts") : values
        guard let listed, !listed.isEmpty else { throw RequestError.invalid("documents", "“documents” is missing or empty.") }
        guard listed.count <= Self.maximumTexts else {
            throw RequestError.invalid("documents", "“documents” has more than \(Self.maximumTexts) documents.")
        }
        var documents: [String] = []
        for (index, value) in listed.enumerated() {
            guard let text = value.string ?? value["text"]?.string, !text.isEmpty else {
                throw RequestError.invalid("documents[\(index)]", "A document must be a text, or an object with “text”.")
            }
            documents.append(text)
        }
        let count = try fields.int("top_n", in: 1...Int.max) ?? documents.count
        let returnsDocuments = try fields.bool("return_documents") ?? false
        let returnsTexts = try fields.bool("return_text") ?? false
        _ = try fields.int("max_tokens_per_doc", in: 1...Int.max)
        fields.ignore("raw_scores", "truncate", "truncation_direction", "user", "priority", "rank_fields", "max_chunks_per_doc")
        try fields.finish()

        let lease = try await embedder(named: name)
        let embedder = lease.model
        let reranker = Reranker(model: GGUFEmbeddingModel(url: URL(filePath: embedder.path)))
        // What is read, and counted. For vectors, a document that is too long is known by its beginning.
        let texts =
            embedder.readsPairs
            ? Reranker.pairs(of: documents.map { .init($0) }, for: query, embedder).flatMap(\.self)
            : [embedder.tokens(of: embedder.prompts.query + query)]
                + documents.map { embedder.tokens(of: embedder.prompts.document + $0) }
        let scores: [Double]
        let ranks = try await embedder.readsPairs ? true : reranker.identifier() != nil
        if ranks {
            scores = try await computing(texts, exchange) { try await reranker.scores(of: documents, for: query) }
        } else {
            let vectors = try await vectors(texts, embedder, exchange)
            scores = vectors.dropFirst().map { Double(dotProduct(vectors[0], $0)) }
        }
        let order = scores.indices.sorted { (-scores[$0], $0) < (-scores[$1], $1) }.prefix(count)
        let tokens = texts.reduce(0) { $0 + $1.count }
        take(tokens: tokens, of: exchange.client)
        if isTEI {
            return .array(
                order.map { index in
                    .object(
                        [.init("index", .int(index)), .init("score", .double(scores[index]))]
                            + (returnsTexts ? [.init("text", .string(documents[index]))] : []))
                })
        }
        let results = order.map { index -> JSONValue in
            var members: [JSONValue.Member] = [.init("index", .int(index)), .init("relevance_score", .double(scores[index]))]
            if returnsDocuments { members.append(.init("document", .object([.init("text", .string(documents[index]))]))) }
            return .object(members)
        }
        return .object([
            .init("id", .string(RequestIdentifier.make("rerank-"))), .init("object", .string("list")),
            .init("model", .string(name)),
            .init("results", .array(results)),
            .init(
                "usage",
                .object([
                    .init("prompt_tokens", .int(tokens)), .init("completion_tokens", .int(0)),
                    .init("total_tokens", .int(tokens)),
                ])),
            .init(
                "meta",
                .object([
                    .init("api_version", .object([.init("version", .string("2"))])),
                    .init("billed_units", .object([.init("search_units", .int(1))])),
                ])),
        ])
    }
}
