import ArgumentParser

/// Measures conversations that are longer than the context window.
@main struct ContextBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "context-bench", abstract: "Measures conversations that are longer than the context window.",
        subcommands: [LongConversation.self, RecallBench.self, Counting.self, Book.self])
}
