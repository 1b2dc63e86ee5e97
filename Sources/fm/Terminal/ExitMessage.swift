import ArgumentParser
import ContextKit
import Embeddings
import Foundation
import FoundationModels
import Inference
import InstalledModels

/// Why a command cannot do what it was asked, for people, although its arguments are right: wrong ones are a `ValidationError`.
struct CommandError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// The message and the exit code of an error.
enum ExitMessage {
    /// The exit codes of errors, which “fm --help” lists. Wrong arguments have the code 64 of `ValidationError`.
    static func of(_ error: any Error) -> (text: String, code: Int32) {
        switch error {
        case LanguageModelError.contextSizeExceeded(let context):
            (context.debugDescription + " “fm read FILE” reads texts of any length, also from a pipe.", 4)
        case ConversationError.promptTooLarge(let size):
            ("\(description(error)) Shorten it by \(size.excess) tokens; “fm read FILE” reads texts of any length.", 4)
        case SystemLanguageModel.Error.assetsUnavailable(let context):
            (context.debugDescription + advice("fm model pull", missing: ModelStore.defaultModelPath), 3)
        case LanguageModelError.unsupportedGenerationGuide(let context): (context.debugDescription, 5)
        // Even the shortest document exceeds the token limit.
        case let error as GeneratedContent.ParsingError where error.underlyingError is GenerationFailure:
            (error.debugDescription, 4)
        case let error as LanguageModelError: (error.debugDescription, 1)
        case let error as EmbeddingError:
            (error.description + advice("fm model pull embedder", missing: ModelStore.embedderPath), 3)
        case let error as InstallError: (error.description, 3)
        case let error as any LocalizedError:
            ([description(error), error.recoverySuggestion].compactMap { $0 }.joined(separator: " "), 1)
        default: (description(error), 1)
        }
    }

    /// What to do if a file is missing; nothing if it is there.
    private static func advice(_ command: String, missing path: String) -> String {
        FileManager.default.fileExists(atPath: path) ? "" : " “\(command)” downloads one."
    }

    private static func description(_ error: any Error) -> String {
        (error as? any LocalizedError)?.errorDescription ?? "\(error)"
    }

    /// Prints a description of an error, and returns the error that ends the command with the exit code for it.
    static func exit(for error: any Error) -> any Error {
        // They have their codes, and their messages are printed when the program ends, if they have one.
        if error is ExitCode || error is ValidationError { return error }
        let (text, code) = of(error)
        Message.say("fm: \(text)")
        return ExitCode(code)
    }
}

/// The exit code of an answer that was ended because it repeated itself, or nested values, endlessly.
let repetitionCode = ExitCode(7)

/// Says on standard error that something else than the model ended an answer.
///
/// - Parameters:
///   - usage: What the model says of the answer.
///   - limitMessage: What to say if the answer was ended at the maximum number of tokens; nil if the user knows of it.
/// - Returns: The exit code for it; nil if the command has done what it was asked.
func reportStop(_ usage: LanguageModelSession.Usage?, limitMessage: String? = nil) -> ExitCode? {
    switch usage?.metadata["stopReason"]?.kind {
    case .string("loop"):
        Message.say("The answer repeated itself and was ended.")
        return repetitionCode
    case .string("grammarLimit"):
        Message.say("The value was closed where it was: it was nested too deeply, or needed too much memory.")
        return repetitionCode
    case .string("maximumTokens"):
        if let limitMessage { Message.say(limitMessage) }
        return nil
    default: return nil
    }
}
