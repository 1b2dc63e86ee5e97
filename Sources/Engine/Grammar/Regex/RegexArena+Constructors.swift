/// Constructors: expressions are simplified before they are interned.
extension RegexArena {
    func bytes(_ set: ByteSet) -> RegexID { set.isEmpty ? Self.empty : add(.bytes(set)) }

    func literal(_ text: some BidirectionalCollection<UInt8>) -> RegexID {
        text.reversed().reduce(Self.epsilon) { concat(bytes(ByteSet($1)), $0) }
    }

    func concat(_ a: RegexID, _ b: RegexID) -> RegexID {
        if a == Self.empty || b == Self.empty { return Self.empty }
        if a == Self.epsilon { return b }
        if b == Self.epsilon { return a }
        // All languages contain only valid text.
        if b == anyText, b != 0, isNullable[Int(a)] { return b }
        if case .concat = nodes[Int(a)] {
            // Nested to the right. A loop, because a literal may be long.
            var parts: [RegexID] = []
            var rest = a
            while case .concat(let first, let next) = nodes[Int(rest)] {
                parts.append(first)
                rest = next
            }
            return parts.reversed().reduce(concat(rest, b)) { concat($1, $0) }
        }
        if case .repetition(_, 0, -1) = nodes[Int(a)] {
            // x*x* = x*
            if a == b { return a }
            if case .concat(let first, _) = nodes[Int(b)], first == a { return b }
        }
        return add(.concat(a, b))
    }

    func alternation(_ parts: [RegexID]) -> RegexID {
        var members: [RegexID] = []
        var set = ByteSet()
        func collect(_ part: RegexID) {
            switch nodes[Int(part)] {
            case .empty: break
            case .alternation(let inner): for part in inner { collect(part) }
            case .bytes(let bytes): set = set.union(bytes)
            default: members.append(part)
            }
        }
        for part in parts { collect(part) }
        if members.contains(anyText), anyText != 0 { return anyText }
        if !set.isEmpty { members.append(bytes(set)) }
        members.sort()
        members = members.deduplicated()
        absorb(&members)
        absorbRepetitions(&members)
        if members.count > 1, members[0] == Self.epsilon, members.dropFirst().contains(where: { isNullable[Int($0)] }) {
            members.removeFirst()
        }
        switch members.count {
        case 0: return Self.empty
        case 1: return members[0]
        default: return add(.alternation(members))
        }
    }

    /// Removes intersections that another member contains: `x | x & y` is `x`. Otherwise the states of a repetition
    /// with lookaheads would grow with every character.
    private func absorb(_ members: inout [RegexID]) {
        func parts(_ id: RegexID) -> [RegexID]? { if case .intersection(let parts) = nodes[Int(id)] { parts } else { nil } }
        guard members.count > 1, members.count <= 64, members.contains(where: { parts($0) != nil }) else { return }
        let all = members
        members.removeAll { id in
            guard let own = parts(id) else { return false }
            return all.contains { other in
                if other == id { return false }
                guard let otherPart = parts(other) else { return own.contains(other) }
                return otherPart.count < own.count && otherPart.allSatisfy(own.contains)
            }
        }
    }

    /// Removes members that another one contains because it repeats something more often: `x y{0,5} | x y{0,4}` is
    /// `x y{0,5}`. Otherwise the states of a repetition whose content can be empty would grow with every character.
    private func absorbRepetitions(_ members: inout [RegexID]) {
        guard members.count > 1, members.count <= 16 else { return }
        let all = members
        members.removeAll { id in all.contains { $0 != id && repeats($0, atLeast: id) } }
    }

    /// Whether the form of two languages shows that the first contains the second.
    private func repeats(_ a: RegexID, atLeast b: RegexID) -> Bool {
        var (a, b) = (a, b)
        // The same beginning, a repetition, and the same end.
        while a != b {
            if b == Self.epsilon { return isNullable[Int(a)] }
            guard case .concat(let first, let rest) = nodes[Int(a)] else {
                guard case .repetition(let a, let minimum, let maximum) = nodes[Int(a)],
                    case .repetition(a, let least, let most) = nodes[Int(b)]
                else { return false }
                return minimum <= least && (maximum < 0 || maximum >= most && most >= 0)
            }
            if case .concat(first, let other) = nodes[Int(b)] {
                (a, b) = (rest, other)
            } else if case .concat(let other, rest) = nodes[Int(b)] {
                (a, b) = (first, other)
            } else if isNullable[Int(first)] {
                a = rest
            } else {
                return false
            }
        }
        return true
    }

