/// Properties of languages that follow from the form of the expression.
extension RegexArena {
    /// The minimum and maximum number of characters, if the language restricts only the length; nil otherwise.
    func lengthWindow(_ id: RegexID) -> (minimum: Int, maximum: Int?)? {
        guard case .repetition(let inner, let minimum, let maximum) = nodes[Int(id)], inner == anyCharacter else { return nil }
        return (Int(minimum), maximum < 0 ? nil : Int(maximum))
    }

    /// The excluded strings, if the language is any text except a list of strings; nil otherwise.
    func exceptedWords(_ id: RegexID) -> [[UInt8]]? {
        if id == anyText { return [] }
        guard case .textExcept(anyText, let trie, let node) = nodes[Int(id)] else { return nil }
        return tries[Int(trie)].words(below: node)
    }

    /// The excluded strings and the limits on the length in characters, if the language restricts nothing else; nil
    /// otherwise.
    func openText(_ id: RegexID) -> (words: [[UInt8]], minimum: Int, maximum: Int?)? {
        guard let window = openWindow(id) else { return nil }
        guard case .intersection(let parts) = nodes[Int(id)] else { return exceptedWords(id).map { ($0, 0, nil) } }
        return (parts.flatMap { exceptedWords($0) ?? [] }, window.minimum, window.maximum)
    }

    /// The limits on the length of a language that consists of ``openText(_:)``, which takes less time than its words.
    private func openWindow(_ id: RegexID) -> (minimum: Int, maximum: Int?)? {
        func isException(_ id: RegexID) -> Bool {
            if case .textExcept(anyText, _, _) = nodes[Int(id)] { true } else { id == anyText }
        }
        if isException(id) { return (0, nil) }
        guard case .intersection(let parts) = nodes[Int(id)] else { return nil }
        var minimum = 0
        var maximum: Int?
        for part in parts where !isException(part) {
            guard let window = lengthWindow(part) else { return nil }
            minimum = max(minimum, window.minimum)
            if let bound = window.maximum { maximum = min(maximum ?? bound, bound) }
        }
        return (minimum, maximum)
    }

    func isNumber(_ id: RegexID) -> Bool { if case .number = nodes[Int(id)] { true } else { false } }

    /// The numbers of a language that are written without an exponent.
    func withoutExponent(_ id: RegexID) -> RegexID {
        var plain = ByteSet()
        for byte in "0123456789.-".utf8 { plain.insert(byte) }
        return intersection([id, repetition(bytes(plain), 0, nil)])
    }

    /// The alternatives of a language.
    func parts(_ id: RegexID) -> [RegexID] {
        if case .alternation(let parts) = nodes[Int(id)] { return parts }
        return [id]
    }

    /// The language without its maximum number of characters, and that maximum. nil if the language is not an
    /// intersection with such a limit.
    func withoutUpperLimit(_ id: RegexID) -> (rest: RegexID, maximum: Int)? {
        guard case .intersection(let parts) = nodes[Int(id)] else { return nil }
        for part in parts {
            guard let window = lengthWindow(part), window.minimum == 0, let maximum = window.maximum else { continue }
            let rest = parts.filter { $0 != part }
            return (intersection(rest.contains { !isComplement($0) } ? rest : rest + [anyText]), maximum)
        }
        return nil
    }

    /// The language without its minimum number of characters, and that minimum. nil if the language is not an intersection
    /// with such a limit, or if a string of the rest may not be extensible by one character after the other.
    func withoutLowerLimit(_ id: RegexID) -> (rest: RegexID, minimum: Int)? {
        guard case .intersection(let parts) = nodes[Int(id)] else { return nil }
        for part in parts {
            guard let window = lengthWindow(part), window.minimum > 0 else { continue }
            var rest = parts.filter { $0 != part }
            guard growth(of: rest) > .none else { return nil }
            if let maximum = window.maximum { rest.append(repetition(anyCharacter, 0, maximum)) }
            return (intersection(rest), window.minimum)
        }
        return nil
    }

    /// The language without the maxima of repetitions that are at least `length`. Its strings of up to `length` bytes, and the
    /// beginnings of its strings up to this length, are the same: so many repetitions that are not empty have at least so many bytes. So the states
    /// of a text with a large maximum, one for each number of characters, have the same masks.
    ///
    /// - Parameter known: By id, the results for this length that are known already; otherwise ``empty``.
    func withoutMaxima(from length: Int32, _ id: RegexID, known: inout [RegexID]) -> RegexID {
        if known.count <= id { known += [RegexID](repeating: Self.empty, count: max(nodes.count, Int(id) + 1) - known.count) }
        if known[Int(id)] != Self.empty { return known[Int(id)] }
        depth += 1
        defer { depth -= 1 }
        if depth > Self.recursionDepth { return id }
        func rest(_ id: RegexID) -> RegexID { withoutMaxima(from: length, id, known: &known) }
        let result: RegexID
        switch nodes[Int(id)] {
        case .concat:
            // Concatenations are nested to the right: a loop prevents a stack overflow for long ones.
            var steps: [(id: RegexID, first: RegexID, second: RegexID)] = []
            var end = id
            while case .concat(let a, let b) = nodes[Int(end)], end == id || known[Int(end)] == Self.empty {
                steps.append((end, a, b))
                end = b
            }
            var last = rest(end)
            for (id, first, second) in steps.reversed() {
                let inner = rest(first)
                last = inner == first && last == second ? id : concat(inner, last)
                known[Int(id)] = last
            }
            result = last
        case .alternation(let parts):
            let all = parts.map { rest($0) }
            result = all == parts ? id : alternation(all)
        case .repetition(let a, let minimum, let maximum):
            let inner = rest(a)
            let most = maximum >= length ? -1 : maximum
            result = inner == a && most == maximum ? id : repetition(inner, minimum: minimum, maximum: most)
        case .escaped(let content, let style, let state):
            let inner = rest(content)
            result = inner == content ? id : escaped(inner, style, state)
        // In these, other parts may need the maximum.
        case .intersection, .complement, .recursive: result = id
        case .empty, .epsilon, .bytes, .words, .number, .textExcept: result = id
        }
        known[Int(id)] = result
        return result
    }

