import Foundation
public import FoundationModels
import JSON
import ModelPrompts

/// An answer from documents, whose statements name the passages that they are from and have been checked against them.
///
/// ```swift
/// let answer = try await CitedAnswer(question: question, from: index)
/// print(answer.text)  // “Passports are renewed at the town hall. [2]”, or “The documents do not say.”
/// print(answer.textWithSources)  // the same, and a list of sources
/// ```
///
/// The model first chooses a passage, or none, and then writes a statement. A statement is kept if its numbers, its names and
/// most of its other words are in that passage or in the question. If they are in exactly one other passage instead, the citation
/// is corrected; otherwise the statement is left out. The check compares words: it finds invented facts and wrong citations, but
/// not statements that say the opposite of a passage in the same words. At the end, models that run on this machine, guarded and recorded
/// ones too, are asked whether the answer answers the question. If that is unlikely, or no passage was chosen, they answer once more in
/// words, which is checked in the same way; if that is unlikely to be an answer too, the documents do not say.
///
/// The probabilities of “yes” and “no” that this takes are not known of models on servers, scripted ones, and those of an app's own. They
/// are asked once, and what the check of words keeps is the answer: more answers to questions that the documents do not answer remain.
public struct CitedAnswer: Sendable, Codable {
    /// A part of the answer, of one or two sentences.
    public struct Statement: Sendable, Codable, Equatable {
        /// The text, without the number of its source.
        public var text: String
        /// The number of the passage that the statement is from.
        public var source: Int
        /// Whether the model named another passage, which does not support the statement.
        public var isCorrected: Bool
    }

    /// A statement of the model that was left out, because no passage supports it.
    public struct Dropped: Sendable, Codable, Equatable {
        /// The text.
        public var text: String
        /// The number of the passage that the model named; nil if there is no such passage.
        public var source: Int?
        /// Why the statement was left out, for people.
        public var reason: String
    }

    /// The question.
    public let question: String
    /// The statements that passages support, in the order of the model.
    public private(set) var statements: [Statement]
    /// The passages that the statements are from.
    public private(set) var sources: [RetrievedContext.Citation]
    /// The statements that were left out.
    public private(set) var dropped: [Dropped]
    /// The tokens of the request that wrote the answer, and in its metadata why the model ended there. It is not encoded.
    public internal(set) var usage = Self.noUsage

