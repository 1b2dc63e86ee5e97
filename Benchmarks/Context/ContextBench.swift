import ArgumentParser

/// Measures how conversations are kept within their window.
@main struct ContextBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "context-bench", abstract: "Measures conversations that outgrow the window.",
        subcommands: [LongConversation.self, RecallBench.self, Counting.self, Book.self])
}
