internal import Foundation
internal import FoundationModels
internal import HTTPTypes
internal import Hummingbird
internal import Inference
internal import JSON
internal import NIOCore

/// The addresses of Ollama's API that clients of models use.
extension ModelServer {
    var ollamaRoutes: [Route] {
        [
            ollama(.post, "/api/chat") { [self] exchange in try await ollamaAnswer(exchange, isChat: true) },
            ollama(.post, "/api/generate") { [self] exchange in try await ollamaAnswer(exchange, isChat: false) },
            ollama(.get, "/api/tags") { [self] _ in
                .json(.object([.init("models", .array(directory.entries.map { Self.ollamaModel($0) }))]))
            },
            ollama(.get, "/api/ps") { [self] _ in
                let loaded = Set(ModelPool.shared.loadedPaths)
                return .json(
                    .object([
                        .init(
                            "models", .array(directory.entries.filter { loaded.contains($0.path) }.map { Self.ollamaModel($0) }))
                    ]))
            },
            ollama(.get, "/api/version") { _ in .json(.object([.init("version", .string(ServerVersion.number))])) },
            ollama(.post, "/api/show") { [self] exchange in .json(try show(try await exchange.body())) },
            ollama(.post, "/api/embed") { [self] exchange in
                exchange.large(
                    try await ollamaVectors(try await exchange.body(), exchange),
                    stall: .seconds(configuration.idleConnectionSeconds))
            },
            Route(method: .get, paths: ["/"], name: "/", style: .ollama, isPublic: true) { [self] exchange in
                if configuration.hasConsole, exchange.request.headers[.accept]?.contains("text/html") == true,
                    let page = ConsolePages.response("index.html", to: exchange.request)
                {
                    return page
                }
                var headers = HTTPFields()
                headers[.contentType] = "text/plain; charset=utf-8"
                // What clients look for before they ask for more.
                return Response(status: .ok, headers: headers, body: .init(byteBuffer: ByteBuffer(string: "Ollama is running")))
            },
        ]
    }

    private func ollama(
        _ method: HTTPRequest.Method, _ path: String, _ handle: @escaping @Sendable (Exchange) async throws -> Response
    ) -> Route {
        Route(method: method, paths: [path], name: path, style: .ollama, handle: handle)
    }

    private func ollamaAnswer(_ exchange: Exchange, isChat: Bool) async throws -> Response {
        let request = try OllamaRequest(try await exchange.body(), isChat: isChat)
        let writer = OllamaWriter(model: request.turn.model, isChat: isChat, hasScores: request.turn.topScores != nil)
        if request.loadsOnly {
            let served = try directory.model(named: request.turn.model)
            if request.unloads { ModelPool.shared.releaseIdle(path: served.local.path) } else { _ = try await served.lease() }
            return .json(writer.loaded(request.unloads ? "unload" : "load"))
        }
        let run = begin([request.turn], candidates: 1, isStreamed: request.isStreamed, exchange)
        if request.isStreamed { return try await stream(run, writer, exchange) }
        let (answers, _) = try await collect(run, count: 1)
        return .json(writer.whole(answers[0]))
    }

    // MARK: - Models

    private static func ollamaModel(_ entry: ModelDirectory.Entry) -> JSONValue {
        // A file that was removed a moment ago has no date and no size; the list is still right for the others.
        let attributes = try? FileManager.default.attributesOfItem(atPath: entry.path)
        let date = attributes?[.modificationDate] as? Date ?? .distantPast
        return .object([
            .init("name", .string(entry.name)), .init("model", .string(entry.name)),
            .init("modified_at", .string(OllamaWriter.time(date))), .init("size", .int(attributes?[.size] as? Int ?? 0)),
            .init("digest", .string(APIKey.hash(of: "\(entry.path) \(date.timeIntervalSince1970)"))),
            .init("details", details(entry)),
        ])
    }

