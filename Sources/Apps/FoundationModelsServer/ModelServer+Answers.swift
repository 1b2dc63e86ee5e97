internal import Foundation
internal import FoundationModels
internal import HTTPTypes
internal import Hummingbird
internal import JSON
internal import Logging
internal import NIOCore
internal import Synchronization

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
    /// - Parameters:
    ///   - candidates: the number of answers to each turn, each with a seed of its own. They are numbered one turn after the other.
    ///   - isStreamed: whether the client gets the answers while they are generated.
    func begin(_ turns: [TurnRequest], candidates: Int, isStreamed: Bool, _ exchange: Exchange) -> AnswerRun {
        AnswerRun(exchange.channel) { [self] send in
            // What is wrong with one of them is said before anything is generated.
            var prepared: [any ServedTurn] = []
            for turn in turns {
                var turn = isolated(turn, exchange)
                turn.isWhole = !isStreamed
                prepared.append(try await prepare(turn, exchange))
                logContent(turn, exchange)
            }
            let all = prepared
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<all.count * candidates {
                    // One request waits for no more places than there are.
                    if number >= configuration.parallelRequests { try await group.next() }
                    group.addTask {
                        try await self.generate(all[number / candidates], seed: number % candidates, exchange) { event in
                            send(event.numbered(number))
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    /// Loads the model, renders the prompt, compiles what constrains the answer.
    private func prepare(_ turn: TurnRequest, _ exchange: Exchange) async throws -> any ServedTurn {
        let enter = { [preparing] in try await preparing.enter(exchange.client) }
        if let upstreams {
            return try await UpstreamTurn(
                turn, upstreams, contextSize: configuration.contextSize, checks, windows, turn: enter)
        }
        return try await LocalTurn(
            turn, directory.model(named: turn.model), checks, windows, isGuarded: configuration.hasGuardrails, turn: enter)
    }

    /// A turn of a model of this machine, for its tokens.
    ///
    /// - Throws: ``RequestError``, or `CancellationError`.
    func localTurn(_ turn: TurnRequest, _ exchange: Exchange) async throws -> LocalTurn {
        if upstreams != nil {
            throw RequestError(400, code: "unsupported", "The models run on other servers: ask these for their tokens.")
        }
        return try await LocalTurn(turn, directory.model(named: turn.model), checks, windows) { [preparing] in
            try await preparing.enter(exchange.client)
        }
    }

    private func isolated(_ turn: TurnRequest, _ exchange: Exchange) -> TurnRequest {
        guard configuration.isolatesKeys else { return turn }
        var turn = turn
        turn.cacheSalt = "\(exchange.client)\u{0}\(turn.cacheSalt ?? "")"
        return turn
    }

    private func generate(
        _ turn: any ServedTurn, seed: Int, _ exchange: Exchange, _ send: @escaping @Sendable (AnswerRun.Event) -> Void
    ) async throws {
        let arrival = ContinuousClock.now
        let place = try await gate.enter(exchange.client)
        // What has been processed when the client goes away counts too.
        let made = Atomic(0)
        var usage: TurnUsage?
        defer {
            let prompt = usage?.promptTokens ?? turn.promptTokens ?? 0
            let answer = usage?.completionTokens ?? made.load(ordering: .relaxed)
            place.leave(tokens: prompt - (usage?.cachedTokens ?? 0) + answer)
            take(tokens: prompt + answer, of: exchange.client)
        }
        let start = ContinuousClock.now
        let finish = try await withDeadline(seconds: configuration.maximumRequestSeconds) {
            var first: Duration?
            func begin() {
                if first != nil { return }
                first = .now - arrival
                send(.begin(answer: 0, promptTokens: turn.promptTokens ?? 0))
            }
            if turn.request.echoes {
                let echo = try await turn.echo()
                begin()
                send(.output(answer: 0, echo))
            }
            let finish = try await turn.run(answer: seed) { output in
                begin()
                made.add(1, ordering: .relaxed)
                send(.output(answer: 0, output))
                return !Task.isCancelled
            }
            try Task.checkCancellation()
            begin()
            self.figures.note(finish, first: first, model: turn.request.model)
            return finish
        }
        var ended = finish
        ended.usage.queueSeconds = (start - arrival).seconds
        usage = ended.usage
        ServerLog.logger.info(
            "answer",
            metadata: [
                "request": "\(exchange.id)", "model": "\(turn.request.model)", "finish": "\(ended.reason)",
                "left_out_turns": "\(turn.leftOutTurns)", "recalled_turns": "\(turn.recalledTurns)",
                "prompt_tokens": "\(ended.usage.promptTokens)", "cached_tokens": "\(ended.usage.cachedTokens)",
                "completion_tokens": "\(ended.usage.completionTokens)", "queue_seconds": "\(ended.usage.queueSeconds)",
                "prompt_seconds": "\(ended.usage.promptSeconds)", "generation_seconds": "\(ended.usage.generationSeconds)",
            ])
        send(.end(answer: 0, ended))
    }

    func withDeadline<Value: Sendable>(
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
    func collect(
        _ run: AnswerRun, count: Int, candidates: Int = 1
    ) async throws -> (answers: [CollectedAnswer], usage: TurnUsage) {
        var answers = [CollectedAnswer](repeating: CollectedAnswer(), count: count)
        var total = UsageTotal(candidates: candidates)
        for try await event in run.events {
            switch event {
            case .begin, .ping: break
            case .output(let index, let output): answers[index].add(output)
            case .end(let index, let finish):
                answers[index].finish = finish
                total.add(finish.usage, answer: index)
            }
        }
        try Task.checkCancellation()
        return (answers, total.usage)
    }

    /// Sends the answers while they are generated. The reply begins with the first event, so that an error before it has a status.
    ///
    /// - Parameter complete: called before the last event, with the error if there is one: what the client learns there is done.
    /// - Throws: ``RequestError``, or `CancellationError`.
    func stream<Writer: ReplyWriter>(
        _ run: AnswerRun, _ writer: Writer, _ exchange: Exchange, candidates: Int = 1,
        complete: (@Sendable (Writer, TurnUsage, (any Error)?) async throws -> Void)? = nil
    ) async throws -> Response {
        var iterator = run.events.makeAsyncIterator()
        let first = try await iterator.next()
        return .stream(
            type: Writer.mediaType, channel: exchange.channel, stall: .seconds(configuration.idleConnectionSeconds)
        ) { send in
            var writer = writer
            var total = UsageTotal(candidates: candidates)
            var open = first
            do {
                while let event = open {
                    if case .end(let index, let finish) = event { total.add(finish.usage, answer: index) }
                    for text in writer.texts(for: event) { try await send(text) }
                    open = try await Self.next(run)
                }
                // A run that was cancelled ends without an error.
                try Task.checkCancellation()
                try await complete?(writer, total.usage, nil)
                for text in writer.end(total.usage) { try await send(text) }
            } catch let error as RequestError {
                try await complete?(writer, total.usage, error)
                for text in writer.end(error) { try await send(text) }
            } catch {
                try await complete?(writer, total.usage, error)
                throw error
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
    /// The number of answers to each prompt.
    private let candidates: Int
    private var prompts: [Int: TurnUsage] = [:]

    init(candidates: Int) { self.candidates = max(1, candidates) }

    mutating func add(_ usage: TurnUsage, answer: Int) {
        prompts[answer / candidates] =
            prompts[answer / candidates].map { known in
                var sum = known
                sum.add(usage)
                return sum
            } ?? usage
    }

    var usage: TurnUsage {
        var total = TurnUsage()
        for usage in prompts.values {
            total.promptTokens += usage.promptTokens
            total.cachedTokens += usage.cachedTokens
            total.completionTokens += usage.completionTokens
            total.reasoningTokens += usage.reasoningTokens
            total.queueSeconds = max(total.queueSeconds, usage.queueSeconds)
            total.promptSeconds += usage.promptSeconds
            total.generationSeconds += usage.generationSeconds
        }
        return total
    }
}

extension AnswerRun.Event {
    /// The same event of another answer.
    fileprivate func numbered(_ answer: Int) -> AnswerRun.Event {
        switch self {
        case .begin(_, let tokens): .begin(answer: answer, promptTokens: tokens)
        case .output(_, let output): .output(answer: answer, output)
        case .end(_, let finish): .end(answer: answer, finish)
        case .ping: .ping
        }
    }
}
