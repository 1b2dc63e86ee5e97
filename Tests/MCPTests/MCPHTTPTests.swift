import Foundation
import FoundationModels
import JSON
import TestSupport
import Testing

@testable import MCP

/// A small server in Python that answers HTTP requests as the test writes: the body of the function `handle(request, message)`.
private final class HTTPProgram: Sendable {
    let program: Program
    let url: URL
    private let process: Process
    private let lifeline: Pipe

    private struct NotStarted: Error {}

    init(_ handle: String) throws {
        let body = handle.split(separator: "\n", omittingEmptySubsequences: false).map { "    \($0)" }.joined(separator: "\n")
        // The server of the other tests is not run.
        program = try Program(start: Self.functions + "def handle(request, message):\n" + body + Self.start)
        let (process, lifeline, output) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = program.command
        process.standardInput = lifeline
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        _ = fcntl(lifeline.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try process.run()
        var text = ""
        while !text.hasSuffix("\n"), case let data = output.fileHandleForReading.availableData, !data.isEmpty {
            text += String(decoding: data, as: UTF8.self)
        }
        guard let port = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)),
            let url = URL(string: "http://127.0.0.1:\(port)/mcp")
        else { throw NotStarted() }
        (self.process, self.lifeline, self.url) = (process, lifeline, url)
    }

    deinit {
        try? lifeline.fileHandleForWriting.close()  // the server ends when its input is closed
        process.waitUntilExit()
    }

    /// The requests so far: method, headers, and message.
    var requests: [JSONValue] { program.received }

    private static let functions = """
        import http.server

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments): pass

            def reply(self, status, body=b"", kind="application/json", headers={}):
                self.send_response(status)
                for name, value in headers.items(): self.send_header(name, value)
                if body: self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def answer(self, message, result, headers={}):
                body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                self.reply(200, json.dumps(body).encode(), headers=headers)

            # A stream of events, which ends with the connection.
            def stream(self, headers={}):
                self.send_response(200)
                for name, value in headers.items(): self.send_header(name, value)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.flush()
                self.close_connection = True

            def event(self, message):
                self.wfile.write(b"event: message\\r\\ndata: " + json.dumps(message).encode() + b"\\r\\n\\r\\n")
                self.wfile.flush()

            def take(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                message = json.loads(body) if body else None
                headers = {name.lower(): value for name, value in self.headers.items()}
                note("received.txt", json.dumps({"method": self.command, "headers": headers, "message": message}))
                handle(self, message)

            do_POST = do_DELETE = take

        LIST = {"tools": [{"name": "do", "inputSchema": {"type": "object", "properties": {
            "text": {"type": "string"}, "region": {"type": "string", "x-mcp-header": "Region"}}}}]}

        # What a server of 2026 answers to all but calls.
        def modern(request, message):
            if message["method"] == "server/discover":
                request.answer(message, {"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"})
            elif message["method"] == "tools/list": request.answer(message, dict(LIST, resultType="complete"))
            else: return False
            return True

        def text(message, words):
            return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": words}]}}


        """

    private static let start = """


        def serve():
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            print(server.server_address[1], flush=True)
            sys.stdin.read()

        """
}

private func connect(
    _ server: HTTPProgram, headers: [String: String] = [:], patience: Duration = .seconds(60)
) async throws -> MCPTools {
    var options = MCPTools.Options(name: "web", approval: .all, patience: patience)
    options.throwsErrors = true
    return try await MCPTools(url: server.url, headers: headers, options: options)
}

extension MCPTools {
    fileprivate func output(_ arguments: String) async throws -> String {
        let tool = try #require(tools.first { $0.name == "do" })
        return try await callTool(tool, arguments)
    }
}