    /// The most likely answer, with at most ``defaultResponseTokens``.
    public static let defaultOptions = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: defaultResponseTokens)

    private static var noUsage: LanguageModelSession.Usage {
        .init(
            input: .init(totalTokenCount: 0, cachedTokenCount: 0), output: .init(totalTokenCount: 0, reasoningTokenCount: 0))
    }

    private enum CodingKeys: String, CodingKey { case question, statements, sources, dropped }

    /// Whether the documents answer the question. If not, there are neither statements nor sources.
    public var isInDocuments: Bool { !statements.isEmpty }

    /// The text of an answer that is not in the documents.
    public static let notInDocuments = "The documents do not say."

    /// The statements, each on a line with the number of its source, or ``notInDocuments``.
    public var text: String {
        guard isInDocuments else { return Self.notInDocuments }
        return statements.map { "\($0.text) [\($0.source)]" }.joined(separator: "\n")
    }

    /// The text, and below it a list of the sources with their places and headings if there are any.
    public var textWithSources: String {
        guard isInDocuments else { return text }
        let list = sources.map { source in
            let headings = source.headings.isEmpty ? "" : "  " + source.headings.joined(separator: " › ")
            return "  [\(source.number)] \(source.place)\(headings)"
        }
        return ([text, "", "Sources"] + list).joined(separator: "\n")
    }

    /// The maximum number of tokens of a response, unless options say another: enough for three statements. Room that an answer does not
    /// need is missing for passages.
    public static let defaultResponseTokens = 400

    /// The number of tokens that instructions, task and schema need, and a question of some length.
    private static let reservedTokens = 350

    /// How many tokens of passages a window should have: 30 % of it, because small models answer better from a few good passages than from
    /// many, and at most what the response leaves.
    ///
    /// - Parameters:
    ///   - contextSize: The size of the window in tokens.
    ///   - responseTokens: The maximum number of tokens of the response.
    /// - Returns: 0 if there is no room for passages.
    public static func passageTokens(contextSize: Int, responseTokens: Int = defaultResponseTokens) -> Int {
        // A window that an app states may be as large as an integer.
        let share = contextSize / 10 * 3 + contextSize % 10 * 3 / 10
        return max(0, min(share, maximumPassageTokens(contextSize: contextSize, responseTokens: responseTokens)))
    }

    /// How many tokens of passages fit a window with a response; 0 if there is no room for them.
    package static func maximumPassageTokens(contextSize: Int, responseTokens: Int = defaultResponseTokens) -> Int {
        contextSize > responseTokens ? max(0, contextSize - max(0, responseTokens) - reservedTokens) : 0
    }

    /// Answers a question from passages. Without passages, the model is not asked.
    ///
    /// - Parameters:
    ///   - question: The question.
    ///   - context: The passages.
    ///   - model: A model that supports guided generation.
    ///   - instructions: Replaces the instructions of the model. An answer in another language than that of the passages does not
    ///     pass the check.
    ///   - options: How the answer is generated.
    /// - Throws: `LanguageModelError` or another error of the model;
    ///   `GeneratedContent/ParsingError` if its response does not conform to the schema; `CancellationError`.
    public init(
        question: String, from context: RetrievedContext, model: some LanguageModel = SystemLanguageModel.default,
        instructions: String? = nil,
        options: GenerationOptions = Self.defaultOptions
    ) async throws {
        var drafts: [Draft] = []
        var usage = Self.noUsage
        if !context.citations.isEmpty {
            let session = LanguageModelSession(model: model, instructions: instructions ?? ModelPrompts.documentsInstructions)
            let schema = try GenerationSchema(
                jsonSchema: ModelPrompts.citedAnswerSchema(passages: context.citations.map(\.number)))
            let prompt = Prompt(ModelPrompts.citedAnswer(question, from: context.text))
            let response = try await session.respond(to: prompt, schema: schema, options: options)
            drafts = try Self.drafts(in: response.content)
            usage = response.usage
        }
        self.init(question: question, drafts: drafts, citations: context.citations)
        self.usage = usage
        guard let check = AnswerCheck(model: model) else { return }
        try await leaveOutWrongAnswer(check, isSecond: false)
        if isInDocuments || context.citations.isEmpty { return }
        // Small models often choose no passage, or a wrong one, where they answer well in words. So they are asked again without a
        // schema, and the passages are found by the check.
        let session = LanguageModelSession(model: model, instructions: instructions ?? ModelPrompts.documentsInstructions)
        let response = try await session.respond(to: ModelPrompts.answerInWords(question, from: context.text), options: options)
        var second = CitedAnswer(
            question: question, drafts: [Draft(text: Self.cleaned(response.content), source: nil)], citations: context.citations)
        second.usage = response.usage
        try await second.leaveOutWrongAnswer(check, isSecond: true)
        let first = dropped
        self = second
        dropped = first + second.dropped
    }

    /// Leaves out all statements if the model itself finds that they do not answer the question.
    private mutating func leaveOutWrongAnswer(_ check: AnswerCheck, isSecond: Bool) async throws {
        guard isInDocuments else { return }
        let answer = statements.map(\.text).joined(separator: " ")
        if try await !check.isAnswer(answer, to: question, from: sources.map(\.evidence), isSecond: isSecond) { dropAll() }
    }

    /// Leaves out all statements, because they do not answer the question.
    private mutating func dropAll() {
        let reason = StatementCheck.Problem.noAnswer.description
        dropped += statements.map { Dropped(text: $0.text, source: $0.source, reason: reason) }
        (statements, sources) = ([], [])
    }

    /// Searches an index and answers a question from the best passages.
    ///
    /// - Parameters:
    ///   - question: The question.
    ///   - index: The index to search.
    ///   - tokens: The maximum number of tokens of the passages; nil for ``passageTokens(contextSize:responseTokens:)`` of the model's
    ///     window. The window of a model that does not conform to `TokenCounting` is taken to have 4,096 tokens.
    ///   - search: How to search; nil for ``SearchOptions/forPrompts``.
    ///   - model: A model that supports guided generation. If it does not conform to `TokenCounting`, the tokens are estimated.
    ///   - instructions: Replaces the instructions of the model.
    ///   - options: How the answer is generated.
    /// - Throws: ``RetrievalError``, and the errors of the models.
    public init(
        question: String, from index: SearchIndex, tokens: Int? = nil, search: SearchOptions? = nil,
        model: some LanguageModel = SystemLanguageModel.default, instructions: String? = nil,
        options: GenerationOptions = Self.defaultOptions
    ) async throws {
        let counter = TextTokens(model)
        let window = counter.contextSize ?? 4_096
        let responseTokens = options.maximumResponseTokens ?? Self.defaultResponseTokens
        let limit = tokens ?? Self.passageTokens(contextSize: window, responseTokens: responseTokens)
        if tokens == nil, limit == 0 { throw RetrievalError.noRoom(contextSize: window, responseTokens: responseTokens) }
        let context = try await RetrievedContext(
            for: question, from: index, tokens: limit, options: search, count: counter.count)
        try await self.init(question: question, from: context, model: model, instructions: instructions, options: options)
    }

    /// Checks what a model has written.
    init(question: String, drafts: [Draft], citations: [RetrievedContext.Citation]) {
        let check = StatementCheck(question: question, passages: citations.map { ($0.number, $0.evidence) })
        var statements: [Statement] = []
        var dropped: [Dropped] = []
        for draft in drafts where !statements.contains(where: { $0.text == draft.text }) {
            switch check.result(of: draft.text, citing: draft.source) {
            case .supported(let source):
                statements.append(Statement(text: draft.text, source: source, isCorrected: source != draft.source))
            case .unsupported(let problem):
                dropped.append(Dropped(text: draft.text, source: draft.source, reason: problem.description))
            }
        }
        let cited = Set(statements.map(\.source))
        self.question = question
        self.statements = statements
        self.dropped = dropped
        sources = citations.filter { cited.contains($0.number) }
    }
}

