internal import Foundation
internal import Inference
internal import JSON
internal import NIOCore

/// Writes responses and their streams: https://platform.openai.com/docs/api-reference/responses/object and …/responses-streaming
struct ResponsesWriter: ReplyWriter {
    static let mediaType = "text/event-stream"
    let id: String
    let created: Int
    let request: ResponsesRequest
    /// The number of the next event.
    private var sequence = 0
    /// The items that are complete.
    private var output: [JSONValue] = []
    private enum Open { case text, thought }
    private var open: Open?
    private var itemID = ""
    private var text = ""
    private var logprobs: [TokenLogprob] = []
    private var finish: TurnFinish?

    init(id: String, created: Int, request: ResponsesRequest) { (self.id, self.created, self.request) = (id, created, request) }

    // MARK: - The response

    /// - Parameter error: why the response has failed; nil if it has not.
    func object(status: String, error: RequestError? = nil) -> JSONValue {
        let isCut = status == "incomplete"
        let reason = finish?.reason == .filtered ? "content_filter" : "max_output_tokens"
        var members: [JSONValue.Member] = [
            .init("id", .string(id)), .init("object", .string("response")), .init("created_at", .int(created)),
            .init("completed_at", status == "completed" ? .int(Int(Date().timeIntervalSince1970)) : .null),
            .init("status", .string(status)),
            .init(
                "error",
                error.map { .object([.init("code", .string($0.code ?? $0.type)), .init("message", .string($0.message))]) }
                    ?? .null),
            .init("incomplete_details", isCut ? .object([.init("reason", .string(reason))]) : .null),
            .init("model", .string(request.turn.model)), .init("output", .array(output)),
            .init("previous_response_id", .optional(request.previous)),
            .init("conversation", request.conversation.map { .object([.init("id", .string($0))]) } ?? .null),
        ]
        members += request.echoed
        members.append(.init("usage", finish.map { Self.usage($0.usage) } ?? .null))
        return .object(members)
    }

    private static func usage(_ usage: TurnUsage) -> JSONValue {
        .object([
            .init("input_tokens", .int(usage.promptTokens)),
            .init("input_tokens_details", .object([.init("cached_tokens", .int(usage.cachedTokens))])),
            .init("output_tokens", .int(usage.completionTokens)),
            .init("output_tokens_details", .object([.init("reasoning_tokens", .int(usage.reasoningTokens))])),
            .init("total_tokens", .int(usage.promptTokens + usage.completionTokens)),
        ])
    }

    /// The response as it is in the end.
    func final(_ error: (any Error)? = nil) -> JSONValue {
        if let error = error as? RequestError { return object(status: "failed", error: error) }
        if error != nil { return object(status: "cancelled") }
        return object(status: finish?.reason == .length || finish?.reason == .filtered ? "incomplete" : "completed")
    }

    var items: [JSONValue] { output }

    /// Adds a whole answer, as its stream would.
    mutating func add(_ answer: CollectedAnswer) {
        if !answer.thought.isEmpty { _ = texts(for: .output(answer: 0, .thought(answer.thought))) }
        if !answer.text.isEmpty { _ = texts(for: .output(answer: 0, .text(answer.text, answer.logprobs))) }
        for call in answer.calls { _ = texts(for: .output(answer: 0, .call(call))) }
        if let finish = answer.finish { _ = texts(for: .end(answer: 0, finish)) }
    }

    // MARK: - Events

    private mutating func event(_ type: String, _ members: [JSONValue.Member]) -> ByteBuffer {
        defer { sequence += 1 }
        let data = JSONValue.object([.init("type", .string(type)), .init("sequence_number", .int(sequence))] + members)
        return EventText.event(data, name: type)
    }

    private var place: [JSONValue.Member] { [.init("item_id", .string(itemID)), .init("output_index", .int(output.count))] }

    private func part(_ text: String) -> JSONValue {
        let scores: [JSONValue] = request.turn.topScores == nil ? [] : logprobs.map(\.json)
        return .object([
            .init("type", .string("output_text")), .init("text", .string(text)), .init("annotations", .array([])),
            .init("logprobs", .array(text.isEmpty ? [] : scores)),
        ])
    }

    private func message(_ content: [JSONValue], status: String) -> JSONValue {
        .object([
            .init("id", .string(itemID)), .init("type", .string("message")), .init("role", .string("assistant")),
            .init("status", .string(status)), .init("content", .array(content)),
        ])
    }

