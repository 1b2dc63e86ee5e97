import ArgumentParser

/// Measures conversations that are longer than the context window, and searches.
@main struct ContextBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "context-bench", abstract: "Measures conversations that are longer than the context window, and searches.",
        subcommands: [
            LongConversation.self, RecallBench.self, RecallAnswers.self, CarryBench.self, Counting.self, Book.self,
            SearchBench.self,
            JudgmentBench.self, JudgeBench.self, ScreeningBench.self,
        ])
}
