import FoundationModels
import JSON
import TestSupport
import Testing

@testable import MCP

/// The client, without a program or a network between it and its server.
struct MCPClientTests {
    private static let greeting = parsed(
        #"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"},"instructions":"Be brief."}"#)

    /// A server of 2025.
    private func legacy(
        version: String = "2025-11-25", refusal: any Error = MCPFailure.unknownMethod("server/discover")
    ) -> ScriptedTransport {
        ScriptedTransport { method, _ in
            switch method {
            case "server/discover": throw refusal
            case "initialize": return Self.greeting.setting("protocolVersion", .string(version))
            default: return parsed(#"{"tools":[]}"#)
            }
        }
    }

    // MARK: - Openings

    @Test("a server of 2026 is asked what it speaks, and each request says what the client is") func modern() async throws {
        let transport = ScriptedTransport.modern { _, _ in parsed(#"{"resultType":"complete","tools":[]}"#) }
        let client = transport.client()
        #expect(client.instructions == nil)
        _ = try await client.call("tools/list", parsed(#"{"cursor":"x"}"#), headers: ["A": "b"])
        #expect(transport.methods == ["server/discover", "tools/list"])
        #expect(transport.revisions == ["2026-07-28"] && transport.notifications.isEmpty)
        #expect(client.instructions == "Be kind." && client.serverName == "scripted")
        for request in transport.requests {
            let meta = request.params["_meta"]
            #expect(meta?["io.modelcontextprotocol/protocolVersion"]?.string == "2026-07-28")
            #expect(meta?["io.modelcontextprotocol/clientCapabilities"] == .object([]))
            #expect(meta?["io.modelcontextprotocol/clientInfo"]?["name"]?.string?.isEmpty == false)
        }
        #expect(transport.requests.last?.params["cursor"]?.string == "x" && transport.requests.last?.headers == ["A": "b"])
    }

    @Test("a server that does not know the question of 2026 is greeted as those of 2025 are") func fallback() async throws {
        let refusals: [any Error] = [
            MCPFailure.unknownMethod("server/discover"), MCPFailure(code: -32602, message: "Invalid request parameters"),
            MCPFailure(code: -32600, message: "Bad Request: Missing session ID"), MCPFailure(code: -400, message: "HTTP 400"),
            MCPFailure.unsupportedVersion("2026-07-28"), MCPError.silent(server: "s", method: "server/discover"),
            MCPError.invalidReply(server: "s", reason: "an answer without a result"),
        ]
        for refusal in refusals {
            let transport = legacy(refusal: refusal)
            let client = transport.client()
            _ = try await client.call("tools/list")
            #expect(transport.methods == ["server/discover", "initialize", "tools/list"], "\(refusal)")
            #expect(transport.notifications == ["notifications/initialized"] && transport.revisions == ["2025-11-25"])
            #expect(client.instructions == "Be brief." && client.serverName == "s")
            guard transport.requests.count == 3 else { continue }
            let greeting = transport.requests[1].params
            #expect(greeting["protocolVersion"]?.string == "2025-11-25" && greeting["capabilities"] == .object([]))
            #expect(greeting["clientInfo"]?["name"]?.string?.isEmpty == false && greeting["_meta"] == nil)
            // Requests of 2025 have nothing besides.
            #expect(transport.requests[2].params == .object([]))
        }
    }

    @Test("a server of an earlier version of 2025 is spoken to in its own", arguments: MCPRevision.legacyVersions)
    func versions(version: String) async throws {
        let transport = legacy(version: version)
        _ = try await transport.client().call("tools/list")
        #expect(transport.revisions == [version])
    }

    @Test("a server that answers the question without a known revision is greeted") func noRevision() async throws {
        for answer in [#"{"supportedVersions":["2099-01-01"]}"#, #"{"supportedVersions":"2026-07-28"}"#, "{}", "null", "[1]"] {
            let transport = ScriptedTransport { method, _ in
                method == "server/discover" ? parsed(answer) : method == "initialize" ? Self.greeting : parsed("{}")
            }
            _ = try await transport.client().call("tools/list")
            #expect(transport.methods == ["server/discover", "initialize", "tools/list"], "\(answer)")
        }
    }

    @Test("a server that has read the first question by the time it is greeted is asked again") func slowStart() async throws {
        let asked = Shared(0)
        let transport = ScriptedTransport { method, _ in
            switch method {
            case "server/discover":
                asked.change { $0 += 1 }
                if asked.value == 1 { throw MCPError.silent(server: "s", method: method) }
                return ScriptedTransport.discovery
            case "initialize": throw MCPFailure.unsupportedVersion("2025-11-25")
            default: return parsed("{}")
            }
        }
        _ = try await transport.client().call("tools/list")
        #expect(transport.methods == ["server/discover", "initialize", "server/discover", "tools/list"])
        #expect(transport.revisions == ["2026-07-28"] && transport.notifications.isEmpty)
        #expect(transport.requests.last?.params["_meta"] != nil)
    }

    @Test("a server that has ended is not greeted, and one of an unknown version is not used") func unusable() async {
        let ended = MCPError.ended(server: "s", reason: "exited(1)")
        let dead = legacy(refusal: ended)
        await #expect(throws: ended) { try await dead.client().call("tools/list") }
        #expect(dead.methods == ["server/discover"])
        let strange = legacy(version: "1999-01-01")
        let error = await #expect(throws: MCPError.self) { try await strange.client().call("tools/list") }
        guard case .invalidReply(server: "scripted", let reason)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason.contains("1999-01-01"))
        #expect(strange.notifications.isEmpty && strange.revisions.isEmpty)
    }

    @Test("a server that refuses to be greeted is an error") func refusedGreeting() async {
        let transport = ScriptedTransport { _, _ in throw MCPFailure(code: -32000, message: "Not today.") }
        await #expect(throws: MCPError.refused(server: "scripted", code: -32000, message: "Not today.")) {
            try await transport.client().call("tools/list")
        }
        #expect(transport.methods == ["server/discover", "initialize"])
    }

    @Test("the first question does not take longer than a server may be silent") func patience() async throws {
        let transport = legacy()
        _ = try await transport.client(patience: .milliseconds(100)).call("tools/list")
        let patience = transport.requests.first?.patience ?? .milliseconds(100)
        #expect(patience <= .milliseconds(100))
    }

    @Test("calls that run together open the connection once", .timeLimit(.minutes(1))) func together() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { method, _ in
            guard method == "server/discover" else { return parsed("{}") }
            await gate.wait()
            return ScriptedTransport.discovery
        }
        let client = transport.client()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = try await client.call("tools/list") } }
            await eventually { transport.methods == ["server/discover"] }
            gate.open()
            try await group.waitForAll()
        }
        #expect(transport.methods.filter { $0 == "server/discover" }.count == 1 && transport.methods.count == 21)
        #expect(transport.revisions == ["2026-07-28"])
        _ = try await client.call("tools/list")
        #expect(transport.methods.filter { $0 == "server/discover" }.count == 1)
    }