    private static func details(_ entry: ModelDirectory.Entry) -> JSONValue {
        let shape = ModelDirectory.shape(of: entry.path)
        let family = JSONValue.string(shape?.architecture ?? "")
        return .object([
            .init("parent_model", .string("")), .init("format", .string("gguf")), .init("family", family),
            .init("families", .array([family])), .init("parameter_size", .string("")), .init("quantization_level", .string("")),
        ])
    }

    private func show(_ body: JSONValue) throws -> JSONValue {
        var fields = try Fields(body)
        let older = try fields.string("name")
        guard let name = try fields.string("model") ?? older else { throw RequestError.invalid("model", "“model” is missing.") }
        fields.ignore("verbose")
        try fields.finish()
        // A name that is no embedder is looked up as a language model, which reports the error.
        let entry: ModelDirectory.Entry
        if let known = directory.entries.first(where: { $0.name == name || "\($0.name):latest" == name }) {
            entry = known
        } else if let path = try? directory.embedder(named: name), name != "default" {
            entry = ModelDirectory.Entry(name: name, path: path, isEmbedder: true)
        } else {
            entry = ModelDirectory.Entry(name: name, path: try directory.model(named: name).local.path)
        }
        var information: [JSONValue.Member] = []
        var template = ""
        // A file that cannot be read has nothing to show.
        if let file = try? GGUFFile(path: entry.path), let shape = try? ModelShape(file: file) {
            information = [
                .init("general.architecture", .string(shape.architecture)), .init("general.basename", .string(shape.name)),
                .init("\(shape.architecture).context_length", .int(min(configuration.contextSize, shape.contextLength))),
                .init("\(shape.architecture).embedding_length", .int(shape.width)),
            ]
            template = (try? file.metadata.string("tokenizer.chat_template")) ?? ""
        }
        let capabilities = entry.isEmbedder ? ["embedding"] : ["completion", "tools"]
        return .object([
            .init("modelfile", .string("")), .init("parameters", .string("")), .init("template", .string(template)),
            .init("details", Self.details(entry)), .init("model_info", .object(information)),
            .init("capabilities", .array(capabilities.map { .string($0) })),
            .init("modified_at", .string(OllamaWriter.time(started))),
        ])
    }

    private func ollamaVectors(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        let start = ContinuousClock.now
        var fields = try Fields(body)
        let name = try fields.string(required: "model")
        guard let input = try fields.strings("input") else { throw RequestError.invalid("input", "“input” is missing.") }
        let truncates = try fields.bool("truncate") ?? true
        fields.ignore("keep_alive", "options")
        let dimensions = try fields.int("dimensions", in: 1...65_536)
        try fields.finish()
        let lease = try await embedder(named: name)
        let embedder = lease.model
        let width = embedder.shape.embeddingWidth
        if let dimensions, dimensions != width {
            throw RequestError.unsupportedValue("dimensions", "the vectors of this model have \(width) numbers.")
        }
        let texts = try input.map { text in
            let tokens = embedder.tokenizer.encode([.user(embedder.prompts.document + text)], addsBoundaryTokens: true)
            if tokens.count > embedder.maximumTokens, !truncates {
                throw RequestError.tooLong(tokens: tokens.count, contextSize: embedder.maximumTokens, param: "input")
            }
            return embedder.tokens(of: embedder.prompts.document + text)
        }
        let vectors = try await vectors(texts, embedder, exchange)
        return .object([
            .init("model", .string(name)),
            .init("embeddings", .array(vectors.map { .array($0.map { .double(Double($0)) }) })),
            .init("total_duration", .int(Int((ContinuousClock.now - start).nanoseconds))), .init("load_duration", .int(0)),
            .init("prompt_eval_count", .int(texts.reduce(0) { $0 + $1.count })),
        ])
    }
}

/// Writes replies of Ollama's API: lines of JSON.
struct OllamaWriter: ReplyWriter {
    static let mediaType = "application/x-ndjson"
    let model: String
    let isChat: Bool
    let hasScores: Bool
    private let start = ContinuousClock.now
    /// The number of calls so far.
    private var callCount = 0

