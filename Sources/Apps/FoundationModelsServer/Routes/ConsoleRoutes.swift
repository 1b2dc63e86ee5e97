internal import Decisions
internal import Foundation
internal import FoundationModels
internal import Grammar
internal import HTTPTypes
internal import Hummingbird
internal import Inference
internal import JSON
internal import Logging
internal import MCP

/// The console for people: its pages, and what they need besides the APIs of other clients.
extension ModelServer {
    var consoleRoutes: [Route] {
        guard configuration.hasConsole else { return [] }
        return pageRoutes + conversationPageRoutes + [
            Route(method: .get, paths: ["/v1/console/features"], name: "/console/features") { [self] _ in
                .json(try await features())
            },
            Route(method: .post, paths: ["/v1/console/schema"], name: "/console/schema") { [self] exchange in
                .json(try await schemaReport(try await exchange.body(), exchange))
            },
            Route(method: .post, paths: ["/v1/console/confidence"], name: "/console/confidence") { [self] exchange in
                .json(try await confidence(try await exchange.body(), exchange))
            },
            Route(method: .post, paths: ["/v1/console/window"], name: "/console/window") { [self] exchange in
                .json(try await windowPicture(try await exchange.body(), exchange))
            },
            Route(method: .post, paths: ["/v1/console/ask"], name: "/console/ask") { [self] exchange in
                try await ask(try await exchange.body(), exchange)
            },
            Route(method: .post, paths: ["/v1/console/mcp/call"], name: "/console/mcp/call") { [self] exchange in
                .json(try await callTool(try await exchange.body(), exchange))
            },
        ]
    }

    private var pageRoutes: [Route] {
        [
            Route(method: .get, paths: ["/console/{name}"], name: "/console", isPublic: true) { exchange in
                guard let response = ConsolePages.response(try exchange.parameter("name"), to: exchange.request) else {
                    throw RequestError(404, code: "not_found", "There is nothing at this address.")
                }
                return response
            }
        ]
    }

    // MARK: - Conversations

    private var conversationPageRoutes: [Route] {
        let place = "/v1/console/conversations"
        return [
            Route(method: .get, paths: [place], name: "/console/conversations") { [self] exchange in
                let query = exchange.request.uri.queryParameters["q"].map { String($0) } ?? ""
                let words = query.lowercased().split(whereSeparator: \.isWhitespace).prefix(16).map(String.init)
                let found = try await store.consoleConversations(owner: exchange.owner, containing: words)
                let data = found.map { summary in
                    JSONValue.object([
                        .init("id", .string(summary.id)), .init("title", .string(summary.title)),
                        .init("created", .int(summary.created / 1_000)), .init("updated", .int(summary.updated / 1_000)),
                        .init("messages", .int(summary.messages)),
                    ])
                }
                return .json(.object([.init("data", .array(data))]))
            },
            Route(method: .get, paths: [place + "/{id}"], name: "/console/conversations/{id}") { [self] exchange in
                let id = try exchange.parameter("id")
                guard let known = try await store.consoleConversation(id, owner: exchange.owner) else {
                    throw Self.unknownConversation(id)
                }
                return exchange.large(
                    .object([
                        .init("id", .string(id)), .init("title", .string(known.title)),
                        .init("created", .int(known.created / 1_000)),
                        .init("updated", .int(known.updated / 1_000)), .init("tree", known.tree),
                        .init("revision", .int(known.revision)),
                    ]), stall: .seconds(configuration.idleConnectionSeconds))
            },
            Route(method: .put, paths: [place + "/{id}"], name: "/console/conversations/{id}") { [self] exchange in
                let id = try exchange.parameter("id")
                guard id.utf8.count <= 128 else { throw RequestError.invalid("id", "The identifier is too long.") }
                var fields = try Fields(try await exchange.body())
                let title = try fields.string(required: "title")
                let text = try fields.string("text") ?? ""
                guard let tree = fields.value("tree") else { throw RequestError.invalid("tree", "“tree” is missing.") }
                let expected = try fields.int("revision")
                try fields.finish()
                // Pages write several times in a second.
                let now = Int(Date().timeIntervalSince1970 * 1_000)
                let nodes: Int =
                    switch tree["nodes"] {
                    case .array(let items): items.count
                    case .object(let members): members.count
                    default: 0
                    }
                let conversation = ConsoleConversation(
                    id: id, owner: exchange.owner, title: String(title.prefix(200)), text: text, tree: tree, messages: nodes,
                    created: now, updated: now, revision: 0)
                do {
                    let revision = try await store.save(conversation, expected: expected)
                    return .json(.object([.init("id", .string(id)), .init("revision", .int(revision))]))
                } catch is StateConflict {
                    throw RequestError(
                        409, code: "conflict", param: "revision", "Another page has written this conversation meanwhile.")
                }
            },
            Route(method: .delete, paths: [place + "/{id}"], name: "/console/conversations/{id}") { [self] exchange in
                let id = try exchange.parameter("id")
                guard try await store.deleteConsoleConversation(id, owner: exchange.owner) else {
                    throw Self.unknownConversation(id)
                }
                return .json(.object([.init("id", .string(id)), .init("deleted", .bool(true))]))
            },
        ]
    }

