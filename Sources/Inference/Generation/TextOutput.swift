/// A part of a response, in whole characters.
package struct GeneratedText: Sendable {
    package var text: String
    /// The number of tokens generated since the previous part: those of this text, and those of text that is no longer
    /// held back, because it might have become a stop string or was not a whole character.
    package var tokenCount: Int
}

/// Converts the bytes of tokens to text for the `emit` callback: whole characters, without stop strings, until the
/// callback returns false.
struct TextOutput {
    private var assembler = UTF8Assembler()
    private var stops: StopMatcher
    private var isEnded = false
    /// The number of tokens since the last part.
    private var tokenCount = 0

    /// The stop string that ended the text.
    var stopString: String? { stops.match }

    init(stops: [String]) { self.stops = StopMatcher(stops) }

    /// Appends the bytes of a token. Returns the reason if the response ends here.
    mutating func append(_ bytes: some Sequence<UInt8>, _ emit: (GeneratedText) -> Bool) -> StopReason? {
        tokenCount += 1
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
        defer { tokenCount = 0 }
        return GeneratedText(text: text, tokenCount: tokenCount)
    }
}
