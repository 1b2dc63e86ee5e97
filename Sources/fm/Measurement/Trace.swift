import ArgumentParser
import ContextKit
import Foundation

struct Trace: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace",
        abstract: "Show recorded requests: tokens, cache, times, compactions.",
        discussion: """
            Requests are recorded if FM_TRACE names a file, by this command and by every program that uses the framework.

              FM_TRACE=talk.jsonl fm chat
              fm trace talk.jsonl
              fm trace talk.jsonl --html talk.html   an HTML page with a timeline

            With FM_TRACE_TEXT=1, prompts and responses are recorded too, and the HTML page shows them.
            """)

    @Argument(help: "The file that FM_TRACE named.")
    var file: String

    @Option(help: ArgumentHelp("Write an HTML page with a timeline instead.", valueName: "file"))
    var html: String?

    func run() throws {
        let report: TraceReport
        do { report = try TraceReport(contentsOf: URL(filePath: file)) } catch {
            throw ValidationError("“\(file)” cannot be read: \(error.localizedDescription)")
        }
        guard !report.events.isEmpty else { throw ValidationError("“\(file)” contains no requests.") }
        guard let html else { return try Output().write(report.table) }
        try OutputFile.write(Data(report.html.utf8), to: html)
        Message.say("Written to \(html).")
    }
}
