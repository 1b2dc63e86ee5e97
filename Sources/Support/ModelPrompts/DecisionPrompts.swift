/// The prompts of decisions: a state, a question about it, and the options of its answer.
///
/// All questions on a state begin with the same text, so that a model processes it once.
public enum DecisionPrompts {
    /// An option as the prompt names it.
    public struct Option: Sendable {
        public var name: String
        public var description: String?

        public init(_ name: String, _ description: String? = nil) { (self.name, self.description) = (name, description) }
    }

    /// The instructions where a program has none.
    public static let instructions = "You answer questions about a text exactly, from what it says."

    /// The text that is asked about. It is data: the marks tell it from the question.
    public static func state(_ state: String) -> String { "Text:\n<<<\n\(state)\n>>>\n\n" }

    /// A question whose answer is the letter of an option.
    public static func lettered(_ question: String, _ options: [Option], _ letters: [String]) -> String {
        question + "\n" + zip(letters, options).map { "\($0). " + text($1) }.joined(separator: "\n")
            + "\nAnswer with one letter: " + list(letters) + "."
    }

    /// A question whose answer is the text of an option.
    public static func named(_ question: String, _ options: [Option]) -> String {
        question + "\nOptions:\n" + options.map { "- " + text($0) }.joined(separator: "\n")
            + "\nAnswer with one of the options, exactly as it is written."
    }

    /// A question or a statement whose answer is true or false.
    public static func trueOrFalse(_ question: String, yes: String?, no: String?) -> String {
        question + (yes.map { "\nTrue means: \($0)" } ?? "") + (no.map { "\nFalse means: \($0)" } ?? "")
            + "\nAnswer true or false."
    }

    private static func text(_ option: Option) -> String { option.name + (option.description.map { ": \($0)" } ?? "") }

    private static func list(_ texts: [String]) -> String {
        texts.count < 2 ? texts.joined() : texts.dropLast().joined(separator: ", ") + " or " + texts[texts.count - 1]
    }
}
