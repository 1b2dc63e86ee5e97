import AsyncHTTPClient
import Foundation
import JSON
import NIOCore
import NIOHTTP1
import TestSupport
import Testing

@testable import FoundationModelsServer

/// `/v1/decisions` and `/v1/systemone`, with a model of random weights: what it prefers means nothing, but it must be the same each time.
@Suite(.serialized) struct DecisionRouteTests {
    /// A server with a tiny model, whose name is `tiny`.
    private static func run<Value: Sendable>(
        _ configuration: ModelServer.Configuration = .init(), _ body: @escaping @Sendable (TestServer) async throws -> Value
    ) async throws -> Value {
        var tiny = TinyModel()
        tiny.context = 2_048
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
        let file = folder.appending(path: "tiny.gguf")
        try Data(tiny.builder().bytes()).write(to: file)
        var configuration = configuration
        configuration.models = [file.path]
        return try await TestServer.run(configuration, body)
    }

    private static let mail = "My parcel has not come, and the invoice is wrong."

    private static let list = """
        [{"type": "predicate", "instructions": "Is the writer angry?"},
         {"type": "choice", "name": "team", "instructions": "Which team should answer?",
          "choices": ["true", {"value": true, "description": "it is so"}, {"value": "nobody"}]},
         {"type": "score", "name": "urgency", "instructions": "How urgent is it?",
          "levels": ["can wait", {"label": "today", "description": "before five"}, "now"]}]
        """

    private static func openAI(
        _ questions: String = Self.list, input: JSONValue = .string(Self.mail), model: String = "tiny", _ more: String = ""
    ) -> String { "{\"model\": \"\(model)\", \"input\": \(input.text), \"questions\": \(questions)\(more)}" }

    private static let named = """
        {"zeta": {"type": "noul", "instructions": "Is the writer angry?"},
         "alpha": {"type": "choice", "instructions": "Which team should answer?",
          "criteria": {"support": "broken things", "billing": null, "sales": {"covers": ["offers"]}}},
         "mid": {"type": "score", "criteria": ["can wait", {"level": "today", "until": 5}, "now"]}}
        """

    private static func systemOne(_ questions: String = Self.named, state: JSONValue = .string(Self.mail), _ more: String = "")
        -> String
    {
        "{\"state\": \(state.text), \"questions\": \(questions)\(more)}"
    }

    // MARK: - Forms

    /// Members by their names, in order.
    private func names(_ value: JSONValue?) -> [String] {
        if case .object(let members)? = value { members.map(\.name) } else { [] }
    }

    private func items(_ value: JSONValue?) -> [JSONValue] {
        switch value {
        case .array(let items)?: items
        case .object(let members)?: members.map(\.value)
        default: []
        }
    }

    private func confidence(_ probabilities: [Double]) -> Double {
        let n = Double(probabilities.count)
        return (n * (probabilities.max() ?? 0) - 1) / (n - 1)
    }

    /// One less the mean distance from the best level, as a share of that of equal levels.
    private func confidenceOfScale(_ probabilities: [Double]) -> Double {
        let best = probabilities.firstIndex(of: probabilities.max() ?? 0) ?? 0
        let middle = Double(probabilities.count - 1) / 2
        var (distance, usual) = (0.0, 0.0)
        for (level, probability) in probabilities.enumerated() {
            distance += probability * Double(abs(level - best))
            usual += abs(Double(level) - middle) / Double(probabilities.count)
        }
        return max(0, 1 - distance / usual)
    }

    private func isNear(_ value: Double?, _ expected: Double) -> Bool { value.map { abs($0 - expected) < 1e-9 } ?? false }

