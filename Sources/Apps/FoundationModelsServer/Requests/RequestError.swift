internal import JSON

/// Why a request is refused, as clients of OpenAI's API know it. Other APIs write the same in their own form.
struct RequestError: Error, Equatable {
    var status: Int
    var type: String
    /// A name for programs; nil if the type says enough.
    var code: String?
    /// The path of the field that is the reason; nil if it is not one field.
    var param: String?
    var message: String
    /// The seconds after which the client may try again; nil for no promise.
    var retryAfter: Int?
    /// Further members of the error object: numbers that the message names too.
    var details: [JSONValue.Member] = []

    init(
        _ status: Int, type: String = "invalid_request_error", code: String? = nil, param: String? = nil, _ message: String,
        retryAfter: Int? = nil
    ) {
        (self.status, self.type, self.code, self.param) = (status, type, code, param)
        (self.message, self.retryAfter) = (message, retryAfter)
    }

    /// The error object of OpenAI's API: all four members are there, as its clients expect.
    var object: JSONValue {
        .object(
            [
                .init("message", .string(message)), .init("type", .string(type)), .init("param", .optional(param)),
                .init("code", .optional(code)),
            ] + details)
    }
}

extension RequestError {
    static func invalid(_ param: String, _ message: String) -> RequestError { RequestError(400, param: param, message) }

    /// A field that the server does not know. It is refused, because leaving it out could change what the client gets.
    static func unknown(_ param: String) -> RequestError {
        RequestError(
            400, code: "unknown_parameter", param: param,
            "The field “\(param)” is not known. Remove it: this server ignores nothing that could change the answer.")
    }

    static func unsupported(_ param: String, _ reason: String) -> RequestError {
        RequestError(400, code: "unsupported_parameter", param: param, "“\(param)” is not supported: \(reason)")
    }

    static func unsupportedValue(_ param: String, _ reason: String) -> RequestError {
        RequestError(400, code: "unsupported_value", param: param, "This value of “\(param)” is not supported: \(reason)")
    }

    static func unknownModel(_ name: String) -> RequestError {
        RequestError(
            404, code: "model_not_found", param: "model",
            "The model “\(name)” does not exist on this server. GET /v1/models lists those that do.")
    }

    /// - Parameter param: the field of the conversation.
    static func tooLong(tokens: Int, contextSize: Int, param: String = "messages") -> RequestError {
        var error = RequestError(
            400, code: "context_length_exceeded", param: param,
            "This model's maximum context length is \(contextSize) tokens. However, your request has \(tokens) tokens. Shorten it, or send “truncation”: “auto”, with which the server leaves out what is not needed."
        )
        error.details = [
            .init("n_prompt_tokens", .number(DecimalNumber(tokens))), .init("n_ctx", .number(DecimalNumber(contextSize))),
        ]
        return error
    }

    static let fault = RequestError(
        500, type: "server_error", "The server could not process the request because of a fault of its own. Its log says more.")
}

extension JSONValue {
    static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
    static func optional(_ number: Int?) -> JSONValue { number.map { .number(DecimalNumber($0)) } ?? .null }
    static func int(_ number: Int) -> JSONValue { .number(DecimalNumber(number)) }
    /// A number with the digits that identify it.
    static func double(_ number: Double) -> JSONValue { DecimalNumber("\(number)").map { .number($0) } ?? .null }
}
