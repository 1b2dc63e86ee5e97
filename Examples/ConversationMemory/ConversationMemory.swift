/// ConversationMemory: a conversation in a file. It never ends for lack of space in the model's window, and remembers what was said.
///
///     swift run --traits Macros,SQLite ConversationMemory "My dog is called Biscuit, and he is afraid of thunder."
///     swift run --traits Macros,SQLite ConversationMemory "It may rain tonight. What should I do?"
///     swift run --traits Macros,SQLite ConversationMemory --pin "The user's name is Ada." "Hello again!"
///
/// Each run continues the conversation of the run before. When the window is nearly full, old turns leave it; the archive keeps them,
/// and those that a prompt needs are put in front of it. With an embedding model (`fm model pull embedder`) they are also found by their
/// meaning, otherwise by their words. Pinned facts stay in the window for good.

import ArgumentParser
import ContextKit
import Foundation

@main
struct ConversationMemory: AsyncParsableCommand {
    @Option(help: "The file of the conversation.") var file = "conversation.sqlite"
    @Option(help: "A fact that the model must always know.") var pin: String?
    @Argument(help: "What to say.") var prompt: String

    func run() async throws {
        let conversation = try await Conversation(
            instructions: "You are a friend who listens. Answer in two sentences.",
            archive: ConversationArchive(url: URL(filePath: file)), id: "example"
        ) { compaction in
            print("\n(\(compaction.evictedTurns.count) old turns have left the window.)")
        }
        if let pin { try await conversation.pin(pin) }

        // A snapshot contains the whole text so far, so only the new part is printed.
        var written = 0
        for try await snapshot in conversation.streamResponse(to: prompt) {
            print(Substring(snapshot.content.utf8.dropFirst(written)), terminator: "")
            fflush(nil)
            written = snapshot.content.utf8.count
        }
        print("\n")
        if let recall = await conversation.lastRecall, !recall.recalledItems.isEmpty { print("(\(recall.summary))") }
        print("(The window is used to \(try await conversation.tokenCount()) of \(await conversation.contextSize) tokens.)")
        // The next run continues sooner with what the model has computed.
        try await conversation.saveKVCache()
    }
}