    func intersection(_ parts: [RegexID]) -> RegexID {
        var members: [RegexID] = []
        var set: ByteSet?
        func collect(_ part: RegexID) {
            switch nodes[Int(part)] {
            case .intersection(let inner): for part in inner { collect(part) }
            case .bytes(let bytes): set = set?.intersection(bytes) ?? bytes
            default: members.append(part)
            }
        }
        for part in parts { collect(part) }
        if let set { members.append(bytes(set)) }
        members.sort()
        members = members.deduplicated()
        guard members.first != Self.empty else { return Self.empty }
        if members.first == Self.epsilon { return members.allSatisfy { isNullable[Int($0)] } ? Self.epsilon : Self.empty }
        if members.contains(where: { part in
            if case .complement(let inner) = nodes[Int(part)] { return members.contains(inner) }
            return false
        }) {
            return Self.empty
        }
        mergeLengths(&members)
        dropLengths(&members)
        mergeExceptions(&members)
        filterWords(&members)
        if members.first == Self.empty { return Self.empty }
        if members.count > 1 { members.removeAll { if case .complement(Self.empty) = nodes[Int($0)] { true } else { false } } }
        // All languages here contain only valid text, so any text is no restriction. But a complement needs it as a
        // second member.
        if members.count > 1, members.contains(anyText), members.contains(where: { $0 != anyText && !isComplement($0) }) {
            members.removeAll { $0 == anyText }
        }
        switch members.count {
        case 0: return anyText
        case 1: return members[0]
        default: return add(.intersection(members))
        }
    }

    func isComplement(_ id: RegexID) -> Bool {
        if case .complement = nodes[Int(id)] { return true }
        return false
    }

    /// Merges several limits on the length of any text into one.
    private func mergeLengths(_ members: inout [RegexID]) {
        var minimum: Int32 = 0
        var maximum: Int32 = -1
        let lengths = members.filter { part in
            guard case .repetition(let inner, let low, let high) = nodes[Int(part)], inner == anyCharacter else { return false }
            minimum = max(minimum, low)
            if high >= 0 { maximum = maximum < 0 ? high : min(maximum, high) }
            return true
        }
        guard lengths.count > 1 else { return }
        members.removeAll { lengths.contains($0) }
        members.append(
            maximum >= 0 && minimum > maximum ? Self.empty : add(.repetition(anyCharacter, minimum: minimum, maximum: maximum)))
        members.sort()
        if members.first == Self.empty { members = [Self.empty] }
    }

    /// Removes a limit on the length that the other members imply.
    private func dropLengths(_ members: inout [RegexID]) {
        guard members.count > 1,
            let place = members.firstIndex(where: {
                if case .repetition(anyCharacter, _, _) = nodes[Int($0)] { true } else { false }
            }), case .repetition(_, let minimum, let maximum) = nodes[Int(members[place])]
        else { return }
        let others = members.indices.filter { $0 != place }.map { characterCount(members[$0]) }
        let shortest = others.reduce(0) { max($0, $1.minimum) }
        let longest = others.compactMap(\.maximum).min()
        if maximum >= 0 && shortest > Int(maximum) || longest.map({ $0 < Int(minimum) }) ?? false {
            members = [Self.empty]
            return
        }
        let hasLeast = Int(minimum) > shortest
        let hasMost = maximum >= 0 && longest.map { $0 > Int(maximum) } ?? true
        if hasLeast == (minimum > 0), hasMost == (maximum >= 0) { return }
        members.remove(at: place)
        if hasLeast || hasMost {
            members.append(add(.repetition(anyCharacter, minimum: hasLeast ? minimum : 0, maximum: hasMost ? maximum : -1)))
            members.sort()
        }
    }