    // MARK: - Schemas

    /// Whether a schema can be enforced, and what it costs.
    private func schemaReport(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        var fields = try Fields(body)
        let schema = fields.value("schema") ?? .object([])
        try fields.finish()
        let grammar: (example: [UInt8], notes: [String], tokens: Int)
        let fuel: Int
        do {
            (grammar, fuel) = try await SchemaCompiler.run { (fuel) throws(SchemaError) in
                let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] }, endTokens: [])
                let grammar = try Grammar(.schema(schema), vocabulary: bytes, options: AnswerFormat.options, fuel: fuel)
                return ((grammar.example(), grammar.notes, grammar.minimumTokenCount), fuel)
            }
        } catch let error as SchemaError {
            return .object([
                .init("ok", .bool(false)), .init("pointer", .string(error.pointer)), .init("message", .string(error.sentence)),
            ])
        }
        let closed = OptionReader.closedFields(of: schema).map { field in
            JSONValue.object([.init("pointer", .string(field.pointer)), .init("options", .array(field.options))])
        }
        // A picture: an example that is no JSON is left out.
        return .object([
            .init("ok", .bool(true)), .init("notes", .array(grammar.notes.map { .string($0) })),
            .init("minimumTokens", .int(try await shortest(of: schema) ?? grammar.tokens)), .init("work", .int(fuel)),
            .init("example", (try? JSONParser.parse(grammar.example)) ?? .null), .init("closed", .array(closed)),
        ])
    }

    /// The tokens of the shortest document, with the vocabulary of the default model; nil if it is not there.
    private func shortest(of schema: JSONValue) async throws -> Int? {
        // Without a model, or with one that does not load, the grammar itself says how many tokens it needs.
        guard upstreams == nil, let served = try? directory.model(named: "default"), let lease = try? await served.lease() else {
            return nil
        }
        let model = lease.model
        return try? await model.grammars.grammar(
            .schema(schema), vocabulary: try await model.grammarVocabulary, options: AnswerFormat.options
        ).minimumTokenCount
    }

    /// How sure the model is of the parts of a value that it has generated.
    private func confidence(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        var fields = try Fields(body)
        let model = try fields.string("model") ?? "default"
        guard let messages = fields.value("messages"), let schema = fields.value("schema"), let value = fields.value("value")
        else {
            throw RequestError.invalid("value", "“messages”, “schema” and “value” are needed.")
        }
        try fields.finish()
        let format = JSONValue.object([
            .init("type", .string("json_schema")),
            .init("json_schema", .object([.init("name", .string("answer")), .init("schema", schema)])),
        ])
        let request = try ChatRequest(
            .object([
                .init("model", .string(model)), .init("messages", messages), .init("response_format", format),
                .init("truncation", .string("auto")),
            ]))
        if upstreams != nil { throw RequestError(501, code: "not_supported", "The models run on other servers.") }
        let entries = try await LocalTurn.fittedEntries(of: request.turn, directory.model(named: model), windows)
        let served = try directory.model(named: model)
        let place = try await gate.enter(exchange.client)
        defer { place.leave(tokens: 1) }
        var reader = OptionReader(served.local)
        if configuration.isolatesKeys { reader.domain = LocalTurn.domain(of: exchange.client) }
        let decided = try await exchange.whileConnected { [reader] in
            try await reader.fields(of: value, schema: schema, after: entries)
        }
        let list = decided.map { field -> JSONValue in
            let options = field.distribution.map { value, probability in
                JSONValue.object([
                    .init("value", (try? JSONParser.parse(value.jsonString)) ?? .null),
                    .init("probability", .double(probability)),
                ])
            }
            return .object([
                .init("pointer", .string(field.pointer)), .init("options", .array(options)),
                .init("chosen", (try? JSONParser.parse(field.distribution[field.chosen].value.jsonString)) ?? .null),
                .init("confidence", .double(field.confidence)),
            ])
        }
        return .object([.init("fields", .array(list))])
    }

    // MARK: - The window

    private func windowPicture(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        if upstreams != nil { throw RequestError(501, code: "not_supported", "The models run on other servers.") }
        let request = try ChatRequest(body)
        let picture = try await LocalTurn.picture(of: request.turn, directory.model(named: request.turn.model), checks, windows)
        let parts = picture.parts.map { part -> JSONValue in
            var members: [JSONValue.Member] = [
                .init("kind", .string(part.kind)), .init("label", .string(part.label)), .init("tokens", .int(part.tokens)),
                .init("cached", .int(part.cached)), .init("state", .string(part.state)),
            ]
            if let why = part.why { members.append(.init("why", .string(why))) }
            return .object(members)
        }
        return .object([.init("contextSize", .int(picture.contextSize)), .init("parts", .array(parts))])
    }

    // MARK: - Tools and documents

    /// The servers of tools, each with a name that no other one has.
    private var toolServers: [(name: String, tools: MCPTools)] {
        var names: Set<String> = []
        return configuration.consoleTools.map { server in
            var (name, number) = (server.name, 1)
            while !names.insert(name).inserted {
                number += 1
                name = "\(server.name) \(number)"
            }
            return (name, server)
        }
    }

    private func features() async throws -> JSONValue {
        let servers = toolServers.map { name, server -> JSONValue in
            let tools = zip(server.tools, server.definitions).map { tool, definition -> JSONValue in
                .object([
                    .init("name", .string(definition.name)), .init("description", .string(definition.description)),
                    .init("readOnly", .bool(definition.isReadOnly)), .init("parameters", tool.parameters.json),
                    .init("tokens", .int((tool.parameters.json.bytes.count + definition.description.utf8.count) / 4)),
                ])
            }
            return .object([.init("name", .string(name)), .init("tools", .array(tools))])
        }
        return .object([.init("index", .bool(configuration.documents != nil)), .init("mcp", .array(servers))])
    }

    private func callTool(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        var fields = try Fields(body)
        let name = try fields.string(required: "server")
        let tool = try fields.string(required: "tool")
        let arguments = fields.value("arguments") ?? .object([])
        guard case .object = arguments else { throw RequestError.invalid("arguments", "“arguments” must be an object.") }
        try fields.finish()
        guard let server = toolServers.first(where: { $0.name == name })?.tools else {
            throw RequestError(404, code: "not_found", param: "server", "There is no server of tools “\(name)”.")
        }
        let output = try await exchange.whileConnected { try await server.call(tool, GeneratedContent(arguments)) }
        guard let output else {
            throw RequestError(404, code: "not_found", param: "tool", "The server “\(name)” has no tool “\(tool)”.")
        }
        return .object([.init("text", .string(output.text)), .init("isError", .bool(output.isError))])
    }

    private func ask(_ body: JSONValue, _ exchange: Exchange) async throws -> Response {
        var fields = try Fields(body)
        let question = try fields.string(required: "question")
        try fields.finish()
        guard !question.allSatisfy(\.isWhitespace) else { throw RequestError.invalid("question", "The question is empty.") }
        guard let documents = configuration.documents else {
            throw RequestError(404, code: "not_found", "This server has no index of documents.")
        }
        let place = try await gate.enter(exchange.client)
        defer { place.leave(tokens: 1) }
        let answer: DocumentAnswer
        do { answer = try await exchange.whileConnected { try await documents(question) } } catch let error as CancellationError {
            throw error
        } catch LanguageModelError.contextSizeExceeded(let context) {
            throw RequestError.tooLong(tokens: context.tokenCount, contextSize: context.contextSize, param: "question")
        } catch {
            ServerLog.logger.error("A question cannot be answered", metadata: ["reason": "\(error)"])
            throw RequestError(500, type: "server_error", "The question could not be answered: \(error.localizedDescription)")
        }
        let citations = answer.citations.map { citation in
            JSONValue.object([
                .init("number", .int(citation.number)), .init("source", .string(citation.source)),
                .init("lines", .string(citation.lines)), .init("text", .string(citation.text)),
            ])
        }
        var buffer = EventText.event(.object([.init("delta", .string(answer.text))]))
        buffer.writeImmutableBuffer(EventText.event(.object([.init("citations", .array(citations))])))
        buffer.writeImmutableBuffer(EventText.done)
        var headers = HTTPFields()
        headers[.contentType] = "text/event-stream"
        return Response(status: .ok, headers: headers, body: .init(byteBuffer: buffer))
    }
}
