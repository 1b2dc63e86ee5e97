/// A part of a response, in whole characters.
package struct GeneratedText: Sendable {
    package var text: String
    /// The tokens generated since the previous part: those of this text, and those of text that is no longer held back,
    /// because it might have become a stop string or was not a whole character.
    package var tokens: GeneratedTokens
    /// The probabilities of these tokens, if the request asks for them.
    package var scores: [TokenScore] = []

    /// Appends a part that follows directly.
    mutating func append(_ other: GeneratedText) {
        text += other.text
        for token in other.tokens { tokens.append(token) }
        scores += other.scores
    }
}

/// The probability of a generated token, and of the most probable tokens in its place: natural logarithms of the softmax of
/// the model's logits, before penalties, temperature and masks.
package struct TokenScore: Sendable, Equatable {
    package struct Alternative: Sendable, Equatable {
        package var token: TokenID
        package var logProbability: Double
    }

    package var token: TokenID
    /// Nil for a token that was the only one that the grammar allowed: no logits were computed for it.
    package var logProbability: Double?
    /// The most probable tokens, in descending order.
    package var top: [Alternative] = []
}

/// Tokens of a part of a response. Up to four, as a character in bytes has, need no memory of their own.
package struct GeneratedTokens: Sendable, RandomAccessCollection, Equatable {
    private var first = SIMD4<TokenID>()
    private var others: [TokenID] = []
    package private(set) var endIndex = 0

    package init() {}

    package var startIndex: Int { 0 }
    package subscript(index: Int) -> TokenID {
        precondition(indices.contains(index), "index out of range")  // as in an array
        return index < 4 ? first[index] : others[index - 4]
    }

    package mutating func append(_ token: TokenID) {
        if endIndex < 4 { first[endIndex] = token } else { others.append(token) }
        endIndex += 1
    }
}

/// Converts the tokens of one part of a turn to text: whole characters, without the stop string that ends it.
struct TextOutput {
    private var assembler = UTF8Assembler()
    private var stops: StopMatcher
    /// Whether white space at the beginning is left out.
    private var trimsStart: Bool
    private var tokens = GeneratedTokens()
    private var scores: [TokenScore] = []
    /// The number of bytes of text that has been passed on or left out: the text before a stop string.
    private(set) var bytes = 0
    /// For each token, the number of bytes of text up to its end, as the assembler has returned them: an invalid byte counts as
    /// the character that replaces it. Only where a stop string may end the text.
    private(set) var ends: [Int] = []
    private var assembledBytes = 0
    private let countsBytes: Bool

    /// The stop string that ended the text.
    var stopString: String? { stops.match }
    /// The tool whose call the text began with instead of an answer.
    var calledTool: String? { stops.calledTool }

    init(
        stops: [String] = [], openings: [String] = [], trimsStart: Bool = false, callableTools: [String] = []
    ) {
        self.stops = StopMatcher(stops, openings: openings, callableTools: callableTools)
        self.trimsStart = trimsStart
        countsBytes = !stops.isEmpty || !openings.isEmpty || !callableTools.isEmpty
    }

    /// Appends a token and its text.
    ///
    /// - Returns: the text that is certainly part of the response, if any, and whether it ends here.
    mutating func append(
        _ token: TokenID, _ text: some Sequence<UInt8>, _ score: TokenScore? = nil
    ) -> (part: GeneratedText?, stopped: Bool) {
        tokens.append(token)
        if let score { scores.append(score) }
        let assembled = assembler.append(text)
        if countsBytes {
            assembledBytes += assembled.utf8.count
            ends.append(assembledBytes)
        }
        let (text, stopped) = stops.append(assembled)
        return (part(text), stopped)
    }

    /// The text that was held back, at the end of the part. The beginning of a character whose other bytes were not generated is
    /// no text: a limit may fall inside a character.
    mutating func finish() -> GeneratedText? {
        if stops.match != nil || stops.calledTool != nil { return nil }
        return part(stops.finish())
    }

    private mutating func part(_ text: String) -> GeneratedText? {
        if text.isEmpty { return nil }
        bytes += text.utf8.count
        var text = text
        if trimsStart {
            text = String(text.drop(while: \.isWhitespace))
            if text.isEmpty { return nil }
            trimsStart = false
        }
        defer { (tokens, scores) = (GeneratedTokens(), []) }
        return GeneratedText(text: text, tokens: tokens, scores: scores)
    }
}
