internal import JSON

/// Items of arrays whose items must differ (`uniqueItems`).
///
/// Short strings, numbers and constants that were written are taken out of the language of the next item. Objects,
/// arrays and long strings are read by the ordinary automaton beside the list of earlier items that begin with the same
/// text. As long as there are any, only bytes after which the item can still differ are allowed; once there are none,
/// nothing is compared before the item ends.
extension Automaton {
    /// Items that were written, as texts in ``itemTexts``.
    struct ItemSet {
        var items: [Int32] = []
        /// The set of their scalars in ``writtenSets``, as long as these are taken out of languages.
        var scalars: Int32 = 0
        var scalarBytes = 0
    }

    /// Scalars of more bytes together are compared as objects are: their regular expression would be rebuilt at each
    /// token of the next one.
    private static let maximumExcludedBytes = 512

    /// The states before an item of `type`; `after` is the progress behind it, still without the item.
    func uniqueItems(_ local: LocalState, _ type: TypeID, _ after: Int32) -> [StateID] {
        let entry = program.types[Int(type)]
        let set = itemSets[Int(arrayProgress[Int(after)].written)]
        var result: [StateID] = []
        func addCompared(_ kind: LocalState.Kind) {
            let inner = config(state(LocalState(kind: kind, depth: local.depth, a: type)), Self.hole)
            guard canDiffer(inner, ItemTexts.empty, arrayProgress[Int(after)].written) else { return }
            result.append(
                state(LocalState(kind: .uniqueStructure, depth: local.depth, a: local.a, b: after, c: inner)))
        }
        if set.scalarBytes > Self.maximumExcludedBytes {
            addCompared(.value)
            return result
        }
        let language = uniqueItem(entry.scalar, set.scalars)
        if language != RegexArena.empty {
            result.append(state(LocalState(kind: .uniqueItem, depth: local.depth, a: local.a, b: after, c: language)))
        }
        if !entry.objects.isEmpty || !entry.arrays.isEmpty { addCompared(.structure) }
        return result
    }

    /// The set with one more item.
    func itemSet(_ id: Int32, adding item: Int32) -> Int32 {
        var set = itemSets[Int(id)]
        let place = set.items.firstIndex { $0 >= item } ?? set.items.endIndex
        set.items.insert(item, at: place)
        if let known = itemSetIDs[set.items] { return known }
        if let first = itemTexts.byte(item, at: 0), first != UInt8(ascii: "{"), first != UInt8(ascii: "[") {
            set.scalarBytes += itemTexts.length(item)
            if set.scalarBytes <= Self.maximumExcludedBytes { set.scalars = written(set.scalars, adding: itemTexts.bytes(item)) }
        }
        itemSets.append(set)
        itemSetIDs[set.items] = Int32(itemSets.count - 1)
        return Int32(itemSets.count - 1)
    }

    /// All scalars of a set, as an index in ``writtenSets``, however long they are: for the shortest ending.
    func scalars(of id: Int32) -> Int32 {
        let set = itemSets[Int(id)]
        if set.scalarBytes <= Self.maximumExcludedBytes { return set.scalars }
        return set.items.reduce(0) { scalars, item in
            let bytes = itemTexts.bytes(item)
            return bytes.first == UInt8(ascii: "{") || bytes.first == UInt8(ascii: "[")
                ? scalars : written(scalars, adding: bytes)
        }
    }

    /// The state of the array after an item.
    func afterUnique(_ local: LocalState) -> StateID {
        var value = arrayProgress[Int(local.b)]
        value.written = itemSet(value.written, adding: local.d)
        let next = LocalState(kind: .array, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: progress(value))
        return state(next)
    }

    // MARK: - Scalars

