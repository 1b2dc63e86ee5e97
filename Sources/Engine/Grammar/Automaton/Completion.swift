internal import JSON

/// Shortest endings: the minimum text that completes a document from a configuration.
extension Automaton {
    /// Number of bytes of the shortest ending.
    func completionLength(_ config: ConfigID) -> Int {
        if let known = completions[config] { return known }
        completionDepth += 1
        defer { endCompletion() }
        // An explicit stack instead of recursion, because documents can be nested deeply.
        var open = [config]
        while let next = open.last, !regexes.isOutOfFuel {
            if next <= Self.hole || completions[next] != nil {
                open.removeLast()
                continue
            }
            let missing = configs[Int(next)].map(\.parent).filter { $0 > Self.hole && completions[$0] == nil }
            if !missing.isEmpty {
                open += missing
                continue
            }
            regexes.spend(parts: 4 + 2 * configs[Int(next)].count)
            var minimum = Program.infiniteLength
            for thread in configs[Int(next)] {
                minimum = min(minimum, (completions[thread.parent] ?? 0) + completion(of: thread.state).count)
            }
            completions[next] = minimum
            addedCompletions.append(next)
        }
        return completions[config] ?? 0
    }

    /// At a limit, parts whose endings were not found have no length. These lengths are valid only until the outermost call ends.
    private func endCompletion() {
        completionDepth -= 1
        guard completionDepth == 0 else { return }
        if regexes.isFull { for config in addedCompletions { completions[config] = nil } }
        addedCompletions.removeAll(keepingCapacity: true)
    }

    /// The shortest text that completes the document.
    func completion(_ config: ConfigID) -> [UInt8] {
        completionDepth += 1
        defer { endCompletion() }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(completionLength(config))
        var config = config
        while config > Self.hole {
            let wanted = completionLength(config)
            guard
                let thread = configs[Int(config)].first(where: {
                    completionLength($0.parent) + completion(of: $0.state).count == wanted
                })
            else { break }
            bytes += completion(of: thread.state)
            config = thread.parent
        }
        return bytes
    }

    /// The shortest ending of the part that one state reads.
    private func completion(of id: StateID) -> [UInt8] {
        if let known = completionTexts[id] { return known }
        regexes.spend(parts: 16)
        let text = makeCompletion(states[Int(id)])
        if !regexes.isFull { completionTexts[id] = text }
        return text
    }

    private func makeCompletion(_ local: LocalState) -> [UInt8] {
        switch local.kind {
        case .end, .hole: return []
        case .scalar: return shortestWord(local.a)
        case .uniqueItem:
            let word = shortestWord(local.c)
            var after = arrayProgress[Int(local.b)]
            after.written = itemSet(after.written, adding: itemTexts.appending(word, to: local.d))
            return word + rest(ofArray: program.arrays[Int(local.a)], after, local.depth, isFirst: false)
        case .value, .structure: return shortest(local.a, local.depth, hasScalars: local.kind == .value)
        case .object:
            let depth = local.depth
            switch local.phase {
            case LocalState.Phase.open: return rest(ofObject: local.a, local.b, depth, isFirst: true)
            case LocalState.Phase.after: return rest(ofObject: local.a, local.b, depth, isFirst: false)
            case LocalState.Phase.next:
                guard let member = members(local.a, local.b, minimum: 1).first else { return [] }
                return memberText(member, depth) + rest(ofObject: local.a, member.after, depth, isFirst: false)
            default: return [UInt8(ascii: "}")]
            }
        case .key: return completion(ofKey: local)
        case .otherKey:
            let word = shortestWord(local.c)
            var colon = local
            let name = JSONText.decoded((itemTexts.bytes(local.d) + word).dropLast()) ?? []
            colon.b = progress(local.b, of: local.a, writingOther: name, in: Int(local.phase))
            let type = program.objects[Int(local.a)].regions[Int(local.phase)].type
            return word + afterKey(type, local.depth, local.a, colon.b)
        case .colon:
            let text = afterKey(local.c, local.depth, local.a, local.b)
            return Array(text.dropFirst(Int(local.phase)))
        case .array:
            let array = program.arrays[Int(local.a)]
            let progress = arrayProgress[Int(local.b)]
            switch local.phase {
            case LocalState.Phase.open: return rest(ofArray: array, progress, local.depth, isFirst: true)
            case LocalState.Phase.after: return rest(ofArray: array, progress, local.depth, isFirst: false)
            case LocalState.Phase.next:
                let endings = items(local).map { item in
                    let first = completion(of: item.child)
                    return first.isEmpty ? [] : first + (item.next.map { completion(of: $0) } ?? [])
                }
                return endings.filter { !$0.isEmpty }.min { $0.count < $1.count } ?? []
            default: return [UInt8(ascii: "]")]
            }
        case .uniqueStructure: return completion(ofStructure: local)
        case .text: return fixedText(local.a)[Int(local.b)...] + completion(of: local.c)
        case .sequence:
            return parts(ofSequence: local.a)[Int(local.b)...].flatMap { part -> [UInt8] in
                switch part {
                case .language(let language): shortestWord(language)
                case .value(let type): shortest(type, 0)
                }
            }
        }
    }

