import ArgumentParser
import Foundation
import FoundationModels

struct Chat: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Hold a conversation: the model remembers what was said.",
        discussion: """
            /help lists the commands. Arrow keys edit the line and bring back earlier ones. Ctrl-C stops an answer, Ctrl-D \
            leaves. From a pipe, each line is a message.
            """)

    @OptionGroup var flags: GenerationFlags

    private static let help = """
          /help     this list
          /reset    begin a new conversation
          /tokens   how much of the context window is used
          /quit     leave (or Ctrl-D)

        """

    func run() async throws {
        flags.selectModel()
        guard SystemLanguageModel.default.isAvailable else {
            throw Failure.exit(
                for: SystemLanguageModel.Error.assetsUnavailable(
                    .init(debugDescription: "There is no model. Fetch it with “fm model pull”.")))
        }
        var session = flags.makeSession()
        session.prewarm()
        let isTerminal = isatty(STDIN_FILENO) == 1
        var used = 0  // tokens of the context window after the last answer
        var editor = LineEditor(prompt: "> ")
        if isTerminal { print("Ask anything. /help lists the commands.") }
        while let line = isTerminal ? editor.readLine() : Swift.readLine() {
            let message = line.trimmingCharacters(in: .whitespaces)
            switch message {
            case "": continue
            case "/help": print(Self.help, terminator: "")
            case "/quit", "/exit": return
            case "/reset":
                session = flags.makeSession()
                session.prewarm()
                used = 0
                print("A new conversation.")
            case "/tokens": print(gauge(used: used))
            case _ where message.hasPrefix("/"): print("There is no command \(message). /help lists them.")
            default: used = try await say(message, session) ?? used
            }
        }
    }

    /// Answers one message; the tokens of the conversation after it, nil if it was not answered.
    private func say(_ message: String, _ session: LanguageModelSession) async throws -> Int? {
        let options = flags.options
        let answer = Task {
            let output = Output()
            var written = 0
            var tokens = 0
            for try await snapshot in session.streamResponse(to: message, options: options) {
                try output.write(Substring(snapshot.content.utf8.dropFirst(written)))
                written = snapshot.content.utf8.count
                tokens = snapshot.usage.totalTokenCount
            }
            try output.write("\n")
            return tokens
        }
        let interrupt = Interrupt { answer.cancel() }
        defer { interrupt.stop() }
        do {
            return try await answer.value
        } catch LanguageModelError.contextSizeExceeded(let context) {
            print("\n\(context.debugDescription) /reset begins a new conversation.")
        } catch {
            guard interrupt.happened else { throw Failure.exit(for: error) }
            print("\n(stopped)")
        }
        return nil
    }

    /// A bar of how full the context window is after the last request.
    private func gauge(used: Int) -> String {
        let size = SystemLanguageModel.default.contextSize
        let filled = min(40, used * 40 / size)
        return "[" + String(repeating: "█", count: filled) + String(repeating: "·", count: 40 - filled)
            + "] \(used) of \(size) tokens"
    }
}
