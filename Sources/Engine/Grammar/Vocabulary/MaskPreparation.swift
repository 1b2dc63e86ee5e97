/// Masks that are computed before they are needed.
extension MaskTable {
    /// Maximum amount of work, in visited nodes of the vocabulary: some milliseconds, and some tens of them for large patterns.
    private static let maximumPreparation = 200_000
    private static let maximumPlaces = 2_000
    private static let workPerPlace = 20
    private static let workPerByte = 5
    /// Where more bytes can follow, as in a text, only some of them are tried.
    private static let fewBytes = 20
    private static let usualBytes = ByteSet(Array("\"\\,:]}{[ .-+eatn059A\n".utf8))

    /// Computes the masks of the places of a document, the nearest to its beginning first, until all are known, a fixed amount
    /// of work is done or `maximumSize` bytes are used. Digits, and characters where any text is possible, count as distance;
    /// what the schema determines does not.
    func prepare(from start: ConfigID, maximumSize: Int) {
        var places: [[ConfigID]] = [[start], []]
        var seen: Set<ConfigID> = [start]
        while !places[0].isEmpty || !places[1].isEmpty {
            // By distance; places of the same distance in the order in which they were found.
            var index = 0
            while index < places[0].count {
                if work >= Self.maximumPreparation || seen.count > Self.maximumPlaces { return }
                if size >= maximumSize || automaton.isFull { return }
                let config = places[0][index]
                index += 1
                _ = mask(config)
                work += Self.workPerPlace
                let determined = automaton.aliveOutsideTexts(config)
                var bytes = automaton.alive(config)
                let isText = bytes.count > Self.fewBytes
                if isText { bytes = bytes.intersection(Self.usualBytes).union(determined) }
                bytes.forEach { byte in
                    work += Self.workPerByte
                    let next = automaton.step(config, byte)
                    guard next != Automaton.dead, seen.insert(next).inserted else { return }
                    let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    let isChosen = isDigit || isText && byte != UInt8(ascii: "\"")
                    places[isChosen && !determined.contains(byte) ? 1 : 0].append(next)
                }
            }
            places = [places[1], []]
        }
    }
}