    /// Empty if a limit prevents the search: the ending is then not accepted, and the caller notices that.
    private func shortestWord(_ language: RegexID) -> [UInt8] { (try? regexes.shortestWord(language)) ?? [] }

    /// The shortest document of a type.
    func shortest(_ type: TypeID, _ depth: UInt16, hasScalars: Bool = true) -> [UInt8] {
        let entry = program.types[Int(type)]
        // The lengths of scalars were cached during compilation: if this one is not the shortest length of the type,
        // the shortest document is an object or array.
        if hasScalars, entry.scalar != RegexArena.empty, (try? regexes.shortestLength(entry.scalar)) == entry.shortest {
            return shortestWord(entry.scalar)
        }
        let inner = innerDepth(depth)
        let object = entry.objects.min { program.objects[Int($0)].shortest < program.objects[Int($1)].shortest }
        let array = entry.arrays.min { program.arrays[Int($0)].shortest < program.arrays[Int($1)].shortest }
        if let object, array.map({ program.objects[Int(object)].shortest <= program.arrays[Int($0)].shortest }) ?? true {
            let start = LocalState(kind: .structure, depth: depth, a: type)
            for edge in edges(state(start)) where edge.bytes.contains(UInt8(ascii: "{")) {
                for case .go(let open) in edge.actions where states[Int(open)].a == object {
                    return [UInt8(ascii: "{")] + rest(ofObject: object, states[Int(open)].b, inner, isFirst: true)
                }
            }
        }
        guard let array else { return hasScalars ? shortestWord(entry.scalar) : [] }
        let shape = program.arrays[Int(array)]
        let progress = ArrayProgress(counts: shape.contains.map { _ in 0 })
        return [UInt8(ascii: "[")] + rest(ofArray: shape, progress, inner, isFirst: true)
    }

    /// The shortest text that completes an object, including its closing brace.
    func completion(ofObject object: Int32, _ progress: Int32, isFirst: Bool) -> [UInt8] {
        rest(ofObject: object, progress, 0, isFirst: isFirst)
    }

    func shortestArray(_ array: Int32) -> [UInt8] {
        let shape = program.arrays[Int(array)]
        let progress = ArrayProgress(counts: shape.contains.map { _ in 0 })
        return [UInt8(ascii: "[")] + rest(ofArray: shape, progress, 0, isFirst: true)
    }

    // MARK: - Objects

    private struct Member {
        var key: [UInt8]
        var type: TypeID
        var after: Int32
    }

