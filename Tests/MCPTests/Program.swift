import Foundation
import JSON

@testable import MCP

/// A small program in Python that is a server, in a folder of its own.
///
/// It answers what clients ask first, and has one tool, `do`, with a text as its argument. The test writes what a call does: the body
/// of the function `call(request, words)`.
final class Program: Sendable {
    let folder: URL

    /// - Parameters:
    ///   - call: the body of the function.
    ///   - start: what the program does before it reads.
    ///   - end: what it does when its input has ended.
    init(_ call: String = "text(request, words)", start: String = "", end: String = "") throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("mcp-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let body = call.split(separator: "\n", omittingEmptySubsequences: false).map { "    \($0)" }.joined(separator: "\n")
        let text = Self.functions + start + "\ndef call(request, words):\n" + body + "\n\nserve()\n" + end + "\n"
        try Data(text.utf8).write(to: folder.appendingPathComponent("server.py"))
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    var command: [String] { ["python3", folder.appendingPathComponent("server.py").path] }

    /// What the program has written to a file; empty if there is none.
    func text(_ file: String) -> String {
        (try? String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)) ?? ""
    }

    /// The messages that the program has read so far.
    var received: [JSONValue] { text("received.txt").split(separator: "\n").map { parsed(String($0)) } }

    var receivedMethods: [String] { received.compactMap { $0["method"]?.string } }

    private static let functions = """
        import json, os, signal, subprocess, sys, threading, time

        folder = os.path.dirname(os.path.abspath(__file__))

        def note(name, line):
            try:
                with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
                    file.write(line + "\\n")
            except FileNotFoundError: pass  # the test has ended

        # One write for each message, so that those of several threads do not mix.
        def write(data):
            while data:
                data = data[os.write(1, data):]

        def send(message):
            write(json.dumps(message, ensure_ascii=False).encode() + b"\\n")

        def answer(request, result):
            send({"jsonrpc": "2.0", "id": request["id"], "result": dict(result, resultType="complete")})

        def text(request, words):
            answer(request, {"content": [{"type": "text", "text": words}]})

        def read():
            line = sys.stdin.buffer.readline()
            if line:
                note("received.txt", line.decode().strip())
            return line

        SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

        def serve():
            while line := read():
                message = json.loads(line)
                method = message.get("method")
                if method == "server/discover":
                    answer(message, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
                elif method == "tools/list":
                    answer(message, {"tools": [{"name": "do", "description": "Does it.", "inputSchema": SCHEMA}]})
                elif method == "tools/call":
                    call(message, message["params"]["arguments"]["text"])


        """
}
