public import Foundation
import ModelPrompts

/// Sentences for instructions and prompts, in the words that models follow best.
///
/// ```swift
/// let session = LanguageModelSession {
///     "You help people write letters."
///     if let locale = RequestHint.locale() { locale }
/// }
/// let answer = try await session.respond(to: "What is a monad? \(RequestHint.length(words: 60))")
/// ```
public enum RequestHint {
    /// The sentence that tells the model the person's locale, for instructions. Models are trained with exactly these words; they
    /// then answer in the person's language, with their units and spellings.
    ///
    /// - Returns: Nil for US English, which models assume.
    public static func locale(_ locale: Locale = .current) -> String? {
        let identifier = locale.identifier
        return identifier == "en_US" ? nil : "The person's locale is \(identifier)."
    }

    /// A sentence that asks for an answer of about this many words.
    ///
    /// A length that is asked for leads to a whole answer; `maximumResponseTokens` cuts it, and is only a guard. With “about” the
    /// default model comes close to the number; with “at most” it writes much less.
    public static func length(words: Int) -> String { ModelPrompts.length(words: words) }

    /// A sentence that asks for an answer of this many sentences.
    public static func length(sentences: Int) -> String {
        sentences <= 1 ? "Answer in one sentence." : "Answer in \(sentences) sentences."
    }
}
