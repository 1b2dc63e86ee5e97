/// Tokens' bytes as text for whoever takes it: whole characters, nothing of a stop string, and no more than is wanted.
struct TextOutput {
    private var assembler = UTF8Assembler()
    private var stops: StopMatcher
    private var isEnded = false

    /// The stop string that ended the text.
    var stopString: String? { stops.match }

    init(stops: [String]) { self.stops = StopMatcher(stops) }

    /// Why the response ends here, if it does.
    mutating func append(_ bytes: some Sequence<UInt8>, _ emit: (String) -> Bool) -> StopReason? {
        let (text, stopped) = stops.append(assembler.append(bytes))
        let isWanted = text.isEmpty || emit(text)
        isEnded = stopped || !isWanted
        return stopped ? .stopString : isWanted ? nil : .unwanted
    }

    /// Gives out what was held back.
    mutating func finish(_ emit: (String) -> Bool) {
        if isEnded { return }
        let rest = stops.append(assembler.finish()).text + stops.finish()
        if !rest.isEmpty { _ = emit(rest) }
    }
}