    private func reasoning(_ text: String?) -> JSONValue {
        let content: [JSONValue] =
            text.map { [.object([.init("type", .string("reasoning_text")), .init("text", .string($0))])] } ?? []
        return .object([
            .init("id", .string(itemID)), .init("type", .string("reasoning")), .init("summary", .array([])),
            .init("content", .array(content)), .init("status", .string(text == nil ? "in_progress" : "completed")),
        ])
    }

    private mutating func begin(_ kind: Open) -> [ByteBuffer] {
        if open == kind { return [] }
        var events = close()
        open = kind
        itemID = RequestIdentifier.make(kind == .text ? "msg_" : "rs_")
        let item = kind == .text ? message([], status: "in_progress") : reasoning(nil)
        events.append(event("response.output_item.added", [.init("output_index", .int(output.count)), .init("item", item)]))
        if kind == .text {
            events.append(
                event("response.content_part.added", place + [.init("content_index", .int(0)), .init("part", part(""))]))
        }
        return events
    }

    /// - Parameter isCut: whether the answer ends before it is complete.
    private mutating func close(isCut: Bool = false) -> [ByteBuffer] {
        guard let open else { return [] }
        var events: [ByteBuffer] = []
        let content: JSONValue.Member = .init("content_index", .int(0))
        let item: JSONValue
        switch open {
        case .text:
            let scores: [JSONValue] = request.turn.topScores == nil ? [] : logprobs.map(\.json)
            events.append(
                event(
                    "response.output_text.done",
                    place + [content, .init("text", .string(text)), .init("logprobs", .array(scores))]))
            events.append(event("response.content_part.done", place + [content, .init("part", part(text))]))
            item = message([part(text)], status: isCut ? "incomplete" : "completed")
        case .thought:
            events.append(event("response.reasoning_text.done", place + [content, .init("text", .string(text))]))
            item = reasoning(text)
        }
        events.append(event("response.output_item.done", [.init("output_index", .int(output.count)), .init("item", item)]))
        output.append(item)
        (self.open, text, logprobs) = (nil, "", [])
        return events
    }

    private mutating func call(_ call: ChatToolCall) -> [ByteBuffer] {
        var events = close()
        itemID = RequestIdentifier.make("fc_")
        let arguments = call.arguments.spacedText
        func item(_ arguments: String, _ status: String) -> JSONValue {
            .object([
                .init("id", .string(itemID)), .init("type", .string("function_call")), .init("status", .string(status)),
                .init("call_id", .string(call.id)), .init("name", .string(call.name)), .init("arguments", .string(arguments)),
            ])
        }
        let index: JSONValue.Member = .init("output_index", .int(output.count))
        events.append(event("response.output_item.added", [index, .init("item", item("", "in_progress"))]))
        events.append(event("response.function_call_arguments.delta", place + [.init("delta", .string(arguments))]))
        events.append(
            event(
                "response.function_call_arguments.done",
                place + [.init("name", .string(call.name)), .init("arguments", .string(arguments))]))
        let done = item(arguments, "completed")
        events.append(event("response.output_item.done", [index, .init("item", done)]))
        output.append(done)
        return events
    }

    mutating func texts(for event: AnswerRun.Event) -> [ByteBuffer] {
        switch event {
        case .ping: return [EventText.comment]
        case .begin:
            let response: JSONValue.Member = .init("response", object(status: "in_progress"))
            return [self.event("response.created", [response]), self.event("response.in_progress", [response])]
        case .output(_, .text(let text, let scores)):
            let events = begin(.text)
            self.text += text
            logprobs += scores
            let list: [JSONValue] = request.turn.topScores == nil ? [] : scores.map(\.json)
            return events + [
                self.event(
                    "response.output_text.delta",
                    place + [.init("content_index", .int(0)), .init("delta", .string(text)), .init("logprobs", .array(list))])
            ]
        case .output(_, .thought(let text)):
            let events = begin(.thought)
            self.text += text
            return events + [
                self.event(
                    "response.reasoning_text.delta", place + [.init("content_index", .int(0)), .init("delta", .string(text))])
            ]
        case .output(_, .call(let call)): return self.call(call)
        case .end(_, let finish):
            self.finish = finish
            // An empty answer is a message too: a conversation goes on after it.
            let hasAnswer =
                open == .text || output.contains { ["message", "function_call"].contains($0["type"]?.string ?? "") }
            let events = hasAnswer ? [] : begin(.text)
            return events + close(isCut: finish.reason == .length)
        }
    }

    mutating func end(_ usage: TurnUsage) -> [ByteBuffer] {
        let response = final()
        return [event("response." + (response["status"]?.string ?? "completed"), [.init("response", response)])]
    }

    mutating func end(_ error: RequestError) -> [ByteBuffer] {
        [event("response.failed", [.init("response", final(error))])]
    }
}