    /// Characters with which a text may go on, in any order and number up to a limit, without leaving a part of a language.
    struct Run {
        /// The language that allows the run: the whole language or one of its alternatives.
        var language: RegexID
        /// The characters in ASCII.
        var bytes: ByteSet
        /// The first bytes of characters beyond ASCII that all are allowed; see ``LeadBytes``.
        var leads: UInt64
        /// Maximum number of characters; nil for any number.
        var maximum: Int32?

        /// The byte classes of the run in which no byte ends the string or begins an escape.
        var classes: UInt64 {
            ByteClasses.all { byte in
                byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\") && bytes.contains(byte)
            }
        }
    }

    /// The longest run with which a language begins, as its form shows: the repetition at the beginning of it or of one of
    /// its alternatives. A pattern that may begin anywhere has such an alternative in all of its states.
    func run(_ id: RegexID) -> Run? {
        var best: Run?
        for part in parts(id) {
            var first = part
            if case .concat(let a, let b) = nodes[Int(part)] {
                guard surelyHasWords(b) else { continue }
                first = a
            }
            guard case .repetition(let inner, _, let maximum) = nodes[Int(first)] else { continue }
            let run = Run(
                language: part, bytes: singleBytes(inner), leads: leads(inner), maximum: maximum < 0 ? nil : maximum)
            if run.bytes.isEmpty { continue }
            if let best, best.bytes.count > run.bytes.count { continue }
            if let best, best.bytes.count == run.bytes.count, best.maximum ?? .max >= run.maximum ?? .max { continue }
            best = run
        }
        return best
    }

    /// The run with which the text of the rest of a JSON string begins; its language is such a rest too.
    func textRun(_ id: RegexID) -> Run? {
        guard let (content, style) = stringContent(id), var run = run(content) else { return nil }
        run.language = stringBody(run.language, style)
        return run
    }

    /// The characters in ASCII that are strings of a language.
    private func singleBytes(_ id: RegexID) -> ByteSet {
        var set = ByteSet()
        for part in parts(id) {
            if case .bytes(let bytes) = nodes[Int(part)] { set = set.union(bytes.intersection(.ascii)) }
        }
        return set
    }

    /// The first bytes beyond ASCII with which all characters are strings of a language, as far as its form shows.
    private func leads(_ id: RegexID) -> UInt64 {
        var leads: UInt64 = 0
        for part in parts(id) {
            guard case .concat(let first, let rest) = nodes[Int(part)], case .bytes(let own) = nodes[Int(first)] else { continue }
            for other in parts(anyCharacter) {
                guard case .concat(let first, rest) = nodes[Int(other)], case .bytes(let all) = nodes[Int(first)] else {
                    continue
                }
                own.intersection(all).forEach { leads |= LeadBytes.bit($0) }
            }
        }
        return leads
    }

    /// The characters that can be appended to each string of a language so that the result is in the language, as far as its
    /// form shows.
    private enum Growth: Comparable { case none, some, any }

    private func growth(_ id: RegexID) -> Growth {
        var id = id
        while case .concat(_, let b) = nodes[Int(id)] { id = b }
        switch nodes[Int(id)] {
        case .repetition(anyCharacter, _, -1): return .any
        case .repetition(let a, _, -1): return characterCount(a).minimum == 1 && characterCount(a).isExact ? .some : .none
        case .alternation(let parts): return parts.map { growth($0) }.min() ?? .none
        case .intersection(let parts): return growth(of: parts)
        default: return .none
        }
    }

    /// The growth of an intersection.
    private func growth(of parts: [RegexID]) -> Growth {
        let known = parts.map { growth($0) }
        // Two parts may grow by different characters.
        if known.contains(.none) || known.count(where: { $0 == .some }) > 1 { return .none }
        return known.min() ?? .none
    }

    /// Whether the form of the language shows that it is a finite list of strings, as for enumerations and constants.
    func isFiniteByForm(_ id: RegexID) -> Bool {
        var id = id
        while true {
            switch nodes[Int(id)] {
            case .empty, .epsilon, .bytes, .words: return true
            case .concat(let a, let b):
                guard isFiniteByForm(a) else { return false }
                id = b
            case .alternation(let parts): return parts.allSatisfy { isFiniteByForm($0) }
            case .intersection(let parts): return parts.contains { isFiniteByForm($0) }
            default: return false
            }
        }
    }

    /// Whether the form of the language shows that it is any text except a list of strings, possibly with limits on its
    /// length.
    func isOpenByForm(_ id: RegexID) -> Bool { lengthWindow(id) != nil || openWindow(id) != nil }

    /// Whether the form of the language shows that it has strings besides any finite list of them.
    func isInfiniteByForm(_ id: RegexID) -> Bool { openWindow(id).map { $0.maximum == nil } ?? false }
}