    /// A scalar's language without the values that were written.
    func uniqueItem(_ language: RegexID, _ written: Int32) -> RegexID {
        if language == RegexArena.empty || written == 0 { return language }
        let key = 1 << 63 | UInt64(UInt32(bitPattern: language)) << 31 | UInt64(UInt32(bitPattern: written))
        if let known = exclusions[key] { return known }
        var contents: [[UInt8]] = []
        var others: [RegexID] = []
        for text in writtenSets[Int(written)] {
            // The automaton read it, so it is JSON, and a scalar is not nested too deeply.
            switch try? JSONParser.parse(text) {
            case .string(let content): contents.append(Array(content.utf8))
            case .number(let number):
                // One value has no divisor, and only divisors can be refused.
                others.append((try? regexes.number(.exactly(number), .any)) ?? regexes.literal(text))
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

    // MARK: - Objects, arrays and long strings

    private func items(_ written: Int32) -> [Int32] { itemSets[Int(written)].items }

    /// The earlier items that begin with a text.
    private func itemsBeginning(with text: Int32, in written: Int32) -> [Int32] {
        items(written).filter { itemTexts.begins($0, with: text) }
    }

    /// Whether the item read is a value that no item before it is.
    func isNew(_ local: LocalState) -> Bool { isNew(local.d, after: arrayProgress[Int(local.b)].written) }

    func isNew(_ text: Int32, after written: Int32) -> Bool {
        let items = items(written)
        if items.contains(text) { return false }
        let candidates = items.filter { itemTexts.couldBeEqual($0, text) }
        if candidates.isEmpty { return true }
        // Nested deeper than values can be, it is refused.
        guard let value = try? JSONParser.parse(itemTexts.bytes(text)) else { return false }
        return !candidates.contains { self.value(ofItem: $0)?.isEqual(to: value) ?? false }
    }

    /// The value of an earlier item, parsed once; nil if it is nested deeper than values can be.
    private func value(ofItem item: Int32) -> JSONValue? {
        if let known = itemValues[item] { return known }
        let value = try? JSONParser.parse(itemTexts.bytes(item))
        itemValues[item] = value
        return value
    }

    private func isDistinct(_ local: LocalState) -> Bool { local.phase == LocalState.Phase.distinct }

    /// Whether what goes on like this can become different from all items before: wherever the automaton has a choice
    /// that they do not take, or ends where they do not.
    func canDiffer(_ inner: ConfigID, _ text: Int32, _ written: Int32) -> Bool {
        let same = itemsBeginning(with: text, in: written)
        if same.isEmpty { return true }
        let key = DifferKey(inner: inner, text: text, written: written)
        if let known = differs[key] { return known }
        // A list of places along earlier items, not recursion: they can be long.
        var open = [(inner: inner, text: text)]
        var result = false
        while !result, let (inner, text) = open.popLast() {
            let same = itemsBeginning(with: text, in: written)
            if same.isEmpty || hasHole(inner) && !same.contains(text) {
                result = true
                break
            }
            var taken = ByteSet()
            let length = itemTexts.length(text)
            for item in same { if let byte = itemTexts.byte(item, at: length) { taken.insert(byte) } }
            let alive = alive(inner)
            alive.forEach { byte in
                if !result, !taken.contains(byte) { result = step(inner, byte) != Self.dead }
            }
            if result { break }
            alive.forEach { byte in
                guard taken.contains(byte) else { return }
                let next = step(inner, byte)
                if next != Self.dead { open.append((next, itemTexts.appending(byte, to: text))) }
            }
        }
        if !regexes.isFull { differs[key] = result }
        return result
    }

    func next(_ local: LocalState, _ byte: UInt8) -> StateID? {
        let inner = step(local.c, byte)
        guard inner != Self.dead else { return nil }
        var next = local
        next.c = inner
        next.d = itemTexts.appending(byte, to: local.d)
        if isDistinct(local) { return state(next) }
        let written = arrayProgress[Int(local.b)].written
        if itemsBeginning(with: next.d, in: written).isEmpty { next.phase = LocalState.Phase.distinct }
        return isDistinct(next) || canDiffer(inner, next.d, written) ? state(next) : nil
    }

    func aliveInStructure(_ local: LocalState) -> ByteSet {
        let all = alive(local.c)
        var set = ByteSet()
        if isDistinct(local) {
            guard mayEqualEarlier(local, within: 1) else { return all }
            // Another spelling of an earlier item has a distinct text, but not a distinct value: it must not end here.
            all.forEach { byte in
                if closing(local).contains(byte), let next = next(local, byte) {
                    let after = states[Int(next)]
                    if hasHole(after.c), alive(after.c).isEmpty, !isNew(after) { return }
                }
                set.insert(byte)
            }
            return set
        }
        all.forEach { byte in if next(local, byte) != nil { set.insert(byte) } }
        return set
    }

    /// The bytes with which an item ends, as its first byte shows; none for numbers and constants.
    func closing(_ local: LocalState) -> [UInt8] {
        switch itemTexts.byte(local.d, at: 0) {
        case UInt8(ascii: "{"): [UInt8(ascii: "}")]
        case UInt8(ascii: "["): [UInt8(ascii: "]")]
        case UInt8(ascii: "\""): [UInt8(ascii: "\"")]
        default: []
        }
    }

    /// Whether the item may become equal to an earlier one within a number of bytes, although their texts already
    /// differ.
    func mayEqualEarlier(_ local: LocalState, within bytes: Int) -> Bool {
        let length = itemTexts.length(local.d)
        return items(arrayProgress[Int(local.b)].written).contains { item in
            !itemTexts.isPlain(item) || !itemTexts.isPlain(local.d)
                || itemTexts.length(item) > length && itemTexts.length(item) - length <= bytes
        }
    }

    // MARK: - Masks

    /// A configuration that ends in a hole, with what follows put in its place: what masks are computed of.
    private func graft(_ inner: ConfigID, onto config: ConfigID) -> ConfigID {
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

    /// The configuration that reads any item where `thread` reads one that must differ. Its mask is the thread's, except
    /// for tokens that end the item and tokens along an earlier item.
    func withoutComparison(_ thread: Thread) -> ConfigID {
        let local = states[Int(thread.state)]
        let after = LocalState(kind: .array, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: local.b)
        return graft(local.c, onto: config(state(after), thread.parent))
    }

    /// What earlier items have after the text read so far, at most `maximum` bytes of each.
    func continuations(_ thread: Thread, maximum: Int) -> [[UInt8]] {
        let local = states[Int(thread.state)]
        if isDistinct(local) { return [] }
        let length = itemTexts.length(local.d)
        return itemsBeginning(with: local.d, in: arrayProgress[Int(local.b)].written).map {
            itemTexts.bytes($0, from: length, maximum: maximum)
        }
    }
}