    @Test("after a failure the next call opens the connection again", .timeLimit(.minutes(1))) func again() async throws {
        let gate = Gate()
        let isUp = Shared(false)
        let transport = ScriptedTransport { method, _ in
            guard method == "server/discover" else { return parsed("{}") }
            await gate.wait()
            if !isUp.value { throw MCPError.ended(server: "s", reason: "no route") }
            return ScriptedTransport.discovery
        }
        let client = transport.client()
        // All that wait for the opening get its error.
        let failures = await withTaskGroup(of: Bool.self) { group -> Int in
            for _ in 0..<5 {
                group.addTask {
                    do {
                        _ = try await client.call("tools/list")
                        return false
                    } catch { return (error as? MCPError) == .ended(server: "s", reason: "no route") }
                }
            }
            await eventually { !transport.methods.isEmpty }
            gate.open()
            var count = 0
            for await isExpected in group where isExpected { count += 1 }
            return count
        }
        #expect(failures == 5 && !transport.methods.contains("tools/list"))
        isUp.change { $0 = true }
        _ = try await client.call("tools/list")
        #expect(transport.methods.last == "tools/list" && transport.revisions == ["2026-07-28"])
    }

    @Test("a call that is cancelled does not wait for the opening of the connection", .timeLimit(.minutes(1)))
    func cancelledOpening() async {
        let gate = Gate()
        let transport = ScriptedTransport { method, _ in
            // As a server that hangs, whatever its client does.
            if method == "server/discover" { await gate.wait() }
            return ScriptedTransport.discovery
        }
        let client = transport.client()
        let hasEnded = Shared(false)
        let task = Task {
            defer { hasEnded.change { $0 = true } }
            _ = try await client.call("tools/list")
        }
        await eventually { !transport.methods.isEmpty }
        task.cancel()
        await eventually { hasEnded.value }
        gate.open()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    // MARK: - Results

    @Test("results of kinds that are not known, and questions, are errors") func kinds() async throws {
        let result = Shared("{}")
        let transport = ScriptedTransport.modern { _, _ in parsed(result.value) }
        let client = transport.client()
        for text in [#"{"a":1}"#, #"{"a":1,"resultType":"complete"}"#, #"{"a":1,"resultType":"complete","ttlMs":-5}"#] {
            result.change { $0 = text }
            #expect(try await client.call("tools/call")["a"]?.integer == 1)
        }
        result.change { $0 = #"{"resultType":"maybe"}"# }
        let unknown = await #expect(throws: MCPError.self) { try await client.call("tools/call") }
        guard case .invalidReply(server: "scripted", let reason)? = unknown else {
            Issue.record("\(String(describing: unknown))")
            return
        }
        #expect(reason.contains("maybe"))
        result.change {
            $0 = #"{"resultType":"input_required","requestState":"s","inputRequests":{"who":{"method":"elicitation/create"}}}"#
        }
        await #expect(throws: MCPError.unsupportedRequest(server: "scripted", request: "elicitation/create")) {
            try await client.call("tools/call")
        }
        // Without a question it is not answered either.
        result.change { $0 = #"{"resultType":"input_required","requestState":"s"}"# }
        await #expect(throws: MCPError.unsupportedRequest(server: "scripted", request: "")) {
            try await client.call("tools/call")
        }
    }

    @Test("errors of the server have its name, its code and its words") func refused() async {
        let transport = ScriptedTransport.modern { _, _ in throw MCPFailure(code: -32021, message: "No.", data: .null) }
        let client = transport.client()
        await #expect(throws: MCPError.refused(server: "scripted", code: -32021, message: "No.")) {
            try await client.call("tools/call")
        }
        let cancelled = ScriptedTransport.modern { _, _ in throw CancellationError() }.client()
        await #expect(throws: CancellationError.self) { try await cancelled.call("tools/call") }
    }

