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
    /// - Parameter locale: The person's locale; nil for that of the environment (`LANG`) or, if it names none, the current one.
    /// - Returns: Nil for US English, which models assume, and if nothing is known of the person.
    public static func locale(_ locale: Locale? = nil) -> String? {
        sentence(for: locale ?? PersonLocale.named() ?? .current)
    }

    static func sentence(for locale: Locale) -> String? {
        // Where nothing is set, the current locale is English of the whole world.
        return locale.identifier == "en_US" || locale.region == "001" ? nil : "The person's locale is \(locale.identifier)."
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
