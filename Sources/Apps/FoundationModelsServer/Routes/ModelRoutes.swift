internal import Foundation
internal import FoundationModels
internal import HTTPTypes
internal import Hummingbird
internal import Inference
internal import JSON
internal import Waiting

/// Models, tokens and templates.
extension ModelServer {
    var modelRoutes: [Route] {
        [
            .api(.get, "/models") { [self] _ in
                if let upstreams {
                    return .json(.object([.init("object", .string("list")), .init("data", .array(await upstreams.models()))]))
                }
                let entries = directory.entries
                var data = entries.map { description(of: $0) }
                data += directory.aliases.sorted { $0.key < $1.key }.map { alias, name in
                    .object(Self.head(alias, started) + [.init("root", .string(name))])
                }
                return .json(
                    .object([
                        .init("object", .string("list")), .init("data", .array(data)),
                        .init("models", .array(entries.filter { !$0.isEmbedder }.map { decisionModel($0) })),
                    ]))
            },
            Route(method: .get, paths: ["/v1/models/**", "/models/**"], name: "/models/{id}") { [self] exchange in
                guard let name = Self.name(after: "models", exchange.request.uri.path) else {
                    throw RequestError.unknownModel("")
                }
                if let upstreams {
                    guard let model = await upstreams.models().first(where: { $0["id"]?.string == name }) else {
                        throw RequestError.unknownModel(name)
                    }
                    return .json(model)
                }
                if let entry = directory.entries.first(where: { $0.name == name }) { return .json(description(of: entry)) }
                let served = try directory.model(named: name)
                let entry = ModelDirectory.Entry(name: name, path: served.local.path, adapter: served.local.adapter)
                return .json(description(of: entry))
            },
            Route(method: .post, paths: ["/tokenize", "/v1/tokenize"], name: "/tokenize") { [self] exchange in
                .json(try await tokenize(try await exchange.body(), exchange))
            },
            Route(method: .post, paths: ["/detokenize", "/v1/detokenize"], name: "/detokenize") { [self] exchange in
                var fields = try Fields(try await exchange.body())
                let name = try fields.string("model") ?? "default"
                let tokens = try fields.tokens("tokens")
                try fields.finish()
                let lease = try await directory.model(named: name).lease()
                try tokens.check(lease.model, "tokens")
                let text = JSONValue.string(String(decoding: lease.model.tokenizer.decode(tokens), as: UTF8.self))
                // Under the names of llama.cpp and of vLLM.
                return .json(.object([.init("content", text), .init("prompt", text)]))
            },
            Route(
                method: .post, paths: ["/apply-template", "/v1/apply-template", "/v1/chat/completions/render"],
                name: "/apply-template"
            ) { [self] exchange in
                let request = try ChatRequest(try await exchange.body())
                let turn = try await localTurn(request.turn, exchange)
                let prompt = String(decoding: turn.model.tokenizer.decode(turn.tokens), as: UTF8.self)
                return .json(.object([.init("prompt", .string(prompt)), .init("count", .int(turn.tokens.count))]))
            },
            Route(method: .get, paths: ["/props"], name: "/props") { [self] _ in
                let served = try directory.model(named: "default")
                let template = try await served.lease().model.template.source
                return .json(
                    .object([
                        .init(
                            "default_generation_settings",
                            .object([.init("n_ctx", .int(served.local.contextSize)), .init("params", .object([]))])),
                        .init("total_slots", .int(configuration.parallelRequests)), .init("chat_template", .string(template)),
                        .init("modalities", .object([.init("vision", .bool(false)), .init("audio", .bool(false))])),
                        .init("build_info", .string(ServerVersion.fingerprint)), .init("is_sleeping", .bool(false)),
                    ]))
            },
        ]
    }

    /// The name of a model in a path: it may have slashes, written as they are or escaped.
    static func name(after part: String, _ path: String) -> String? {
        guard let place = path.range(of: "/\(part)/") else { return nil }
        return String(path[place.upperBound...]).removingPercentEncoding
    }

    private static func head(_ name: String, _ created: Date) -> [JSONValue.Member] {
        [
            .init("id", .string(name)), .init("object", .string("model")),
            .init("created", .int(Int(created.timeIntervalSince1970))),
            .init("owned_by", .string("fm")),
        ]
    }

    /// A model in the form of System One's list.
    private func decisionModel(_ entry: ModelDirectory.Entry) -> JSONValue {
        let attributes = try? FileManager.default.attributesOfItem(atPath: entry.path)
        let date = attributes?[.modificationDate] as? Date ?? started
        return .object([
            .init("name", .string(entry.name)), .init("description", .string("A model of this machine.")),
            .init("release_date", .string(date.formatted(.iso8601.year().month().day()))),
        ])
    }