    @Test func repliesToOpenAI() async throws {
        try await Self.run { server in
            let reply = try await server.send("/v1/decisions", Self.openAI())
            #expect(reply.status == 200, "\(reply.text)")
            let json = reply.json
            #expect(names(json) == ["model", "answers", "usage"] && json["model"]?.string == "tiny")
            let answers = items(json["answers"])
            try #require(answers.count == 3)

            // A name that was not given is null, not missing.
            #expect(names(answers[0]) == ["type", "name", "probability"] && answers[0]["name"] == .null)
            #expect(answers[0]["type"]?.string == "predicate")
            let probability = try #require(answers[0]["probability"]?.double)
            #expect(probability > 0 && probability < 1)

            #expect(names(answers[1]) == ["type", "name", "choice", "probabilities", "confidence"])
            #expect(answers[1]["type"]?.string == "choice" && answers[1]["name"]?.string == "team")
            let choices = items(answers[1]["probabilities"])
            // The values are those that were sent: true is not "true".
            #expect(choices.map { $0["value"] } == [.string("true"), .bool(true), .string("nobody")])
            #expect(choices.map { names($0) } == choices.map { _ in ["value", "probability"] })
            let ofChoices = choices.compactMap { $0["probability"]?.double }
            #expect(isNear(ofChoices.reduce(0, +), 1))
            let best = try #require(ofChoices.firstIndex(of: ofChoices.max() ?? 0))
            #expect(answers[1]["choice"] == choices[best]["value"])
            #expect(isNear(answers[1]["confidence"]?.double, confidence(ofChoices)))

            #expect(names(answers[2]) == ["type", "name", "score", "probabilities", "confidence"])
            let levels = items(answers[2]["probabilities"])
            #expect(levels.map { names($0) } == levels.map { _ in ["value", "label", "probability"] })
            #expect(levels.map { $0["value"]?.integer } == [0, 1, 2])
            #expect(levels.map { $0["label"]?.string } == ["can wait", "today", "now"])
            let ofLevels = levels.compactMap { $0["probability"]?.double }
            #expect(isNear(ofLevels.reduce(0, +), 1))
            // The mean level.
            #expect(isNear(answers[2]["score"]?.double, ofLevels[1] + 2 * ofLevels[2]))
            #expect(isNear(answers[2]["confidence"]?.double, confidenceOfScale(ofLevels)))

            let usage = try #require(json["usage"])
            #expect(
                names(usage) == [
                    "input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens",
                ])
            let input = try #require(usage["input_tokens"]?.integer)
            #expect(input > 0 && usage["total_tokens"]?.integer == input && usage["output_tokens"]?.integer == 0)
            #expect(names(usage["input_tokens_details"]) == ["cached_tokens", "cache_write_tokens"])
            #expect(usage["output_tokens_details"] == .object([.init("reasoning_tokens", .int(0))]))
            // What the three prompts have in common was processed with the first one.
            let cached = try #require(usage["input_tokens_details"]?["cached_tokens"]?.integer)
            #expect(cached > 2 * Self.mail.utf8.count && cached % 2 == 0 && cached < input)
        }
    }

    @Test func repliesToSystemOne() async throws {
        try await Self.run { server in
            let reply = try await server.send("/v1/systemone", Self.systemOne())
            #expect(reply.status == 200, "\(reply.text)")
            let json = reply.json
            #expect(names(json) == ["model", "answers", "usage"])
            #expect(names(json["answers"]) == ["zeta", "alpha", "mid"], "in the order of the request")

            // A noul has no confidence.
            let noul = try #require(json["answers"]?["zeta"])
            #expect(names(noul) == ["type", "noul"] && noul["type"]?.string == "noul")
            #expect((noul["noul"]?.double).map { $0 > 0 && $0 < 1 } == true)

            let choice = try #require(json["answers"]?["alpha"])
            #expect(names(choice) == ["type", "choice", "probabilities", "confidence"])
            #expect(names(choice["probabilities"]) == ["support", "billing", "sales"])
            let ofChoices = items(choice["probabilities"]).compactMap(\.double)
            #expect(ofChoices.count == 3 && isNear(ofChoices.reduce(0, +), 1))
            #expect(choice["choice"]?.string.flatMap { choice["probabilities"]?[$0]?.double } == ofChoices.max())
            #expect(isNear(choice["confidence"]?.double, confidence(ofChoices)))

            let score = try #require(json["answers"]?["mid"])
            #expect(names(score) == ["type", "score", "legend", "probabilities", "confidence"])
            // The legend repeats the criteria as they were sent.
            #expect(names(score["legend"]) == ["0", "1", "2"] && names(score["probabilities"]) == ["0", "1", "2"])
            #expect(
                items(score["legend"]).map(\.text) == [#""can wait""#, #"{"level":"today","until":5}"#, #""now""#])
            let ofLevels = items(score["probabilities"]).compactMap(\.double)
            #expect(ofLevels.count == 3 && isNear(ofLevels.reduce(0, +), 1))
            #expect(isNear(score["score"]?.double, ofLevels[1] + 2 * ofLevels[2]))
            #expect(isNear(score["confidence"]?.double, confidenceOfScale(ofLevels)))

            #expect(names(json["usage"]) == ["input_tokens", "output_tokens"])
            #expect((json["usage"]?["input_tokens"]?.integer ?? 0) > 0 && json["usage"]?["output_tokens"]?.integer == 0)
        }
    }

    /// Clients of either send to the address of the other.
    @Test func bothFormsAtAllAddresses() async throws {
        try await Self.run { server in
            let questions = #"{"a": {"type": "noul", "instructions": "Is the writer angry?"}}"#
            for body in [Self.openAI(), Self.systemOne(questions)] {
                var texts: [String] = []
                for path in ["/v1/decisions", "/decisions", "/v1/systemone", "/systemone"] {
                    let reply = try await server.send(path, body)
                    #expect(reply.status == 200, "\(path): \(reply.text)")
                    texts.append(reply.text)
                }
                #expect(Set(texts).count == 1)
            }
            // The same question is the same in both forms.
            let list = #"[{"type": "predicate", "instructions": "Is the writer angry?"}]"#
            let probability = items(try await server.send("/v1/decisions", Self.openAI(list)).json["answers"]).first?[
                "probability"]
            let noul = try await server.send("/v1/systemone", Self.systemOne(questions)).json["answers"]?["a"]?["noul"]
            #expect(probability == noul && noul?.double != nil)
            #expect(try await server.send("/v1/decisions").status == 405)
        }
    }

    @Test func questionsAloneAndTogether() async throws {
        try await Self.run { server in
            let together = try await server.send("/v1/decisions", Self.openAI()).json
            guard case .array(let questions) = try JSONParser.parse(Self.list) else { return }
            var tokens = 0
            for (question, answer) in zip(questions, items(together["answers"])) {
                let alone = try await server.send("/v1/decisions", Self.openAI(JSONValue.array([question]).text)).json
                #expect(items(alone["answers"]) == [answer])
                #expect(alone["usage"]?["input_tokens_details"]?["cached_tokens"]?.integer == 0)
                tokens += alone["usage"]?["input_tokens"]?.integer ?? 0
            }
            #expect(together["usage"]?["input_tokens"]?.integer == tokens)
            // Several clients at once.
            let expected = together["answers"]
            try await withThrowingTaskGroup(of: JSONValue?.self) { group in
                for _ in 0..<6 {
                    group.addTask { try await server.send("/v1/decisions", Self.openAI()).json["answers"] }
                }
                for try await answers in group { #expect(answers == expected) }
            }
        }
    }

    // MARK: - What questions are about

    @Test func states() async throws {
        try await Self.run { server in
            @Sendable func noul(_ state: String) async throws -> Double? {
                let state = try JSONParser.parse(state)
                let questions = #"{"a": {"type": "noul", "instructions": "Is the writer angry?"}}"#
                let reply = try await server.send("/v1/systemone", Self.systemOne(questions, state: state))
                #expect(reply.status == 200, "\(reply.text)")
                return reply.json["answers"]?["a"]?["noul"]?.double
            }
            let talk = #"[{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "On its way."}]"#
            let object = #"{"mail": "Where is it?", "days": [1, 2]}"#
            let text = try await noul("\"Where is it?\"")
            let ofObject = try await noul(object)
            let ofTalk = try await noul(talk)
            let others = [try await noul("\"Thank you!\""), try await noul("5")]
            #expect(Set([text, ofObject, ofTalk] + others).count == 5)
            // A value is read as the text that people write it with.
            let pretty = JSONValue.string(try JSONParser.parse(object).prettyText).text
            #expect(try await noul(pretty) == ofObject)
            // A conversation in either form.
            #expect(try await noul("{\"messages\": \(talk)}") == ofTalk)
            // What only looks like one is a value, and so is a conversation beside something else.
            let odd = #"[{"role": "pilot", "content": "Where is it?"}]"#
            let ofOdd = try await noul(odd)
            #expect(try await noul(JSONValue.string(JSONParser.parse(odd).prettyText).text) == ofOdd)
            #expect(try await noul("{\"messages\": \(talk), \"id\": 1}") != ofTalk)

            // OpenAI's input is a text too, or the items of a conversation.
            @Sendable func probability(_ input: String) async throws -> Double? {
                let list = #"[{"type": "predicate", "instructions": "Is the writer angry?"}]"#
                let reply = try await server.send("/v1/decisions", Self.openAI(list, input: JSONParser.parse(input)))
                #expect(reply.status == 200, "\(reply.text)")
                return reply.json["answers"]?.first?["probability"]?.double
            }
            #expect(try await probability("\"Where is it?\"") == text)
            #expect(
                try await probability(#"[{"role": "user", "content": "Where is it?"}]"#) == text, "a single message is a text")
            let parts = #"[{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where is it?"}]}]"#
            #expect(try await probability(parts) == text)
            #expect(try await probability(talk) == ofTalk)
            let calls = """
                [{"role": "user", "content": "Where is it?"}, {"type": "function_call", "name": "find", "arguments": "{}", "call_id": "1"},
                 {"type": "function_call_output", "call_id": "1", "output": "In Rome."}]
                """
            #expect(try await probability(calls) != text)
        }
    }

    // MARK: - Errors

    @Test func errorsOfOpenAI() async throws {
        try await Self.run { server in
            func question(_ fields: String) -> String { Self.openAI("[{\"instructions\": \"a\", \(fields)}]") }
            let cases: [(body: String, param: String)] = [
                ("{}", "model"), ("{\"model\": \"tiny\"}", "input"), ("{\"model\": \"tiny\", \"input\": \"a\"}", "questions"),
                (Self.openAI("5"), "questions"), (Self.openAI("[]"), "questions"), (Self.openAI("[1]"), "questions[0]"),
                (question("\"type\": \"number\""), "questions[0].type"),
                (question("\"type\": \"choice\", \"choices\": [\"a\", {\"value\": 5}]"), "questions[0].choices[1].value"),
                (question("\"type\": \"choice\", \"choices\": [\"a\", \"A\"]"), "questions[0]"),
                (question("\"type\": \"predicate\", \"levels\": []"), "questions[0].levels"),
                (Self.openAI(input: .int(5)), "input"), (Self.openAI(input: .array([])), "input"),
                (Self.openAI(input: .array([.object([.init("role", .string("user"))])])), "input[0]"),
                (
                    Self.openAI(input: .array([.object([.init("role", .string("pilot")), .init("content", .string("a"))])])),
                    "input[0].role"
                ), (Self.openAI(input: .array([.object([.init("type", .string("video"))])])), "input[0].type"),
                (Self.openAI("[{\"type\": \"predicate\", \"instructions\": \"a\"}]", ", \"temperature\": 1"), "temperature"),
            ]
            for (body, param) in cases {
                let reply = try await server.send("/v1/decisions", body)
                #expect(reply.status == 400 && reply.json["error"]?["param"]?.string == param, "\(body): \(reply.text)")
                let message = try #require(reply.json["error"]?["message"]?.string)
                #expect(message.hasSuffix(".") && !message.hasSuffix(".."), "\(message)")
            }
            // Fields of clients that change no answer.
            let harmless = ", \"user\": \"u\", \"metadata\": {}, \"safety_identifier\": \"s\", \"prompt_cache_key\": \"k\""
            #expect(try await server.send("/v1/decisions", Self.openAI(Self.list, harmless)).status == 200)
            let unknown = try await server.send("/v1/decisions", Self.openAI(model: "nonsense"))
            #expect(unknown.status == 404 && unknown.json["error"]?["code"]?.string == "model_not_found")
            let long = try await server.send(
                "/v1/decisions", Self.openAI(input: .string(String(repeating: "one two three ", count: 400))))
            #expect(long.status == 400 && long.json["error"]?["code"]?.string == "context_length_exceeded")
            #expect(long.json["error"]?["n_ctx"]?.integer == 2_048)
            #expect((long.json["error"]?["n_prompt_tokens"]?.integer ?? 0) > 2_048)
            for body in ["[]", "5", "{", ""] { #expect(try await server.send("/v1/decisions", body).status == 400, "\(body)") }
            // All of it is given back.
            #expect(server.server.gate.load.active == 0)
        }
    }

    /// Clients of System One read `detail`, those of OpenAI `error`: both are there.
    @Test func errorsOfSystemOne() async throws {
        try await Self.run { server in
            func question(_ fields: String) -> String { Self.systemOne("{\"a\": {\(fields)}}") }
            let cases: [(body: String, place: [String])] = [
                ("{\"questions\": {}}", ["state"]), ("{\"questions\": {}, \"state\": null}", ["state"]),
                ("{\"state\": \"a\"}", ["questions"]), ("{\"state\": \"a\", \"questions\": 5}", ["questions"]),
                (Self.systemOne("{}"), ["questions"]), (Self.systemOne("{\"a\": 5}"), ["questions", "a"]),
                (question("\"instructions\": \"x\""), ["questions", "a", "type"]),
                (question("\"type\": \"predicate\", \"instructions\": \"x\""), ["questions", "a", "type"]),
                (question("\"type\": \"noul\""), ["questions", "a", "noul", "instructions"]),
                (question("\"type\": \"choice\", \"instructions\": \"x\""), ["questions", "a", "choice", "criteria"]),
                (question("\"type\": \"score\", \"criteria\": {}"), ["questions", "a", "score", "criteria"]),
                (question("\"type\": \"choice\", \"criteria\": {}"), ["questions", "a"]),
            ]
            for (body, place) in cases {
                let reply = try await server.send("/v1/systemone", body)
                #expect(reply.status == 422, "\(body): \(reply.text)")
                let details = items(reply.json["detail"])
                try #require(details.count == 1, "\(reply.text)")
                #expect(names(details[0]) == ["loc", "msg", "type"])
                #expect(items(details[0]["loc"]).map(\.string) == ["body"] + place)
                #expect(reply.json["error"]?["param"]?.string == place.joined(separator: "."))
                #expect(details[0]["msg"] == reply.json["error"]?["message"] && details[0]["msg"]?.string?.isEmpty == false)
                #expect(details[0]["type"] == reply.json["error"]?["code"] && details[0]["type"]?.string != nil)
                #expect(reply.json["error"]?["place"] == nil, "the place is not written twice")
            }
            let pictures = try await server.send("/v1/systemone", Self.systemOne(Self.named, ", \"images\": [\"x\"]"))
            #expect(pictures.status == 422 && pictures.json["error"]?["param"]?.string == "images")
            // Nothing is wrong with a list without pictures, and with fields of newer clients.
            let questions = #"{"a": {"type": "noul", "instructions": "Is it?"}}"#
            let empty = try await server.send("/v1/systemone", Self.systemOne(questions, ", \"images\": [], \"trace\": true"))
            #expect(empty.status == 200)
            // Clients name models of the service: the server has its own.
            let other = try await server.send("/v1/systemone", Self.systemOne(questions, ", \"model\": \"system-one-large\""))
            #expect(other.status == 200 && other.json["answers"] == empty.json["answers"])
            #expect(other.json["model"]?.string == "default")
            let own = try await server.send("/v1/systemone", Self.systemOne(questions, ", \"model\": \"tiny\""))
            #expect(own.json["model"]?.string == "tiny" && own.json["answers"] == empty.json["answers"])
            let long = try await server.send(
                "/v1/systemone", Self.systemOne(questions, state: .string(String(repeating: "one two three ", count: 400))))
            #expect(long.status == 400 && long.json["error"]?["code"]?.string == "context_length_exceeded")
            #expect(long.json["detail"] == long.json["error"]?["message"])
        }
    }

    @Test func keysAreNeeded() async throws {
        var configuration = ModelServer.Configuration()
        configuration.keys = [APIKey(name: "a", key: "secret")]
        try await Self.run(configuration) { server in
            let none = try await server.send("/v1/systemone", Self.systemOne())
            #expect(none.status == 401 && none.json["error"]?["code"]?.string == "invalid_api_key")
            #expect(none.json["detail"] == none.json["error"]?["message"])
            let key = try await server.send("/v1/decisions", Self.openAI(), headers: ["Authorization": "Bearer secret"])
            #expect(key.status == 200)
        }
    }

    /// System One's list of models is beside OpenAI's.
    @Test func models() async throws {
        try await Self.run { server in
            let models = items(try await server.send("/v1/models").json["models"])
            #expect(models.map { $0["name"]?.string } == ["tiny"])
            #expect(names(models.first) == ["name", "description", "release_date"])
            #expect(models.first?["release_date"]?.string?.wholeMatch(of: /\d{4}-\d{2}-\d{2}/) != nil)
        }
    }

    // MARK: - Compressed bodies

    /// `{"model": "default", "input": "My parcel has not come. My parcel has …", "questions": [{"type": "predicate", …}]}`, compressed by
    /// the command `zstd`, which knew the length.
    private static let compressed = """
        KLUv/WReAa0DANIHGBeQOwfoLiRcXG5p/ZVNQLpIuhYhJmOnOZERXUi/hjhha1c6frrrOVZlDYer+BbqplqHPnenq3v2UOF0yNpaqLG5gTtQpilvY4apeFH10vkh\
        Njq2buC7xET0uNMXPRpzKAUAsCE7pYgmBTE8infq+NaJB9svQ+o=
        """
    /// The same, compressed as a stream of unknown length.
    private static let streamed = """
        KLUv/QRorQMA0gcYF5A7B+guJFxcbmn9lU1Auki6FiEmY6c5kRFdSL+GOGFrVzp+uus5VmUNh6v4FuqmWoc+d6ere/ZQ4XTI2lqosbmBO1CmKW9jhql4UfXS+SE2\
        OrZu4LvERPS40xc9GnMoBQCwITuliCYFMTyKd+r41okH2y9D6g==
        """
    private static let body = """
        {"model": "default", "input": "\(String(repeating: "My parcel has not come. ", count: 20))", \
        "questions": [{"type": "predicate", "instructions": "Is the writer waiting for a parcel?"}]}
        """
    /// 300,000 spaces.
    private static let spaces = "KLUv/aTgkwQATAAACCABAPz/ORACAgAQIAOfBCA+iyK2"

    private static func bytes(_ base64: String) throws -> [UInt8] { Array(try #require(Data(base64Encoded: base64))) }

    @Test(.enabled(if: Zstandard.shared != nil)) func decompression() throws {
        let zstandard = try #require(Zstandard.shared)
        let (whole, stream) = (try Self.bytes(Self.compressed), try Self.bytes(Self.streamed))
        let expected = Array(Self.body.utf8)
        #expect(zstandard.decompress(whole, maximumBytes: 10_000) == .success(expected))
        #expect(zstandard.decompress(stream, maximumBytes: 10_000) == .success(expected))
        #expect(zstandard.decompress(whole + stream, maximumBytes: 10_000) == .success(expected + expected))
        #expect(zstandard.decompress(whole, maximumBytes: expected.count) == .success(expected))
        #expect(zstandard.decompress(whole, maximumBytes: expected.count - 1) == .failure(.tooLarge))
        // Larger than the part that is made at once.
        let spaces = try Self.bytes(Self.spaces)
        #expect(zstandard.decompress(spaces, maximumBytes: 300_000) == .success([UInt8](repeating: 0x20, count: 300_000)))
        #expect(zstandard.decompress(spaces, maximumBytes: 299_999) == .failure(.tooLarge))
        // Cut anywhere; or with another bit, after which it is never another text: a checksum is a part of it.
        for place in whole.indices {
            #expect(zstandard.decompress(Array(whole[..<place]), maximumBytes: 10_000) == .failure(.damaged), "\(place) bytes")
            var changed = whole
            changed[place] ^= 1
            if case .success(let text) = zstandard.decompress(changed, maximumBytes: 10_000) {
                #expect(text == expected, "byte \(place)")
            }
        }
        #expect(zstandard.decompress(whole + [1], maximumBytes: 10_000) == .failure(.damaged))
        #expect(zstandard.decompress(Array("{}".utf8), maximumBytes: 10_000) == .failure(.damaged))
    }

    @Test(.enabled(if: Zstandard.shared != nil)) func compressedBodies() async throws {
        var configuration = ModelServer.Configuration()
        configuration.maximumBodyBytes = 1_000
        try await Self.run(configuration) { server in
            let plain = try await server.send("/v1/decisions", Self.body)
            #expect(plain.status == 200)
            for encoded in [Self.compressed, Self.streamed] {
                let reply = try await server.send("/v1/decisions", bytes: Self.bytes(encoded), encoding: "zstd")
                #expect(reply.status == 200 && reply.text == plain.text)
            }
            var damaged = try Self.bytes(Self.compressed)
            // In the checksum.
            damaged[damaged.count - 2] ^= 1
            for bytes in [damaged, Array(damaged[..<40]), [], Array(Self.body.utf8)] {
                let reply = try await server.send("/v1/decisions", bytes: bytes, encoding: "ZSTD")
                #expect(reply.status == 400 && reply.json["error"]?["message"]?.string != nil, "\(reply.text)")
            }
            // The limit is that of the whole body.
            let large = try await server.send("/v1/decisions", bytes: Self.bytes(Self.spaces), encoding: "zstd")
            #expect(large.status == 413)
        }
    }

    @Test func unknownEncodings() async throws {
        try await Self.run { server in
            for encoding in ["br", "zstd, gzip", "compress"] {
                let reply = try await server.send("/v1/decisions", bytes: Array(Self.body.utf8), encoding: encoding)
                #expect(reply.status == 415 && reply.json["error"]?["code"]?.string == "unsupported_encoding", "\(encoding)")
                #expect(reply.json["detail"]?.string != nil)
            }
            #expect(try await server.send("/v1/decisions", bytes: Array(Self.body.utf8), encoding: "identity").status == 200)
        }
    }
}

extension TestServer {
    fileprivate func send(_ path: String, bytes: [UInt8], encoding: String) async throws -> Reply {
        var request = HTTPClientRequest(url: address + path)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "Content-Encoding", value: encoding)
        request.body = .bytes(ByteBuffer(bytes: bytes))
        let response = try await HTTPClient.shared.execute(request, timeout: .minutes(5))
        var buffer = try await response.body.collect(upTo: 1 << 20)
        return Reply(
            status: Int(response.status.code), headers: [:], text: buffer.readString(length: buffer.readableBytes) ?? "")
    }
}