    init(model: String, isChat: Bool, hasScores: Bool) { (self.model, self.isChat, self.hasScores) = (model, isChat, hasScores) }

    static func time(_ date: Date = .now) -> String {
        date.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
    }

    private func object(
        text: String, thought: String = "", calls: [ChatToolCall] = [], scores: [TokenLogprob] = [], _ end: [JSONValue.Member]
    ) -> JSONValue {
        var members: [JSONValue.Member] = [.init("model", .string(model)), .init("created_at", .string(Self.time()))]
        if isChat {
            var message: [JSONValue.Member] = [.init("role", .string("assistant")), .init("content", .string(text))]
            if !thought.isEmpty { message.append(.init("thinking", .string(thought))) }
            if !calls.isEmpty {
                message.append(
                    .init(
                        "tool_calls",
                        .array(
                            calls.enumerated().map { place, call in
                                .object([
                                    .init("id", .string(call.id)),
                                    .init(
                                        "function",
                                        .object([
                                            .init("index", .int(callCount + place)), .init("name", .string(call.name)),
                                            .init("arguments", call.arguments),
                                        ])),
                                ])
                            })))
            }
            members.append(.init("message", .object(message)))
        } else {
            members.append(.init("response", .string(text)))
            if !thought.isEmpty { members.append(.init("thinking", .string(thought))) }
        }
        if hasScores, !scores.isEmpty { members.append(.init("logprobs", .array(scores.map(\.json)))) }
        return .object(members + end)
    }

    private func end(_ reason: String, _ usage: TurnUsage) -> [JSONValue.Member] {
        func nanoseconds(_ seconds: Double) -> JSONValue { .int(Int(seconds * 1e9)) }
        return [
            .init("done", .bool(true)), .init("done_reason", .string(reason)),
            .init("total_duration", .int(Int((ContinuousClock.now - start).nanoseconds))), .init("load_duration", .int(0)),
            .init("prompt_eval_count", .int(usage.promptTokens)), .init("prompt_eval_duration", nanoseconds(usage.promptSeconds)),
            .init("eval_count", .int(usage.completionTokens)), .init("eval_duration", nanoseconds(usage.generationSeconds)),
        ]
    }

    private static func reason(_ finish: TurnFinish?) -> String {
        switch finish?.reason {
        case .length: "length"
        case .filtered: "content_filter"
        default: "stop"
        }
    }

    func loaded(_ reason: String) -> JSONValue {
        object(text: "", [.init("done", .bool(true)), .init("done_reason", .string(reason))])
    }

    func whole(_ answer: CollectedAnswer) -> JSONValue {
        object(
            text: answer.text, thought: answer.thought, calls: answer.calls, scores: answer.logprobs,
            end(Self.reason(answer.finish), answer.finish?.usage ?? TurnUsage()))
    }

    mutating func texts(for event: AnswerRun.Event) -> [ByteBuffer] {
        let open: [JSONValue.Member] = [.init("done", .bool(false))]
        switch event {
        // A line that says nothing would be taken for the end of nothing: the format has no comments.
        case .ping: return [EventText.line(object(text: "", open))]
        case .begin: return []
        case .output(_, .text(let text, let scores)): return [EventText.line(object(text: text, scores: scores, open))]
        case .output(_, .thought(let text)): return [EventText.line(object(text: "", thought: text, open))]
        case .output(_, .call(let call)):
            defer { callCount += 1 }
            return [EventText.line(object(text: "", calls: [call], open))]
        case .end(_, let finish): return [EventText.line(object(text: "", end(Self.reason(finish), finish.usage)))]
        }
    }

    mutating func end(_ usage: TurnUsage) -> [ByteBuffer] { [] }
    mutating func end(_ error: RequestError) -> [ByteBuffer] { [EventText.line(APIStyle.ollama.body(of: error))] }
}