/// Servers behind HTTP.
@Suite(.timeLimit(.minutes(3))) struct MCPHTTPTests {
    private func header(_ request: JSONValue?, _ name: String) -> String? { request?["headers"]?[name]?.string }

    @Test("requests of 2026 stand alone, and have headers by which they are routed") func modern() async throws {
        let server = try HTTPProgram("modern(request, message) or request.answer(message, text(message, \"hi\")[\"result\"])")
        let tools = try await connect(server, headers: ["Authorization": "Bearer x"])
        #expect(try await tools.output(#"{"text": "a", "region": "Köln 😀"}"#) == "hi")
        await tools.close()
        let requests = server.requests
        #expect(requests.map { $0["message"]?["method"]?.string } == ["server/discover", "tools/list", "tools/call"])
        for request in requests {
            #expect(header(request, "mcp-protocol-version") == "2026-07-28" && header(request, "mcp-session-id") == nil)
            #expect(header(request, "mcp-method") == request["message"]?["method"]?.string)
            #expect(header(request, "authorization") == "Bearer x" && header(request, "content-type") == "application/json")
            let accepted = header(request, "accept") ?? ""
            #expect(accepted.contains("application/json") && accepted.contains("text/event-stream"))
        }
        #expect(requests.map { header($0, "mcp-name") } == [nil, nil, "do"])
        #expect(requests.map { header($0, "mcp-param-region") } == [nil, nil, "=?base64?S8O2bG4g8J+YgA==?="])
    }

    @Test("a server of 2025 with sessions and streams of events") func legacy() async throws {
        let server = try HTTPProgram(
            """
            method = (message or {}).get("method")
            session = {"Mcp-Session-Id": "s-1"}
            if request.command == "DELETE": request.reply(200)
            elif method == "server/discover": request.reply(400, b"Bad Request: Missing session ID", "text/plain")
            elif method == "initialize":
                request.stream(session)
                request.event({"jsonrpc": "2.0", "id": message["id"], "result": {
                    "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}})
            elif "id" not in message or "method" not in message: request.reply(202)
            elif method == "tools/list": request.answer(message, LIST)
            else:
                request.stream(session)
                request.wfile.write(b": ping\\r\\n\\r\\n")
                request.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}})
                request.event({"jsonrpc": "2.0", "id": 99, "method": "ping"})
                request.event({"jsonrpc": "2.0", "id": 4711, "result": {}})
                request.event(text(message, "hi"))
            """)
        let tools = try await connect(server)
        #expect(try await tools.output(#"{"text": "a"}"#) == "hi")
        // The answer to the server's question is a message of its own.
        await eventually { server.requests.contains { $0["message"]?["result"] != nil } }
        await tools.close()
        let requests = server.requests
        #expect(
            requests.compactMap { $0["message"]?["method"]?.string }
                == ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"])
        let greeting = requests.dropFirst().first
        #expect(header(greeting, "mcp-protocol-version") == nil && header(greeting, "mcp-session-id") == nil)
        for request in requests.dropFirst(2) {
            #expect(header(request, "mcp-protocol-version") == "2025-06-18" && header(request, "mcp-session-id") == "s-1")
        }
        let reply = requests.first { $0["message"]?["result"] != nil }
        #expect(reply?["message"]?["id"]?.integer == 99)
        #expect(requests.last?["method"]?.string == "DELETE")
    }

    @Test("a session that the server has forgotten is begun anew") func forgottenSession() async throws {
        let server = try HTTPProgram(
            """
            method = (message or {}).get("method")
            if method == "server/discover": request.reply(400, b"no", "text/plain")
            elif method == "initialize":
                note("sessions.txt", "x")
                with open(os.path.join(folder, "sessions.txt")) as file: count = len(file.read().split())
                request.answer(message, {"protocolVersion": "2025-11-25", "capabilities": {}}, {"Mcp-Session-Id": "s-%d" % count})
            elif request.command == "DELETE": request.reply(200)
            elif request.headers.get("Mcp-Session-Id") == "s-1" and method == "tools/call":
                request.reply(404, json.dumps({"jsonrpc": "2.0", "id": None, "error": {
                    "code": -32600, "message": "Session not found"}}).encode())
            elif "id" not in message: request.reply(202)
            elif method == "tools/list": request.answer(message, LIST)
            else: request.answer(message, text(message, request.headers["Mcp-Session-Id"])["result"])
            """)
        let tools = try await connect(server)
        #expect(try await tools.output("{}") == "s-2")
    }

    @Test("statuses are errors, and the words of the server come first") func errors() async throws {
        let server = try HTTPProgram(
            """
            if modern(request, message): pass
            else:
                words = message["params"]["arguments"]["text"]
                error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32021, "message": "No."}}
                if words == "json": request.reply(400, json.dumps(error).encode())
                elif words == "bare": request.reply(500, b"<html>", "text/html")
                elif words == "nowhere": request.reply(404)
                elif words == "accepted": request.reply(202)
                elif words == "cut":
                    request.stream()
                    request.wfile.write(b"data: {")
                else: request.reply(200, b"hello", "text/plain")
            """)
        let tools = try await connect(server)
        await #expect(throws: MCPError.refused(server: "web", code: -32021, message: "No.")) {
            try await tools.output(#"{"text": "json"}"#)
        }
        for (words, code) in [("bare", -500), ("nowhere", -32601), ("accepted", -202), ("text", -200)] {
            let error = await #expect(throws: MCPError.self) { try await tools.output("{\"text\": \"\(words)\"}") }
            guard case .refused(server: "web", let own, _)? = error else {
                Issue.record("\(words): \(String(describing: error))")
                continue
            }
            #expect(own == code)
        }
        let error = await #expect(throws: MCPError.self) { try await tools.output(#"{"text": "cut"}"#) }
        guard case .ended? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("a stream that says nothing more is an error when the patience has ended") func silentStream() async throws {
        let server = try HTTPProgram(
            """
            if modern(request, message): pass
            else:
                request.stream()
                # No longer than the test can wait.
                time.sleep(20)
            """)
        let tools = try await connect(server, patience: .seconds(1))
        await #expect(throws: MCPError.silent(server: "web", method: "tools/call")) { try await tools.output("{}") }
    }

    @Test("a call that is cancelled closes its connection") func cancellation() async throws {
        let server = try HTTPProgram(
            """
            if modern(request, message): pass
            else:
                # Nothing more comes but the end.
                request.stream()
                try: rest = request.connection.recv(1)
                except OSError: rest = b""
                note("ended.txt", str(rest))
            """)
        let tools = try await connect(server)
        let task = Task { try await tools.output("{}") }
        await eventually { server.requests.count == 3 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await eventually { server.program.text("ended.txt") == "b''\n" }
        #expect(server.requests.count == 3)
    }

    @Test("calls after the end fail") func closed() async throws {
        let server = try HTTPProgram("modern(request, message) or request.answer(message, text(message, \"hi\")[\"result\"])")
        let tools = try await connect(server)
        await tools.close()
        await #expect(throws: MCPError.self) { try await tools.output("{}") }
        #expect(server.requests.count == 2)
    }

    @Test("nobody at the address is an error") func nobody() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/mcp"))
        let error = await #expect(throws: MCPError.self) { try await MCPTools(url: url, options: .init(name: "web")) }
        guard case .ended(server: "web", _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
