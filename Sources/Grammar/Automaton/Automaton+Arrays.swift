/// Items of arrays, and items that must differ.
extension Automaton {
    /// The items that may come next, with the state after each; nil for states that go on by themselves.
    func items(_ local: LocalState) -> [(child: StateID, next: StateID?)] {
        let array = program.arrays[Int(local.a)]
        let progress = arrayProgress[Int(local.b)]
        if let most = array.most, Int(progress.index) >= most { return [] }
        let types = itemTypes(array, Int(progress.index))
        var result: [(StateID, StateID?)] = []
        for (mask, type) in types.enumerated() {
            guard let type, let after = self.progress(progress, of: array, mask) else { continue }
            if array.isUnique {
                let language = uniqueItem(program.types[Int(type)].scalar, progress.written)
                if language != RegexArena.empty {
                    result.append(
                        (state(LocalState(kind: .uniqueItem, depth: local.depth, a: local.a, b: after, c: language)), nil))
                }
                let entry = program.types[Int(type)]
                if !entry.objects.isEmpty || !entry.arrays.isEmpty {
                    let inner = config(state(LocalState(kind: .structure, depth: local.depth, a: type)), Self.hole)
                    let item = LocalState(kind: .uniqueStructure, depth: local.depth, a: local.a, b: after, c: inner)
                    if canDiffer(inner, 0, progress.written) { result.append((state(item), nil)) }
                }
            } else {
                let next = LocalState(kind: .array, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: after)
                result.append((state(LocalState(kind: .value, depth: local.depth, a: type)), state(next)))
            }
        }
        return result
    }

    func itemTypes(_ array: Program.Array, _ index: Int) -> [TypeID?] {
        index < array.prefix.count ? array.prefix[index] : array.rest
    }

    /// The progress after an item that counts for the conditions of `mask`, nil if the array could not be completed.
    func progress(_ progress: ArrayProgress, of array: Program.Array, _ mask: Int) -> Int32? {
        var value = progress
        for (number, part) in array.contains.enumerated() where mask >> number & 1 == 1 {
            if let most = part.most, Int(value.counts[number]) >= most { return nil }
            value.counts[number] = min(value.counts[number] + 1, Int32(clamping: max(part.least, part.most ?? 0)))
        }
        // Beyond all bounds and listed items every index is alike.
        let limit = max(array.prefix.count, array.least, array.most ?? 0)
        value.index = min(value.index + 1, Int32(clamping: limit))
        if !array.contains.isEmpty || array.isUnique, !canComplete(array, value) { return nil }
        return self.progress(value)
    }

    func canComplete(_ array: Program.Array, _ progress: ArrayProgress) -> Bool {
        program.arrayCost(array, from: Int(progress.index), counts: progress.counts.map(Int.init)) != nil
    }

    func canClose(_ array: Program.Array, _ progress: ArrayProgress) -> Bool {
        Int(progress.index) >= array.least && zip(progress.counts, array.contains).allSatisfy { Int($0) >= $1.least }
    }

    /// A scalar's language without the values that were written.
    func uniqueItem(_ language: RegexID, _ written: Int32) -> RegexID {
        let key = 1 << 63 | UInt64(UInt32(bitPattern: language)) << 31 | UInt64(UInt32(bitPattern: written))
        if let known = exclusions[key] { return known }
        var contents: [[UInt8]] = []
        var others: [RegexID] = []
        for text in writtenSets[Int(written)] {
            switch value(of: text) {
            case .string(let content): contents.append(Array(content.utf8))
            case .number(let number):
                // One value has no divisor, and only divisors can be refused.
                others.append((try? regexes.number(.exactly(number), allowsZeroFraction: true)) ?? regexes.literal(text))
                if number.isZero {
                    let zeros = regexes.repetition(regexes.bytes(ByteSet(UInt8(ascii: "0"))), 1, nil)
                    let fraction = regexes.concat(regexes.literal([UInt8(ascii: ".")]), zeros)
                    others.append(
                        regexes.concat(regexes.literal(Array("-0".utf8)), regexes.alternation([RegexArena.epsilon, fraction])))
                }
            default: others.append(regexes.literal(text))
            }
        }
        // Strings differ by their content, everything else by its text.
        let parts = regexes.parts(language).map { part -> RegexID in
            guard let (content, style) = regexes.stringContent(afterQuote: part) else {
                // The same number could be written with an exponent.
                let plain = regexes.isNumber(part) ? regexes.withoutExponent(part) : part
                return regexes.difference(plain, regexes.alternation(others))
            }
            return regexes.string(regexes.intersection([content, regexes.complement(regexes.words(contents))]), style)
        }
        let rest = regexes.alternation(parts)
        let result = regexes.surelyHasWords(rest) ? rest : RegexArena.empty
        if !regexes.isFull { exclusions[key] = result }
        return result
    }