    @Test("changes of tools are known until they were looked at") func changes() async throws {
        let transport = ScriptedTransport.modern { _, _ in parsed("{}") }
        let client = transport.client()
        transport.tell("notifications/message")
        transport.tell("notifications/resources/list_changed")
        #expect(client.unseenChanges == nil)
        transport.tell("notifications/tools/list_changed")
        let first = try #require(client.unseenChanges)
        transport.tell("notifications/tools/list_changed")
        // The second one came after what was looked at.
        client.noteComparison(of: first)
        let second = try #require(client.unseenChanges)
        client.noteComparison(of: second)
        #expect(client.unseenChanges == nil)
    }

    // MARK: - Lists

    /// Pages by their cursors; the first one has none.
    private func pages(_ page: @escaping @Sendable (_ cursor: String?) -> String) -> ScriptedTransport {
        .modern { _, params in parsed("{\"resultType\":\"complete\",\(page(params["cursor"]?.string))}") }
    }

    private func cursors(_ transport: ScriptedTransport) -> [String?] {
        transport.requests.filter { $0.method == "tools/list" }.map { $0.params["cursor"]?.string }
    }

    @Test("all pages of a list are read") func paging() async throws {
        let transport = pages { cursor in
            switch cursor {
            case nil: #""tools":["a","b"],"nextCursor":"1""#
            case "1": #""tools":[],"nextCursor":"""#
            case "": #""tools":["c"],"nextCursor":"3""#
            default: #""tools":["d"],"nextCursor":null"#
            }
        }
        let list = try await transport.client().list("tools/list", "tools", maximum: 1_000)
        #expect(list == ["a", "b", "c", "d"].map { JSONValue.string($0) })
        #expect(cursors(transport) == [nil, "1", "", "3"])
    }

