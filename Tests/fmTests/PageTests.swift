import ContextKit
import EvaluationCore
import Foundation
import TestSupport
import Testing

@testable import fm

/// The HTML pages in a browser: headless Chromium, if it is installed.
@Suite("pages in a browser", .enabled(if: Browser.path != nil, "Chromium is not installed"))
struct PageTests {
    /// The result of a run whose file has these samples.
    private func result(_ samples: [(id: String, passes: Bool, response: String)]) throws -> EvaluationResult {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }  // the system removes what is left
        let lines: [[String: Any]] =
            [["dataset": "d", "fingerprint": "f", "model": "m", "settings": "s"]]
            + samples.map { id, passes, response in
                let check: [String: Any] = ["name": "contains", "passes": passes, "reason": "Whether it contains it."]
                return [
                    "id": id, "class": "class of \(id)", "prompt": "prompt \(id)", "response": response, "checks": [check],
                    "started": "2026-01-01T00:00:00Z", "seconds": 1.5, "inputTokens": 10, "outputTokens": 20,
                ]
            }
        try Data(lines.map { try JSONSerialization.data(withJSONObject: $0) }.joined(separator: [0x0A]) + [0x0A]).write(to: file)
        return try EvaluationResult(contentsOfRun: file)
    }

    /// Text that would run if a page did not escape it, and that no line fits.
    private static let hostile =
        "</pre></table></script><script>document.body.innerHTML = 'run'</script><img src=x onerror=\"document.body.innerHTML = 'run'\">"
        + String(repeating: "x", count: 400)

    @Test("the report of fm eval fits narrow and wide windows, finds samples, and runs nothing that an answer contains")
    func evaluation() throws {
        let before = try result([("a", true, "an apple"), ("b", false, Self.hostile)])
        let after = try result([("a", false, Self.hostile), ("b", true, "a pear")])
        let page = EvaluationReport(after, comparedWith: before).html
        let script = """
            const rows = () => [...document.querySelectorAll("#samples tr[data-ok]")].filter(row => row.offsetHeight > 0).length;
            const type = text => { find.value = text; find.oninput(); };
            results.all = rows();
            type("PEAR"); results.found = rows();
            type(""); only.checked = true; only.onchange(); results.failed = rows();
            """
        for width in [520, 1_400] {
            let results = try Browser.run(page, width: width, script)
            #expect(results == ["all": 2, "found": 1, "failed": 1, "overflow": 0, "errors": 0, "images": 0], "\(width)")
        }
    }

    @Test("the timeline of fm trace is ordered by the start of requests, and shows texts as they are")
    func trace() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
        let events: [[String: Any]] = [
            ["kind": "request", "start": 12, "seconds": 1, "inputTokens": 7, "prompt": Self.hostile, "response": "A"],
            ["kind": "request", "start": 10, "seconds": 9, "inputTokens": 5],
        ]
        let file = folder.appending(path: "t.jsonl")
        try Data(events.map { try JSONSerialization.data(withJSONObject: $0) }.joined(separator: [0x0A])).write(to: file)
        let page = try TraceReport(contentsOf: file).html
        let script = """
            const cells = [...document.querySelectorAll("tr td:nth-child(2)")].map(cell => parseInt(cell.textContent));
            [results.first, results.second] = cells;
            for (const details of document.querySelectorAll("details")) details.open = true;
            """
        for width in [520, 1_400] {
            let results = try Browser.run(page, width: width, script)
            #expect(results == ["first": 5, "second": 7, "overflow": 0, "errors": 0, "images": 0], "\(width)")
        }
    }
}

/// Headless Chromium.
private enum Browser {
    static let path = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":").lazy
        .flatMap { folder in ["chromium", "chromium-browser", "google-chrome"].map { "\(folder)/\($0)" } }
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    struct Failure: Error {
        var output: String
    }

    /// Opens a page, runs a script in it that sets members of `results`, and adds the pixels by which the page is wider than the
    /// window, and the numbers of errors and of images.
    static func run(_ page: String, width: Int, _ script: String) throws -> [String: Int] {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
        let file = folder.appending(path: "page.html")
        let first = "<script>window.results = {}; let failures = 0; window.onerror = () => { failures++ }</script>"
        let last = """
            <script>\(script)
            results.overflow = Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth);
            results.errors = failures; results.images = document.images.length;
            document.title = JSON.stringify(results);</script>
            """
        try Data((first + page + last).utf8).write(to: file)
        let process = Process(), pipe = Pipe()
        process.executableURL = URL(filePath: path ?? "")
        process.arguments = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=\(folder.path)/profile",
            "--window-size=\(width),900", "--dump-dom", file.absoluteString,
        ]
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        try process.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        // The title is the last one; that of the page is the first. Without results, the whole output is the error.
        guard let match = output.matches(of: /<title>(\{.*?\})<\/title>/).last,
            let results = try? JSONDecoder().decode([String: Int].self, from: Data(match.1.utf8))
        else { throw Failure(output: output) }
        return results
    }
}
