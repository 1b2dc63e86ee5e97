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
        if let words = exceptedWords(id) { return (words, 0, nil) }
        guard case .intersection(let parts) = nodes[Int(id)] else { return nil }
        var words: [[UInt8]] = []
        var minimum = 0
        var maximum: Int?
        for part in parts {
            if let more = exceptedWords(part) {
                words += more
            } else if let window = lengthWindow(part) {
                minimum = max(minimum, window.minimum)
                if let bound = window.maximum { maximum = min(maximum ?? bound, bound) }
            } else {
                return nil
            }
        }
        return (words, minimum, maximum)
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
    func isOpenByForm(_ id: RegexID) -> Bool { lengthWindow(id) != nil || openText(id) != nil }
}