    private func completion(ofKey local: LocalState) -> [UInt8] {
        let object = program.objects[Int(local.a)]
        let choices = choices(local.a, local.b)
        let node = object.keys.nodes[Int(local.c)]
        var best: [UInt8]?
        for rank in Int(node.first)..<Int(node.last) {
            let name = Int(object.keys.order[rank])
            guard choices.names.contains(name), !regexes.isOutOfFuel else { continue }
            regexes.spend(1)
            var current = Int(local.c)
            var text: [UInt8] = []
            // Descend to this name: its rank is in the range of each node on the path.
            while object.keys.nodes[current].name < 0 {
                guard
                    let child = object.keys.nodes[current].children.first(where: {
                        let below = object.keys.nodes[Int($0.node)]
                        return below.first <= rank && rank < below.last
                    })
                else { break }
                text.append(child.byte)
                current = Int(child.node)
            }
            let after = progress(local.b, of: local.a, writing: name)
            text += afterKey(object.names[name].type, local.depth, local.a, after)
            if best.map({ text.count < $0.count }) ?? true { best = text }
            // Required names are few; with many optional names, any of them is good enough.
            if rank - Int(node.first) > 64, best != nil { break }
        }
        return best ?? []
    }

    private func afterKey(_ type: TypeID, _ depth: UInt16, _ object: Int32, _ progress: Int32) -> [UInt8] {
        Array((isPretty || isSpaced ? ": " : ":").utf8) + shortest(type, depth)
            + rest(ofObject: object, progress, depth, isFirst: false)
    }

    private func memberText(_ member: Member, _ depth: UInt16) -> [UInt8] {
        member.key + Array((isPretty || isSpaced ? ": " : ":").utf8) + shortest(member.type, depth)
    }

    private func rest(ofObject object: Int32, _ progress: Int32, _ depth: UInt16, isFirst: Bool) -> [UInt8] {
        var text: [UInt8] = []
        var isFirst = isFirst
        for member in members(object, progress, minimum: 0) {
            text += separator(depth, isFirst: isFirst) + memberText(member, depth)
            isFirst = false
        }
        return text + ending(depth, isEmpty: isFirst) + [UInt8(ascii: "}")]
    }

    private func separator(_ depth: UInt16, isFirst: Bool) -> [UInt8] {
        (isFirst ? [] : Array((isSpaced ? ", " : ",").utf8)) + (isPretty ? [0x0A] + indentation(depth) : [])
    }

    private func ending(_ depth: UInt16, isEmpty: Bool) -> [UInt8] {
        isPretty && !isEmpty ? [0x0A] + indentation(max(1, depth) - 1) : []
    }
    private func indentation(_ depth: UInt16) -> [UInt8] { [UInt8](repeating: UInt8(ascii: " "), count: Int(depth) * 2) }

    /// The members to write before the object can be closed, in a valid order.
    private func members(_ object: Int32, _ start: Int32, minimum: Int) -> [Member] {
        let shape = program.objects[Int(object)]
        let progress = objectProgress[Int(start)]
        regexes.spend(parts: 16 + shape.names.count)
        var wanted: [Int] = []
        var optional: [Int] = []
        for (index, name) in shape.names.enumerated() where name.isAllowed && !progress.gone.contains(index) {
            if name.isRequired { wanted.append(index) } else { optional.append(index) }
        }
        let wants = shape.allWants & ~progress.wants
        let others = shape.regions(for: wants)?.count ?? 0
        var missing = max(shape.minimum - Int(progress.count), minimum) - wanted.count - others
        if missing > 0 {
            optional.sort { shape.names[$0].shortest < shape.names[$1].shortest }
            // Use only members that are no longer than an unlisted one: the same choice as in `measureObject`, whose
            // lengths are known to be finite.
            let extra = program.otherLength(object)
            let chosen = optional.prefix(missing).prefix { shape.names[$0].shortest <= extra }
            wanted += chosen
            missing -= chosen.count
        }
        var result: [Member] = []
        var current = start
        while !wanted.isEmpty, !regexes.isOutOfFuel {
            // A name that does not exclude another one.
            let choices = choices(object, current)
            guard
                let index = wanted.firstIndex(where: { name in
                    choices.names.contains(name) && !wanted.contains { $0 != name && shape.before[name].contains($0) }
                })
            else { break }
            let name = wanted.remove(at: index)
            var key: [UInt8] = [UInt8(ascii: "\"")]
            JSONText.escape(shape.names[name].text, into: &key)
            key.append(UInt8(ascii: "\""))
            current = self.progress(current, of: object, writing: name)
            result.append(Member(key: key, type: shape.names[name].type, after: current))
        }
        while !regexes.isOutOfFuel, !choices(object, current).canClose || result.count < minimum {
            let choices = choices(object, current)
            let open = shape.allWants & ~objectProgress[Int(current)].wants
            let candidates = shape.regions.indices.filter {
                choices.regions[$0] && (open == 0 || shape.regions[$0].wants & open != 0)
            }
            var best: (length: Int, region: Int, word: [UInt8])?
            for region in candidates {
                let language = otherNames(object, region, objectProgress[Int(current)].written)
                let word = language == RegexArena.empty ? [] : shortestWord(language)
                if word.isEmpty { continue }
                let length = word.count + program.types[Int(shape.regions[region].type)].shortest
                if best.map({ length < $0.length }) ?? true { best = (length, region, word) }
            }
            guard let best, let name = JSONText.decoded(best.word.dropLast()) else { break }
            current = self.progress(current, of: object, writingOther: name, in: best.region)
            result.append(
                Member(key: [UInt8(ascii: "\"")] + best.word, type: shape.regions[best.region].type, after: current))
            if result.count > 2_000 { break }
        }
        return result
    }