    private func description(of entry: ModelDirectory.Entry) -> JSONValue {
        // A file that was removed a moment ago has no date and no size; the list is still right for the others.
        let attributes = try? FileManager.default.attributesOfItem(atPath: entry.path)
        let created = attributes?[.modificationDate] as? Date ?? started
        var members = Self.head(entry.name, created)
        guard !entry.isEmbedder else {
            return .object(members + [.init("capabilities", .array([.string("embedding"), .string("rerank")]))])
        }
        // Without the file's description, its name is all that is known.
        guard let shape = ModelDirectory.shape(of: entry.path) else { return .object(members) }
        let size = min(configuration.contextSize, shape.contextLength)
        members += [
            .init("max_model_len", .int(size)), .init("context_window", .int(size)),
            .init("capabilities", .array([.string("completion"), .string("tools")])),
            .init(
                "meta",
                .object([
                    .init("n_vocab", .int(shape.vocabularySize)), .init("n_ctx_train", .int(shape.contextLength)),
                    .init("n_embd", .int(shape.width)), .init("size", .int((attributes?[.size] as? Int) ?? 0)),
                ])),
        ]
        return .object(members)
    }

    // MARK: - Tokens

    private func tokenize(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        let isChat = body["messages"] != nil
        if isChat {
            // vLLM's form with messages.
            guard case .object(let members) = body else { throw RequestError(400, "The body must be a JSON object.") }
            let own: Set = ["return_token_strs", "add_special_tokens"]
            let request = try ChatRequest(.object(members.filter { !own.contains($0.name) }))
            let turn = try await localTurn(request.turn, exchange)
            return reply(
                turn.tokens, turn.model, withTexts: body["return_token_strs"] == .bool(true), isLlama: false, withPieces: false)
        }
        var fields = try Fields(body)
        let name = try fields.string("model") ?? "default"
        let content = try fields.string("content")
        let isLlama = content != nil
        let text = try content ?? fields.string(required: "prompt")
        let addsSpecial = try fields.bool(isLlama ? "add_special" : "add_special_tokens") ?? !isLlama
        let readsSpecial = try fields.bool("parse_special") ?? true
        let withPieces = try fields.bool("with_pieces") ?? false
        let withTexts = try fields.bool("return_token_strs") ?? false
        try fields.finish()
        let place = try await preparing.enter(exchange.client)
        defer { place.leave(tokens: 1) }
        let lease = try await directory.model(named: name).lease()
        let model = lease.model
        // Long texts take a while, and must not block the threads of other tasks.
        let tokens = await onAnotherThread {
            model.tokenizer.encode([readsSpecial ? .template(text) : .user(text)], addsBoundaryTokens: addsSpecial)
        }
        return reply(tokens, lease.model, withTexts: withTexts, isLlama: isLlama, withPieces: withPieces)
    }

    private func reply(
        _ tokens: [TokenID], _ model: LoadedModel, withTexts: Bool, isLlama: Bool, withPieces: Bool
    ) -> JSONValue {
        func text(_ token: TokenID) -> JSONValue {
            let bytes = model.tokenizer.decode([token])
            return bytes.isValidUTF8
                ? .string(String(decoding: bytes, as: UTF8.self)) : .array(bytes.map { .int(Int($0)) })
        }
        let list = JSONValue.array(
            tokens.map { withPieces ? .object([.init("id", .int(Int($0))), .init("piece", text($0))]) : .int(Int($0)) })
        if isLlama { return .object([.init("tokens", list)]) }
        let size = min(configuration.contextSize, model.shape.contextLength)
        return .object([
            .init("count", .int(tokens.count)), .init("max_model_len", .int(size)), .init("tokens", list),
            .init(
                "token_strs",
                withTexts ? .array(tokens.map { .string(String(decoding: model.tokenizer.decode([$0]), as: UTF8.self)) }) : .null),
        ])
    }
}

extension Fields {
    /// A list of token numbers.
    mutating func tokens(_ name: String) throws(RequestError) -> [TokenID] {
        var tokens: [TokenID] = []
        for value in try array(name) ?? [] {
            guard let token = value.integer.flatMap({ TokenID(exactly: $0) }), token >= 0 else {
                throw .invalid(place(name), "“\(place(name))” must be a list of token numbers.")
            }
            tokens.append(token)
        }
        return tokens
    }
}

extension [TokenID] {
    /// - Throws: ``RequestError`` if the model does not have one of the tokens.
    func check(_ model: LoadedModel, _ param: String) throws(RequestError) {
        let count = model.tokenizer.vocabulary.count
        guard let wrong = first(where: { $0 < 0 || Int($0) >= count }) else { return }
        throw .invalid(param, "The model has no token \(wrong): it has \(count) tokens.")
    }
}
