import Grammar
import Inference
import JSON
import Testing

@testable import FoundationModelsServer

@Suite struct UpstreamTests {
    private static let schema = JSONValue.object([
        .init("type", .string("object")),
        .init(
            "properties",
            .object([
                .init("name", .object([.init("type", .string("string"))])),
                .init("age", .object([.init("type", .string("integer"))])),
            ])), .init("required", .array([.string("name"), .string("age")])), .init("additionalProperties", .bool(false)),
    ])

    private func normal(_ parts: String...) -> String? {
        var normalizer = JSONNormalizer()
        var bytes: [UInt8] = []
        for part in parts {
            guard let next = normalizer.normalize(part.utf8) else { return nil }
            bytes += next
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func normalForm() {
        #expect(normal("{ \"a\" :\n [ 1 , \"x y\" ] }") == "{\"a\":[1,\"x y\"]}")
        // Escapes in one form, wherever the text is divided.
        #expect(normal("\"\\u00", "e9\\/\\\"\\n\\u0041\"") == "\"é/\\\"\\nA\"")
        #expect(normal("\"\\ud83d\\u", "de00\"") == "\"😀\"")
        #expect(normal("\"\\ud83d x\"") == nil)
        #expect(normal("\"\\q\"") == nil)
        #expect(normal("\"\\u+041\"") == nil)
        // White space divides what belongs together.
        #expect(normal("[1 ", " 2]") == nil)
        #expect(normal("[tr ue]") == nil)
        #expect(normal("[1 ,", " 2 ]") == "[1,2]")
    }

    private func reply(_ chunks: [String], tools: [String: UpstreamCheck.Form] = [:], mustCall: Bool = false) throws -> (
        text: String, calls: [ChatToolCall], finish: TurnFinish
    ) {
        var request = TurnRequest(model: "m", input: .chat(.init()))
        if mustCall {
            request.tools.tools = [.init(name: "f", description: "", parameters: Self.schema, isStrict: true, place: "")]
            request.tools.choice = .required
        } else if tools.isEmpty {
            request.format = .schema(Self.schema, place: "response_format")
        }
        let form = request.format == nil ? nil : try UpstreamCheck.Form(.schema(Self.schema))
        var reply = UpstreamReply(request, form: form, tools: tools)
        var outputs: [TurnOutput] = []
        for chunk in chunks { outputs += try reply.read(Array(chunk.utf8), isWhole: false) }
        let end = try reply.end()
        outputs += end.outputs
        var answer = CollectedAnswer()
        for output in outputs { answer.add(output) }
        return (answer.text, answer.calls, end.finish)
    }

    private func text(_ text: String, finish: String? = nil) -> String {
        JSONValue.object([
            .init(
                "choices",
                .array([
                    .object([
                        .init("index", .int(0)), .init("delta", .object([.init("content", .string(text))])),
                        .init("finish_reason", .optional(finish)),
                    ])
                ]))
        ]).text
    }

    @Test func validAnswersPass() throws {
        // In another order, with white space and an escape.
        let answer = try reply([text("{\"age\": 3, "), text("\"name\": \"Zo\\u00eb\"}"), text("", finish: "stop"), "[DONE]"])
        #expect(answer.text == "{\"age\": 3, \"name\": \"Zo\\u00eb\"}" && answer.finish.reason == .stop)
    }

    @Test func illegalBytesStop() throws {
        #expect(throws: UpstreamReply.Invalid.self) { try reply([text("{\"age\": \"three\"")]) }
        #expect(throws: UpstreamReply.Invalid.self) { try reply([text("Here is your JSON: ")]) }
        // The end is too early, and says that it is none.
        #expect(throws: UpstreamReply.Invalid.self) { try reply([text("{\"age\": 3"), text("", finish: "stop")]) }
        #expect(throws: UpstreamReply.Invalid.self) { try reply([text("{\"age\": 3")]) }
        // A cut that says so is none of the server's faults.
        #expect(try reply([text("{\"age\": 3"), text("", finish: "length")]).finish.reason == .length)
        #expect(throws: UpstreamReply.Failed.self) { try reply(["{\"error\": {\"code\": 500, \"message\": \"x\"}}"]) }
        #expect(throws: UpstreamReply.Invalid.self) { try reply(["not json"]) }
    }

    @Test func callsAreChecked() throws {
        let tools = ["f": try UpstreamCheck.Form(.schema(Self.schema))]
        func call(_ index: Int, _ name: String?, _ arguments: String, id: String? = nil) -> String {
            var function: [JSONValue.Member] = [.init("arguments", .string(arguments))]
            if let name { function.append(.init("name", .string(name))) }
            let call = JSONValue.object([
                .init("index", .int(index)), .init("id", .optional(id)), .init("function", .object(function)),
            ])
            return "{\"choices\": [{\"index\": 0, \"delta\": {\"tool_calls\": [\(call.text)]}}]}"
        }
        let end = "{\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"tool_calls\"}]}"
        // All calls have the index 0, as some servers send them.
        let answer = try reply(
            [
                call(0, "f", "{\"name\": \"a\",", id: "x"), call(0, nil, " \"age\": 1}"),
                call(0, "f", "{\"name\": \"b\", \"age\": 2}", id: "y"),
                end,
            ], tools: tools)
        #expect(answer.calls.map(\.id) == ["x", "y"] && answer.finish.reason == .calls)
        #expect(throws: UpstreamReply.Invalid.self) { try reply([call(0, "f", "{\"name\": 1}"), end], tools: tools) }
        #expect(throws: UpstreamReply.Invalid.self) { try reply([call(0, "g", "{}"), end], tools: tools) }
        #expect(throws: UpstreamReply.Invalid.self) {
            try reply([text("I will not.", finish: "stop")], tools: tools, mustCall: true)
        }
    }
}
