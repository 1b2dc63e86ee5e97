internal import Decisions
internal import Foundation
internal import FoundationModels
internal import HTTPTypes
internal import Hummingbird
internal import JSON
internal import Logging

/// Questions on a state that are answered by probabilities: OpenAI's `/v1/decisions` and System One's `/v1/systemone`. Clients of both send
/// either body to either address, so the body says which one it is.
extension ModelServer {
    var decisionRoutes: [Route] {
        ["/decisions", "/systemone"].map { path in
            Route(method: .post, paths: ["/v1" + path, path], name: path, style: .decisions) { [self] exchange in
                let body = try await exchange.body()
                // A list of questions is OpenAI's, an object of them System One's.
                let isNamed = if case .object? = body["questions"] { true } else { body["state"] != nil }
                return .json(try await isNamed ? namedDecisions(body, exchange) : listedDecisions(body, exchange))
            }
        }
    }

    // MARK: - OpenAI

    private func listedDecisions(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        var fields = try Fields(body)
        let model = try fields.string(required: "model")
        guard let input = fields.value("input") else { throw RequestError.invalid("input", "“input” is missing.") }
        guard let questions = try fields.array("questions") else {
            throw RequestError.invalid("questions", "“questions” is missing.")
        }
        fields.ignore("prompt_cache_key", "prompt_cache_options", "safety_identifier", "user", "metadata")
        try fields.finish()
        let form: DecisionForm
        let state: DecisionState
        do {
            form = try DecisionForm(list: questions)
            state = try DecisionState(input: input)
        } catch { throw RequestError.invalid(error.path, "“\(error.path)”: \(error.reason).") }
        let run = try await decide(form, state, model, exchange)
        let answers = zip(form.items, run.answers).map { item, answer -> JSONValue in
            let head: [JSONValue.Member] = [
                .init("type", .string(item.question.kind.name)), .init("name", .optional(item.name)),
            ]
            let probabilities = answer.distribution.probabilities
            switch item.question.kind {
            case .predicate: return .object(head + [.init("probability", .double(answer.probability))])
            case .choice:
                let list = zip(item.values, probabilities).map { value, probability in
                    JSONValue.object([.init("value", value), .init("probability", .double(probability))])
                }
                return .object(
                    head + [
                        .init("choice", item.values[answer.distribution.mostLikely]), .init("probabilities", .array(list)),
                        .init("confidence", .double(answer.confidence)),
                    ])
            case .score:
                let list = zip(item.values, probabilities).enumerated().map { level, element in
                    JSONValue.object([
                        .init("value", .int(level)), .init("label", element.0), .init("probability", .double(element.1)),
                    ])
                }
                return .object(
                    head + [
                        .init("score", .double(answer.score)), .init("probabilities", .array(list)),
                        .init("confidence", .double(answer.confidence)),
                    ])
            }
        }
        let usage: [JSONValue.Member] = [
            .init("input_tokens", .int(run.promptTokens)),
            .init(
                "input_tokens_details",
                .object([.init("cached_tokens", .int(run.cachedTokens)), .init("cache_write_tokens", .int(0))])),
            .init("output_tokens", .int(0)),
            .init("output_tokens_details", .object([.init("reasoning_tokens", .int(0))])),
            .init("total_tokens", .int(run.promptTokens)),
        ]
        return .object([
            .init("model", .string(model)), .init("answers", .array(answers)), .init("usage", .object(usage)),
        ])
    }

    // MARK: - System One

    private func namedDecisions(_ body: JSONValue, _ exchange: Exchange) async throws -> JSONValue {
        guard case .object = body else { throw RequestError(422, code: "invalid_body", "The body must be a JSON object.") }
        // Other fields are those of newer clients, and change no answer here.
        for name in ["assets", "images", "files"] {
            if let value = body[name], value != .null, value != .array([]), value != .object([]) {
                throw RequestError.invalidField([name], "models here read no pictures and files")
            }
        }
        guard let state = body["state"], state != .null else { throw RequestError.invalidField(["state"], "Field required") }
        guard case .object(let questions)? = body["questions"] else {
            throw RequestError.invalidField(["questions"], "Input should be an object")
        }
        // Local servers answer whatever the client calls the model.
        let wanted = body["model"]?.string ?? "default"
        let model = (try? directory.model(named: wanted)) == nil ? "default" : wanted
        let form: DecisionForm
        do { form = try DecisionForm(named: questions) } catch { throw RequestError.invalidField(error.place, error.reason) }
        let run = try await decide(form, DecisionState(value: state), model, exchange)
        let answers = zip(form.items, run.answers).map { item, answer in
            JSONValue.Member(item.name ?? "", Self.named(answer, item.values))
        }
        return .object([
            .init("model", .string(model)), .init("answers", .object(answers)),
            .init(
                "usage",
                .object([.init("input_tokens", .int(run.promptTokens)), .init("output_tokens", .int(0))])),
        ])
    }

    private static func named(_ answer: DecisionAnswer, _ values: [JSONValue]) -> JSONValue {
        let probabilities = answer.distribution.probabilities
        switch answer.question.kind {
        case .predicate: return .object([.init("type", .string("noul")), .init("noul", .double(answer.probability))])
        case .choice:
            return .object([
                .init("type", .string("choice")), .init("choice", values[answer.distribution.mostLikely]),
                .init(
                    "probabilities",
                    .object(zip(values, probabilities).map { .init($0.string ?? $0.text, .double($1)) })),
                .init("confidence", .double(answer.confidence)),
            ])
        case .score:
            // Clients refuse a score without the legend, which repeats the criteria as they were sent.
            return .object([
                .init("type", .string("score")), .init("score", .double(answer.score)),
                .init("legend", .object(values.enumerated().map { .init("\($0)", $1) })),
                .init("probabilities", .object(probabilities.enumerated().map { .init("\($0)", .double($1)) })),
                .init("confidence", .double(answer.confidence)),
            ])
        }
    }

