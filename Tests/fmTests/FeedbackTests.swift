import EvaluationCore
import Foundation
import FoundationModels
import Testing

@testable import fm

@Suite("fm feedback") struct FeedbackTests {
    private func transcript(_ texts: [String]) -> Transcript {
        Transcript(
            entries: texts.enumerated().map { index, text in
                index.isMultiple(of: 2)
                    ? .prompt(.init(segments: [.text(.init(content: text))]))
                    : .response(.init(assetIDs: [], segments: [.text(.init(content: text))]))
            })
    }

    private func report(_ exchange: ChatExchange, _ command: String, _ argument: String = "") throws -> FeedbackReport {
        let reports = try FeedbackReport.reports(in: try exchange.report(command, argument), name: "chat")
        return try #require(reports.first).report
    }

    @Test("the feedback of a chat contains the whole conversation, the issue and the better answer")
    func chat() throws {
        let exchange = ChatExchange(transcript(["Hi", "Hello", "2 + 2?", "5"]), prompt: "2 + 2?", answer: "5")
        let good = try report(exchange, "/good")
        #expect(good.sentiment == "positive" && good.transcript.count == 4 && good.prompt == "2 + 2?" && good.answer == "5")
        let bad = try report(exchange, "/bad", "incorrect It is 4.")
        #expect(bad.issues.map(\.category) == ["incorrect"] && bad.issues.first?.explanation == "It is 4.")
        #expect(try report(exchange, "/bad", "I expected 4.").issues.map(\.category) == ["unhelpful"])
        let better = try report(exchange, "/better", "Incorrect: 4")
        #expect(better.issues.map(\.category) == ["incorrect"] && better.better == "4")
        let plain = try report(exchange, "/better", "incorrect sums end in 5")
        #expect(plain.issues.isEmpty && plain.better == "incorrect sums end in 5")
        #expect(throws: CommandFailure.self) { try exchange.report("/better", "incorrect: ") }
        #expect(throws: CommandFailure.self) { try exchange.report("/bad", "") }
        // An answer that was stopped is not in the transcript.
        let stopped = ChatExchange(transcript(["Hi", "Hello"]), prompt: "2 + 2?", answer: "5 b")
        #expect(stopped.transcript.count == 4)
        #expect(try report(stopped, "/good").answer == "5 b")
    }

    @Test("what is wrong with a file is described with its place, once")
    func files() throws {
        func message(_ text: String) -> String {
            do {
                _ = try FeedbackReport.reports(in: Data(text.utf8), name: "f")
                return ""
            } catch { return "\(error)" }
        }
        let good = String(
            decoding: try ChatExchange(transcript(["a", "b"]), prompt: "a", answer: "b").report("/good", ""), as: UTF8.self)
        #expect(message(good + "\n" + good) == "" && message(" \n") == "")
        #expect(message(good + "\n{\"a\": 1}") == "“f” is not feedback: in report 2, “transcript” is missing.")
        #expect(message(good + "\nno JSON").hasPrefix("“f” is not feedback: line 2 is not valid JSON at column "))
        #expect(try FeedbackReport.reports(in: Data((good + good).utf8), name: "f").count == 2)
    }

    @Test("the command describes wrong files without the usage text")
    func command() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }  // the system removes what is left
        try Data().write(to: file)
        let empty = try CommandTests().fm(["feedback", file.path])
        #expect(empty.status == 0 && empty.output.isEmpty && empty.error.contains("There is no feedback in"))
        let missing = try CommandTests().fm(["feedback", "/nowhere.json"])
        #expect(missing.status == 64 && !missing.error.contains("Usage"))
        // A file that cannot be written is no wrong usage.
        try Data(ChatExchange(transcript(["a", "b"]), prompt: "a", answer: "b").report("/good", "")).write(to: file)
        #expect(try CommandTests().fm(["feedback", file.path, "--tests", "/nowhere/tests.jsonl"]).status == 1)
    }
}
