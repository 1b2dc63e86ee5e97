import ArgumentParser
import Foundation
import FoundationModels
import Inference

struct Feedback: ParsableCommand {
    static let configuration = CommandConfiguration(
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
            Shell.say("There is no feedback yet. In “fm chat”, /good and /bad rate the last answer.")
            return
        }
        var reports: [(report: FeedbackReport, json: String)] = []
        for path in paths {
            guard let data = FileManager.default.contents(atPath: path) else {
                throw ValidationError("“\(path)” cannot be read.")
            }
            do { reports += try FeedbackFile.reports(in: data) } catch {
                throw ValidationError("“\(path)” is not feedback: \(EvalError.reason(error)).")
            }
        }
        if let tests {
            let lines = try reports.compactMap { try $0.report.test() }
            do {
                try Data(lines.joined(separator: "\n").appending("\n").utf8).write(to: URL(filePath: tests), options: .atomic)
            } catch {
                throw ValidationError("“\(tests)” cannot be written: \(error.localizedDescription)")
            }
            Shell.say("\(lines.count) of \(reports.count) reports have a better answer. Written to \(tests).")
            return
        }
        try Output().write(json ? reports.map { $0.json + "\n" }.joined() : Self.text(reports.map(\.report)))
    }

    private static func text(_ reports: [FeedbackReport]) -> String {
        var lines: [String] = []
        for (index, report) in reports.enumerated() {
            lines.append("\(index + 1)  \(report.sentiment ?? "no rating")")
            for issue in report.issues { lines.append("   \(issue.category)\(issue.explanation.map { ": \($0)" } ?? "")") }
            for (title, text) in [("prompt", report.prompt), ("answer", report.answer), ("better", report.better)] {
                if let text { lines.append("   \(title): \(text.split(whereSeparator: \.isNewline).joined(separator: " "))") }
            }
            lines.append("")
        }
        let ratings = Dictionary(reports.map { ($0.sentiment ?? "no rating", 1) }, uniquingKeysWith: +)
        let issues = Dictionary(reports.flatMap(\.issues).map { ($0.category, 1) }, uniquingKeysWith: +)
        let counts = (ratings.sorted { $0.key < $1.key } + issues.sorted { $0.key < $1.key }).map { "\($0.value) \($0.key)" }
        lines.append("\(reports.count) reports: \(counts.joined(separator: ", "))")
        return lines.joined(separator: "\n") + "\n"
    }
}

extension FeedbackReport {
    var prompt: String? {
        transcript.compactMap { if case .prompt(let prompt) = $0 { prompt.segments.modelText } else { nil } }.last
    }
    var answer: String? { Self.response(of: transcript) }
    var better: String? { desiredOutput.flatMap { Self.response(of: $0) } }

    private static func response(of transcript: Transcript) -> String? {
        transcript.compactMap { if case .response(let response) = $0 { response.segments.modelText } else { nil } }.last
    }

    /// The report as a sample for “fm eval”; nil without a better answer.
    func test() throws -> String? {
        struct Sample: Encodable { var prompt: String, expected: String, instructions: String? }
        guard let prompt, let better else { return nil }
        let instructions = transcript.compactMap { entry -> String? in
            if case .instructions(let instructions) = entry { instructions.segments.modelText } else { nil }
        }.first
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(
            decoding: try encoder.encode(Sample(prompt: prompt, expected: better, instructions: instructions)), as: UTF8.self)
    }
}

/// Reports one after the other, with or without line ends between them.
enum FeedbackFile {
    /// The feedback collected in `fm chat`.
    static var url: URL { ModelStore.directory.deletingLastPathComponent().appending(path: "feedback.jsonl") }

    /// Adds a report.
    ///
    /// - Throws: An error of Foundation if the file cannot be written.
    static func append(_ report: Data) throws {
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        if !FileManager.default.fileExists(atPath: url.path) { try Data().write(to: url) }
        let file = try FileHandle(forWritingTo: url)
        try file.seekToEnd()
        try file.write(contentsOf: report + [0x0A])
        try file.close()
    }

    /// - Throws: `DecodingError` for a report that is not one.
    static func reports(in data: Data) throws -> [(report: FeedbackReport, json: String)] {
        try objects(in: data).map { object in
            // The report as it was written, on one line.
            let json = String(decoding: object, as: UTF8.self).split(whereSeparator: \.isNewline).joined(separator: " ")
            return (try JSONDecoder().decode(FeedbackReport.self, from: object), json)
        }
    }

    /// The JSON objects of a text; what is between them is a part of the next one, so that it is not overlooked.
    private static func objects(in data: Data) -> [Data] {
        var objects: [Data] = []
        var depth = 0
        var isString = false
        var isEscaped = false
        var start = data.startIndex
        for (index, byte) in zip(data.indices, data) {
            if isString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isString = true
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "}"):
                depth -= 1
                if depth == 0 {
                    objects.append(Data(data[start...index]))
                    start = index + 1
                }
            default: break
            }
        }
        let rest = data[start...]
        if !rest.allSatisfy({ [0x20, 0x09, 0x0A, 0x0D].contains($0) }) { objects.append(Data(rest)) }
        return objects
    }
}

/// The last prompt and answer of a chat, which its user can rate.
struct ChatExchange {
    var instructions: String?
    var prompt: String
    var answer: String

    /// Rates the answer with a command of the chat: `/good WHY`, `/bad CATEGORY WHY`, `/better TEXT`. Returns what to tell the user.
    func rate(_ command: String, _ argument: String) -> String {
        let session = LanguageModelSession(
            model: SystemLanguageModel.default,
            transcript: Transcript(
                entries: (instructions.map {
                    [.instructions(.init(segments: [.text(.init(content: $0))], toolDefinitions: []))]
                } ?? []) + [
                    .prompt(.init(segments: [.text(.init(content: prompt))])),
                    .response(.init(assetIDs: [], segments: [.text(.init(content: answer))])),
                ]))
        let report: Data
        switch command {
        case "/good": report = session.logFeedbackAttachment(sentiment: .positive)
        case "/better":
            if argument.isEmpty { return "Write the better answer after /better." }
            report = session.logFeedbackAttachment(sentiment: .negative, desiredResponseText: argument)
        default:
            let words = argument.split(separator: " ", maxSplits: 1).map(String.init)
            let category = words.first.flatMap { word in
                LanguageModelFeedback.Issue.Category.allCases.first { "\($0)".lowercased() == word.lowercased() }
            }
            let explanation = category == nil ? argument : words.dropFirst().first
            guard let category = category ?? (argument.isEmpty ? nil : .unhelpful) else {
                let names = LanguageModelFeedback.Issue.Category.allCases.map { "\($0)" }.joined(separator: ", ")
                return "Write why after /bad, or one of: \(names)."
            }
            report = session.logFeedbackAttachment(
                sentiment: .negative, issues: [.init(category: category, explanation: explanation)])
        }
        do {
            try FeedbackFile.append(report)
            return "Thank you. “fm feedback” shows the collected feedback; nothing leaves this machine."
        } catch {
            return "The feedback cannot be saved: \(error.localizedDescription)"
        }
    }
}