    // MARK: - Both

    /// Answers the questions when the client's turn has come.
    private func decide(
        _ form: DecisionForm, _ state: DecisionState, _ model: String, _ exchange: Exchange
    ) async throws -> DecisionRun {
        if upstreams != nil {
            throw RequestError(501, code: "not_supported", "Servers that this one passes requests on to do not decide questions.")
        }
        let served = try directory.model(named: model)
        // For errors of the model's file.
        _ = try await served.lease()
        let place = try await gate.enter(exchange.client)
        var tokens = 0
        defer { place.leave(tokens: tokens) }
        do {
            var reader = OptionReader(served.local)
            if configuration.isolatesKeys { reader.domain = LocalTurn.domain(of: exchange.client) }
            let run = try await exchange.whileConnected { [self, reader] in
                try await withDeadline(seconds: configuration.maximumRequestSeconds) {
                    try await reader.decisions(about: state.text, form.items.map(\.question), after: state.entries)
                }
            }
            tokens = run.promptTokens - run.cachedTokens
            take(tokens: tokens, of: exchange.client)
            return run
        } catch LanguageModelError.contextSizeExceeded(let context) {
            var error = RequestError.tooLong(tokens: context.tokenCount, contextSize: context.contextSize, param: "questions")
            error.message =
                "The state with the longest question has \(context.tokenCount) tokens; the model reads \(context.contextSize). Shorten it."
            throw error
        } catch LanguageModelError.rateLimited {
            throw RequestError(503, type: "server_error", code: "overloaded", "Too many requests wait.", retryAfter: 5)
        } catch let error as CancellationError {
            throw error
        } catch let error as RequestError {
            throw error
        } catch {
            ServerLog.logger.error("Questions cannot be answered", metadata: ["reason": "\(error)"])
            throw RequestError.fault
        }
    }
}

/// What questions are about: a text, or a conversation that they follow.
private struct DecisionState {
    var text: String?
    var entries: [Transcript.Entry] = []

    /// OpenAI's input: a text, or items of a conversation.
    init(input: JSONValue) throws(DecisionForm.Problem) {
        if let text = input.string {
            self.text = text
            return
        }
        guard case .array(let items) = input, !items.isEmpty else {
            throw DecisionForm.Problem(place: ["input"], reason: "it must be a text or a list of items")
        }
        for (index, item) in items.enumerated() {
            let place = ["input", "\(index)"]
            switch item["type"]?.string ?? "message" {
            case "message":
                guard let role = item["role"]?.string, let content = item["content"] else {
                    throw DecisionForm.Problem(place: place, reason: "it must have a role and a content", isMissing: true)
                }
                try add(role, DecisionForm.prose(content, place + ["content"]), place)
            case "function_call", "custom_tool_call":
                let arguments = item["arguments"]?.string ?? item["input"]?.string ?? ""
                entries.append(.response(.init(segments: [.text("Call of \(item["name"]?.string ?? ""): \(arguments)")])))
            case "function_call_output", "custom_tool_call_output":
                let output = item["output"].map { DecisionForm.written($0) } ?? ""
                entries.append(.prompt(.init(segments: [.text("Result: \(output)")])))
            default: throw DecisionForm.Problem(place: place + ["type"], reason: "it must be a message, a call or its output")
            }
        }
        // A single message is the text that is asked about.
        if entries.count == 1, case .prompt(let prompt)? = entries.first {
            text = prompt.segments.modelText
            entries = []
        }
    }

    /// System One's state: a text, a value, or a conversation.
    init(value: JSONValue) {
        let list: [JSONValue]? =
            if case .array(let items) = value {
                items
            } else if case .object(let members) = value, members.count == 1,
                members[0].name == "messages", case .array(let items) = members[0].value
            { items } else { nil }
        if let list, !list.isEmpty, list.allSatisfy({ $0["role"]?.string != nil && $0["content"]?.string != nil }) {
            var chat = DecisionState()
            for item in list {
                guard let role = item["role"]?.string, let content = item["content"]?.string,
                    (try? chat.add(role, content, [])) != nil
                else {
                    text = DecisionForm.written(value)
                    return
                }
            }
            self = chat
        } else {
            text = DecisionForm.written(value)
        }
    }

    private init() {}

    private mutating func add(_ role: String, _ text: String, _ place: [String]) throws(DecisionForm.Problem) {
        switch role {
        case "system", "developer": entries.append(.instructions(.init(segments: [.text(text)], toolDefinitions: [])))
        case "user": entries.append(.prompt(.init(segments: [.text(text)])))
        case "assistant": entries.append(.response(.init(segments: [.text(text)])))
        default: throw DecisionForm.Problem(place: place + ["role"], reason: "it must be system, developer, user or assistant")
        }
    }
}

extension Transcript.Segment {
    fileprivate static func text(_ text: String) -> Self { .text(.init(content: text)) }
}

extension RequestError {
    /// A wrong field, as System One's clients know it.
    fileprivate static func invalidField(_ place: [String], _ reason: String) -> RequestError {
        let path = place.joined(separator: ".")
        var error = RequestError(422, code: "validation_error", param: path, "\(path): \(reason)")
        error.details = [.init("place", .array((["body"] + place).map { .string($0) }))]
        return error
    }
}