    // MARK: - Arrays

    /// The shortest ending of a structure that must differ from earlier items, followed by the ending of its array.
    private func completion(ofStructure local: LocalState) -> [UInt8] {
        let written = arrayProgress[Int(local.b)].written
        // Try the shortest endings first. If one produces an item that already exists, add the variants that differ
        // from it at one of its positions.
        var queue: [(text: [UInt8], inner: ConfigID)] = [([], local.c)]
        var found: [UInt8]?
        for _ in 0..<300 where found == nil && !regexes.isFull {
            let lengths = queue.map { $0.text.count + completionLength($0.inner) }
            guard let index = lengths.indices.min(by: { lengths[$0] < lengths[$1] }) else { break }
            let (text, start) = queue.remove(at: index)
            let shortest = completion(start)
            if isNew(itemTexts.appending(text + shortest, to: local.d), after: written) {
                found = text + shortest
                break
            }
            var inner = start
            for (index, byte) in shortest.enumerated() where index < 100 {
                var tried = 0
                for other in Self.alternatives where other != byte && tried < 6 && alive(inner).contains(other) {
                    tried += 1
                    let next = step(inner, other)
                    if next != Self.dead { queue.append((text + shortest[..<index] + [other], next)) }
                }
                inner = step(inner, byte)
            }
            // A number that equals an earlier one may go on.
            if inner != Self.dead, shortest.count < 100 {
                for other in Self.alternatives where alive(inner).contains(other) {
                    let next = step(inner, other)
                    if next != Self.dead { queue.append((text + shortest + [other], next)) }
                }
            }
        }
        guard let ending = found else { return [] }
        var after = arrayProgress[Int(local.b)]
        after.written = itemSet(written, adding: itemTexts.appending(ending, to: local.d))
        return ending + rest(ofArray: program.arrays[Int(local.a)], after, local.depth, isFirst: false)
    }

    private static let alternatives = Array("\n1a,\"20b3cx456789-tfn{[}]:. ".utf8)

    private func rest(ofArray array: Program.Array, _ progress: ArrayProgress, _ depth: UInt16, isFirst: Bool) -> [UInt8] {
        var text: [UInt8] = []
        var isFirst = isFirst
        var written = progress.written
        let plan = program.arrayCost(array, from: Int(progress.index), counts: progress.counts.map(Int.init))
        for type in plan?.items ?? [] where !regexes.isOutOfFuel {
            text += separator(depth, isFirst: isFirst)
            if array.isUnique {
                // Two objects or arrays that must differ are never both required.
                let language = uniqueItem(program.types[Int(type)].scalar, scalars(of: written))
                let item = language == RegexArena.empty ? shortest(type, depth) : shortestWord(language)
                written = itemSet(written, adding: itemTexts.appending(item, to: ItemTexts.empty))
                text += item
            } else {
                text += shortest(type, depth)
            }
            isFirst = false
        }
        return text + ending(depth, isEmpty: isFirst) + [UInt8(ascii: "]")]
    }
}
