internal import Foundation
internal import FoundationModels
internal import HTTPTypes
internal import Hummingbird
internal import JSON
internal import Logging
internal import NIOCore

/// Writes what happens in a run as the text of a stream. A value without I/O.
protocol ReplyWriter: Sendable {
    /// The media type of the stream.
    static var mediaType: String { get }
    mutating func texts(for event: AnswerRun.Event) -> [ByteBuffer]
    /// The end of a stream whose answers are complete.
    mutating func end(_ usage: TurnUsage) -> [ByteBuffer]
    /// The end of a stream that fails after its beginning.
    mutating func end(_ error: RequestError) -> [ByteBuffer]
}

extension ModelServer {
    /// Begins to generate answers. Errors of the request are thrown by the first event.
    ///
    /// - Parameter candidates: the number of answers, each with a seed of its own.
    func begin(_ turn: TurnRequest, candidates: Int, _ exchange: Exchange) -> AnswerRun {
        AnswerRun(exchange.channel) { [self] send in
            let turn = try await isolated(turn, exchange)
            let prepared = try await LocalTurn(turn, directory.model(named: turn.model), checks)
            logContent(turn, exchange)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<candidates {
                    group.addTask { try await self.generate(prepared, index, exchange, send) }
                }
                try await group.waitForAll()
            }
        }
    }

    private func isolated(_ turn: TurnRequest, _ exchange: Exchange) async throws -> TurnRequest {
        guard configuration.isolatesKeys else { return turn }
        var turn = turn
        turn.cacheSalt = "\(exchange.client)\u{0}\(turn.cacheSalt ?? "")"
        return turn
    }

    private func generate(
        _ turn: LocalTurn, _ index: Int, _ exchange: Exchange, _ send: @escaping @Sendable (AnswerRun.Event) -> Void
    ) async throws {
        let arrival = ContinuousClock.now
        let place = try await gate.enter(exchange.client)
        // What has been processed when the client goes away counts too.
        var work = turn.tokens.count
        defer { place.leave(tokens: work) }
        let start = ContinuousClock.now
        let finish = try await withDeadline(seconds: configuration.maximumRequestSeconds) {
            var first: Duration?
            let finish = try await turn.run(answer: index) { output in
                if first == nil {
                    first = .now - arrival
                    send(.begin(answer: index))
                }
                send(.output(answer: index, output))
                return !Task.isCancelled
            }
            try Task.checkCancellation()
            if first == nil { send(.begin(answer: index)) }
            self.figures.note(finish, first: first, model: turn.request.model)
            return finish
        }
        var ended = finish
        ended.usage.queueSeconds = (start - arrival).seconds
        work = ended.usage.promptTokens - ended.usage.cachedTokens + ended.usage.completionTokens
        take(tokens: ended.usage.promptTokens + ended.usage.completionTokens, of: exchange.client)
        let usage = ended.usage
        ServerLog.logger.info(
            "answer",
            metadata: [
                "request": "\(exchange.id)", "model": "\(turn.request.model)", "finish": "\(ended.reason)",
                "prompt_tokens": "\(usage.promptTokens)", "cached_tokens": "\(usage.cachedTokens)",
                "completion_tokens": "\(usage.completionTokens)", "queue_seconds": "\(usage.queueSeconds)",
                "prompt_seconds": "\(usage.promptSeconds)", "generation_seconds": "\(usage.generationSeconds)",
            ])
        send(.end(answer: index, ended))
    }

    private func withDeadline<Value: Sendable>(
        seconds: Int, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask(operation: body)
            group.addTask {
                try await Task.sleep(for: .seconds(seconds))
                throw RequestError(
                    504, type: "server_error", code: "timeout", "The request took more than \(seconds) seconds.")
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }

    private func logContent(_ turn: TurnRequest, _ exchange: Exchange) {
        guard configuration.logsContent else { return }
        ServerLog.logger.info("prompt", metadata: ["request": "\(exchange.id)", "input": "\(turn.input)"])
    }

    // MARK: - Replies

    /// Waits for all answers.
    ///
    /// - Throws: ``RequestError``, or `CancellationError`.
    func collect(_ run: AnswerRun, count: Int) async throws -> (answers: [CollectedAnswer], usage: TurnUsage) {
        var answers = [CollectedAnswer](repeating: CollectedAnswer(), count: count)
        var total = UsageTotal()
        for try await event in run.events {
            switch event {
            case .begin, .ping: break
            case .output(let index, let output): answers[index].add(output)
            case .end(let index, let finish):
                answers[index].finish = finish
                total.add(finish.usage)
            }
        }
        try Task.checkCancellation()
        return (answers, total.usage)
    }

    /// Sends the answers while they are generated. The reply begins with the first event, so that an error before it has a status.
    ///
    /// - Throws: ``RequestError``, or `CancellationError`.
    func stream<Writer: ReplyWriter>(_ run: AnswerRun, _ writer: Writer, _ exchange: Exchange) async throws -> Response {
        var iterator = run.events.makeAsyncIterator()
        let first = try await iterator.next()
        return .stream(
            type: Writer.mediaType, channel: exchange.channel, stall: .seconds(configuration.idleConnectionSeconds)
        ) { send in
            var writer = writer
            var total = UsageTotal()
            var open = first
            do {
                while let event = open {
                    if case .end(_, let finish) = event { total.add(finish.usage) }
                    for text in writer.texts(for: event) { try await send(text) }
                    open = try await Self.next(run)
                }
                for text in writer.end(total.usage) { try await send(text) }
            } catch let error as RequestError {
                for text in writer.end(error) { try await send(text) }
            }
            withExtendedLifetime(run) {}
        }
    }

    private static func next(_ run: AnswerRun) async throws -> AnswerRun.Event? {
        var iterator = run.events.makeAsyncIterator()
        return try await iterator.next()
    }
}

/// The token counts of all answers to a request.
struct UsageTotal {
    private(set) var usage = TurnUsage()
    private var isEmpty = true

    mutating func add(_ other: TurnUsage) {
        if isEmpty { usage = other } else { usage.add(other) }
        isEmpty = false
    }
}
