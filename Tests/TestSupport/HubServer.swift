package import Foundation

/// A local server with the interface of the Hugging Face hub (Tests/Tools/hub_server.py), and what it publishes. The owner of a repository
/// selects a fault.
package final class HubServer: Sendable {
    package let endpoint: URL
    /// The server that the hub redirects to.
    package let files: URL
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hub-\(UUID().uuidString)")
    private let server: Process
    private let lifeline: Pipe

    private struct NotStarted: Error {}

    package init() throws {
        let (server, lifeline, output) = (Process(), Pipe(), Pipe())
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        server.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        server.arguments = ["python3", "Tests/Tools/hub_server.py", folder.path]
        server.standardInput = lifeline
        server.standardOutput = output
        // A program that outlives the tests must not keep their output open: whoever reads it waits for its end.
        server.standardError = FileHandle.nullDevice
        // Other programs that a test starts, such as a server of databases, must not keep the input open.
        _ = fcntl(lifeline.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try server.run()
        // The server prints its ports when it is ready.
        var text = ""
        while !text.hasSuffix("\n"), case let data = output.fileHandleForReading.availableData, !data.isEmpty {
            text += String(decoding: data, as: UTF8.self)
        }
        let ports = text.split(whereSeparator: \.isWhitespace)
        guard ports.count == 2, let endpoint = URL(string: "http://127.0.0.1:\(ports[0])"),
            let files = URL(string: "http://127.0.0.1:\(ports[1])")
        else { throw NotStarted() }
        (self.server, self.lifeline, self.endpoint, self.files) = (server, lifeline, endpoint, files)
    }

    deinit {
        try? lifeline.fileHandleForWriting.close()  // the server ends when its input is closed
        server.waitUntilExit()
    }

    /// Publishes a file as `OWNER/REPO/PATH`.
    package func publish(_ path: String, _ bytes: [UInt8]) throws {
        let file = folder.appendingPathComponent(path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: file)
    }

    /// All requests so far, as lines.
    package var requests: [String] {
        get throws {
            let file = folder.appendingPathComponent("requests.txt")
            guard FileManager.default.fileExists(atPath: file.path) else { return [] }
            return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        }
    }
}
