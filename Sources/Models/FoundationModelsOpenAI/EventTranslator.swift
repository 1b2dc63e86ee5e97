internal import Foundation
internal import FoundationModels
internal import JSON

/// Converts the server-sent events of a response to events of a session.
struct EventTranslator {
    typealias Event = LanguageModelExecutorGenerationChannel.Event

    /// Whether the response is a value.
    let isGuided: Bool
    /// Tool calls by their index in the response. The first part of a call contains its name; later parts may not.
    private var calls: [Int: (id: String, name: String)] = [:]
    private var refusal = ""
    /// The last reported token usage; some servers report it with each event.
    private var usage: JSONValue?
    /// The number of fragments of reasoning and of everything, for servers that report no usage.
    private var fragments = (reasoning: 0, all: 0)
    /// The JSON of the value, or of the arguments of the last call.
    private var json = ""
    /// Why the response has ended, as the server says it.
    private var reason: String?
    private var hasEnded = false

    init(isGuided: Bool) { self.isGuided = isGuided }

    /// - Parameter data: The data of one server-sent event.
    /// - Throws: ``LanguageModelError``, or ``OpenAILanguageModel/ServerError`` if the data does not conform to the
    ///   protocol.
    mutating func events(for data: [UInt8]) throws -> [Event] {
        if data.elementsEqual("[DONE]".utf8) {
            hasEnded = true
            return []
        }
        let chunk: JSONValue
        do { chunk = try JSONParser.parse(data) } catch {
            throw OpenAILanguageModel.ServerError.invalidResponse(reason: "\(error)")
        }
        if let error = chunk["error"], error != .null { throw ServerFailure(status: 500, body: chunk, retryAfter: nil).error }
        var events: [Event] = []
        if case .array(let choices)? = chunk["choices"], let choice = choices.first {
            if let delta = choice["delta"] { events += try self.events(delta) }
            if let reason = choice["finish_reason"]?.string {
                (self.reason, hasEnded) = (reason, true)
                if reason == "content_filter" {
                    throw LanguageModelError.guardrailViolation(
                        .init(debugDescription: "The server's filter stopped the response."))
                }
            }
        }
        if let usage = chunk["usage"], usage != .null { self.usage = usage }
        return events
    }

    private mutating func events(_ delta: JSONValue) throws -> [Event] {
        var events: [Event] = []
        // vLLM and others use `reasoning_content`, newer servers `reasoning`.
        if let thought = delta["reasoning_content"]?.string ?? delta["reasoning"]?.string, !thought.isEmpty {
            fragments = (fragments.reasoning + 1, fragments.all + 1)
            events.append(.reasoning(action: .appendText(thought, tokenCount: 1)))
        }
        if let text = delta["content"]?.string, !text.isEmpty {
            fragments.all += 1
            if isGuided { json += text }
            events.append(.response(action: .appendText(text, tokenCount: 1)))
        }
        refusal += delta["refusal"]?.string ?? ""
        guard case .array(let parts)? = delta["tool_calls"] else { return events }
        for (place, part) in parts.enumerated() {
            // Some servers send the index of a call, some do not, and some send the same index for all calls.
            var index = place
            if case .number(let number)? = part["index"] { index = number.integer ?? place }
            let name = part["function"]?["name"]?.string
            let id = part["id"]?.string.flatMap { $0.isEmpty ? nil : $0 }
            if calls[index] == nil || (id != nil && id != calls[index]?.id) {
                guard let name else {
                    throw OpenAILanguageModel.ServerError.invalidResponse(reason: "a tool call has no name")
                }
                calls[index] = (id ?? UUID().uuidString, name)
                json = ""
            }
            guard let call = calls[index] else { continue }
            let arguments = part["function"]?["arguments"]?.string ?? ""
            json += arguments
            if !arguments.isEmpty { fragments.all += 1 }
            events.append(
                .toolCalls(
                    action: .toolCall(
                        id: call.id, name: call.name, action: .appendArguments(arguments, tokenCount: arguments.isEmpty ? 0 : 1)))
            )
        }
        return events
    }

    private func event(ofUsage usage: JSONValue?) -> Event {
        func count(_ value: JSONValue?) -> Int {
            guard case .number(let number)? = value else { return 0 }
            return min(max(0, number.integer ?? 0), 1 << 40)
        }
        let input = LanguageModelExecutorGenerationChannel.Usage.Input(
            totalTokenCount: count(usage?["prompt_tokens"]),
            cachedTokenCount: count(usage?["prompt_tokens_details"]?["cached_tokens"]))
        let output = LanguageModelExecutorGenerationChannel.Usage.Output(
            totalTokenCount: usage.map { count($0["completion_tokens"]) } ?? fragments.all,
            reasoningTokenCount: usage.map { count($0["completion_tokens_details"]?["reasoning_tokens"]) } ?? fragments.reasoning)
        // As the built-in model names them.
        let reasons = ["stop": "endOfTurn", "length": "maximumTokens"]
        let metadata = reason.flatMap { reasons[$0] }.map { ["stopReason": $0] } ?? [:]
        // With tool calls, usage belongs to their entry: a response event would add an empty response entry.
        return calls.isEmpty
            ? .response(action: .updateUsage(input: input, output: output, metadata: metadata))
            : .toolCalls(action: .updateUsage(input: input, output: output, metadata: metadata))
    }

    /// - Throws: ``LanguageModelError/refusal(_:)`` if the model refused, ``GeneratedContent/ParsingError`` if a limit of tokens has cut
    ///   a value or the arguments of a call, or ``OpenAILanguageModel/ServerError`` if the connection was closed before the response
    ///   was complete.
    mutating func finish() throws -> [Event] {
        if !refusal.isEmpty {
            throw LanguageModelError.refusal(.init(explanation: refusal, debugDescription: "The model refused: \(refusal)"))
        }
        guard hasEnded else {
            throw OpenAILanguageModel.ServerError.invalidResponse(reason: "the response is incomplete")
        }
        let isCut = reason == "length"
        if isCut, isGuided || !calls.isEmpty, (try? JSONParser.parse(Array(json.utf8))) == nil {  // the limit is the reason
            throw GeneratedContent.ParsingError(
                rawContent: json,
                debugDescription:
                    "The limit of tokens has cut the response (finish_reason “length”). Allow more with maximumResponseTokens, or on the server."
            )
        }
        return usage != nil || isCut ? [event(ofUsage: usage)] : []
    }
}
