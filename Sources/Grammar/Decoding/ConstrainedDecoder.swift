/// Leads a model through a document: says before each token what may come, and sees to it that the document is complete
/// before the tokens run out.
///
/// Where the grammar leaves no choice, it names the tokens itself, cut as the tokenizer would. Near the end of the
/// budget it keeps to tokens after which the shortest ending still fits, and ends texts and lists where that is natural.
package struct ConstrainedDecoder: Sendable {
    package enum Step: Sendable {
        /// These tokens come next whatever the model says.
        case forced([Int32])
        /// The model chooses among few tokens.
        case few([Int32])
        /// The model chooses: ``fillMask(_:)`` says among which.
        case many
        /// The document is complete and nothing can follow.
        case end
    }

    private(set) var matcher: GrammarMatcher
    package private(set) var cursor = DocumentCursor()
    /// The shortest ending as tokens, once there is no room for anything else.
    private var plan: ArraySlice<Int32> = []
    /// Tokens that come next without a choice.
    private var queue: ArraySlice<Int32> = []
    /// The last byte of the text, for telling where a sentence or a word ends.
    private var lastByte: UInt8 = 0
    private let encode: @Sendable ([UInt8]) -> [Int32]
    /// Bytes by which one token can lengthen the shortest ending, at most.
    private let growth: Int

    /// Slack, in tokens, below which optional members and items are not begun, and sentences are the last.
    private static let gentleSlack = 12
    /// Slack below which a word is the last.
    private static let firmSlack = 4

    /// Nesting at which the shortest ending is all that may come. Readers refuse more than ``JSONParser/greatestDepth``; one token
    /// may open several levels, and the ending too.
    private static let maximumDepth = JSONParser.greatestDepth - 112

    /// - Parameter encode: The tokens of a text, as the model's tokenizer cuts it.
    package init(_ grammar: Grammar, encode: @escaping @Sendable ([UInt8]) -> [Int32]) {
        matcher = grammar.matcher()
        self.encode = encode
        growth = matcher.greatestGrowth
    }

    package var isComplete: Bool { matcher.isComplete }

    /// Tokens of the shortest document, or of the shortest ending of the one begun.
    package var leastTokens: Int { matcher.shortestTokens.count }

    // MARK: - Choosing

    /// What may come next, when `remaining` more tokens can be generated.
    package mutating func next(remaining: Int) -> Step {
        if !plan.isEmpty { return .forced(Array(plan)) }
        if !queue.isEmpty { return .forced(Array(queue.prefix(remaining))) }
        if matcher.isAtEnd { return .end }
        if isTight(remaining) || cursor.depth >= Self.maximumDepth {
            let ending = matcher.shortestTokens
            if ending.count >= remaining || cursor.depth >= Self.maximumDepth {
                plan = ending[...]
                return ending.isEmpty ? .end : .forced(Array(ending))
            }
        }
        queue = forcedTokens()[...]
        if !queue.isEmpty { return .forced(Array(queue.prefix(remaining))) }
        if let few = matcher.fewTokens { return few.count == 1 ? .forced(few) : .few(few) }
        return .many
    }

    /// Whether the shortest ending might not fit after the next token.
    private func isTight(_ remaining: Int) -> Bool { remaining <= matcher.completionLength + growth }

    /// The token to take when the model chose `token`: that one, unless the budget asks for another.
    ///
    /// - Returns: nil if the model has to choose again, without this token.
    package mutating func settle(_ token: Int32, remaining: Int) -> Int32? {
        guard isTight(remaining) else { return token }
        let ending = matcher.shortestTokens
        let slack = remaining - ending.count
        if slack <= Self.gentleSlack, let close = ending.first, shouldClose(instead: token, slack: slack) { return close }
        var after = matcher
        if grammarEnds(token) { return token }
        guard after.advance(token: token) else { return nil }
        return after.completionLength < remaining || after.shortestTokens.count < remaining ? token : nil
    }

    /// The first token of the shortest ending, which always fits.
    package var closingToken: Int32? { matcher.shortestTokens.first }

    private func grammarEnds(_ token: Int32) -> Bool { matcher.grammar.vocabulary.endTokens.contains(token) }

    /// Whether this is a good place to end a text or a list.
    private func shouldClose(instead token: Int32, slack: Int) -> Bool {
        let text = matcher.grammar.vocabulary.texts[Int(token)] ?? []
        guard let first = text.first, let ending = matcher.completion.first else { return false }
        if cursor.isInStringValue {
            guard ending == UInt8(ascii: "\"") else { return false }
            let endsSentence = lastByte == UInt8(ascii: ".") || lastByte == UInt8(ascii: "!") || lastByte == UInt8(ascii: "?")
            let beginsWord = first == UInt8(ascii: " ") || first == UInt8(ascii: "\\")
            return beginsWord && (endsSentence || slack <= Self.firmSlack)
        }
        let closes = ending == UInt8(ascii: "}") || ending == UInt8(ascii: "]")
        return closes && first == UInt8(ascii: ",")
    }

    /// Bits of the tokens the model may choose among.
    package func fillMask(_ words: UnsafeMutableBufferPointer<UInt32>) { matcher.fillMask(words) }

    // MARK: - Reading

    /// Reads a token that was taken. False if it cannot follow, which no token given by this decoder does.
    package mutating func accept(_ token: Int32) -> Bool {
        guard matcher.advance(token: token) else { return false }
        if plan.first == token { plan.removeFirst() } else { plan = [] }
        if queue.first == token { queue.removeFirst() } else { queue = [] }
        for byte in matcher.grammar.vocabulary.texts[Int(token)] ?? [] {
            cursor.advance(byte)
            lastByte = byte
        }
        return true
    }

    // MARK: - What follows without a choice

    /// The tokens that the tokenizer would make of the text that must follow, as far as they do not depend on what
    /// comes after it.
    private func forcedTokens() -> [Int32] {
        let (bytes, next) = matcher.forcedBytes
        guard !bytes.isEmpty else { return [] }
        var common: [Int32]?
        for ending in next {
            let tokens = encode(bytes + ending)
            guard let known = common else {
                common = tokens
                continue
            }
            common = Array(zip(known, tokens).prefix { $0 == $1 }.map(\.0))
        }
        // Only whole tokens of the forced text, and only what the grammar would let through.
        var result: [Int32] = []
        var rest = bytes[...]
        for token in common ?? [] {
            guard let text = matcher.grammar.vocabulary.texts[Int(token)], rest.starts(with: text) else { break }
            result.append(token)
            rest = rest.dropFirst(text.count)
        }
        return result
    }
}
