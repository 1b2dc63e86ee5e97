import Foundation
import FoundationModels
import TestSupport
import Testing

@testable import ContextKit

struct ReportTests {
    @Test("only what the conversation has pinned counts as that, whatever texts begin with") func marks() async throws {
        let conversation = try await Conversation(
            model: StubModel(contextSize: 300), instructions: "\(ContextDraft.pinnedHeading)be kind.")
        let report = try await conversation.report()
        #expect(report.tokens(of: .pinned) == 0 && report.tokens(of: .instructions) > 0)
        try await conversation.pin("The code is 4711.")
        #expect(try await conversation.report().tokens(of: .pinned) > 0)
    }

    @Test("[D7] the parts of a report add up exactly to the tokens of the request") func sums() async throws {
        let model = StubModel(contextSize: 300)
        let conversation = try await Conversation(model: model, instructions: "Be brief.")
        try await conversation.pin("The code is 4711.")
        for turn in 0..<40 { try await conversation.respond(to: "My message \(turn) of subject\(turn).") }
        // A report does not wait for a compaction that is running, but the next request does.
        await eventually { await !conversation.state.isCompactionDue }
        let report = try await conversation.report(for: "What was my subject3?")
        try await conversation.respond(to: "What was my subject3?")
        #expect(report.usedTokens == StubModel.count(try #require(model.requests.last)))
        #expect(report.tokens(of: .recalled) > 0 && report.tokens(of: .pinned) > 0 && report.tokens(of: .carried) > 0)
        #expect(report.freeTokens == 300 - report.usedTokens)
        let decoded = try JSONDecoder().decode(ContextReport.self, from: JSONEncoder().encode(report))
        #expect(decoded.usedTokens == report.usedTokens)
        let table = report.table(width: 40)
        #expect(table.contains("pinned") && table.contains("free"))
        #expect(table.split(separator: "\n").first?.filter { $0 != "·" }.isEmpty == false)
    }

    @Test("[D7] with the default model, counts equal the processed tokens, with tools, schemas and any text")
    func exact() async throws {
        struct Weather: Tool {
            let name = "weather"
            let description = "The weather of a city."
            func call(arguments: GeneratedContent) async throws -> String { "Sunny." }
        }
        let model = SystemLanguageModel.default
        let session = LanguageModelSession(tools: [Weather()], instructions: "Be brief. 短く。")
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 8, toolCallingMode: .disallowed)
        for prompt in ["Hello!", "  leading space", "日本語 🦊 mixed", "line\nbreaks\n\n"] {
            let report = try await ContextReport(model: model, transcript: session.transcript, prompt: prompt)
            let response = try await session.respond(to: prompt, options: options)
            // The definitions of disallowed tools are not in the prompt.
            #expect(response.usage.input.totalTokenCount == report.usedTokens - report.tokens(of: .tool), "\(prompt)")
        }
        let bare = LanguageModelSession()
        let report = try await ContextReport(model: model, transcript: bare.transcript, prompt: "Hi")
        #expect(report.tokens(of: .template) > 0)
        #expect(try await bare.respond(to: "Hi", options: options).usage.input.totalTokenCount == report.usedTokens)
    }
}
