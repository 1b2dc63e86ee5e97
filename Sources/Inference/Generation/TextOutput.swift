/// Converts the bytes of tokens to text for the `emit` callback: whole characters, without stop strings, until the
/// callback returns false.
struct TextOutput {
    private var assembler = UTF8Assembler()
    private var stops: StopMatcher
    private var isEnded = false

    /// The stop string that ended the text.
    var stopString: String? { stops.match }

    init(stops: [String]) { self.stops = StopMatcher(stops) }

    /// Appends the bytes of a token. Returns the reason if the response ends here.
    mutating func append(_ bytes: some Sequence<UInt8>, _ emit: (String) -> Bool) -> StopReason? {
        let (text, stopped) = stops.append(assembler.append(bytes))
        let isWanted = text.isEmpty || emit(text)
        isEnded = stopped || !isWanted
        return stopped ? .stopString : isWanted ? nil : .unwanted
    }

    /// Emits the text held back, unless the response has ended before.
    mutating func finish(_ emit: (String) -> Bool) {
        if isEnded { return }
        let rest = stops.append(assembler.finish()).text + stops.finish()
        if !rest.isEmpty { _ = emit(rest) }
    }
}
