/// Reads a text in pieces and finds the terms of a ``TermAutomaton``. Text is passed on as soon as it cannot be a part of a term.
///
/// A pure state machine. At most the length of the longest term is held back, with up to ``maximumRun`` characters between its
/// symbols.
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
    /// The number of letters of the current sequence of words of one letter.
    private var spacedLength = 0
    /// A term that is the current sequence of words of one letter, unless another letter follows.
    private var spacedCandidate: Match?
    /// The length of the sequence with which the candidate ended.
    private var lengthOfCandidate = 0
    /// The number of separators or invisible characters since the last symbol.
    private var run = 0
    private var waiting: [Waiting] = []
    /// Terms that were found but may be a part of an allowed phrase, and allowed phrases.
    private var unresolved: [Match] = []
    private var allowed: [Range<Int>] = []
    private var offset = 0

    /// The terms that were found since they were last taken, in the order of their ends.
    private var matches: [Match] = []

    /// Letters may be separated by at most so many characters.
    private static let maximumSeparators = 3
    /// More separators or invisible characters than these end everything that has begun.
    private static let maximumRun = 64

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
            let (scalar, length) = TextFolding.decode(bytes, at: index)
            read(scalar, base + index..<base + index + length)
            index += length
        }
        offset = base + bytes.count
    }

    private mutating func read(ascii byte: UInt8, at start: Int) {
        let folded: UInt32
        var isWord = false
        switch byte {
        case 0x61...0x7A, 0x30...0x39: (folded, isWord) = (UInt32(byte), true)
        case 0x41...0x5A: (folded, isWord) = (UInt32(byte | 0x20), true)
        case 0x20, 0x09...0x0D, 0x2D, 0x5F: return readSeparator(start..<start + 1)
        case 0..<0x20, 0x7F: return readInvisible(to: start + 1)
        default: folded = UInt32(byte)
        }
        read(
            Symbol(start: start, end: start + 1, scalar: UInt32(byte), folded: folded, isWord: isWord),
            automaton.asciiClasses[Int(byte)])
    }

    private mutating func read(_ scalar: UInt32, _ range: Range<Int>) {
        switch TextFolding.fold(scalar, keepsDiacritics: automaton.keepsDiacritics) {
        case .nothing: readInvisible(to: range.upperBound)
        case .separator: readSeparator(range)
        case .one(let folded):
            read(
                Symbol(
                    start: range.lowerBound, end: range.upperBound, scalar: scalar, folded: folded,
                    isWord: TextFolding.isWord(scalar)),
                automaton.classIndex(scalar, folded))
        case .several(let all):
            for folded in all {
                if folded == TextFolding.space {
                    readSeparator(range)
                    continue
                }
                read(
                    Symbol(
                        start: range.lowerBound, end: range.upperBound, scalar: folded, folded: folded,
                        isWord: TextFolding.isWord(folded)),
                    automaton.classIndex(folded, folded))
            }
        }
    }

    private mutating func readInvisible(to end: Int) {
        symbols.extendLast(to: end)
        spaced.extendLast(to: end)
        countRun()
    }

    private mutating func countRun() {
        run += 1
        guard run > Self.maximumRun else { return }
        if !waiting.isEmpty { decide(next: nil) }
        state = 0
        endSpacedWord()
        endSpaced()
        resolve()
    }

    private mutating func readSeparator(_ range: Range<Int>) {
        if symbols.count > 0, symbols.last(1).folded == TextFolding.space {
            separators += 1
            if separators > Self.maximumSeparators { endSpaced() }
            resolve()
            symbols.extendLast(to: range.upperBound)
            countRun()
            return
        }
        read(
            Symbol(start: range.lowerBound, end: range.upperBound, scalar: TextFolding.space, folded: TextFolding.space),
            automaton.asciiClasses[Int(TextFolding.space)])
    }

    /// Scripts that are written without spaces: each character can be the beginning of a word.
    private static func isWithoutSpaces(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x0E00...0x0EFF, 0x1000...0x109F, 0x1780...0x17FF, 0x2E80...0x9FFF, 0xF900...0xFAFF, 0x20000...0x3FFFF: true
        default: false
        }
    }

    private mutating func read(_ symbol: Symbol, _ symbolClass: UInt16) {
        run = 0
        if !waiting.isEmpty { decide(next: symbol) }
        symbols.append(symbol)
        state = automaton.next(state, symbolClass)
        if automaton.ends[Int(state)] != 0 { collect() }
        readSpaced(symbol, symbolClass)
        if automaton.hasAllowedTerms { resolve() }
    }

    /// Signs such as @ stand for letters; those that often end a sentence do not.
    private func isLetterOfSpacedWord(_ symbol: Symbol) -> Bool {
        if symbol.isWord { return true }
        guard automaton.findsLookAlikes, symbol.folded != TextFolding.space else { return false }
        return symbol.scalar == 0x40 || symbol.scalar == 0x24
    }

    private mutating func readSpaced(_ symbol: Symbol, _ symbolClass: UInt16) {
        guard isLetterOfSpacedWord(symbol) else {
            endSpacedWord()
            separators += 1
            wordLength = 0
            if separators > Self.maximumSeparators { endSpaced() }
            return
        }
        wordLength += 1
        separators = 0
        if wordLength > 1 {
            // The word of several letters is not a part of the sequence before it.
            if spacedLength > 0 { spacedLength -= 1 }
            endSpaced()
        } else {
            spaced.append(symbol)
            spacedLength += 1
            spacedState = automaton.next(spacedState, symbolClass)
        }
    }

    /// The word that ends has one letter, which belongs to the sequence.
    private mutating func endSpacedWord() {
        guard wordLength == 1 else { return }
        // A single letter after the term: it spells a longer word, unless it is a word itself.
        if let last = spacedCandidate, spaced.last(1).start >= last.range.upperBound {
            if Self.isShortWord(spaced.last(1)), spacedLength == lengthOfCandidate + 1 { return }
            spacedCandidate = nil
        }
        if spacedCandidate == nil { findSpaced() }
        if spacedCandidate != nil { lengthOfCandidate = spacedLength }
    }

    /// Whether a letter is also an English word, so that it often stands beside others.
    private static func isShortWord(_ symbol: Symbol) -> Bool { symbol.folded == 0x61 || symbol.folded == 0x69 }

    /// Looks for a term that is the whole sequence of words of one letter.
    private mutating func findSpaced() {
        var end = automaton.ends[Int(spacedState)]
        while end != 0 {
            for index in automaton.endings[end] ?? [] {
                let term = automaton.terms[Int(index)]
                guard term.isSpaced, matches(term, spaced) else { continue }
                // The whole sequence, or all of it but a word of one letter before the term.
                let count = term.symbols.count
                guard count == spacedLength || (count == spacedLength - 1 && Self.isShortWord(spaced.last(count + 1))) else {
                    continue
                }
                spacedCandidate = Match(
                    range: spaced.last(term.symbols.count).start..<spaced.last(1).end, source: term.source)
            }
            end = automaton.shorterEnds[Int(end)]
        }
    }

    /// Ends the sequence of words of one letter.
    private mutating func endSpaced() {
        if let match = spacedCandidate { report(match) }
        spacedCandidate = nil
        spacedState = 0
        spacedLength = 0
    }

    private mutating func report(_ match: Match) {
        if automaton.hasAllowedTerms { unresolved.append(match) } else { matches.append(match) }
    }

    // MARK: - Candidates

    /// Compares the terms that may end here with the text.
    private mutating func collect() {
        var end = automaton.ends[Int(state)]
        var isCovered = false
        while end != 0 {
            for index in automaton.endings[end] ?? [] {
                let term = automaton.terms[Int(index)]
                if term.isSpaced || symbols.count < term.symbols.count { continue }
                let first = symbols.last(term.symbols.count)
                let last = symbols.last(1)
                if term.isWholeWord, symbols.count > term.symbols.count,
                    Self.isOneWord(symbols.last(term.symbols.count + 1), first.scalar)
                {
                    continue
                }
                guard matches(term, symbols) else { continue }
                waiting.append(
                    Waiting(
                        match: Match(range: first.start..<last.end, source: term.source), isAllowed: term.isAllowed,
                        last: term.isWholeWord ? last.scalar : 0))
                if !term.isWholeWord, !term.isAllowed { isCovered = true }
            }
            // Shorter terms with the same end are parts of this one; an allowed phrase contains what it allows.
            if isCovered { return }
            end = automaton.shorterEnds[Int(end)]
        }
    }

    /// Whether a character continues the word of another one.
    private static func isOneWord(_ symbol: Symbol, _ other: UInt32) -> Bool {
        symbol.isWord && !isWithoutSpaces(symbol.scalar) && !isWithoutSpaces(other)
    }

    private func matches(_ term: TermAutomaton.Term, _ recent: Recent) -> Bool {
        let count = term.symbols.count
        guard recent.count >= count else { return false }
        var exact = 0
        var digits = 0
        for (index, expected) in term.symbols.enumerated() {
            let symbol = recent.last(count - index)
            if symbol.folded == expected {
                exact += 1
                continue
            }
            guard automaton.findsLookAlikes, TextFolding.lettersLike(symbol.scalar, folded: symbol.folded).contains(expected)
            else {
                return false
            }
            // Small capitals and phonetic letters are Latin.
            if (0x250...0x2AF).contains(symbol.scalar) || (0x1D00...0x1DBF).contains(symbol.scalar)
                || (0xA720...0xA7FF).contains(symbol.scalar)
            {
                exact += 1
                continue
            }
            let isAtEnd = index == 0 || index == count - 1
            if (0x30...0x39).contains(symbol.folded) {
                digits += 1
                // 5EX is a part of an address, s3x is not.
                if isAtEnd, count <= 3 { return false }
            }
            // Sentences end with ! and tables have |.
            if isAtEnd, [0x21, 0x7C, 0x2B].contains(symbol.scalar) { return false }
        }
        // A word that is all in another alphabet is a word of that language, and numbers are not words: A55 is a road.
        if exact == count { return true }
        return exact > 0 && (digits == 0 || (count - digits >= 2 && digits * 5 <= count * 3))
    }

    /// Decides on terms that ended before `next`; nil at the end of the text.
    private mutating func decide(next: Symbol?) {
        for candidate in waiting {
            // Invisible characters after the term are a part of it.
            var match = candidate.match
            match.range = match.range.lowerBound..<max(match.range.upperBound, symbols.last(1).end)
            if let next, candidate.last != 0, Self.isOneWord(next, candidate.last) { continue }
            if candidate.isAllowed { allowed.append(match.range) } else { report(match) }
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
        if let spacedCandidate { start = min(start, spacedCandidate.range.lowerBound) }
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
        endSpacedWord()
        endSpaced()
        resolve()
    }
}
