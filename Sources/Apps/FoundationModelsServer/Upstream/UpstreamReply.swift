internal import Inference
internal import JSON

/// Reads the stream of another server's chat completion, and checks it while it comes. A value without I/O.
struct UpstreamReply {
    /// The answer is not what was asked for.
    struct Invalid: Error { var reason: String }

    /// The server has said that it failed.
    struct Failed: Error {
        var status: Int?
        var body: JSONValue
    }

    private struct Call {
        var id: String
        var name: String
        var arguments = ""
    }

    private let request: TurnRequest
    private let tools: [String: UpstreamCheck.Form]
    private var check: UpstreamCheck?
    private var calls: [Call] = []
    /// The places of the calls that the server means by its numbers.
    private var open: [Int: Int] = [:]
    private var finish: String?
    private var hasEnded = false
    /// Whether nothing follows.
    private(set) var isDone = false
    private var usage: JSONValue?
    private var fragments = (thought: 0, all: 0)
    private(set) var hasText = false

    /// - Parameters:
    ///   - form: that of the answer; nil for any text.
    ///   - tools: the forms of arguments, by the names of the tools that may be called.
    init(_ request: TurnRequest, form: UpstreamCheck.Form?, tools: [String: UpstreamCheck.Form]) {
        (self.request, self.tools) = (request, tools)
        check = form.map { UpstreamCheck($0) }
    }

    /// Reads the data of an event.
    ///
    /// - Returns: what is certain of the answer.
    /// - Throws: ``Invalid`` or ``Failed``
    mutating func read(_ data: [UInt8], isWhole: Bool) throws -> [TurnOutput] {
        if data.elementsEqual("[DONE]".utf8) {
            (hasEnded, isDone) = (true, true)
            return []
        }
        let chunk: JSONValue
        do { chunk = try JSONParser.parse(data) } catch { throw Invalid(reason: "the reply has something that is no JSON") }
        if let error = chunk["error"], error != .null { throw Failed(status: error["code"]?.integer, body: chunk) }
        if chunk["object"]?.string == "error" { throw Failed(status: chunk["code"]?.integer, body: chunk) }
        if let usage = chunk["usage"], usage != .null { self.usage = usage }
        guard case .array(let choices)? = chunk["choices"], let choice = choices.first else { return [] }
        var outputs: [TurnOutput] = []
        if let delta = isWhole ? choice["message"] : choice["delta"] { outputs = try read(delta, choice["logprobs"]) }
        if let reason = choice["finish_reason"]?.string {
            finish = reason
            hasEnded = true
        }
        return outputs
    }

    private mutating func read(_ delta: JSONValue, _ logprobs: JSONValue?) throws -> [TurnOutput] {
        var outputs: [TurnOutput] = []
        // Under the names of vLLM's versions.
        if let thought = delta["reasoning_content"]?.string ?? delta["reasoning"]?.string, !thought.isEmpty {
            fragments = (fragments.thought + 1, fragments.all + 1)
            outputs.append(.thought(thought))
        }
        if let text = delta["content"]?.string, !text.isEmpty {
            fragments.all += 1
            if request.tools.mustCall {
                // What is said before a call that must be made is left out where it has no form.
                if !text.allSatisfy(\.isWhitespace) { throw Invalid(reason: "a call was demanded, and the answer is a text") }
            } else {
                if check?.append(text) == false { throw Invalid(reason: "the answer leaves its form") }
                hasText = true
                outputs.append(.text(text, Self.logprobs(logprobs)))
            }
        }
        if let refusal = delta["refusal"]?.string, !refusal.isEmpty { throw Invalid(reason: "the server refuses") }
        guard case .array(let parts)? = delta["tool_calls"] else { return outputs }
        for (place, part) in parts.enumerated() {
            fragments.all += 1
            let name = part["function"]?["name"]?.string.flatMap { $0.isEmpty ? nil : $0 }
            let id = part["id"]?.string.flatMap { $0.isEmpty ? nil : $0 }
            let index = part["index"]?.integer ?? place
            // Some servers give each call the same index: a name begins another call, unless it is that of the open one again.
            let known = open[index].map { calls[$0] }
            if let name, known == nil || id != nil && id != known?.id || id == nil && known?.arguments.isEmpty == false {
                open[index] = calls.count
                calls.append(Call(id: id ?? ToolFormat.identifier(), name: name))
            }
            guard let place = open[index] ?? calls.indices.last else { throw Invalid(reason: "a call has no name") }
            let arguments = part["function"]?["arguments"]
            calls[place].arguments += arguments?.string ?? (arguments.flatMap { $0 == .null ? nil : $0.text } ?? "")
        }
        return outputs
    }

