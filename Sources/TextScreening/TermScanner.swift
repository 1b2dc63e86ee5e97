/// Reads a text in pieces and finds the terms of a ``TermAutomaton``. Text is passed on as soon as it cannot be a part of a term.
///
/// A pure state machine: the work is proportional to the length of the text, and at most the length of the longest term is held
/// back.
package struct TermScanner {
    /// An occurrence of a term.
    package struct Match: Equatable {
        /// Offsets in the UTF-8 text since the beginning.
        package var range: Range<Int>
        /// The index of the term in the list that the automaton was made of.
        package var source: Int
    }

    /// A symbol of the text.
    private struct Symbol {
        var start = 0
        var end = 0
        var scalar: UInt32 = 0
        var folded: UInt32 = 0
        var isWord = false
    }

    /// The last symbols, in a ring.
    private struct Recent {
        private var ring: [Symbol]
        private let mask: Int
        private(set) var count = 0

        init(capacity: Int) {
            var size = 4
            while size < capacity { size *= 2 }
            ring = Array(repeating: Symbol(), count: size)
            mask = size - 1
        }

        mutating func append(_ symbol: Symbol) {
            ring[count & mask] = symbol
            count += 1
        }

        /// The symbol `distance` before the end; 1 is the last one.
        func last(_ distance: Int) -> Symbol { ring[(count - distance) & mask] }

        mutating func extendLast(to end: Int) { if count > 0 { ring[(count - 1) & mask].end = end } }
    }

    /// A term whose end has been read but not the symbol after it.
    private struct Waiting {
        var match: Match
        var isAllowed: Bool
        var isSpaced: Bool
        var last: UInt32
    }

    private let automaton: TermAutomaton
    /// The state of the text as it stands.
    private var state: UInt32 = 0
    private var symbols: Recent
    /// The state of words of one letter, joined.
    private var spacedState: UInt32 = 0
    private var spaced: Recent
    private var wordLength = 0
    private var separators = 0
    private var waiting: [Waiting] = []
    /// Terms that were found but may be a part of an allowed phrase, and allowed phrases.
    private var unresolved: [Match] = []
    private var allowed: [Range<Int>] = []
    private var offset = 0

    /// The terms that were found since they were last taken, in the order of their ends.
    private var matches: [Match] = []

    /// Letters may be separated by at most so many characters.
    private static let maximumSeparators = 3

    package init(_ automaton: TermAutomaton) {
        self.automaton = automaton
        symbols = Recent(capacity: automaton.maximumLength + 2)
        spaced = Recent(capacity: automaton.maximumLength + 2)
    }

    // MARK: - Reading

    /// Reads the next piece of the text.
    package mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append($0) }
    }

    private mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        var index = 0
        let base = offset
        while index < bytes.count {
            let byte = bytes[index]
            if byte < 0x80 {
                read(ascii: byte, at: base + index)
                index += 1
                continue
            }
            let (scalar, length) = Self.decode(bytes, at: index)
            read(scalar, base + index..<base + index + length)
            index += length
        }
        offset = base + bytes.count
    }

    /// The scalar at an index of valid UTF-8.
    private static func decode(_ bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> (UInt32, Int) {
        let byte = bytes[index]
        let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2
        var value = UInt32(byte) & (0x7F >> UInt32(length))
        for position in index + 1..<min(index + length, bytes.count) { value = value << 6 | UInt32(bytes[position] & 0x3F) }
        return (value, min(length, bytes.count - index))
    }

    private mutating func read(ascii byte: UInt8, at start: Int) {
        let folded: UInt32
        var isWord = false
        switch byte {
        case 0x61...0x7A, 0x30...0x39: (folded, isWord) = (UInt32(byte), true)
        case 0x41...0x5A: (folded, isWord) = (UInt32(byte | 0x20), true)
        case 0x20, 0x09...0x0D, 0x2D, 0x5F: return readSeparator(start..<start + 1)
        case 0..<0x20, 0x7F: return symbols.extendLast(to: start + 1)
        default: folded = UInt32(byte)
        }
        read(
            Symbol(start: start, end: start + 1, scalar: UInt32(byte), folded: folded, isWord: isWord),
            automaton.asciiClasses[Int(byte)])
    }

    private mutating func read(_ scalar: UInt32, _ range: Range<Int>) {
        switch TextFolding.fold(scalar, keepsDiacritics: automaton.keepsDiacritics) {
        case .nothing:
            symbols.extendLast(to: range.upperBound)
            spaced.extendLast(to: range.upperBound)
        case .separator: readSeparator(range)
        case .one(let folded):
            read(
                Symbol(
                    start: range.lowerBound, end: range.upperBound, scalar: scalar, folded: folded, isWord: Self.isWord(scalar)),
                automaton.classIndex(scalar, folded))
        case .several(let all):
            for folded in all where folded != TextFolding.space {
                read(
                    Symbol(
                        start: range.lowerBound, end: range.upperBound, scalar: folded, folded: folded,
                        isWord: Self.isWord(folded)),
                    automaton.classIndex(folded, folded))
            }
        }
    }

    private mutating func readSeparator(_ range: Range<Int>) {
        if symbols.count > 0, symbols.last(1).folded == TextFolding.space {
            separators += 1
            symbols.extendLast(to: range.upperBound)
            return
        }
        read(
            Symbol(start: range.lowerBound, end: range.upperBound, scalar: TextFolding.space, folded: TextFolding.space),
            automaton.asciiClasses[Int(TextFolding.space)])
    }

    private static func isWord(_ scalar: UInt32) -> Bool {
        guard let properties = Unicode.Scalar(scalar)?.properties else { return false }
        return properties.isAlphabetic || properties.numericType != nil || properties.isGraphemeExtend
    }

    /// Scripts that are written without spaces: each character can be the beginning of a word.
    private static func isWithoutSpaces(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x0E00...0x0EFF, 0x1000...0x109F, 0x1780...0x17FF, 0x2E80...0x9FFF, 0xF900...0xFAFF, 0x20000...0x3FFFF: true
        default: false
        }
    }

    private mutating func read(_ symbol: Symbol, _ symbolClass: UInt8) {
        if !waiting.isEmpty { decide(next: symbol) }
        symbols.append(symbol)
        state = automaton.next[Int(state) * automaton.classCount + Int(symbolClass)]
        if automaton.ends[Int(state)] != 0 { collect(symbols, state, isSpaced: false) }
        readSpaced(symbol, symbolClass)
        if automaton.hasAllowedTerms { resolve() }
    }

    /// Signs such as @ stand for letters; those that often end a sentence do not.
    private func isLetterOfSpacedWord(_ symbol: Symbol) -> Bool {
        if symbol.isWord { return true }
        guard automaton.findsLookAlikes, symbol.folded != TextFolding.space else { return false }
        return symbol.scalar == 0x40 || symbol.scalar == 0x24
    }

    private mutating func readSpaced(_ symbol: Symbol, _ symbolClass: UInt8) {
        guard isLetterOfSpacedWord(symbol) else {
            separators += 1
            wordLength = 0
            if separators > Self.maximumSeparators { spacedState = 0 }
            return
        }
        wordLength += 1
        if wordLength > 1 {
            spacedState = 0
        } else {
            spaced.append(symbol)
            spacedState = automaton.next[Int(spacedState) * automaton.classCount + Int(symbolClass)]
            if automaton.ends[Int(spacedState)] != 0 { collect(spaced, spacedState, isSpaced: true) }
        }
        separators = 0
    }

    // MARK: - Candidates

    /// Compares the terms that may end here with the text.
    private mutating func collect(_ recent: Recent, _ state: UInt32, isSpaced: Bool) {
        var end = automaton.ends[Int(state)]
        while end != 0 {
            for index in automaton.endings[end] ?? [] {
                let term = automaton.terms[Int(index)]
                guard term.isSpaced == isSpaced, matches(term, recent) else { continue }
                let first = recent.last(term.symbols.count)
                let last = recent.last(1)
                if term.isWholeWord, !isSpaced, recent.count > term.symbols.count {
                    let before = recent.last(term.symbols.count + 1)
                    if Self.isOneWord(before, first.scalar) { continue }
                }
                waiting.append(
                    Waiting(
                        match: Match(range: first.start..<last.end, source: term.source), isAllowed: term.isAllowed,
                        isSpaced: isSpaced, last: term.isWholeWord ? last.scalar : 0))
            }
            end = automaton.shorterEnds[Int(end)]
        }
    }

    /// Whether a character continues the word of another one.
    private static func isOneWord(_ symbol: Symbol, _ other: UInt32) -> Bool {
        symbol.isWord && !isWithoutSpaces(symbol.scalar) && !isWithoutSpaces(other)
    }

    private func matches(_ term: TermAutomaton.Term, _ recent: Recent) -> Bool {
        guard recent.count >= term.symbols.count else { return false }
        var digits = 0
        for (index, expected) in term.symbols.enumerated() {
            let symbol = recent.last(term.symbols.count - index)
            if symbol.folded == expected { continue }
            guard automaton.findsLookAlikes, TextFolding.lettersLike(symbol.scalar).contains(expected) else { return false }
            if (0x30...0x39).contains(symbol.scalar) { digits += 1 }
        }
        // Numbers are not words: A55 is a road.
        return digits == 0 || (term.symbols.count - digits >= 2 && digits * 5 <= term.symbols.count * 3)
    }

    /// Decides on terms that ended before `next`; nil at the end of the text.
    private mutating func decide(next: Symbol?) {
        for candidate in waiting {
            // Invisible characters after the term are a part of it.
            var match = candidate.match
            let end = candidate.isSpaced ? spaced.last(1).end : symbols.last(1).end
            match.range = match.range.lowerBound..<max(match.range.upperBound, end)
            if let next, candidate.last != 0, Self.isOneWord(next, candidate.last) { continue }
            if candidate.isAllowed {
                allowed.append(match.range)
            } else if automaton.hasAllowedTerms {
                unresolved.append(match)
            } else {
                matches.append(match)
            }
        }
        waiting.removeAll(keepingCapacity: true)
    }

    /// Reports terms that no allowed phrase can contain any more.
    private mutating func resolve() {
        if unresolved.isEmpty, allowed.isEmpty { return }
        let open = openStart
        unresolved.removeAll { match in
            if allowed.contains(where: { $0.lowerBound <= match.range.lowerBound && $0.upperBound >= match.range.upperBound }) {
                return true
            }
            guard match.range.lowerBound < open else { return false }
            matches.append(match)
            return true
        }
        allowed.removeAll { $0.upperBound <= open }
    }

    /// The offset from which on the text may be the beginning of a term, or be followed by something that makes it one.
    private var openStart: Int {
        var start = offsetOfNext
        let depth = Int(automaton.depths[Int(state)])
        if depth > 0 { start = min(start, symbols.last(depth).start) }
        let spacedDepth = Int(automaton.depths[Int(spacedState)])
        if spacedDepth > 0 { start = min(start, spaced.last(spacedDepth).start) }
        for candidate in waiting { start = min(start, candidate.match.range.lowerBound) }
        return start
    }

    private var offsetOfNext: Int { symbols.count > 0 ? max(offset, symbols.last(1).end) : offset }

    // MARK: - Results

    /// The offset up to which the text contains no terms except those that were reported, whatever follows.
    package var safeEnd: Int {
        var end = min(openStart, offset)
        for match in unresolved { end = min(end, match.range.lowerBound) }
        return end
    }

    /// The terms that were found since the last call, in the order of their ends.
    package mutating func takeMatches() -> [Match] {
        defer { matches.removeAll(keepingCapacity: true) }
        return matches
    }

    /// Ends the text: nothing follows.
    package mutating func finish() {
        decide(next: nil)
        state = 0
        spacedState = 0
        resolve()
    }
}
