/// Derivatives, and the check whether a language is empty.
extension RegexArena {
    /// The derivative with respect to `byte`. It can be a dead state.
    func derivative(_ id: RegexID, _ byte: UInt8) -> RegexID { rawRow(id)[Int(byte)] }

    /// The derivatives for all 256 bytes, computed from the rows of the parts. They can include dead states.
    func rawRow(_ id: RegexID) -> UnsafeMutablePointer<RegexID> {
        if let row = rows[Int(id)] { return row }
        if isFull { return blank }
        if depth == Self.recursionDepth {
            // The innermost parts first, so that the recursion fits a small stack.
            forEachPart(of: id, isKnown: { self.rows[Int($0)] != nil }) { _ = self.rawRow($0) }
        }
        let row = UnsafeMutablePointer<RegexID>.allocate(capacity: 256)
        row.initialize(repeating: Self.empty, count: 256)
        depth += 1
        spend(1)
        if depth > Self.maximumDepth { isTooDeep = true }
        if !isFull { fill(id, row) }
        depth -= 1
        if isFull {
            // The row is not complete, so it is not stored; callers check ``isFull``.
            unfinished.append(row)
            return row
        }
        if let other = rows[Int(id)] {
            // Already computed during `fill`, for a part that refers back to this language.
            row.deallocate()
            return other
        }
        rows[Int(id)] = row
        rowCount += 1
        return row
    }

    /// The languages that a language consists of, as far as its first byte depends on them.
    private func parts(of id: RegexID) -> [RegexID] {
        switch nodes[Int(id)] {
        case .concat(let a, let b): isNullable[Int(a)] ? [a, b] : [a]
        case .alternation(let parts), .intersection(let parts): parts
        case .complement(let a), .repetition(let a, _, _), .textExcept(text: let a, _, _), .escaped(content: let a, _, _): [a]
        case .recursive(let definition): [definitions[Int(definition)].language]
        case .empty, .epsilon, .bytes, .words, .number: []
        }
    }

    /// Calls `body` for everything that a language consists of and that is not known, the innermost parts first.
    private func forEachPart(of root: RegexID, isKnown: (RegexID) -> Bool, _ body: (RegexID) -> Void) {
        var seen: Set<RegexID> = [root]
        var open: [(id: RegexID, isExpanded: Bool)] = parts(of: root).map { ($0, false) }
        while !isFull, let (id, isExpanded) = open.popLast() {
            if isExpanded {
                body(id)
            } else if !isKnown(id), seen.insert(id).inserted {
                open.append((id, true))
                open += parts(of: id).map { ($0, false) }
            }
        }
    }

    func fill(_ id: RegexID, _ row: UnsafeMutablePointer<RegexID>) {
        switch nodes[Int(id)] {
        case .empty, .epsilon: break
        case .bytes(let set): set.forEach { row[Int($0)] = Self.epsilon }
        case .concat(let a, let b):
            if case .escaped(let content, let style, .none) = nodes[Int(a)], b == quoteByte {
                fillString(content, style, row)
                return
            }
            let first = rawRow(a)
            if isNullable[Int(a)] {
                let second = rawRow(b)
                combine(row, [first, second]) { targets in
                    var parts: [RegexID] = []
                    if targets[0] != Self.empty { parts.append(self.concat(targets[0], b)) }
                    if targets[1] != Self.empty { parts.append(targets[1]) }
                    return self.alternation(parts)
                }
            } else {
                map(row, first) { self.concat($0, b) }
            }
        case .alternation(let parts):
            combine(row, parts.map { rawRow($0) }) { targets in
                let alive = targets.filter { $0 != Self.empty }
                return alive.count == 1 ? alive[0] : self.alternation(alive)
            }
        case .intersection(let parts):
            combine(row, parts.map { rawRow($0) }) { $0.contains(Self.empty) ? Self.empty : self.intersection($0) }
        case .complement(let a):
            let inner = rawRow(a)
            // What is missing there would be allowed here.
            if isFull { return }
            let others = raw(complement: Self.empty)
            // A complement is always part of an intersection with valid text, so the complement of any text is empty.
            for byte in 0..<256 where inner[byte] != anyText {
                row[byte] = inner[byte] == Self.empty ? others : raw(complement: inner[byte])
            }
        case .repetition(let a, let minimum, let maximum):
            let rest = repetition(a, minimum: max(0, minimum - 1), maximum: maximum < 0 ? -1 : maximum - 1)
            map(row, rawRow(a)) { self.concat($0, rest) }
        case .words(let trie, let node):
            tries[Int(trie)].forEachChild(of: node) { byte, child in row[Int(byte)] = wordsNode(trie, child) }
        case .number(let machine, let state):
            for byte in "0123456789.-+eE".utf8 {
                if let next = machines[Int(machine)].next(state, byte) { row[Int(byte)] = add(.number(machine: machine, next)) }
            }
        case .textExcept(let text, let trie, let node):
            row.update(from: rawRow(text), count: 256)
            tries[Int(trie)].forEachChild(of: node) { byte, child in
                let rest = row[Int(byte)]
                if rest != Self.empty { row[Int(byte)] = add(.textExcept(text: rest, trie: trie, node: child)) }
            }
        case .recursive(let definition): row.update(from: rawRow(definitions[Int(definition)].language), count: 256)
        case .escaped(let content, let style, let state):
            for byte in UInt8.min...UInt8.max { row[Int(byte)] = escapedDerivative(content, style, state, byte) }
        }
    }