    private static func logprobs(_ value: JSONValue?) -> [TokenLogprob] {
        guard case .array(let items)? = value?["content"] else { return [] }
        return items.compactMap { TokenLogprob($0) }
    }

    /// The end of the reply.
    ///
    /// - Throws: ``Invalid``
    mutating func end() throws -> (outputs: [TurnOutput], finish: TurnFinish) {
        guard hasEnded else { throw Invalid(reason: "the reply is not complete") }
        let known = [nil, "stop", "length", "tool_calls", "function_call", "content_filter"]
        guard known.contains(finish) else { throw Invalid(reason: "the answer ends for a reason that is not known") }
        let isCut = finish == "length"
        var outputs: [TurnOutput] = []
        // A call that was cut is no call.
        for (place, call) in calls.enumerated() where !(isCut && place == calls.count - 1) {
            guard let form = tools[call.name] else { throw Invalid(reason: "there is no tool that may be called by this name") }
            let text = call.arguments.isEmpty ? "{}" : call.arguments
            guard form.accepts(text), let arguments = try? JSONParser.parse(text) else {
                throw Invalid(reason: "the arguments of a call leave their form")
            }
            outputs.append(.call(ChatToolCall(id: call.id, name: call.name, arguments: arguments)))
        }
        if !request.tools.allowsSeveral, outputs.count > 1 { outputs.removeLast(outputs.count - 1) }
        let hasCalls = !outputs.isEmpty
        if !isCut {
            if request.tools.mustCall, !hasCalls { throw Invalid(reason: "a call was demanded, and none was made") }
            if !hasCalls, let check, !check.isComplete { throw Invalid(reason: "the answer ends before it is complete") }
        }
        let reason: TurnFinish.Reason =
            finish == "content_filter" ? .filtered : isCut ? .length : hasCalls ? .calls : .stop
        return (outputs, TurnFinish(reason: reason, usage: counts))
    }

    /// The token counts that the server reports; those of answers are estimated from the parts if it reports none.
    private var counts: TurnUsage {
        func count(_ value: JSONValue?) -> Int? { value?.integer.map { min(max(0, $0), 1 << 40) } }
        var result = TurnUsage()
        result.promptTokens = count(usage?["prompt_tokens"]) ?? 0
        result.cachedTokens = count(usage?["prompt_tokens_details"]?["cached_tokens"]) ?? 0
        result.completionTokens = count(usage?["completion_tokens"]) ?? fragments.all
        result.reasoningTokens = count(usage?["completion_tokens_details"]?["reasoning_tokens"]) ?? fragments.thought
        return result
    }
}

extension TokenLogprob {
    /// As another server has written it.
    fileprivate init?(_ json: JSONValue) {
        guard let text = json["token"]?.string, let value = json["logprob"]?.double else { return nil }
        func bytes(_ json: JSONValue, _ text: String) -> [UInt8] {
            guard case .array(let values)? = json["bytes"] else { return Array(text.utf8) }
            return values.compactMap { $0.integer.flatMap { UInt8(exactly: $0) } }
        }
        (token, self.bytes, logprob) = (0, bytes(json, text), value)
        var others: [Alternative] = []
        if case .array(let list)? = json["top_logprobs"] {
            for other in list {
                guard let text = other["token"]?.string, let value = other["logprob"]?.double else { continue }
                others.append(Alternative(token: 0, bytes: bytes(other, text), logprob: value))
            }
        }
        top = others
    }
}