    /// All text that is not in `a`.
    func complement(_ a: RegexID) -> RegexID {
        if a == Self.empty { return anyText }
        if a == anyText { return Self.empty }
        switch nodes[Int(a)] {
        case .words(let trie, 0): return textExcept(trie)
        case .textExcept(anyText, let trie, 0): return wordsNode(trie, 0)
        case .repetition(anyCharacter, let minimum, let maximum):
            // Limits on the length stay limits: as an automaton they would have one state per character.
            let shorter = minimum > 0 ? repetition(anyCharacter, minimum: 0, maximum: minimum - 1) : Self.empty
            let longer = maximum >= 0 && maximum < .max ? repetition(anyCharacter, minimum: maximum + 1, maximum: -1) : Self.empty
            return alternation([shorter, longer])
        default: break
        }
        if let word = word(a) { return textExcept(trie(of: [word])) }
        return intersection([anyText, raw(complement: a)])
    }

    private func textExcept(_ trie: Int32) -> RegexID { add(.textExcept(text: anyText, trie: trie, node: 0)) }

    /// The only string of a language, if the expression is a concatenation of single bytes; nil otherwise.
    private func word(_ id: RegexID) -> [UInt8]? {
        var word: [UInt8] = []
        var rest = id
        while rest != Self.epsilon {
            var first = rest
            var next = Self.epsilon
            if case .concat(let a, let b) = nodes[Int(rest)] { (first, next) = (a, b) }
            guard case .bytes(let set) = nodes[Int(first)], let byte = set.single else { return nil }
            word.append(byte)
            rest = next
        }
        return word
    }

    /// Intersects a list of strings with the exclusion of some strings: a shorter list.
    private func filterWords(_ members: inout [RegexID]) {
        guard members.count == 2 else { return }
        for (list, other) in [(members[0], members[1]), (members[1], members[0])] {
            guard case .words(let trie, 0) = nodes[Int(list)], let excepted = exceptedWords(other) else { continue }
            let set = Set(excepted)
            members = [words(tries[Int(trie)].words(below: 0).filter { !set.contains($0) })]
            return
        }
    }

    /// Merges several exclusions of strings into one.
    private func mergeExceptions(_ members: inout [RegexID]) {
        let parts = members.filter { if case .textExcept(anyText, _, 0) = nodes[Int($0)] { true } else { false } }
        guard parts.count > 1 else { return }
        members.removeAll { parts.contains($0) }
        members.append(textExcept(trie(of: parts.flatMap { exceptedWords($0) ?? [] })))
        members.sort()
    }

    func raw(complement a: RegexID) -> RegexID {
        if case .complement(let inner) = nodes[Int(a)] { return inner }
        return add(.complement(a))
    }

    func repetition(_ a: RegexID, _ minimum: Int, _ maximum: Int?) -> RegexID {
        repetition(a, minimum: Int32(clamping: minimum), maximum: maximum.map { Int32(clamping: $0) } ?? -1)
    }

    func repetition(_ a: RegexID, minimum: Int32, maximum: Int32) -> RegexID {
        if maximum == 0 || a == Self.epsilon { return Self.epsilon }
        if a == Self.empty { return minimum == 0 ? Self.epsilon : Self.empty }
        if minimum == 1, maximum == 1 { return a }
        if case .repetition(_, 0, -1) = nodes[Int(a)] { return a }
        return add(.repetition(a, minimum: isNullable[Int(a)] ? 0 : minimum, maximum: maximum))
    }

    /// A finite set of strings.
    func words(_ words: [[UInt8]]) -> RegexID {
        guard !words.isEmpty else { return Self.empty }
        if words.count == 1 { return literal(words[0]) }
        return wordsNode(trie(of: words), 0)
    }

    func wordsNode(_ trie: Int32, _ node: Int32) -> RegexID {
        tries[Int(trie)].hasChildren(node) ? add(.words(trie: trie, node: node)) : Self.epsilon
    }

    /// The strings of `a` that are not in `b`. `b` may contain strings that are not well-formed text.
    func difference(_ a: RegexID, _ b: RegexID) -> RegexID {
        b == Self.empty ? a : intersection([a, raw(complement: b)])
    }
}
