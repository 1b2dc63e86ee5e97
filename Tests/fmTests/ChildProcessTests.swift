import Foundation
import Subprocess
import TestSupport
import Testing

@testable import fm

@Suite("programs that commands run") struct ChildProcessTests {
    @Test("what a program prints is returned with its errors, in order, and with how it ended") func output() async throws {
        let (text, end) = try await ChildProcess.output(
            of: ["sh", "-c", "echo $WORD; echo error >&2; exit 3"], environment: ["WORD": "word"], limit: 1_000)
        #expect(text == "word\nerror\n" && end == .exited(3))
        let killed = try await ChildProcess.output(of: ["sh", "-c", "kill -9 $$"], environment: [:], limit: 10)
        #expect(killed.text.isEmpty && killed.end == .signaled(9))
    }

    @Test("of a program that prints very much, the beginning is returned") func limit() async throws {
        let (text, end) = try await ChildProcess.output(of: ["head", "-c", "300000", "/dev/zero"], environment: [:], limit: 10)
        #expect(text.utf8.count == 10 && end == .exited(0))
    }

    @Test("a program that fails or does not exist does not succeed") func failures() async throws {
        #expect(try await ChildProcess.succeeds(["true"]))
        #expect(try await !ChildProcess.succeeds(["false"]))
        #expect(try await !ChildProcess.succeeds(["/nowhere/program"]))
    }

    @Test("cancelling ends a program and those that it started") func cancelled() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "pid").path
        let work = Task { try await ChildProcess.succeeds(["sh", "-c", "sleep 1000 & echo $! > \(file); wait"]) }
        func process() -> String? {
            let text = FileManager.default.contents(atPath: file).map { String(decoding: $0, as: UTF8.self) }
            return text?.hasSuffix("\n") == true ? text?.trimmingCharacters(in: .newlines) : nil
        }
        await eventually { process() != nil }
        let started = try #require(process())
        work.cancel()
        await #expect(throws: CancellationError.self) { try await work.value }
        await eventually {
            // A process that ended and nobody has waited for is a zombie.
            let state = FileManager.default.contents(atPath: "/proc/\(started)/stat").map { String(decoding: $0, as: UTF8.self) }
            return state?.contains(") Z ") ?? true
        }
    }
}
