internal import JSON

/// Guides a model through a document: determines the allowed tokens before each step, and ensures that the document is
/// complete before the token budget is used up.
///
/// Where the grammar leaves no choice, it returns the tokens itself, split as the tokenizer would split the text. Near
/// the end of the budget it allows only tokens after which the shortest ending still fits, and it prefers to end texts
/// and arrays at natural places.
package struct GrammarCursor: Sendable {
    package enum Step: Sendable, Equatable {
        /// These tokens come next, regardless of the model's logits.
        case forced(ArraySlice<Int32>)
        /// The model chooses among these few tokens.
        case few([Int32])
        /// The model chooses among the tokens of ``fillMask(_:)``.
        case many
        /// The document is complete and nothing can follow.
        case end
    }

    private(set) var matcher: GrammarMatcher
    package private(set) var cursor = DocumentCursor()
    /// The tokens of the shortest ending, once nothing else fits into the budget.
    private var plan: ArraySlice<Int32> = []
    /// Forced tokens that have not been accepted yet.
    private var queue: ArraySlice<Int32> = []
    /// The tokens of the shortest ending of the text so far, once they are known.
    private var ending: [Int32]?
    /// The last byte of the text, for detecting the end of a sentence.
    private var lastByte: UInt8 = 0
    private var byteCount = 0
    /// The number of bytes that the last character of the text lacks.
    private var missingBytes = 0
    /// The number of bytes after which the document was shortened for lack of tokens; nil if it was not.
    package private(set) var shortenedAt: Int?
    /// Whether the document was shortened because it reached the limits of nesting or of the grammar's memory, rather than for lack
    /// of tokens.
    package private(set) var isClosedAtLimit = false
    /// The tokens that may come next, once ``next(remaining:)`` has computed them.
    private var tokens: TokenMask?
    /// The work of its steps; see ``Grammar/attempt(_:upTo:_:)``, without which no step is busy.
    package let work = GrammarWork()
    private let encode: @Sendable ([UInt8]) -> [Int32]
    /// Maximum number of bytes by which one token can lengthen the shortest ending.
    private let growth: Int

    /// If no more than this number of tokens remains beyond the shortest ending, optional members and items are not
    /// begun, and texts end after the current sentence.
    private static let sentenceEndSlack = 12
    /// If no more than this number of tokens remains beyond the shortest ending, texts end after the current word.
    private static let wordEndSlack = 4

    /// If no more than this number of tokens remains beyond the shortest ending, no character is begun that has further tokens.
    private static let characterSlack = 4

    /// Nesting depth from which only the shortest ending is allowed. Parsers reject documents deeper than
    /// ``JSONParser/maximumDepth``; one token can open several levels, and so can the shortest ending.
    private static let maximumDepth = JSONParser.maximumDepth - 112

    /// - Parameter encode: Encodes a text with the tokenizer that the grammar's vocabulary belongs to. The grammar keeps the
    ///   results.
    package init(_ grammar: Grammar, encode: @escaping @Sendable ([UInt8]) -> [Int32]) {
        matcher = grammar.readyMatcher()
        matcher.work = work
        self.encode = encode
        growth = matcher.maximumGrowth
    }

    package var grammar: Grammar { matcher.grammar }
    package var isComplete: Bool { matcher.isComplete }
    /// Whether the text ends within a character.
    package var isInsideCharacter: Bool { missingBytes > 0 }

    /// Number of tokens of the shortest document, or of the shortest ending after the text accepted so far.
    package var minimumTokenCount: Int { get throws(GrammarBusy) { try checked(matcher.shortestTokens).count } }

    /// A result of the matcher.
    ///
    /// - Throws: ``GrammarBusy`` if it is meaningless, because the limit of work was reached.
    private func checked<Value>(_ value: Value) throws(GrammarBusy) -> Value {
        if work.isExceeded { throw GrammarBusy() }
        return value
    }

    // MARK: - Choosing

    /// What may come next if at most `remaining` more tokens can be generated.
    package mutating func next(remaining: Int) throws(GrammarBusy) -> Step {
        if !plan.isEmpty { return .forced(plan) }
        if !queue.isEmpty { return .forced(queue.prefix(remaining)) }
        if try checked(matcher.isAtEnd) { return .end }
        let mustEnd = cursor.depth >= Self.maximumDepth || matcher.isNearlyFull
        let isTight = try isTight(remaining)
        if mustEnd || isTight {
            let ending = try shortestEnding()
            if mustEnd || ending.count >= remaining {
                plan = ending[...]
                isClosedAtLimit = isClosedAtLimit || mustEnd && ending.count < remaining
                noteShortening()
                return ending.isEmpty ? .end : .forced(plan)
            }
        }
        queue = try checked(matcher.forcedTokens(encode))[...]
        if !queue.isEmpty { return .forced(queue.prefix(remaining)) }
        let tokens = try checked(matcher.tokens)
        self.tokens = tokens
        if let few = tokens.few { return few.count == 1 ? .forced(few[...]) : .few(few) }
        return .many
    }

    /// Ends the document with the shortest ending.
    ///
    /// - Parameter atLimit: whether no allowed token was found within the limits of the grammar.
    /// - Returns: false if there is nothing to add.
    package mutating func endEarly(atLimit: Bool = false) throws(GrammarBusy) -> Bool {
        plan = try shortestEnding()[...]
        isClosedAtLimit = isClosedAtLimit || atLimit
        noteShortening()
        return !plan.isEmpty
    }

    private mutating func noteShortening() { shortenedAt = shortenedAt ?? byteCount }

    private mutating func shortestEnding() throws(GrammarBusy) -> [Int32] {
        if let ending { return ending }
        let (tokens, isFinal) = try checked(matcher.shortestEnding)
        if isFinal { ending = tokens }
        return tokens
    }

    /// Whether the shortest ending may not fit after the next token.
    private func isTight(_ remaining: Int) throws(GrammarBusy) -> Bool {
        try remaining <= checked(matcher.completionLength) + growth
    }

    /// The token to use after the model has chosen `token`: `token` itself, unless the budget requires another one.
    ///
    /// - Returns: nil if the model has to choose again without `token`.
    package mutating func validated(_ token: Int32, remaining: Int) throws(GrammarBusy) -> Int32? {
        guard try isTight(remaining) else { return token }
        let ending = try shortestEnding()
        let slack = remaining - ending.count
        if slack <= Self.sentenceEndSlack, let close = ending.first, try shouldClose(instead: token, slack: slack) {
            noteShortening()
            return close
        }
        var after = matcher
        if grammarEnds(token) { return token }
        guard try checked(after.advance(token: token)) else { return nil }
        let fits = after.completionLength < remaining || after.shortestTokens.count < remaining
        if try checked(fits) { return token }
        noteShortening()
        return nil
    }

    /// The first token of the shortest ending, which always fits into the budget.
    package var closingToken: Int32? {
        get throws(GrammarBusy) {
            if let ending { return ending.first }
            return try checked(matcher.shortestTokens).first
        }
    }

    /// The number of bytes that a character lacks after another byte.
    private static func missing(_ before: Int, _ byte: UInt8) -> Int {
        if byte & 0xC0 == 0x80 { return max(0, before - 1) }
        return byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0
    }

    private func grammarEnds(_ token: Int32) -> Bool { matcher.grammar.vocabulary.endTokens.contains(token) }

    /// Whether the text, object or array should end here instead of continuing with `token`.
    private func shouldClose(instead token: Int32, slack: Int) throws(GrammarBusy) -> Bool {
        let text = matcher.grammar.vocabulary.texts[Int(token)] ?? []
        guard let first = text.first, let ending = try checked(matcher.completion).first else { return false }
        if cursor.isInStringValue {
            guard ending == UInt8(ascii: "\"") else { return false }
            let endsSentence = lastByte == UInt8(ascii: ".") || lastByte == UInt8(ascii: "!") || lastByte == UInt8(ascii: "?")
            let beginsWord = first == UInt8(ascii: " ") || first == UInt8(ascii: "\\")
            // A character that is begun is completed by the model, not by the bytes of the shortest ending.
            let beginsCharacter = missingBytes == 0 && text.reduce(0, Self.missing) > 0
            return beginsWord && (endsSentence || slack <= Self.wordEndSlack) || beginsCharacter && slack <= Self.characterSlack
        }
        let closes = ending == UInt8(ascii: "}") || ending == UInt8(ascii: "]")
        return closes && first == UInt8(ascii: ",")
    }

    /// Writes one bit for each token that the model may choose, after ``next(remaining:)``.
    package func fillMask(_ words: UnsafeMutableBufferPointer<UInt32>) throws(GrammarBusy) {
        if let tokens { tokens.fill(words) } else { try checked(matcher.tokens).fill(words) }
    }

    // MARK: - Reading

    /// Reads a token. Returns false if the token cannot follow, which never happens with a token that this decoder
    /// returned.
    package mutating func accept(_ token: Int32) throws(GrammarBusy) -> Bool {
        var after = matcher
        guard try checked(after.advance(token: token)) else { return false }
        matcher = after
        (ending, tokens) = (nil, nil)
        if plan.first == token { plan.removeFirst() } else { plan = [] }
        if queue.first == token { queue.removeFirst() } else { queue = [] }
        for byte in matcher.grammar.vocabulary.texts[Int(token)] ?? [] {
            cursor.advance(byte)
            lastByte = byte
            missingBytes = Self.missing(missingBytes, byte)
            byteCount += 1
        }
        return true
    }
}
