public import Foundation

/// A question on a state that is answered by probabilities instead of text.
public struct DecisionQuestion: Sendable, Hashable {
    /// One of the answers that a question offers.
    public struct Option: Sendable, Hashable, ExpressibleByStringLiteral {
        /// The answer. Short names are best: the model reads it as it is.
        public var name: String
        /// What the name means.
        public var description: String?

        /// Creates an option.
        public init(_ name: String, _ description: String? = nil) { (self.name, self.description) = (name, description) }

        public init(stringLiteral name: String) { self.init(name) }
    }

    /// What kind of answer a question has.
    public enum Kind: Sendable, Hashable {
        /// Yes or no. The texts say what each means, where the question leaves it open.
        case predicate(yes: String? = nil, no: String? = nil)
        /// One of several options.
        case choice([Option])
        /// A level of a scale, the lowest one first.
        case score([Option])

        /// The name of the kind: predicate, choice or score.
        public var name: String {
            switch self {
            case .predicate: "predicate"
            case .choice: "choice"
            case .score: "score"
            }
        }
    }

    /// The question, or a statement that is true or false.
    public var text: String
    public var kind: Kind

    /// Creates a question.
    public init(_ text: String, _ kind: Kind) { (self.text, self.kind) = (text, kind) }

    /// The most options of a question.
    public static let maximumOptions = 255

    /// The options of the answer, in their order: yes and no of a predicate.
    public var options: [Option] {
        switch kind {
        case .predicate(let yes, let no): [Option("yes", yes), Option("no", no)]
        case .choice(let options), .score(let options): options
        }
    }

    /// - Throws: ``DecisionError``
    func check() throws {
        let options = options
        guard !options.isEmpty else { throw DecisionError.noOptions(question: text) }
        guard options.count <= Self.maximumOptions else {
            throw DecisionError.tooManyOptions(question: text, count: options.count)
        }
        var seen: Set<String> = []
        for option in options {
            let name = option.name.trimmingCharacters(in: .whitespacesAndNewlines)
            let hasControls = option.name.unicodeScalars.contains { scalar in
                scalar.properties.generalCategory == .control && scalar != "\n" && scalar != "\t"
            }
            if name.isEmpty || hasControls {
                throw DecisionError.unusableOption(question: text, option: option.name)
            }
            guard seen.insert(name.lowercased()).inserted else {
                throw DecisionError.equalOptions(question: text, option: option.name)
            }
        }
    }
}

/// What a model says of a question: how probable each of its options is.
public struct DecisionAnswer: Sendable {
    public let question: DecisionQuestion
    /// The probabilities of the options of the question; the value is the index of an option.
    public let distribution: Distribution<Int>
    /// How often the model would have begun one of the options if it had been free to write anything, from 0 to 1. It says whether the
    /// question was understood, not whether the answer is right.
    public let mass: Double

    /// The most probable option.
    public var option: DecisionQuestion.Option { question.options[distribution.mostLikely] }

    /// Of a predicate, the probability of yes; of other questions, that of the first option.
    public var probability: Double { distribution.probabilities.first ?? 0 }

    /// The mean level, counted from 0, weighted by the probabilities.
    public var score: Double { distribution.expectedValue }

    /// How sure the model is, from 0 for chance to 1: see ``Distribution/confidence``, and for scores ``Distribution/confidenceOfScale``.
    public var confidence: Double {
        if case .score = question.kind { distribution.confidenceOfScale } else { distribution.confidence }
    }
}

/// Why a question cannot be decided.
public enum DecisionError: Error, LocalizedError, Equatable {
    /// The session's model does not run on this machine: it does not say how probable its words are.
    case unsupportedModel
    case noOptions(question: String)
    case tooManyOptions(question: String, count: Int)
    /// An option is blank, or contains control characters other than line ends and tabulators.
    case unusableOption(question: String, option: String)
    /// Two options are the same but for white space and capital letters.
    case equalOptions(question: String, option: String)
    /// The values of a type cannot be listed: the part at this JSON Pointer has no limited set of values.
    case openValue(pointer: String)
    /// The schema and the value have too many parts.
    case tooManyParts
    /// The response is not one of the session's transcript.
    case unknownResponse

    public var errorDescription: String? {
        switch self {
        case .unsupportedModel: "The model does not run on this machine, and does not say how probable its words are."
        case .noOptions(let question): "The question “\(question)” has no options."
        case .tooManyOptions(let question, let count):
            "The question “\(question)” has \(count) options; \(DecisionQuestion.maximumOptions) are possible."
        case .unusableOption(let question, let option):
            "An option of the question “\(question)” is blank or has control characters: “\(option)”."
        case .equalOptions(let question, let option): "Two options of the question “\(question)” are the same: “\(option)”."
        case .openValue(let pointer):
            "\(pointer.isEmpty ? "The value" : "The value at “\(pointer)”") can be anything. Only choices, true or false, and ranges of "
                + "whole numbers with at most \(DecisionQuestion.maximumOptions) values are decided."
        case .tooManyParts: "The value has too many parts to decide."
        case .unknownResponse: "The response is not in the transcript of this session."
        }
    }

    public var recoverySuggestion: String? {
        switch self {
        case .unsupportedModel: "Use SystemLanguageModel, or a model from a file."
        case .noOptions, .tooManyOptions: "Give from 2 to \(DecisionQuestion.maximumOptions) options."
        case .unusableOption, .equalOptions: "Give each option a name of its own."
        case .openValue, .tooManyParts: "Generate the value, and ask how sure the model is of the rest."
        case .unknownResponse: "Pass a response of this session whose entries are still in its transcript."
        }
    }
}
