internal import Foundation
internal import Hummingbird
internal import JSON
internal import Logging
internal import NIOCore
internal import Synchronization

/// The Responses API.
extension ModelServer {
    var responsesRoutes: [Route] {
        [
            .api(.post, "/responses") { [self] exchange in try await respond(exchange) },
            .api(.post, "/responses/input_tokens") { [self] exchange in
                // A count needs no answer to be stored.
                guard case .object(let members) = try await exchange.body() else {
                    throw RequestError(400, "The body must be a JSON object.")
                }
                let request = try ResponsesRequest(.object(members))
                let count = try await tokenCount(
                    of: request.turn(after: try await earlierItems(of: request, exchange).items), exchange)
                return .json(.object([.init("object", .string("response.input_tokens")), .init("input_tokens", .int(count))]))
            },
            .api(.get, "/responses/{id}") { [self] exchange in
                if exchange.request.uri.queryParameters["stream"] == "true" {
                    throw RequestError.unsupported("stream", "responses that are stored are not streamed.")
                }
                return .json(try await stored(exchange).object)
            },
            .api(.delete, "/responses/{id}") { [self] exchange in
                let id = try await stored(exchange).id
                // What is still running must not write it again.
                if let task = running.withLock({ $0[id] }) {
                    task.cancel()
                    await task.value
                }
                guard try await store.deleteResponse(id, owner: exchange.owner) else { throw Self.unknownResponse(id) }
                return .json(
                    .object([.init("id", .string(id)), .init("object", .string("response")), .init("deleted", .bool(true))]))
            },
            .api(.post, "/responses/{id}/cancel") { [self] exchange in
                let response = try await stored(exchange)
                guard response.object["background"] == .bool(true) else {
                    throw RequestError(400, param: "response_id", "Only responses in the background can be cancelled.")
                }
                guard let task = running.withLock({ $0[response.id] }) else {
                    // Another server may write it: without its lease it stops.
                    if response.isOpen {
                        _ = try await store.finish(response.id, as: response.with(status: "cancelled").object)
                    }
                    return .json(try await stored(exchange).object)
                }
                task.cancel()
                await task.value
                return .json(try await stored(exchange).object)
            },
            .api(.get, "/responses/{id}/input_items") { [self] exchange in
                .json(Self.list(try await stored(exchange).input, exchange))
            },
        ]
    }

    private static func unknownResponse(_ id: String, param: String = "response_id") -> RequestError {
        RequestError(404, code: "not_found", param: param, "There is no response “\(id)”.")
    }

    private func stored(_ exchange: Exchange) async throws -> StoredResponse {
        let id = try exchange.parameter("id")
        guard let response = try await store.response(id, owner: exchange.owner) else { throw Self.unknownResponse(id) }
        guard response.isOpen, running.withLock({ $0[id] }) == nil, response.lease ?? 0 <= 0 else { return response }
        // Its server has ended: it will never be complete. Another one may have noticed at the same time, or the server after all.
        let failed = response.with(status: "failed")
        if try await store.finish(id, as: failed.object) { return failed }
        guard let now = try await store.response(id, owner: exchange.owner) else { throw Self.unknownResponse(id) }
        return now.isOpen ? failed : now
    }

    /// The items before those of a request, and what the conversation needs to be continued.
    private func earlierItems(of request: ResponsesRequest, _ exchange: Exchange) async throws -> (items: [JSONValue], next: Int?)
    {
        if let id = request.conversation {
            guard try await store.conversation(id, owner: exchange.owner) != nil else { throw Self.unknownConversation(id) }
            let (items, next) = try await store.items(of: id)
            return (items.map(\.json), next)
        }
        var chain: [StoredResponse] = []
        var size = 0
        var previous = request.previous
        while let id = previous {
            guard let response = try await store.response(id, owner: exchange.owner) else {
                throw Self.unknownResponse(id, param: "previous_response_id")
            }
            chain.append(response)
            size += response.input.reduce(response.object.bytes.count) { $0 + $1.bytes.count }
            guard size <= 4 * configuration.maximumBodyBytes else {
                throw RequestError.invalid(
                    "previous_response_id", "The chain of responses has more than \(size) bytes. Use a conversation.")
            }
            previous = chain.count < ChatRequest.maximumMessages ? response.previous : nil
        }
        return (chain.reversed().flatMap { $0.input + $0.output }, nil)
    }

    // MARK: - New responses

    private func respond(_ exchange: Exchange) async throws -> Response {
        let request = try ResponsesRequest(try await exchange.body())
        if request.isBackground, request.isStreamed {
            throw RequestError.unsupported("stream", "a response in the background is fetched by its identifier.")
        }
        let (earlier, next) = try await earlierItems(of: request, exchange)
        let turn = try request.turn(after: earlier)
        var writer = ResponsesWriter(
            id: RequestIdentifier.make("resp_"), created: Int(Date().timeIntervalSince1970), request: request)
        if request.isBackground { return try await inBackground(turn, writer, next, exchange) }
        let run = begin([turn], candidates: 1, isStreamed: request.isStreamed, exchange)
        var response: Response
        if request.isStreamed {
            response = try await stream(run, writer, exchange) { [self] writer, _, error in
                try await keep(writer, error, next, exchange)
            }
        } else {
            let (answers, _) = try await collect(run, count: 1)
            writer.add(answers[0])
            try await keep(writer, nil, next, exchange)
            response = .json(writer.final())
        }
        Self.note(request.skipped, exchange, in: &response)
        return response
    }