    /// The row of a string's body followed by its closing quote.
    func fillString(_ content: RegexID, _ style: EscapeStyle, _ row: UnsafeMutablePointer<RegexID>) {
        let source = rawRow(content)
        let quote = quoteByte
        map(row, source) { self.concat(self.escaped($0, style, .none), quote) }
        for byte in 0..<0x20 { row[byte] = Self.empty }
        row[0x22] = isNullable[Int(content)] ? Self.epsilon : Self.empty
        row[0x5C] = needsEscapes(source, style) ? concat(escaped(content, style, .backslash), quote) : Self.empty
    }

    /// Fills a row from another one. Bytes with the same target there have the same target here.
    func map(
        _ row: UnsafeMutablePointer<RegexID>, _ source: UnsafeMutablePointer<RegexID>, _ transform: (RegexID) -> RegexID
    ) {
        var known: [(source: RegexID, target: RegexID)] = []
        var last: RegexID = Self.empty
        var lastTarget: RegexID = Self.empty
        for byte in 0..<256 where source[byte] != Self.empty {
            if source[byte] != last {
                last = source[byte]
                if let found = known.first(where: { $0.source == last }) {
                    lastTarget = found.target
                } else {
                    spend(1)
                    lastTarget = transform(last)
                    known.append((last, lastTarget))
                }
            }
            row[byte] = lastTarget
        }
    }

    /// Fills a row from several others. Bytes with the same targets there have the same target here.
    func combine(
        _ row: UnsafeMutablePointer<RegexID>, _ sources: [UnsafeMutablePointer<RegexID>], _ transform: ([RegexID]) -> RegexID
    ) {
        var known: [(targets: [RegexID], target: RegexID)] = []
        spend(sources.count)
        for byte in 0..<256 {
            var isDead = true
            var isRepeated = byte > 0
            for source in sources {
                isDead = isDead && source[byte] == Self.empty
                isRepeated = isRepeated && source[byte] == source[byte - 1]
            }
            if isDead { continue }
            if isRepeated {
                row[byte] = row[byte - 1]
                continue
            }
            let targets = sources.map { $0[byte] }
            if let found = known.first(where: { $0.targets == targets }) {
                row[byte] = found.target
            } else {
                spend(1 + sources.count / 4)
                row[byte] = transform(targets)
                known.append((targets, row[byte]))
            }
        }
    }

    /// The live language after each of the 256 bytes; `empty` if there is none.
    func row(_ id: RegexID) throws(RegexLimit) -> UnsafePointer<RegexID> {
        let row = rawRow(id)
        if isFull { throw RegexLimit() }
        if !isPruned[Int(id)] {
            var last: RegexID = Self.empty
            var lastIsAlive = false
            for byte in 0..<256 where row[byte] != Self.empty {
                if row[byte] != last {
                    last = row[byte]
                    lastIsAlive = try isAlive(last)
                }
                if !lastIsAlive { row[byte] = Self.empty }
            }
            isPruned[Int(id)] = true
        }
        return UnsafePointer(row)
    }

    /// Like ``row(_:)``, but nil if a limit was reached. Decoding then allows fewer documents, but never an invalid
    /// one.
    func liveRow(_ id: RegexID) -> UnsafePointer<RegexID>? { try? row(id) }

    /// Whether a language contains a string; false if a limit prevents an answer. Only for decoding: compilation must
    /// distinguish the two cases.
    func surelyHasWords(_ id: RegexID) -> Bool { (try? isAlive(id)) ?? false }

