internal import JSON

/// The shortest strings of languages, and all strings of finite languages.
extension RegexArena {
    /// The length in bytes of a shortest string of a live language; for JSON strings, including escapes that are
    /// required.
    func shortestLength(_ id: RegexID) throws(RegexLimit) -> Int {
        if let known = shortestLengths[id] { return known }
        var total = 0
        var rest = id
        // Concatenations are nested to the right: a loop prevents a stack overflow for long ones.
        while case .concat(let a, let b) = nodes[Int(rest)], !isNullable[Int(rest)] {
            total += try shortestLength(a)
            rest = b
        }
        if rest != id {
            total += try shortestLength(rest)
        } else if !isNullable[Int(id)] {
            switch nodes[Int(id)] {
            case .bytes: total = 1
            case .repetition(let a, let minimum, _):
                let product = try shortestLength(a).multipliedReportingOverflow(by: Int(minimum))
                total = product.overflow ? Self.longest : min(product.partialValue, Self.longest)
            case .alternation(let parts):
                total = Self.longest
                for part in parts where try isAlive(part) { total = min(total, try shortestLength(part)) }
            case .escaped(let content, _, .none) where lengthWindow(content) != nil: total = try shortestLength(content)
            default: total = try shortestWord(id).count
            }
        }
        shortestLengths[id] = total
        return total
    }

    private static let longest = 1 << 30

    /// A shortest string, preferring readable characters.
    func shortestWord(_ id: RegexID) throws(RegexLimit) -> [UInt8] {
        var word: [UInt8] = []
        var rest = id
        while case .concat(let a, let b) = nodes[Int(rest)], !isNullable[Int(rest)] {
            word += try shortestWord(a)
            rest = b
        }
        if isNullable[Int(rest)] { return word }
        if word.count > Self.searchLimit * 10 { throw RegexLimit() }
        switch nodes[Int(rest)] {
        case .bytes(let set): return word + [Self.friendlyOrder.first(where: set.contains) ?? 0]
        case .repetition(let a, let minimum, _):
            let one = try shortestWord(a)
            if one.count * Int(minimum) > Self.searchLimit * 10 { throw RegexLimit() }
            for _ in 0..<minimum { word += one }
            return word
        case .alternation(let parts):
            let length = try shortestLength(rest)
            for part in parts where try isAlive(part) {
                if try shortestLength(part) == length { return word + (try shortestWord(part)) }
            }
            return word
        case .escaped(let content, _, .none):
            JSONText.escape(try shortestWord(content), into: &word)
            return word
        case .number(let machine, let state):
            if let short = machines[Int(machine)].shortWord(state) { return word + short }
            return word + (try searchShortest(rest))
        default: return word + (try searchShortest(rest))
        }
    }

    fileprivate static let friendlyOrder: [UInt8] = {
        let first = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ -_.,:/@+".utf8)
        return first + (UInt8.min...UInt8.max).filter { !first.contains($0) }
    }()

    /// Breadth-first search for the nearest accepting state. At the text of a JSON string it stops and uses the
    /// structure of the text.
    func searchShortest(_ id: RegexID) throws(RegexLimit) -> [UInt8] {
        if isNullable[Int(id)] { return [] }
        var from: [RegexID: (state: RegexID, byte: UInt8)] = [:]
        var queue = [id]
        var head = 0
        while head < queue.count {
            let state = queue[head]
            head += 1
            if queue.count > Self.searchLimit { throw RegexLimit() }
            let row = try row(state)
            var last = Self.empty
            for byte in Self.friendlyOrder where row[Int(byte)] != last {
                let target = row[Int(byte)]
                last = target
                guard target != Self.empty, target != id, from[target] == nil else { continue }
                from[target] = (state, byte)
                queue.append(target)
                var isText = false
                if case .escaped(_, _, .none) = nodes[Int(target)] { isText = true }
                guard isNullable[Int(target)] || isText else { continue }
                var word: [UInt8] = []
                var current = target
                while current != id, let step = from[current] {
                    word.append(step.byte)
                    current = step.state
                }
                word.reverse()
                return isNullable[Int(target)] ? word : word + (try shortestWord(target))
            }
        }
        return []
    }

    /// All strings of the language if there are at most `limit`; nil otherwise.
    func finiteWords(_ id: RegexID, limit: Int) throws(RegexLimit) -> [[UInt8]]? {
        var words: [[UInt8]] = []
        var onPath: Set<RegexID> = []
        func visit(_ state: RegexID, _ word: [UInt8]) throws(RegexLimit) -> Bool {
            guard word.count < 256, onPath.insert(state).inserted else { return false }
            defer { onPath.remove(state) }
            if isNullable[Int(state)] {
                words.append(word)
                if words.count > limit { return false }
            }
            let row = try row(state)
            for byte in 0..<256 where row[byte] != Self.empty {
                guard try visit(row[byte], word + [UInt8(byte)]) else { return false }
            }
            return true
        }
        return try visit(id, []) ? words : nil
    }
}

/// The number of characters in the strings of a language. The values are bounds, and exact only if `isExact` is set.
struct CharacterCount {
    var minimum = 0
    var maximum: Int?
    /// Whether the language is not empty and some string has exactly `minimum` characters.
    var isExact = false
}

