import JSON
import Synchronization
import Testing

@testable import Inference

/// Events on their way from the engine to the task of a request.
@Suite struct TurnEventsTests {
    private static func part(_ text: String, token: TokenID = 0) -> GeneratedText {
        var tokens = GeneratedTokens()
        tokens.append(token)
        return GeneratedText(text: text, tokens: tokens)
    }

    /// The events in order; texts of the same kind are joined, calls are not.
    private func script(_ events: [TurnEvent]) -> [String] {
        var lines: [String] = []
        var last = ""
        func add(_ kind: String, _ text: String, joins: Bool = true) {
            if joins, kind == last { lines[lines.count - 1] += text } else { lines.append(kind + ": " + text) }
            last = kind
        }
        for event in events {
            switch event {
            case .text(let part): add("text", part.text)
            case .thought(let part): add("thought", part.text)
            case .call(let call): add("call", call.name, joins: false)
            case .state(let values, _): add("state", "\(values)", joins: false)
            }
        }
        return lines
    }

    @Test func textIsJoinedWhenNobodyReads() async throws {
        let events = TurnEvents()
        for index in 0..<1_000 { events.send(.text(Self.part("\(index) ", token: TokenID(index)))) }
        let received = try await events.next()
        #expect(received.count < 100)
        #expect(script(received) == ["text: " + (0..<1_000).map { "\($0) " }.joined()])
        let tokens = received.flatMap { event -> [TokenID] in if case .text(let part) = event { Array(part.tokens) } else { [] } }
        #expect(tokens == (0..<1_000).map { TokenID($0) })
        // What has been read is not sent again.
        events.send(.text(Self.part("end")))
        let rest = try await events.next()
        #expect(script(rest) == ["text: end"])
    }

    @Test func orderIsKept() async throws {
        let events = TurnEvents()
        var sent: [TurnEvent] = [.state([1, 2], layer: 0)]
        for round in 0..<60 {
            let call = ChatToolCall(id: "\(round)", name: "call\(round)", arguments: .object([]))
            sent += [.thought(Self.part("a\(round)")), .thought(Self.part("b"))]
            sent += [.text(Self.part("c")), .text(Self.part("d\(round)")), .call(call), .call(call)]
        }
        for event in sent { events.send(event) }
        events.finish(.success(()))
        let received = try await events.next()
        #expect(script(received) == script(sent))
        #expect(script(received).count == 1 + 60 * 4)
        #expect(received.count < sent.count)
        let end = try await events.next()
        #expect(end.isEmpty)
    }

    @Test func errorsFollowTheEventsBeforeThem() async throws {
        let events = TurnEvents()
        events.send(.text(Self.part("a")))
        events.finish(.failure(GenerationFailure.unusableLogits))
        let received = try await events.next()
        #expect(script(received) == ["text: a"])
        await #expect(throws: GenerationFailure.unusableLogits) { _ = try await events.next() }
    }

    @Test(.timeLimit(.minutes(1)))
    func readersWait() async throws {
        let events = TurnEvents()
        for text in ["a", "b"] {
            let reader = Task { try await events.next() }
            for _ in 0..<1_000 { await Task.yield() }
            events.send(.text(Self.part(text)))
            let received = try await reader.value
            #expect(script(received) == ["text: " + text])
        }
        let reader = Task { try await events.next() }
        for _ in 0..<1_000 { await Task.yield() }
        events.finish(.failure(GenerationFailure.unusableLogits))
        await #expect(throws: GenerationFailure.unusableLogits) { _ = try await reader.value }
    }

    @Test(.timeLimit(.minutes(1)))
    func nothingIsLostWhileSomeoneReads() async throws {
        let events = TurnEvents()
        let writer = Task.detached {
            for index in 0..<5_000 {
                events.send(.text(Self.part("\(index) ")))
                if index % 100 == 0 { await Task.yield() }
            }
            events.finish(.success(()))
        }
        var text = ""
        while true {
            let received = try await events.next()
            if received.isEmpty { break }
            for case .text(let part) in received { text += part.text }
        }
        await writer.value
        #expect(text == (0..<5_000).map { "\($0) " }.joined())
    }

    @Test func refusal() {
        let events = TurnEvents()
        #expect(!events.isUnwanted)
        events.refuse()
        #expect(events.isUnwanted)
    }
}