    /// Whether a language contains a string. The structure is sufficient, except where parts can cancel out.
    func isAlive(_ id: RegexID) throws(RegexLimit) -> Bool {
        if life[Int(id)] != .unknown { return life[Int(id)] == .alive }
        depth += 1
        defer { depth -= 1 }
        if depth > Self.maximumDepth {
            isTooDeep = true
            throw RegexLimit()
        }
        var result = false
        switch nodes[Int(id)] {
        case .concat:
            // Concatenations are nested to the right: a loop prevents a stack overflow for long ones.
            var rest = id
            while case .concat(let a, let b) = nodes[Int(rest)], life[Int(rest)] == .unknown, try isAlive(a) { rest = b }
            if case .concat = nodes[Int(rest)], life[Int(rest)] == .unknown {
                result = false
            } else {
                result = try isAlive(rest)
            }
        case .alternation(let parts):
            for part in parts where try isAlive(part) {
                result = true
                break
            }
        case .repetition(let a, let minimum, _): if minimum == 0 { result = true } else { result = try isAlive(a) }
        case .escaped(let content, _, .none): result = try isAlive(content)
        case .escaped(_, _, .backslash):
            // A hexadecimal digit leads to a live state only if a character can follow; a letter, depending on its
            // character.
            let row = rawRow(id)
            if isFull { throw RegexLimit() }
            for byte in 0..<256 where row[byte] != Self.empty {
                if try isAlive(row[byte]) {
                    result = true
                    break
                }
            }
        case .escaped(let content, let style, .hex(0, 0, 0)):
            result = hasEscapable(content, style, 0...0xFFFF)
            if !result { result = try hasScalar(content, in: 0x10000...0x10FFFF) }
        case .escaped: result = true
        case .intersection(let parts):
            guard let known = hasWords(parts) else { return try search(id) }
            result = known
        case .number(let machine, let state):
            let machine = machines[Int(machine)]
            result = machine.shortWord(state) != nil
            if !result, !machine.hasNoMultiple(state) { return try search(id) }
        default: return try search(id)
        }
        // A row that could not be completed looks dead; that result must not be cached.
        if !result, isFull { throw RegexLimit() }
        life[Int(id)] = result ? .alive : .dead
        return result
    }

    /// A depth-first search for an accepting state. The result is cached for all states on the path, or for all visited
    /// states if the search fails.
    func search(_ id: RegexID) throws(RegexLimit) -> Bool {
        var path: [(state: RegexID, byte: Int)] = [(id, 0)]
        var visited: Set<RegexID> = [id]
        while let (state, start) = path.last {
            spend(1)
            let row = rawRow(state)
            if isFull { throw RegexLimit() }
            var byte = start
            var next: RegexID?
            while byte < 256 {
                let target = row[byte]
                byte += 1
                if target == Self.empty || life[Int(target)] == .dead { continue }
                if try isSurelyAlive(target) {
                    for (state, _) in path { life[Int(state)] = .alive }
                    return true
                }
                if visited.insert(target).inserted {
                    next = target
                    break
                }
            }
            path[path.count - 1].byte = byte
            if let next {
                if visited.count > Self.searchLimit || isFull { throw RegexLimit() }
                path.append((next, 0))
            } else {
                path.removeLast()
            }
        }
        // If rows could not be completed, the result is unknown.
        if isFull { throw RegexLimit() }
        // All reachable states were visited, and none of them accepts.
        for state in visited { life[Int(state)] = .dead }
        return false
    }

    /// Whether a state is known to be alive, from the cache or from its structure, without a search. ``search(_:)``
    /// visits the other states itself: a nested search would start again and again in a language that refers to itself.
    func isSurelyAlive(_ id: RegexID) throws(RegexLimit) -> Bool {
        if life[Int(id)] != .unknown { return life[Int(id)] == .alive }
        depth += 1
        defer { depth -= 1 }
        if depth > Self.maximumDepth { return false }
        switch nodes[Int(id)] {
        case .intersection(let parts): return hasWords(parts) == true
        case .complement, .number, .recursive: return false
        case .concat:
            var rest = id
            while case .concat(let a, let b) = nodes[Int(rest)] {
                if life[Int(rest)] != .unknown { return life[Int(rest)] == .alive }
                guard try isSurelyAlive(a) else { return false }
                rest = b
            }
            return try isSurelyAlive(rest)
        case .alternation(let parts):
            for part in parts where try isSurelyAlive(part) { return true }
            return false
        case .repetition(let a, _, _): return try isSurelyAlive(a)
        default: return try isAlive(id)
        }
    }

    /// Whether a language contains a text. If a limit was reached, the result is meaningless: check ``isFull``.
    func matches(_ id: RegexID, _ text: some Sequence<UInt8>) -> Bool {
        var state = id
        for byte in text {
            state = rawRow(state)[Int(byte)]
            if state == Self.empty { return false }
        }
        return isNullable[Int(state)]
    }
}
