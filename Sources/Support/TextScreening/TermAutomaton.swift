/// Finds many terms in a text in one pass (Aho and Corasick, "Efficient string matching", 1975). Small lists have a table with the
/// next state for each state and class of symbols; large ones and those with many symbols, such as Chinese ones, have the edges of
/// the trie and the states to continue with after a failure.
///
/// Symbols that may stand for each other are in one class, so the table finds more than there is; a ``TermScanner`` compares each
/// candidate with its term.
package struct TermAutomaton: Sendable {
    /// A term or phrase.
    package struct Term: Sendable {
        /// Folded symbols, with single spaces between words.
        var symbols: [UInt32]
        /// Whether it is found only where no letter or digit precedes or follows it.
        var isWholeWord: Bool
        /// Whether it is an exception: other terms within it do not count.
        var isAllowed: Bool
        /// Whether it is only found written in single letters; the symbols are without spaces.
        var isSpaced: Bool
        /// The index of the term in the list that it comes from.
        package var source: Int
    }

    /// A list has too many states.
    package struct TooLarge: Error {
        package let states: Int
        package let maximum: Int
    }

    package let keepsDiacritics: Bool
    package let findsLookAlikes: Bool
    let terms: [Term]
    let hasAllowedTerms: Bool
    let maximumLength: Int
    /// The next state for each state and class; empty if `edges` are used.
    private let next: [UInt32]
    /// The children of states, by state and class.
    private let edges: [UInt64: UInt32]
    private let failures: [UInt32]
    let classCount: Int
    /// The class of each symbol that terms contain and of those that may stand for them; others have class 0.
    let classes: [UInt32: UInt16]
    /// The class of each ASCII byte.
    let asciiClasses: [UInt16]
    /// The number of symbols of a term that lead to each state.
    let depths: [UInt16]
    /// For each state, the next shorter state at which a term ends, possibly itself; 0 if there is none.
    let ends: [UInt32]
    /// The terms that end exactly at a state.
    let endings: [UInt32: [Int32]]
    /// For each state at which a term ends, the next shorter one; 0 if there is none.
    let shorterEnds: [UInt32]

    /// The maximum number of entries of the table; each has four bytes.
    private static let maximumEntries = 1 << 22
    private static let maximumStates = 1 << 22
    /// Longer terms are cut, and found without regard to what follows: no text contains so much of a term by accident.
    private static let maximumTermLength = 200
    private static let minimumSpacedLength = 3

    /// - Parameters:
    ///   - terms: texts with their properties; those without a symbol are ignored.
    /// - Throws: ``TooLarge``
    package init(
        _ texts: [(text: String, isWholeWord: Bool, isAllowed: Bool)], keepsDiacritics: Bool, findsLookAlikes: Bool,
        findsSpacedLetters: Bool
    ) throws(TooLarge) {
        var terms: [Term] = []
        for (index, item) in texts.enumerated() {
            let (symbols, isCut) = Self.symbols(of: item.text, keepsDiacritics: keepsDiacritics)
            if symbols.isEmpty { continue }
            terms.append(
                Term(
                    symbols: symbols, isWholeWord: item.isWholeWord && !isCut, isAllowed: item.isAllowed, isSpaced: false,
                    source: index))
            let joined = symbols.filter { $0 != TextFolding.space }
            if findsSpacedLetters, !item.isAllowed, joined.count >= Self.minimumSpacedLength {
                terms.append(Term(symbols: joined, isWholeWord: true, isAllowed: false, isSpaced: true, source: index))
            }
        }
        self.keepsDiacritics = keepsDiacritics
        self.findsLookAlikes = findsLookAlikes
        self.terms = terms
        hasAllowedTerms = terms.contains(where: \.isAllowed)
        maximumLength = terms.map(\.symbols.count).max() ?? 0
        let (classes, classCount) = Self.classes(of: terms, findsLookAlikes: findsLookAlikes)
        self.classes = classes
        self.classCount = classCount
        asciiClasses = (0..<128).map { value in
            switch TextFolding.fold(UInt32(value), keepsDiacritics: true) {
            case .one(let symbol): Self.classIndex(UInt32(value), symbol, classes, findsLookAlikes)
            case .separator: classes[TextFolding.space] ?? 0
            case .nothing, .several: 0
            }
        }

        // The trie, whose nodes are numbered in the order of their creation.
        var children: [[UInt16: UInt32]] = [[:]]
        var depths: [UInt16] = [0]
        var endings: [UInt32: [Int32]] = [:]
        for (index, term) in terms.enumerated() {
            var node = 0
            for symbol in term.symbols {
                let symbolClass = classes[symbol] ?? 0
                if let child = children[node][symbolClass] {
                    node = Int(child)
                } else {
                    if children.count >= Self.maximumStates {
                        throw TooLarge(states: children.count, maximum: Self.maximumStates)
                    }
                    children[node][symbolClass] = UInt32(children.count)
                    depths.append(depths[node] + 1)
                    children.append([:])
                    node = children.count - 1
                }
            }
            endings[UInt32(node), default: []].append(Int32(index))
        }
        let hasTable = children.count * classCount <= Self.maximumEntries
        var next = [UInt32](repeating: 0, count: hasTable ? children.count * classCount : 0)
        var edges: [UInt64: UInt32] = [:]
        var failures = [UInt32](repeating: 0, count: children.count)
        var ends = [UInt32](repeating: 0, count: children.count)
        var shorterEnds = ends
        // In order of depth, so that the state to continue with after a failure is always known.
        var queue = [0]
        var head = 0
        while head < queue.count {
            let node = queue[head]
            head += 1
            if hasTable, node > 0 {
                let failure = Int(failures[node]) * classCount
                for symbolClass in 0..<classCount { next[node * classCount + symbolClass] = next[failure + symbolClass] }
            }
            for (symbolClass, child) in children[node] {
                var inherited: UInt32 = 0
                if node > 0 {
                    var state = failures[node]
                    while state != 0, children[Int(state)][symbolClass] == nil { state = failures[Int(state)] }
                    inherited = children[Int(state)][symbolClass] ?? 0
                }
                if hasTable {
                    next[node * classCount + Int(symbolClass)] = child
                } else {
                    edges[Self.key(UInt32(node), symbolClass)] = child
                }
                failures[Int(child)] = inherited
                shorterEnds[Int(child)] = ends[Int(inherited)]
                ends[Int(child)] = endings[child] != nil ? child : ends[Int(inherited)]
                queue.append(Int(child))
            }
        }
        self.edges = edges
        self.failures = failures
        self.next = next
        self.depths = depths
        self.endings = endings
        self.ends = ends
        self.shorterEnds = shorterEnds
    }

    private static func key(_ state: UInt32, _ symbolClass: UInt16) -> UInt64 { UInt64(state) << 16 | UInt64(symbolClass) }

    /// The state after a symbol. Failures are amortised: each one follows a symbol that was read before.
    func next(_ state: UInt32, _ symbolClass: UInt16) -> UInt32 {
        if !next.isEmpty { return next[Int(state) * classCount + Int(symbolClass)] }
        if symbolClass == 0 { return 0 }
        var state = state
        while true {
            if let child = edges[Self.key(state, symbolClass)] { return child }
            if state == 0 { return 0 }
            state = failures[Int(state)]
        }
    }

    /// The folded symbols of a term, without separators at both ends, and whether it was cut.
    private static func symbols(of text: String, keepsDiacritics: Bool) -> ([UInt32], isCut: Bool) {
        var symbols: [UInt32] = []
        func separate() { if let last = symbols.last, last != TextFolding.space { symbols.append(TextFolding.space) } }
        for scalar in text.unicodeScalars {
            switch TextFolding.fold(scalar.value, keepsDiacritics: keepsDiacritics) {
            case .nothing: break
            case .separator: separate()
            case .one(let symbol): symbols.append(symbol)
            case .several(let several):
                for symbol in several { if symbol == TextFolding.space { separate() } else { symbols.append(symbol) } }
            }
        }
        if symbols.last == TextFolding.space { symbols.removeLast() }
        return (Array(symbols.prefix(maximumTermLength)), symbols.count > maximumTermLength)
    }

    /// A class for each symbol of the terms. Symbols are united if one character may stand for both.
    private static func classes(of terms: [Term], findsLookAlikes: Bool) -> ([UInt32: UInt16], Int) {
        var groups: [UInt32: UInt32] = [:]
        for term in terms { for symbol in term.symbols { groups[symbol] = symbol } }
        func root(_ symbol: UInt32) -> UInt32 {
            var symbol = symbol
            while let parent = groups[symbol], parent != symbol { symbol = parent }
            return symbol
        }
        if findsLookAlikes {
            for (scalar, letters) in TextFolding.allLookAlikes {
                var all = letters
                if case .one(let symbol) = TextFolding.fold(scalar, keepsDiacritics: true) { all.append(symbol) }
                let known = all.filter { groups[$0] != nil }
                for other in known.dropFirst() { groups[root(other)] = root(known[0]) }
            }
        }
        // After so many, classes share a number: candidates are compared with their terms in any case.
        let maximum = Int(UInt16.max)
        var numbers: [UInt32: UInt16] = [:]
        var classes: [UInt32: UInt16] = [:]
        for symbol in groups.keys.sorted() {
            let group = root(symbol)
            let number = numbers[group] ?? UInt16(min(maximum, numbers.count + 1))
            numbers[group] = number
            classes[symbol] = number
        }
        return (classes, Int(classes.values.max() ?? 0) + 1)
    }

    /// The class of a scalar that becomes one symbol.
    func classIndex(_ scalar: UInt32, _ symbol: UInt32) -> UInt16 { Self.classIndex(scalar, symbol, classes, findsLookAlikes) }

    private static func classIndex(
        _ scalar: UInt32, _ symbol: UInt32, _ classes: [UInt32: UInt16], _ findsLookAlikes: Bool
    ) -> UInt16 {
        if let known = classes[symbol] { return known }
        guard findsLookAlikes else { return 0 }
        for letter in TextFolding.lettersLike(scalar, folded: symbol) { if let known = classes[letter] { return known } }
        return 0
    }
}