    func afterUnique(_ local: LocalState) -> StateID {
        var value = arrayProgress[Int(local.b)]
        value.written = written(value.written, adding: typedText(local.d))
        let next = LocalState(kind: .array, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: progress(value))
        return state(next)
    }

    // MARK: - Structures that must differ

    func written(_ local: LocalState) -> Int32 { arrayProgress[Int(local.b)].written }

    /// The items that begin with a text.
    func rivals(_ typed: Int32, _ written: Int32) -> [[UInt8]] {
        let text = typedText(typed)
        return writtenSets[Int(written)].filter { $0.starts(with: text) }
    }

    /// Whether the value read is none of the items before, whatever they look like.
    func isNew(_ local: LocalState) -> Bool { isNew(typedText(local.d), local) }

    func isNew(_ text: [UInt8], _ local: LocalState) -> Bool {
        guard let value = value(of: text) else { return false }
        return !writtenSets[Int(written(local))].contains { self.value(of: $0)?.isEqual(to: value) ?? false }
    }

    /// The value of an item's text, read once; nil if it is nested deeper than values can be.
    private func value(of text: [UInt8]) -> JSONValue? {
        if let known = itemValues[text] { return known }
        let value = try? JSONParser.parse(text)
        itemValues[text] = value
        return value
    }

    /// Whether what was read of an item cannot become one of those before any more: then nothing of them matters.
    private func isApart(_ local: LocalState) -> Bool { local.phase == LocalState.Phase.apart }

    /// Whether what goes on like this can become different from all items before: wherever the automaton has a choice
    /// that they do not take, or ends where they do not.
    func canDiffer(_ inner: ConfigID, _ typed: Int32, _ written: Int32) -> Bool {
        let key = UInt64(UInt32(bitPattern: inner)) << 32 | UInt64(UInt32(bitPattern: typed))
        let text = typedText(typed)
        let rivals = rivals(typed, written)
        if rivals.isEmpty { return true }
        let memo = DifferKey(key: key, written: written)
        if let known = differs[memo] { return known }
        var result = hasHole(inner) && !rivals.contains(text)
        if !result {
            var taken = ByteSet()
            for rival in rivals where rival.count > text.count { taken.insert(rival[text.count]) }
            alive(inner).forEach { byte in
                if result { return }
                let next = step(inner, byte)
                if next == Self.dead { return }
                result = !taken.contains(byte) || canDiffer(next, self.typed(typed, byte), written)
            }
        }
        if !regexes.isFull { differs[memo] = result }
        return result
    }

    func next(_ local: LocalState, _ byte: UInt8) -> StateID? {
        let inner = step(local.c, byte)
        guard inner != Self.dead else { return nil }
        var next = local
        next.c = inner
        next.d = typed(local.d, byte)
        if isApart(local) { return state(next) }
        if rivals(next.d, written(local)).isEmpty { next.phase = LocalState.Phase.apart }
        return isApart(next) || canDiffer(inner, next.d, written(local)) ? state(next) : nil
    }

    func aliveInStructure(_ local: LocalState) -> ByteSet {
        let all = alive(local.c)
        if isApart(local) { return all }
        var set = ByteSet()
        all.forEach { byte in if next(local, byte) != nil { set.insert(byte) } }
        return set
    }

    /// A configuration that ends in a hole, with what follows put in its place: what masks are computed of.
    func graft(_ inner: ConfigID, onto config: ConfigID) -> ConfigID {
        if inner == Self.hole { return config }
        if inner <= Self.hole { return inner }
        let key = UInt64(UInt32(bitPattern: inner)) << 32 | UInt64(UInt32(bitPattern: config))
        if let known = grafts[key] { return known }
        var threads: [Thread] = []
        for thread in configs[Int(inner)] {
            if states[Int(thread.state)].kind == .hole {
                threads += configs[Int(config)]
            } else {
                threads.append(Thread(state: thread.state, parent: graft(thread.parent, onto: config)))
            }
        }
        threads.sort()
        let result = intern(threads.deduplicated())
        grafts.insert(key, result)
        return result
    }

    /// What a mask of a structure that must differ is computed of, and the items it could still become, without what of
    /// them was read already.
    func grafted(_ thread: Thread) -> (config: ConfigID, rivals: [[UInt8]]) {
        let local = states[Int(thread.state)]
        let after = LocalState(kind: .array, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: local.b)
        let config = graft(local.c, onto: config(state(after), thread.parent))
        if isApart(local) { return (config, []) }
        let count = typedText(local.d).count
        return (config, rivals(local.d, written(local)).map { Array($0.dropFirst(count)) })
    }

    func arrayEdges(_ local: LocalState) -> [Edge] {
        let hasItems = local.phase != LocalState.Phase.close && !items(local).isEmpty
        let canClose = canClose(program.arrays[Int(local.a)], arrayProgress[Int(local.b)])
        return separatorEdges(local, canClose: canClose, hasMore: hasItems, end: "]")
    }
}
