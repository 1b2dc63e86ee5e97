/// A part of a response, in whole characters.
package struct GeneratedText: Sendable {
    package var text: String
    /// The tokens generated since the previous part: those of this text, and those of text that is no longer held back,
    /// because it might have become a stop string or was not a whole character.
    package var tokens: GeneratedTokens
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

/// Converts tokens to text for the `emit` callback: whole characters, without stop strings, until the callback returns
/// false.
struct TextOutput {
    private var assembler = UTF8Assembler()
    private var stops: StopMatcher
    private var isEnded = false
    /// The tokens since the last part.
    private var tokens = GeneratedTokens()

    /// The stop string that ended the text.
    var stopString: String? { stops.match }

    init(stops: [String]) { self.stops = StopMatcher(stops) }

    /// Appends a token and its text. Returns the reason if the response ends here.
    mutating func append(
        _ token: TokenID, _ bytes: some Sequence<UInt8>, _ emit: (GeneratedText) -> Bool
    ) -> StopReason? {
        tokens.append(token)
        let (text, stopped) = stops.append(assembler.append(bytes))
        let isWanted = text.isEmpty || emit(part(text))
        isEnded = stopped || !isWanted
        return stopped ? .stopString : isWanted ? nil : .unwanted
    }

    /// Emits the text held back, unless the response has ended before.
    mutating func finish(_ emit: (GeneratedText) -> Bool) {
        if isEnded { return }
        let rest = stops.append(assembler.finish()).text + stops.finish()
        if !rest.isEmpty { _ = emit(part(rest)) }
    }

    private mutating func part(_ text: String) -> GeneratedText {
        defer { tokens = GeneratedTokens() }
        return GeneratedText(text: text, tokens: tokens)
    }
}
