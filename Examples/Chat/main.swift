/// Chat: a conversation in the terminal. Responses are streamed; Ctrl-C stops a response.
///
///     swift run Chat
///
/// Ctrl-D quits. With input from a pipe, each line is a message. The default model is small: it is fluent, but often
/// wrong.

@preconcurrency import Dispatch  // its signal sources are thread-safe, but not declared Sendable
import Foundation
import FoundationModels

func fail(_ message: String, code: Int32 = 1) -> Never {
    FileHandle.standardError.write(Data("Chat: \(message)\n".utf8))
    exit(code)
}

func makeSession() -> LanguageModelSession {
    let session = LanguageModelSession(instructions: "You are a helpful assistant. Answer in a few short sentences.")
    session.prewarm()  // loads the model while the user types the first message
    return session
}

/// Prints a streamed response. A snapshot contains the whole text so far, so only the new part is printed.
func say(_ message: String, in session: LanguageModelSession) async throws {
    var written = 0
    for try await snapshot in session.streamResponse(to: message) {
        print(Substring(snapshot.content.utf8.dropFirst(written)), terminator: "")
        fflush(nil)
        written = snapshot.content.utf8.count
    }
    print()
}

/// Calls `handler` on Ctrl-C until the source is cancelled.
func onInterrupt(_ handler: @escaping @Sendable () -> Void) -> any DispatchSourceSignal {
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler(handler: handler)
    source.resume()
    return source
}

guard SystemLanguageModel.default.isAvailable else {
    fail("There is no model. Download it with “fm model pull”.", code: 3)
}
var session = makeSession()
let isTerminal = isatty(STDIN_FILENO) == 1
if isTerminal { print("Ask anything. Ctrl-C stops a response, Ctrl-D quits.") }

while true {
    if isTerminal {
        print("> ", terminator: "")
        fflush(nil)
    }
    guard let line = readLine() else { break }
    let message = line.trimmingCharacters(in: .whitespaces)
    if message.isEmpty { continue }

    let answer = Task { [session] in try await say(message, in: session) }
    let interrupt = onInterrupt { answer.cancel() }
    do {
        try await answer.value
    } catch is CancellationError {
        print("\n(stopped; the text so far remains in the conversation)")
        // The stream ends immediately, the model after the current token. An interrupted sleep only polls earlier.
        while session.isResponding { try? await Task.sleep(for: .milliseconds(5)) }
    } catch LanguageModelError.contextSizeExceeded(let context) {
        print("\nThe conversation is full (\(context.contextSize) tokens). A new conversation begins; please ask again.")
        session = makeSession()
    } catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
        fail(reason.debugDescription, code: 3)
    } catch {
        print("\nNo response: \(error.localizedDescription)")
    }
    interrupt.cancel()
    signal(SIGINT, SIG_DFL)
}
if isTerminal { print() }