    /// Stores a response before the client learns that it is complete.
    private func keep(_ writer: ResponsesWriter, _ error: (any Error)?, _ next: Int?, _ exchange: Exchange) async throws {
        let request = writer.request
        if request.isStored {
            try await save(
                StoredResponse(
                    id: writer.id, owner: exchange.owner, created: writer.created, previous: request.previous,
                    object: writer.final(error), input: request.input))
        }
        if error == nil { try await append(writer, next) }
    }

    /// Appends the items of a response to its conversation.
    private func append(_ writer: ResponsesWriter, _ next: Int?) async throws {
        let request = writer.request
        guard let conversation = request.conversation else { return }
        let items = (request.input.filter { $0["type"]?.string != "item_reference" } + writer.items).map { item in
            StoredItem(id: item["id"]?.string ?? RequestIdentifier.make("item_"), json: item)
        }
        do { try await store.append(items, to: conversation, expected: next) } catch is StateConflict {
            throw RequestError(
                409, code: "conversation_conflict", param: "conversation",
                "Another request has continued the conversation meanwhile. Send this one again.")
        }
    }

    /// Stores a response. Now and then, old ones are deleted.
    private func save(_ response: StoredResponse) async throws {
        try await store.save(response)
        guard savedResponses.add(1, ordering: .relaxed).oldValue.isMultiple(of: Self.savesPerDeletion) else { return }
        do {
            try await store.deleteResponses(
                olderThan: configuration.responseDays * 86_400, beyond: configuration.maximumResponses)
        } catch {
            ServerLog.logger.error("Old responses cannot be deleted", metadata: ["reason": "\(error)"])
        }
    }

    private static let savesPerDeletion = 64

    /// Seconds without a word of the server that writes a response after which it counts as gone.
    private static let leaseSeconds = 60

    /// Extends the lease of a response while it is written, and cancels the work if nobody wants it any more.
    private func keepLease(of id: String, _ run: AnswerRun) async {
        // The sleep fails when the lease is no longer needed.
        while (try? await Task.sleep(for: .seconds(Self.leaseSeconds / 3))) != nil {
            do {
                if try await !store.extendLease(of: id, by: Self.leaseSeconds) { return run.cancel() }
            } catch {
                ServerLog.logger.error("A response cannot be stored", metadata: ["reason": "\(error)"])
            }
        }
    }

    private func inBackground(
        _ turn: TurnRequest, _ writer: ResponsesWriter, _ next: Int?, _ exchange: Exchange
    ) async throws -> Response {
        let queued = writer.object(status: "queued")
        try await save(
            StoredResponse(
                id: writer.id, owner: exchange.owner, created: writer.created, previous: writer.request.previous, object: queued,
                input: writer.request.input, lease: Self.leaseSeconds))
        var detached = exchange
        detached.channel = nil
        let background = detached
        // The task is known before it can end.
        let (known, begins) = AsyncStream<Void>.makeStream()
        let task = Task.detached { [self] in
            for await _ in known {}
            var writer = writer
            let run = begin([turn], candidates: 1, isStreamed: false, background)
            let id = writer.id
            let lease = Task.detached { [self] in await keepLease(of: id, run) }
            defer { lease.cancel() }
            do {
                let (answers, _) = try await withTaskCancellationHandler {
                    try await collect(run, count: 1)
                } onCancel: {
                    run.cancel()
                }
                writer.add(answers[0])
                try await append(writer, next)
                _ = try await store.finish(writer.id, as: writer.final())
            } catch {
                // Also of a task that was cancelled, whose store must be written. What was deleted or ended by another server stays so.
                let error = error is RequestError || error is CancellationError ? error : RequestError.fault
                let (id, object) = (writer.id, writer.final(error))
                await Task.detached { [self] in
                    do { _ = try await store.finish(id, as: object) } catch {
                        ServerLog.logger.error("A response cannot be stored", metadata: ["reason": "\(error)"])
                    }
                }.value
            }
            running.withLock { _ = $0.removeValue(forKey: writer.id) }
        }
        running.withLock { $0[writer.id] = task }
        begins.finish()
        return .json(queued)
    }

    // MARK: - Lists

    /// A page of a list of items: by default the newest first.
    static func list(_ items: [JSONValue], _ exchange: Exchange) -> JSONValue {
        let query = exchange.request.uri.queryParameters
        var sorted = query["order"] == "asc" ? items : items.reversed()
        if let after = query["after"].map(String.init), let place = sorted.firstIndex(where: { $0["id"]?.string == after }) {
            sorted = Array(sorted[(place + 1)...])
        }
        let limit = min(max(query["limit"].flatMap { Int($0) } ?? 20, 1), 100)
        let page = sorted.prefix(limit)
        return .object([
            .init("object", .string("list")), .init("data", .array(Array(page))),
            .init("first_id", .optional(page.first?["id"]?.string)), .init("last_id", .optional(page.last?["id"]?.string)),
            .init("has_more", .bool(sorted.count > page.count)),
        ])
    }

    static func unknownConversation(_ id: String) -> RequestError {
        RequestError(404, code: "not_found", param: "conversation", "There is no conversation “\(id)”.")
    }
}