    @Test("pages that lead to themselves, or go on for ever, end") func endlessPaging() async throws {
        let same = pages { _ in #""tools":["a"],"nextCursor":"x""# }
        #expect(try await same.client().list("tools/list", "tools", maximum: 1_000).count == 2)
        #expect(cursors(same) == [nil, "x"])
        let circle = pages { $0 == "x" ? #""tools":["a"],"nextCursor":"y""# : #""tools":["b"],"nextCursor":"x""# }
        #expect(try await circle.client().list("tools/list", "tools", maximum: 1_000).count == 3)
        let endless = pages { #""tools":[],"nextCursor":"\#(($0 ?? "") + "x")""# }
        #expect(try await endless.client().list("tools/list", "tools", maximum: 1_000).isEmpty)
        #expect(cursors(endless).count == 100)
    }

    @Test("no more than the maximum is read") func manyEntries() async throws {
        let entries = Array(repeating: "1", count: 600).joined(separator: ",")
        let transport = pages { #""tools":[\#(entries)],"nextCursor":"\#(($0 ?? "") + "x")""# }
        #expect(try await transport.client().list("tools/list", "tools", maximum: 1_000).count == 1_000)
        #expect(cursors(transport).count == 2)
        let exact = pages { #""tools":[1,2],"nextCursor":"\#(($0 ?? "") + "x")""# }
        #expect(try await exact.client().list("tools/list", "tools", maximum: 2).count == 2)
        #expect(cursors(exact).count == 1)
    }

    @Test("a page that has no list is an error") func noList() async {
        for page in [#""x":1"#, #""tools":null"#, #""tools":{}"#, #""tools":"a""#] {
            let transport = pages { _ in page }
            let error = await #expect(throws: MCPError.self) {
                try await transport.client().list("tools/list", "tools", maximum: 10)
            }
            guard case .invalidReply? = error else {
                Issue.record("\(page): \(String(describing: error))")
                continue
            }
        }
    }

    // MARK: - With the server of this module

    @Test("client and server understand each other in both revisions", .timeLimit(.minutes(1)), arguments: [true, false])
    func together(isModern: Bool) async throws {
        let patient = Patient()
        let server = MCPServer(
            name: "tests", instructions: "Be kind.", tools: [.init(Shout()), .init(Weather()), .init(Broken()), .init(patient)])
        let transport = SessionTransport(server, isLegacy: !isModern)
        let client = MCPClient(name: "here", patience: .seconds(60)) { _ in transport }
        let tools = try await client.list("tools/list", "tools", maximum: 10)
        #expect(tools.map { $0["name"]?.string } == ["shout", "weather", "broken", "wait"])
        #expect(client.instructions == "Be kind.")
        let shouted = try await client.call("tools/call", parsed(#"{"name":"shout","arguments":{"text":"hi"}}"#))
        #expect(elements(shouted["content"]).first?["text"]?.string == "HI")
        #expect(shouted["resultType"]?.string == (isModern ? "complete" : nil))
        let error = await #expect(throws: MCPError.self) {
            try await client.call("tools/call", parsed(#"{"name":"nope","arguments":{}}"#))
        }
        guard case .refused(server: "here", code: -32602, _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        // A call that is cancelled ends at the server, too.
        let task = Task { try await client.call("tools/call", parsed(#"{"name":"wait","arguments":{}}"#)) }
        await eventually { patient.begun.value == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await eventually { patient.cancelled.value == 1 }
        await client.close()
    }
}
