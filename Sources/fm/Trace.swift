import ArgumentParser
import ContextKit
import Foundation

struct Trace: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what requests did: tokens, cache, times, compactions.",
        discussion: """
            Requests are recorded while FM_TRACE names a file, by this command and by every other program with the framework.

              FM_TRACE=talk.jsonl fm chat
              fm trace talk.jsonl
              fm trace talk.jsonl --html talk.html   a timeline for the browser
            """)

    @Argument(help: "The file that FM_TRACE named.")
    var file: String

    @Option(help: ArgumentHelp("Write a page with a timeline instead.", valueName: "file"))
    var html: String?

    func run() throws {
        let report: TraceReport
        do { report = try TraceReport(contentsOf: URL(filePath: file)) } catch {
            throw ValidationError("“\(file)” cannot be read: \(error.localizedDescription)")
        }
        guard !report.events.isEmpty else { throw ValidationError("“\(file)” has no requests in it.") }
        guard let html else { return try Output().write(report.table) }
        try Data(report.html.utf8).write(to: URL(filePath: html), options: .atomic)
        FileHandle.standardError.write(Data("Written to \(html).\n".utf8))
    }
}
