import Foundation
import FoundationModels
import JSON
import TestSupport
import Testing

@testable import MCP

/// Connects to a program. Errors of calls are thrown.
private func connect(
    _ program: Program, patience: Duration = .seconds(60), environment: [String: String] = [:], folder: URL? = nil
) async throws -> MCPTools {
    var options = MCPTools.Options(name: "program", approval: .all, patience: patience)
    options.throwsErrors = true
    return try await MCPTools(command: program.command, environment: environment, folder: folder, options: options)
}

extension MCPTools {
    /// Calls the tool of ``Program``.
    fileprivate func output(_ words: String) async throws -> String {
        let tool = try #require(tools.first { $0.name == "do" })
        return try await callTool(tool, "{\"text\":\(JSONValue.string(words).text)}")
    }
}

/// Whether a process runs. One that has ended, and that nobody has waited for, does not.
private func isRunning(_ process: Int32) -> Bool {
    guard kill(process, 0) == 0 else { return false }
    guard let stat = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else {
        return !FileManager.default.fileExists(atPath: "/proc/self/stat")
    }
    return stat.split(separator: ")").last?.split(separator: " ").first != "Z"
}

/// Servers that are programs, good ones and others.
@Suite(.timeLimit(.minutes(2))) struct MCPProcessTests {
    /// The reason why a server has ended; nil for other errors.
    private func reason(_ error: MCPError?) -> String? { if case .ended(_, let reason)? = error { reason } else { nil } }

    @Test("a program is spoken to through its standard input and output") func echo() async throws {
        let program = try Program()
        let tools = try await connect(program)
        #expect(tools.name == "program" && tools.tools.map(\.name) == ["do"])
        for words in ["hello", "São Paulo 😀\n\u{2028}\"\\", ""] { #expect(try await tools.output(words) == words) }
        // Many at once, and each has its own answer.
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<50 { group.addTask { try await tools.output("number \(number)") == "number \(number)" } }
            for try await isRight in group { #expect(isRight) }
        }
        #expect(program.receivedMethods.prefix(2) == ["server/discover", "tools/list"])
        // A call can be followed, so that the time limit begins anew with its progress.
        let call = try #require(program.received.last)
        #expect(call["params"]?["_meta"]?["progressToken"] == call["id"])
        await tools.close()
    }

    @Test("the name of a server that has none is that of its program") func name() async throws {
        let program = try Program()
        let tools = try await MCPTools(command: program.command)
        #expect(tools.name == "python3")
    }

    @Test("a program gets its variables, and runs in its folder") func environment() async throws {
        let program = try Program(#"text(request, os.environ.get(words, "none") + " " + os.path.basename(os.getcwd()))"#)
        let tools = try await connect(
            program, environment: ["MCP_TEST": "a b=c", "MCP_OTHER": ""], folder: program.folder)
        #expect(try await tools.output("MCP_TEST") == "a b=c " + program.folder.lastPathComponent)
        #expect(try await tools.output("MCP_OTHER") == " " + program.folder.lastPathComponent)
        #expect(try await tools.output("MCP_NONE") == "none " + program.folder.lastPathComponent)
        #expect(try await tools.output("PATH") != "none " + program.folder.lastPathComponent)
    }

    // MARK: - Programs that end

    @Test("a program that ends during a call is an error that says what it said") func ends() async throws {
        let program = try Program(
            """
            sys.stderr.write("Loading\\n\\n  cannot open database\\n")
            sys.exit(3)
            """)
        let tools = try await connect(program)
        let error = await #expect(throws: MCPError.self) { try await tools.output("x") }
        #expect(reason(error)?.contains("cannot open database") == true)
        if case .ended(let server, _)? = error { #expect(server == "program") }
        // Calls that follow fail at once, for the same reason.
        let again = await #expect(throws: MCPError.self) { try await tools.output("x") }
        #expect(again == error)
    }

    @Test("all calls that wait end with the program") func endsForAll() async throws {
        let program = try Program("if words == \"end\": os._exit(4)")
        let tools = try await connect(program)
        let waiting = (0..<5).map { number in Task { try await tools.output("\(number)") } }
        await eventually { program.receivedMethods.filter { $0 == "tools/call" }.count == 5 }
        await #expect(throws: MCPError.self) { try await tools.output("end") }
        for task in waiting {
            let error = await #expect(throws: MCPError.self) { try await task.value }
            #expect(reason(error) == "exited(4)")
        }
    }

    @Test("a program that ends at once, or does not exist, is an error that says so") func neverStarts() async throws {
        let program = try Program(start: "sys.exit(\"no licence\")")
        let error = await #expect(throws: MCPError.self) { try await connect(program) }
        #expect(reason(error)?.contains("no licence") == true)
        let missing = await #expect(throws: MCPError.self) {
            try await MCPTools(command: ["/nowhere/mcp-server-nothing", "x"])
        }
        #expect(reason(missing)?.contains("mcp-server-nothing") == true)
        #expect(missing?.localizedDescription.contains("mcp-server-nothing") == true)
    }

    @Test("a signal that ends a program is named") func signalled() async throws {
        let program = try Program("os.kill(os.getpid(), signal.SIGKILL)")
        let tools = try await connect(program)
        let error = await #expect(throws: MCPError.self) { try await tools.output("x") }
        #expect(reason(error) == "signaled(9)")
    }

    @Test("what a program says last controls no terminal, and is short") func lastWords() async throws {
        let program = try Program(
            """
            sys.stderr.write("a" * 100_000 + "\\n\\x1b[2Jthe end\\x07\\n")
            sys.stderr.flush()
            sys.exit(1)
            """)
        let tools = try await connect(program)
        let error = await #expect(throws: MCPError.self) { try await tools.output("x") }
        let said = reason(error) ?? ""
        #expect(said.contains("the end") && said.count <= 2_010)
        #expect(said.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
    }

    @Test("a program that closes its output, and lives on, has ended for its calls") func closedOutput() async throws {
        let program = try Program("os.close(1)\nwhile True: time.sleep(600)")
        let tools = try await connect(program, patience: .seconds(3))
        let error = await #expect(throws: MCPError.self) { try await tools.output("x") }
        #expect(reason(error) != nil, "\(String(describing: error))")
    }

    /// In a process of its own: the signal of a broken pipe would end this one.
    @Test("a program that closes its input ends its calls, and not this process") func closedInput() async {
        await #expect(processExitsWith: .success) {
            // The input is closed before the list is answered, so that the call finds it closed.
            let program = try Program(
                start: """
                    def serve():
                        while line := read():
                            message = json.loads(line)
                            if message["method"] == "server/discover":
                                answer(message, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
                            else:
                                os.close(0)
                                answer(message, {"tools": [{"name": "do", "inputSchema": SCHEMA}]})
                                time.sleep(20)
                                sys.exit(0)

                    """)
            let tools = try await connect(program, patience: .seconds(1))
            for _ in 0..<3 { _ = try? await tools.output("x") }
            await tools.close()
        }
    }

    // MARK: - Programs that do not answer

    @Test("a program that never answers is an error", arguments: ["server/discover", "tools/list", "tools/call"])
    func silent(method: String) async throws {
        let program = try Program(start: "def serve():\n    while read(): pass\n")
        let peer = MCPPeer(name: "program", patience: .milliseconds(200)) { _, _ in }
        let process = MCPProcess(program.command, environment: [:], folder: nil, peer)
        await #expect(throws: MCPError.silent(server: "program", method: method)) {
            try await process.request(method, parsed(#"{"name":"x"}"#), headers: [:], patience: nil)
        }
        // The patience of one request may be another.
        await #expect(throws: MCPError.silent(server: "program", method: method)) {
            try await process.request(method, .object([]), headers: [:], patience: .milliseconds(50))
        }
        // The program hears that nobody waits any more; the first questions are never cancelled.
        if method != "server/discover" {
            await eventually { program.receivedMethods.filter { $0 == "notifications/cancelled" }.count == 2 }
            let asked = program.received.filter { $0["method"]?.string == method }.compactMap { $0["id"] }
            let cancelled = program.received.compactMap { $0["params"]?["requestId"] }
            #expect(asked.count == 2 && cancelled == asked)
        }
        await process.close()
    }

    @Test("an answer that comes too late is dropped") func late() async throws {
        let program = try Program(
            """
            if words == "late":
                while (line := read()) and json.loads(line)["method"] != "notifications/cancelled": pass
                text(request, "too late")
            else:
                text(request, words)
            """)
        let tools = try await connect(program, patience: .seconds(2))
        await #expect(throws: MCPError.silent(server: "program", method: "tools/call")) { try await tools.output("late") }
        for _ in 0..<3 { #expect(try await tools.output("hello") == "hello") }
    }

    @Test("a call that is cancelled is cancelled at the server") func cancellation() async throws {
        let program = try Program("if words != \"wait\": text(request, words)")
        let tools = try await connect(program)
        let task = Task { try await tools.output("wait") }
        await eventually { program.receivedMethods.contains("tools/call") }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await eventually { program.receivedMethods.contains("notifications/cancelled") }
        let call = try #require(program.received.first { $0["method"]?.string == "tools/call" })
        let notification = try #require(program.received.first { $0["method"]?.string == "notifications/cancelled" })
        #expect(notification["params"]?["requestId"] == call["id"] && notification["id"] == nil)
        #expect(try await tools.output("hello") == "hello")
        // What is cancelled before it begins is not sent.
        let count = program.received.count
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await tools.output("never")
        }
        await #expect(throws: CancellationError.self) { try await early.value }
        #expect(try await tools.output("hello") == "hello")
        #expect(program.received.count == count + 1)
    }

    @Test("a start that is cancelled does not wait for the program") func cancelledStart() async throws {
        // It answers nothing, and ends when the test says so.
        let program = try Program(
            start: """
                def serve():
                    while read(): pass
                def wait():
                    while not os.path.exists(os.path.join(folder, "go")): time.sleep(0.01)
                    os._exit(0)
                threading.Thread(target=wait).start()

                """)
        let hasEnded = Shared(false)
        let task = Task {
            defer { hasEnded.change { $0 = true } }
            _ = try await connect(program, patience: .seconds(600))
        }
        await eventually { program.receivedMethods.contains("server/discover") }
        task.cancel()
        await eventually { hasEnded.value }
        try Data().write(to: program.folder.appendingPathComponent("go"))
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    // MARK: - Programs that write something else

    @Test("what is no message is passed over") func junk() async throws {
        let program = try Program(
            """
            write(b"Starting \\xff\\xfe\\n\\n\\r\\n1\\n[1, 2]\\nnull\\n{}\\n{\\"jsonrpc\\": \\"2.0\\"}\\n{\\"id\\": 99")
            write(b"\\n" + b"\\xef\\xbb\\xbf\\n")
            send({"jsonrpc": "2.0", "id": 4711, "result": {}})
            send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}})
            send([{"jsonrpc": "2.0", "id": request["id"], "result": {}}])
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}})
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "x", "progress": "y"}})
            text(request, words)
            send({"jsonrpc": "2.0", "id": request["id"], "result": {"content": [{"type": "text", "text": "twice"}]}})
            """)
        let tools = try await connect(program)
        for words in ["a", "b", "c"] { #expect(try await tools.output(words) == words) }
    }

    @Test("ids that come back as texts are those of their requests") func textIDs() async throws {
        let program = try Program("text(dict(request, id=str(request[\"id\"])), words)")
        let tools = try await connect(program)
        #expect(try await tools.output("hello") == "hello")
    }

    @Test("an answer that is none fails its call, and no other") func brokenAnswers() async throws {
        let program = try Program(
            """
            answers = {
                "nothing": {"jsonrpc": "2.0", "id": request["id"]},
                "version": {"id": request["id"], "result": {}},
                "error": {"jsonrpc": "2.0", "id": request["id"], "error": "no", "result": {}},
            }
            if words in answers: send(answers[words])
            elif words == "deep": write(b'{"jsonrpc":"2.0","id":%d,"result":' % request["id"] + b"[" * 100_000 + b"\\n")
            else: text(request, words)
            """)
        let tools = try await connect(program)
        for words in ["nothing", "version", "deep"] {
            let error = await #expect(throws: MCPError.self) { try await tools.output(words) }
            guard case .invalidReply(server: "program", _)? = error else {
                Issue.record("\(words): \(String(describing: error))")
                continue
            }
        }
        await #expect(throws: MCPError.refused(server: "program", code: -32603, message: "The server failed.")) {
            try await tools.output("error")
        }
        #expect(try await tools.output("hello") == "hello")
    }

    @Test("questions of the server are answered: ping, and no to all others") func questions() async throws {
        let program = try Program(
            """
            send({"jsonrpc": "2.0", "id": "p", "method": "ping"})
            send({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {"message": "Who are you?"}})
            text(request, json.dumps([json.loads(read()), json.loads(read())]))
            """)
        let tools = try await connect(program)
        let replies = elements(parsed(try await tools.output("x")))
        #expect(replies.count == 2 && replies.first?["id"]?.string == "p" && replies.first?["result"] == .object([]))
        #expect(replies.last?["id"]?.integer == 1 && replies.last?["error"]?["code"]?.integer == -32601)
    }

    @Test("a program that floods its output, or its errors, is answered all the same") func floods() async throws {
        let program = try Program(
            """
            if words == "flood":
                line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1000}}).encode()
                def flood():
                    try:
                        while True:
                            os.write(1, line + b"\\n")
                            os.write(2, b"x" * 4000)
                    except OSError: pass
                threading.Thread(target=flood, daemon=True).start()
            text(request, words)
            """)
        let tools = try await connect(program)
        for words in ["flood", "a", "b", "c"] { #expect(try await tools.output(words) == words) }
        await tools.close()
    }

    @Test("a line that is too long fails the calls that wait, and the program can be used on") func longLine() async throws {
        let program = try Program(
            """
            if words == "big": write(b"x" * (20 << 20) + b"\\n")
            else: text(request, words)
            """)
        let tools = try await connect(program)
        let error = await #expect(throws: MCPError.self) { try await tools.output("big") }
        guard case .invalidReply(server: "program", _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(try await tools.output("hello") == "hello")
    }

    @Test("a large argument and a large answer arrive whole") func largeMessages() async throws {
        let long = try Program("text(request, str(len(words)) + words[-3:])")
        let tools = try await connect(long)
        #expect(try await tools.output(String(repeating: "x", count: 1 << 20) + "end") == "1048579end")
        var options = MCPTools.Options(approval: .all, maximumOutput: .max)
        options.throwsErrors = true
        let program = try Program("text(request, \"é\" * 500_000)")
        let other = try await MCPTools(command: program.command, options: options)
        #expect(try await other.output("x").unicodeScalars.count == 500_000)
    }

    // MARK: - The end of the program

    private static let child = """
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        note("pids.txt", str(os.getpid()))
        note("pids.txt", str(child.pid))

        """

    private func processes(_ program: Program) -> [Int32] {
        program.text("pids.txt").split(separator: "\n").compactMap { Int32($0) }
    }

    @Test("a program ends with all that it has started when nobody refers to its tools any more") func released() async throws {
        let program = try Program(start: "CHILD = \"import time; time.sleep(600)\"\n" + Self.child)
        var tools: MCPTools? = try await connect(program)
        // The tools are enough.
        var tool = tools?.tools.first
        tools = nil
        let processes = processes(program)
        try #require(processes.count == 2)
        do {
            let remaining = try #require(tool)
            #expect(try await callTool(remaining, #"{"text":"hello"}"#) == "hello")
        }
        #expect(processes.allSatisfy { isRunning($0) })
        tool = nil
        await eventually { !processes.contains { isRunning($0) } }
        #expect(tools == nil && tool == nil)
    }

    @Test("a program that does not want to end is ended") func stubborn() async throws {
        let program = try Program(
            start: """
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"

                """ + Self.child, end: "while True: time.sleep(600)")
        let tools = try await connect(program)
        let processes = processes(program)
        try #require(processes.count == 2)
        await tools.close()
        await eventually { !processes.contains { isRunning($0) } }
    }

    @Test("a child that does not want to end is ended, also if its program has ended") func stubbornChild() async throws {
        let program = try Program(
            start: """
                CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"

                """ + Self.child.replacingOccurrences(of: "stdout=subprocess.DEVNULL", with: "stdout=subprocess.PIPE")
                    + "child.stdout.readline()\n")
        let tools = try await connect(program)
        let processes = processes(program)
        try #require(processes.count == 2)
        // Nothing stays behind if this fails.
        defer { for process in processes where isRunning(process) { kill(process, SIGKILL) } }
        await tools.close()
        await eventually { !processes.contains { isRunning($0) } }
    }

    @Test("a program whose input has ended has time to save its work") func savesItsWork() async throws {
        let program = try Program(end: "time.sleep(0.2)\nnote(\"saved.txt\", \"saved\")")
        let tools = try await connect(program)
        await tools.close()
        await eventually { program.text("saved.txt") == "saved\n" }
    }

    @Test("calls that wait at the end fail, and so do those that follow") func closed() async throws {
        let program = try Program("pass")
        let tools = try await connect(program)
        let task = Task { try await tools.output("wait") }
        await eventually { program.receivedMethods.contains("tools/call") }
        await tools.close()
        let error = await #expect(throws: MCPError.self) { try await task.value }
        #expect(reason(error) != nil)
        let next = await #expect(throws: MCPError.self) { try await tools.output("x") }
        #expect(reason(next) != nil)
        await tools.close()
    }

    @Test("the last lines of what a program says are kept") func lastLines() {
        let lines = LastLines()
        #expect(lines.text.isEmpty)
        func add(_ text: String) { Array(text.utf8).withUnsafeBytes { lines.add($0) } }
        add("one\ntwo\n")
        #expect(lines.text == "one / two")
        add("three\r\n\n  four")
        #expect(lines.text == "two / three / four")
        add(String(repeating: "x", count: 100_000))
        #expect(lines.text.count < 400)
        add("\nend\n")
        #expect(lines.text.hasSuffix(" / end") && lines.text.utf8.count <= 2_010)
    }
}