// MARK: - Request and response

extension CitedAnswer {
    /// A statement before it is checked.
    struct Draft: Equatable {
        /// The text.
        var text: String
        /// The number of the passage that the model named; nil if there is no such passage.
        var source: Int?
    }

    /// The statements in a response. Models without constrained decoding may write a statement although they chose no passage.
    static func drafts(in content: GeneratedContent) throws -> [Draft] {
        try content.value([GeneratedContent].self, forProperty: "statements").compactMap { part in
            let passage = try part.value(String.self, forProperty: "passage")
            guard passage != ModelPrompts.noPassage, let text = try part.value(String?.self, forProperty: "statement") else {
                return nil
            }
            let statement = cleaned(text)
            return statement.isEmpty ? nil : Draft(text: statement, source: Int(passage))
        }
    }

    /// A statement without references to passages: a citation may be corrected, and is shown separately.
    static func cleaned(_ statement: String) -> String {
        // The spaces before a reference are removed here: an expression that begins with them takes quadratic time for many spaces.
        var text = ""
        var rest = statement[...]
        while let match = rest.firstMatch(of: /\[\d+(?:,\s*\d+)*\]/) {
            let before = rest[..<match.range.lowerBound]
            let end = before.lastIndex { !$0.isWhitespace }.map { before.index(after: $0) } ?? before.startIndex
            text += end < before.endIndex ? before[..<end] : rest[..<match.range.upperBound]
            rest = rest[match.range.upperBound...]
        }
        text = (text + rest).trimmingCharacters(in: .whitespacesAndNewlines)
        let reference = /(?:according to|as stated in|based on|in) (?:the )?(?:passage|excerpt) \[?\d+\]?,?\s+/.ignoresCase()
        if let match = text.prefixMatch(of: reference) {
            let rest = text[match.range.upperBound...]
            text = rest.prefix(1).uppercased() + rest.dropFirst()
        }
        return text
    }
}

extension RetrievedContext.Citation {
    /// The headings above the first of the passages, the outermost first.
    public var headings: [String] { passages.first?.headings ?? [] }

    /// What the model reads of the passages.
    fileprivate var evidence: String {
        let path = passages.first.map { [$0.path] } ?? []
        return (path + passages.flatMap { $0.headings + [$0.text] }).joined(separator: "\n")
    }
}
