import ArgumentParser
import EvaluationCore
import Foundation
import FoundationModels
import InstalledModels
import Reports

struct Feedback: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feedback",
        abstract: "Show and collect feedback on answers.",
        discussion: """
            Feedback is what LanguageModelSession.logFeedbackAttachment returns: the transcript, a rating, issues, and the answer that \
            would have been better. Programs write it to files; in “fm chat”, /good, /bad and /better collect it.

              fm feedback                        the feedback collected in “fm chat”
              fm feedback app.json other.json    feedback from files; a file may contain several reports
              fm feedback *.json --json          one line of JSON for each report
              fm feedback --tests tests.jsonl    a data set for “fm eval” of the better answers
            """)

    @Argument(help: "Files with feedback (default: the feedback collected in “fm chat”).")
    var files: [String] = []

    @Flag(help: "Write one line of JSON for each report.")
    var json = false

    @Option(help: ArgumentHelp("Write the prompts that have a better answer as a data set for “fm eval”.", valueName: "file"))
    var tests: String?

    func run() throws {
        let paths = files.isEmpty ? [FeedbackFile.url.path] : files
        if files.isEmpty, !FileManager.default.fileExists(atPath: paths[0]) {
            Message.say("There is no feedback yet. In “fm chat”, /good and /bad rate the last answer.")
            return
        }
        let reports = try paths.flatMap { try FeedbackReport.reports(in: try EvalFile.data($0), name: $0) }
        if reports.isEmpty {
            Message.say("There is no feedback in \(paths.joined(separator: ", ")).")
            return
        }
        if let tests {
            try EvalFile.check(outputs: [tests], inputs: paths)
            let lines = try reports.compactMap { try $0.report.sampleLine() }
            try OutputFile.write(Data(lines.map { $0 + "\n" }.joined().utf8), to: tests)
            Message.say(
                "With a better answer: \(lines.count) of \(Self.count(reports.count)). Written to \(tests).")
            return
        }
        try Output().write(json ? reports.map { $0.json + "\n" }.joined() : Self.text(reports.map(\.report)))
    }

    private static func count(_ reports: Int) -> String { "\(reports) report\(reports == 1 ? "" : "s")" }

    private static func text(_ reports: [FeedbackReport]) -> String {
        var lines: [String] = []
        for (index, report) in reports.enumerated() {
            lines.append("\(index + 1)  \(report.sentiment ?? "no rating")")
            for issue in report.issues { lines.append("   \(issue.category)\(issue.explanation.map { ": \($0)" } ?? "")") }
            for (title, text) in [("prompt", report.prompt), ("answer", report.answer), ("better", report.better)] {
                if let text { lines.append("   \(title): \(TerminalText.line(text))") }
            }
            lines.append("")
        }
        let ratings = Dictionary(reports.map { ($0.sentiment ?? "no rating", 1) }, uniquingKeysWith: +)
        let issues = Dictionary(reports.flatMap(\.issues).map { ($0.category, 1) }, uniquingKeysWith: +)
        let counts = (ratings.sorted { $0.key < $1.key } + issues.sorted { $0.key < $1.key }).map { "\($0.value) \($0.key)" }
        lines.append("\(Self.count(reports.count)): \(counts.joined(separator: ", "))")
        // Texts of other programs and of models may contain sequences that control terminals.
        return TerminalText.safe(lines.joined(separator: "\n")) + "\n"
    }
}

/// The feedback collected in `fm chat`.
enum FeedbackFile {
    static var url: URL { ModelStore.directory.deletingLastPathComponent().appending(path: "feedback.jsonl") }

    /// Adds a report.
    ///
    /// - Throws: An error of Foundation or of the system if the file cannot be written.
    static func append(_ report: Data) throws {
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        // Conversations are private. Reports of several programs follow each other.
        let descriptor = open(url.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        fchmod(descriptor, 0o600)  // of a file of an older version
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try file.write(contentsOf: report + [0x0A])
        try file.close()
    }
}

/// A chat up to its last answer, which its user can rate.
struct ChatExchange {
    let transcript: Transcript

    /// - Parameter answer: the answer as far as it was written. One that was stopped may not be in the transcript.
    init(_ transcript: Transcript, prompt: String, answer: String) {
        var entries = Array(transcript)
        func isPrompt(_ entry: Transcript.Entry?) -> Bool { if case .prompt? = entry { true } else { false } }
        let isRecorded = if case .response(let last)? = entries.last { last.segments.modelText == answer } else { false }
        if !isRecorded {
            if !isPrompt(entries.last) { entries.append(.prompt(.init(segments: [.text(.init(content: prompt))]))) }
            entries.append(.response(.init(assetIDs: [], segments: [.text(.init(content: answer))])))
        }
        self.transcript = Transcript(entries: entries)
    }

    private typealias Category = LanguageModelFeedback.Issue.Category

    private static var categories: String { Category.allCases.map { "\($0)" }.joined(separator: ", ") }

    /// The category with which a text begins, and the rest of the text.
    private static func category(in text: String, needsColon: Bool) -> (Category, String)? {
        let word = text.prefix { $0.isLetter }
        var rest = text.dropFirst(word.count)
        let hasColon = rest.first == ":"
        guard let category = Category.allCases.first(where: { "\($0)".lowercased() == word.lowercased() }),
            hasColon || !needsColon && (rest.isEmpty || rest.first == " ")
        else { return nil }
        if hasColon { rest = rest.dropFirst() }
        return (category, rest.trimmingCharacters(in: .whitespaces))
    }

    /// Rates the answer with a command of the chat: `/good`, `/bad CATEGORY WHY`, `/better CATEGORY: TEXT`, and returns the report.
    ///
    /// - Throws: ``CommandFailure`` with what is missing.
    func report(_ command: String, _ argument: String) throws -> Data {
        let session = LanguageModelSession(model: SystemLanguageModel.default, transcript: transcript)
        switch command {
        case "/good": return session.logFeedbackAttachment(sentiment: .positive)
        case "/better":
            // Without the colon, the word may be the beginning of the better answer.
            let (category, text) = Self.category(in: argument, needsColon: true).map { ($0, $1) } ?? (nil, argument)
            if text.isEmpty { throw CommandFailure("Write the better answer after /better.", code: .wrongUsage) }
            return session.logFeedbackAttachment(
                sentiment: .negative, issues: category.map { [.init(category: $0)] } ?? [], desiredResponseText: text)
        default:
            if argument.isEmpty {
                throw CommandFailure("Write why after /bad, or one of: \(Self.categories).", code: .wrongUsage)
            }
            let (category, why) = Self.category(in: argument, needsColon: false) ?? (.unhelpful, argument)
            return session.logFeedbackAttachment(
                sentiment: .negative, issues: [.init(category: category, explanation: why.isEmpty ? nil : why)])
        }
    }

    /// Saves the rating of a command. Returns what to tell the user.
    func rate(_ command: String, _ argument: String) -> String {
        do {
            try FeedbackFile.append(try report(command, argument))
        } catch let error as CommandFailure {
            return error.description
        } catch {
            return "The feedback cannot be saved: \(error.localizedDescription)"
        }
        let hint =
            command == "/better" && Self.category(in: argument, needsColon: true) == nil
            ? " /better CATEGORY: TEXT also says what was wrong: \(Self.categories)." : ""
        return "Thank you. “fm feedback” shows the collected feedback; nothing leaves this machine.\(hint)"
    }
}
