import Foundation
import FoundationModels
import FoundationModelsTesting
import Testing

@testable import Retrieval

struct TokenEstimateTests {
    @Test("a tool counts with what its session's model has, and estimates otherwise")
    func toolCountsTokens() async throws {
        let folder = try TemporaryFolder()
        let index = try await SearchIndex(url: folder.url.appendingPathComponent("test.index"), model: WordEmbedder())
        try await index.add(ExtractedText("The cat sleeps on the sofa.", format: .plain), path: "cat.txt")
        let arguments = try SearchTool.Arguments(GeneratedContent(properties: ["query": "cat"]))
        let cost = TokenEstimate.count("[99] cat.txt:1\nThe cat sleeps on the sofa.\n\n")
        let remote = ScriptedLanguageModel([])
        for tool in [SearchTool(index: index, tokens: cost), SearchTool(index: index, tokens: cost, model: remote)] {
            #expect(try await tool.call(arguments: arguments).contains("sofa"))
        }
        for tool in [SearchTool(index: index, tokens: cost - 1), SearchTool(index: index, tokens: cost - 1, model: remote)] {
            #expect(try await tool.call(arguments: arguments) == "Nothing was found.")
        }
        let bytes = SearchTool(index: index, tokens: cost, count: { $0.utf8.count })
        #expect(try await bytes.call(arguments: arguments) == "Nothing was found.")
        let context = try await RetrievedContext(for: "cat", from: index, tokens: cost)
        #expect(context.citations.count == 1 && context.tokenCount == TokenEstimate.count(context.text))
        let answer = try await CitedAnswer(question: "Who?", from: index, tokens: cost - 1, model: remote)
        #expect(!answer.isInDocuments)
    }

    @Test("tokens are estimated by script") func estimate() {
        #expect(TokenEstimate.count("") == 0 && TokenEstimate.count("Hello, world 12") == 8)
        // A token for four bytes would be 6.
        #expect(TokenEstimate.count("猫在沙发上睡觉。") == 12 && TokenEstimate.count("ソファーの猫") == 9)
        #expect(TokenEstimate.count("é") == 2 && TokenEstimate.count("🙂") == 3)
    }
}
