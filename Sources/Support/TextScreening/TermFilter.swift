/// Passes on a text without the terms of an automaton. No character of a term is passed on, wherever the text is divided into
/// pieces.
package struct TermFilter {
    private var scanner: TermScanner
    private let replacement: String
    /// Text that may still be a part of a term, and its offset.
    private var held: [UInt8] = []
    private var heldOffset = 0
    /// Terms that were found and have not been replaced yet.
    private var pending: [TermScanner.Match] = []
    /// The terms that were found, in the order in which they were decided.
    package private(set) var found: [TermScanner.Match] = []

    package init(_ automaton: TermAutomaton, replacement: String) {
        scanner = TermScanner(automaton)
        self.replacement = replacement
    }

    /// Reads the next piece and returns the text that can be passed on.
    package mutating func append(_ text: String) -> String {
        held += text.utf8
        scanner.append(text)
        return take(to: scanner.safeEnd)
    }

    /// Ends the text and returns the rest of it.
    package mutating func finish() -> String {
        scanner.finish()
        return take(to: heldOffset + held.count)
    }

    private mutating func take(to end: Int) -> String {
        let new = scanner.takeMatches()
        found += new
        pending += new
        guard end > heldOffset else { return "" }
        pending.sort { $0.range.lowerBound < $1.range.lowerBound }
        var result: [UInt8] = []
        var position = heldOffset
        var done = 0
        while done < pending.count, case let match = pending[done], match.range.lowerBound < end {
            done += 1
            if match.range.lowerBound >= position {
                result += held[(position - heldOffset)..<(match.range.lowerBound - heldOffset)]
                result += replacement.utf8
            }
            // Terms that overlap are replaced once.
            position = max(position, match.range.upperBound)
        }
        pending.removeFirst(done)
        let stop = max(position, end)
        if position < end { result += held[(position - heldOffset)..<(end - heldOffset)] }
        let taken = min(stop - heldOffset, held.count)
        held.removeFirst(taken)
        heldOffset += taken
        // Pieces end between characters, and so do terms.
        return String(decoding: result, as: UTF8.self)
    }
}
