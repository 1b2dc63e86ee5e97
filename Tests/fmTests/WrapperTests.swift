import Foundation
import Testing

/// The script `./fm`, with a program and a build that only record how they are called.
final class WrapperTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wrapper-\(UUID().uuidString)")
    private let commands = CommandTests()
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    init() throws {
        try write("Package.swift", "")
        try write("Sources/empty", "")
        try FileManager.default.copyItem(at: Self.root.appendingPathComponent("fm"), to: folder.appendingPathComponent("fm"))
        try write("scripts/install-headers", "#!/bin/sh\n")
        try write("tools/swift", "#!/bin/sh\n")
    }

    deinit { try? FileManager.default.removeItem(at: folder) }  // otherwise the system removes it

    private func write(_ path: String, _ text: String) throws {
        let file = folder.appendingPathComponent(path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.path)
    }

    private func installProgram() throws {
        try write(".build/release/fm", "#!/bin/sh\necho \"$@\" >> \"\(folder.path)/calls\"\n")
    }

    private var calls: [String] {
        // Without a call there is no file.
        guard let text = try? String(contentsOf: folder.appendingPathComponent("calls"), encoding: .utf8) else { return [] }
        return text.split(separator: "\n").map(String.init)
    }

    /// Runs a command with the signals of a terminal: those of this process may be blocked or ignored.
    private static let withSignals = """
        import os, signal, sys
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_DFL)
        os.execv(sys.argv[1], sys.argv[1:])
        """

    private func run(_ arguments: [String], script: String? = nil) throws -> CommandTests.Run {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return try commands.run(
            "/usr/bin/env", ["python3", "-c", Self.withSignals, script ?? folder.appendingPathComponent("fm").path] + arguments,
            environment: ["HOME": folder.path, "XDG_DATA_HOME": "", "FM_MODEL": "", "PATH": "\(folder.path)/tools:\(path)"])
    }

    @Test(
        "commands that need no model download none",
        arguments: [
            ["schema", "check", "x.json"], ["trace", "t.jsonl"], ["feedback"], ["help"], ["eval", "--risk-template"],
            ["chat", "--delete", "x"], ["model", "list"], ["adapter", "list"], ["index", "docs"], ["--version"],
            ["--model", "x.gguf", "Hello"],
        ]) func noDownload(arguments: [String]) throws
    {
        try installProgram()
        #expect(try run(arguments).status == 0)
        #expect(calls == [arguments.joined(separator: " ")])
    }

    @Test("a prompt downloads the model first, unless one is installed, also through a link")
    func download() throws {
        try installProgram()
        _ = try run(["Hello"])
        #expect(calls == ["model pull --quiet", "Hello"])
        try write(".local/share/foundation-models/models/x.gguf", "GGUF")
        let link = folder.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder.appendingPathComponent("fm"))
        _ = try run(["Again"], script: link.path)
        #expect(calls.last == "Again" && calls.count == 3)
    }

    @Test(
        "a build that is interrupted or fails ends the download that runs beside it", .timeLimit(.minutes(1)),
        arguments: ["kill -INT $PPID", "exit 1"])
    func interrupted(ending: String) throws {
        try write("scripts/prefetch-model", "#!/bin/sh\nsleep 1000 &\necho $! > \"\(folder.path)/download\"\nwait\n")
        let wait = "while [ ! -s \"\(folder.path)/download\" ]; do sleep 0.05; done"
        try write("scripts/build", "#!/bin/sh\n\(wait)\n\(ending)\nexit 1\n")
        #expect(try run(["Hello"]).status != 0)
        let text = try String(contentsOf: folder.appendingPathComponent("download"), encoding: .utf8)
        let download = try #require(pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)))
        // It ends soon after the signal.
        while kill(download, 0) == 0 { sched_yield() }
        #expect(calls.isEmpty)
    }
}
