internal import Inference
internal import JSON

/// The parts of an answer, as they are when it is complete.
struct CollectedAnswer: Sendable {
    var text = ""
    var thought = ""
    var calls: [ChatToolCall] = []
    var logprobs: [TokenLogprob] = []
    var finish: TurnFinish?

    mutating func add(_ output: TurnOutput) {
        switch output {
        case .text(let text, let logprobs):
            self.text += text
            self.logprobs += logprobs
        case .thought(let text): thought += text
        case .call(let call): calls.append(call)
        }
    }

    /// The mean of the logarithms of the probabilities of its tokens.
    var meanLogprob: Double {
        logprobs.isEmpty ? -.infinity : logprobs.reduce(0) { $0 + ($1.logprob ?? 0) } / Double(logprobs.count)
    }
}

extension TokenLogprob {
    /// As chat completions and responses have them. A token may be a part of a character, so that its bytes are there too.
    var json: JSONValue {
        .object(
            Self.members(bytes, logprob ?? 0) + [
                .init("top_logprobs", .array(top.map { .object(Self.members($0.bytes, $0.logprob)) }))
            ])
    }

    private static func members(_ bytes: [UInt8], _ logprob: Double) -> [JSONValue.Member] {
        [
            .init("token", .string(String(decoding: bytes, as: UTF8.self))), .init("logprob", .double(logprob)),
            .init("bytes", .array(bytes.map { .int(Int($0)) })),
        ]
    }
}
