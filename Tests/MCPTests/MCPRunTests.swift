import Foundation
import FoundationModels
import JSON
import TestSupport
import Testing

@testable import MCP

/// A server of this module at the two ends of pipes, as its clients run it.
@Suite(.timeLimit(.minutes(1))) struct MCPRunTests {
    /// Collects the lines of a pipe.
    private final class Reader: Sendable {
        private let texts = Shared<[String]>([])

        init(_ pipe: Pipe) {
            let (file, texts) = (pipe.fileHandleForReading, texts)
            let thread = Thread {
                var reader = MCPLines(maximumBytes: 1 << 30, keepsEmpty: true)
                while case let data = file.availableData, !data.isEmpty {
                    for case .line(let line) in reader.take(data) {
                        texts.change { $0.append(String(decoding: line, as: UTF8.self)) }
                    }
                }
            }
            thread.start()
        }

        /// The complete lines so far.
        var lines: [String] { texts.value }
    }

    /// Runs a server for as long as a test needs it; its input ends then.
    private func run(
        _ server: MCPServer, _ body: (_ send: (String) throws -> Void, Reader) async throws -> Void
    ) async throws {
        let (input, output) = (Pipe(), Pipe())
        let (reading, writing) = (input.fileHandleForReading, output.fileHandleForWriting)
        let reader = Reader(output)
        let task = Task { try await server.run(reading: reading, writing: writing) }
        try await body({ try input.fileHandleForWriting.write(contentsOf: Data($0.utf8)) }, reader)
        try input.fileHandleForWriting.close()
        try await task.value
        try writing.close()
    }

    private func call(_ id: Int, _ name: String, _ arguments: String) -> String {
        request(id, "tools/call", "{\"name\":\"\(name)\",\"arguments\":\(arguments)}", isModern: true).text + "\n"
    }

    @Test("lines are answered with lines, wherever they are divided") func lines() async throws {
        try await run(MCPServer(name: "tests", tools: [.init(Shout())])) { send, reader in
            let first = request(1, "server/discover", isModern: true).text
            try send("not json\n\n\(first.prefix(20))")
            await eventually { reader.lines.count == 1 }
            let second = call(2, "shout", #"{"text":"é"}"#)
            try send("\(first.dropFirst(20))\r\n\(second)")
            await eventually { reader.lines.count == 3 }
            let answers = reader.lines.map { parsed($0) }
            #expect(answers.first?["error"]?["code"]?.integer == -32700 && answers.first?["id"] == .null)
            // The other two may come in any order.
            let discovery = answers.first { $0["id"]?.integer == 1 }
            #expect(discovery?["result"]?["supportedVersions"] != nil)
            let shout = answers.first { $0["id"]?.integer == 2 }
            #expect(elements(shout?["result"]?["content"]).first?["text"]?.string == "É")
        }
    }

    @Test("long answers of calls that run together do not mix") func longAnswers() async throws {
        let guarded = Guarded()
        try await run(MCPServer(name: "tests", tools: [.init(guarded)])) { send, reader in
            for id in 1...8 { try send(call(id, "guarded", "{\"text\":\"\(id)\",\"count\":300000}")) }
            await eventually { guarded.begun.value == 8 }
            guarded.gate.open()
            await eventually { reader.lines.count == 8 }
            for line in reader.lines {
                let answer = parsed(line)
                let text = elements(answer["result"]?["content"]).first?["text"]?.string ?? ""
                let id = answer["id"]?.text ?? "no"
                #expect(text.utf8.count == 300_000 && Set(text.utf8) == Set(id.utf8))
            }
            #expect(Set(reader.lines.compactMap { parsed($0)["id"]?.integer }) == Set(1...8))
        }
    }

    @Test("a client that goes ends its calls, and the server") func end() async throws {
        let patient = Patient()
        try await run(MCPServer(name: "tests", tools: [.init(patient)])) { send, reader in
            try send(call(1, "wait", "{}"))
            await eventually { patient.begun.value == 1 }
            #expect(reader.lines.isEmpty)
        }
        await eventually { patient.cancelled.value == 1 }
    }

    @Test("a last line without an end is answered, too") func lastLine() async throws {
        let (input, output) = (Pipe(), Pipe())
        let reader = Reader(output)
        try input.fileHandleForWriting.write(contentsOf: Data(#"{"jsonrpc":"2.0","id":1}"#.utf8))
        try input.fileHandleForWriting.close()
        let server = MCPServer(name: "tests", tools: [])
        try await server.run(reading: input.fileHandleForReading, writing: output.fileHandleForWriting)
        await eventually { reader.lines.count == 1 }
        try output.fileHandleForWriting.close()
    }
}