extension RegexArena {
    /// Computed from the structure only. Continuation bytes of UTF-8 do not count as characters.
    func characterCount(_ id: RegexID) -> CharacterCount {
        if let known = characterCounts[id] { return known }
        depth += 1
        defer { depth -= 1 }
        // The nesting is too deep to compute bounds.
        if depth > Self.maximumDepth { return CharacterCount() }
        spend(1)
        func sum(_ a: Int, _ b: Int) -> Int { min(a + b, 1 << 40) }
        let result: CharacterCount
        switch nodes[Int(id)] {
        case .epsilon: result = CharacterCount(minimum: 0, maximum: 0, isExact: true)
        case .bytes(let set):
            let tails = set.intersection(ByteSet(0x80...0xBF))
            result = CharacterCount(minimum: tails.isEmpty ? 1 : 0, maximum: tails == set ? 0 : 1, isExact: true)
        case .concat:
            // Concatenations are nested to the right: a loop prevents a stack overflow for long ones.
            var total = CharacterCount(minimum: 0, maximum: 0, isExact: true)
            func add(_ count: CharacterCount) {
                total.minimum = sum(total.minimum, count.minimum)
                total.maximum = total.maximum.flatMap { maximum in count.maximum.map { sum(maximum, $0) } }
                total.isExact = total.isExact && count.isExact
            }
            var rest = id
            while case .concat(let a, let b) = nodes[Int(rest)] {
                if rest != id, let known = characterCounts[rest] {
                    add(known)
                    rest = Self.epsilon
                } else {
                    add(characterCount(a))
                    rest = b
                }
            }
            add(characterCount(rest))
            result = total
        case .alternation(let parts):
            let counts = parts.map { characterCount($0) }
            result = CharacterCount(
                minimum: counts.map(\.minimum).min() ?? 0,
                maximum: counts.allSatisfy { $0.maximum != nil } ? counts.compactMap(\.maximum).max() : nil,
                isExact: counts.allSatisfy(\.isExact))
        case .intersection(let parts):
            let counts = parts.map { characterCount($0) }
            result = CharacterCount(minimum: counts.map(\.minimum).max() ?? 0, maximum: counts.compactMap(\.maximum).min())
        case .repetition(let a, let minimum, let maximum):
            let part = characterCount(a)
            func product(_ count: Int, _ times: Int32) -> Int {
                let (value, overflows) = count.multipliedReportingOverflow(by: Int(times))
                return overflows ? 1 << 40 : min(value, 1 << 40)
            }
            result = CharacterCount(
                minimum: product(part.minimum, minimum),
                maximum: part.maximum == 0 ? 0 : maximum < 0 ? nil : part.maximum.map { product($0, maximum) },
                isExact: part.isExact || minimum == 0)
        default: result = CharacterCount()
        }
        characterCounts[id] = result
        return result
    }

    /// Whether the intersection of a language and a maximum length is not empty, if the structure shows it; nil if a
    /// search is required.
    func hasWords(_ parts: [RegexID]) -> Bool? {
        guard parts.count == 2 else { return nil }
        for (bound, other) in [(parts[0], parts[1]), (parts[1], parts[0])] {
            guard let maximum = maximumLength(bound) else { continue }
            let count = characterCount(other)
            if count.isExact { return count.minimum <= Int(maximum) }
        }
        return nil
    }

    /// The maximum number of characters of a language that allows any text up to it, also inside of a character; nil for
    /// other languages. All languages contain only valid text, so another one that has begun a character with the same
    /// bytes completes it in a way that this one allows.
    private func maximumLength(_ id: RegexID) -> Int32? {
        var rest = id
        while case .concat(let tail, let next) = nodes[Int(rest)], case .bytes(let set) = nodes[Int(tail)],
            set == Self.anyTail
        { rest = next }
        guard case .repetition(anyCharacter, 0, let maximum) = nodes[Int(rest)], maximum >= 0 else { return nil }
        return maximum
    }

    private static let anyTail = ByteSet(0x80...0xBF)
}

extension RegexArena {
    /// A number of characters that every string of a language has at least, apart from one that has begun.
    func leastCharacters(_ id: RegexID) -> Int {
        guard case .concat(let body, let quote) = nodes[Int(id)], quote == quoteByte,
            case .escaped(let content, _, _) = nodes[Int(body)]
        else { return 0 }
        return characterCount(content).minimum
    }

    /// The bytes that can follow inside an escape, so that a whole row is not needed.
    private static func bytes(of state: EscapeState) -> [UInt8] {
        switch state {
        case .none: []
        case .backslash: escapeLetters
        case .hex: hexDigits
        case .low(_, let count): count == 0 ? backslash : unicodeLetter
        }
    }

    private static let escapeLetters = Array("ntrbf\"\\/u".utf8)
    private static let hexDigits = Array("0123456789abcdef".utf8)
    private static let backslash = Array("\\".utf8)
    private static let unicodeLetter = Array("u".utf8)

    /// A number of bytes that is sufficient for some string of a language, apart from an escape that has begun.
    func sufficientLength(_ id: RegexID) -> Int {
        var rest = id
        // Inside an escape, any way to complete it is sufficient. An escape has six bytes, and so has the second half of
        // a surrogate pair.
        for _ in 0..<12 {
            if let (content, _) = stringContent(rest) {
                let count = characterCount(content)
                if count.isExact { return min(count.minimum, 1 << 20) }
                break
            }
            guard case .concat(let body, quoteByte) = nodes[Int(rest)],
                case .escaped(let content, let style, let state) = nodes[Int(body)],
                let next = Self.bytes(of: state).lazy.map({
                    self.concat(self.escapedDerivative(content, style, state, $0), self.quoteByte)
                }).first(where: { $0 != Self.empty && self.surelyHasWords($0) })
            else { break }
            rest = next
        }
        return (try? shortestLength(rest)) ?? 1 << 20  // not known: such tokens are checked one by one
    }
}
