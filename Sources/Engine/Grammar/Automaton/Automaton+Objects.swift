internal import JSON

/// Members of objects.
extension Automaton {
    func startProgress(_ object: Int32) -> Int32 {
        progress(ObjectProgress(gone: BitSet(count: program.objects[Int(object)].names.count)))
    }

    func choices(_ object: Int32, _ progressID: Int32) -> ObjectChoices {
        let key = UInt64(UInt32(bitPattern: object)) << 32 | UInt64(UInt32(bitPattern: progressID))
        if let known = choices[key] { return known }
        regexes.spend(parts: 8 + program.objects[Int(object)].names.count)
        let made = makeChoices(object, program.objects[Int(object)], objectProgress[Int(progressID)])
        if !regexes.isFull { choices[key] = made }
        return made
    }

    func makeChoices(_ id: Int32, _ object: Program.Object, _ progress: ObjectProgress) -> ObjectChoices {
        let missing = object.required.count - object.required.intersectionCount(progress.gone)
        let wanted = object.allWants & ~progress.wants
        let count = Int(progress.count)
        // Minimum number of unlisted members that are still required. One member can satisfy several witnesses.
        let minimumOthers = object.regions(for: wanted)?.count ?? wanted.nonzeroBitCount
        func fits(_ additional: Int) -> Bool { object.maximum.map { count + additional <= $0 } ?? true }
        var names = BitSet(count: object.names.count)
        let remaining = object.minimum > 0 ? remainingCount(object, progress) : 0
        for (index, name) in object.names.enumerated() where name.isAllowed && !progress.gone.contains(index) {
            // A required name that must be written before this one would be skipped.
            if !object.before[index].withoutMembers(of: progress.gone).isDisjoint(with: object.required) { continue }
            guard fits(name.isRequired ? missing + minimumOthers : missing + minimumOthers + 1) else { continue }
            if object.minimum > 0, object.regions.isEmpty {
                let lost = object.before[index].withoutMembers(of: progress.gone).count { object.names[$0].isAllowed }
                if count + remaining - lost < object.minimum { continue }
            }
            names.insert(index)
        }
        let orderedMissing = object.required.withoutMembers(of: progress.gone).withoutMembers(of: object.unordered)
        let canHaveOthers = orderedMissing.isEmpty
        let regions = object.regions.enumerated().map { index, region in
            guard canHaveOthers else { return false }
            // The names themselves take longer, and are needed only where one begins.
            let isOpen = regexes.isInfiniteByForm(region.names)
            guard isOpen || otherNames(id, index, progress.written) != RegexArena.empty else { return false }
            let rest = wanted & ~region.wants
            if rest != 0, !leavesNames(id, index, for: rest, progress.written) { return false }
            return fits(missing + (object.regions(for: rest)?.count ?? rest.nonzeroBitCount) + 1)
        }
        var ranks: [Int32] = [0]
        ranks.reserveCapacity(object.keys.order.count + 1)
        for name in object.keys.order { ranks.append((ranks.last ?? 0) + (names.contains(Int(name)) ? 1 : 0)) }
        let canClose = missing == 0 && wanted == 0 && count >= object.minimum
        return ObjectChoices(
            names: names, ranks: ranks, regions: regions, canClose: canClose,
            hasMembers: (ranks.last ?? 0) > 0 || regions.contains(true))
    }

    /// Maximum number of listed names that can still be written.
    func remainingCount(_ object: Program.Object, _ progress: ObjectProgress) -> Int {
        var count = 0
        for (index, name) in object.names.enumerated() where name.isAllowed && !progress.gone.contains(index) { count += 1 }
        return count
    }

    /// The progress after a listed name.
    func progress(_ id: Int32, of object: Int32, writing name: Int) -> Int32 {
        var value = objectProgress[Int(id)]
        let shape = program.objects[Int(object)]
        value.gone.insert(name)
        value.gone.formUnion(shape.before[name])
        return progress(counted(value, shape))
    }

    /// The progress after a name that is not listed.
    func progress(_ id: Int32, of object: Int32, writingOther name: [UInt8], in region: Int) -> Int32 {
        var value = objectProgress[Int(id)]
        let shape = program.objects[Int(object)]
        for index in shape.names.indices where !shape.unordered.contains(index) { value.gone.insert(index) }
        value.wants |= shape.regions[region].wants
        value.written = written(value.written, adding: name)
        return progress(counted(value, shape))
    }

    func counted(_ value: ObjectProgress, _ shape: Program.Object) -> ObjectProgress {
        guard shape.counts else { return value }
        var value = value
        // All counts above the bounds are equivalent.
        value.count = min(value.count + 1, Int32(clamping: max(shape.maximum ?? 0, shape.minimum)))
        return value
    }

    /// The language of the unlisted names of a region, after the opening quote and without the names in set `written`.
    func otherNames(_ object: Int32, _ region: Int, _ written: Int32) -> RegexID {
        var names = program.objects[Int(object)].regions[region].names
        // The objects of alternatives often have the same names.
        let key = UInt64(UInt32(bitPattern: names)) << 32 | UInt64(UInt32(bitPattern: written))
        if let known = exclusions[key] { return known }
        let style: EscapeStyle = regexes.isOpenByForm(names) ? .any : .usual
        let words = writtenSets[Int(written)]
        if !words.isEmpty { names = regexes.intersection([names, regexes.complement(regexes.words(words))]) }
        let result = regexes.surelyHasWords(names) ? regexes.stringBody(names, style) : RegexArena.empty
        if !regexes.isFull { exclusions[key] = result }
        return result
    }

    /// Whether names for the remaining witnesses are left after a name of a region has been written.
    func leavesNames(_ object: Int32, _ region: Int, for wants: UInt64, _ written: Int32) -> Bool {
        let shape = program.objects[Int(object)]
        func words(_ region: Int) -> [[UInt8]]? {
            var names = shape.regions[region].names
            let taken = writtenSets[Int(written)]
            if !taken.isEmpty { names = regexes.intersection([names, regexes.complement(regexes.words(taken))]) }
            // Languages that are too large to enumerate have more than one string.
            return (try? regexes.finiteWords(names, limit: 8)) ?? nil
        }
        for bit in 0..<shape.wantCount where wants >> UInt64(bit) & 1 == 1 {
            let givers = shape.regions.indices.filter { shape.regions[$0].wants >> UInt64(bit) & 1 == 1 }
            let isLeft = givers.contains { giver in
                guard let left = words(giver) else { return true }
                guard left.count < 2 else { return true }
                // The only remaining name must not be the one that is written now.
                guard let own = words(region) else { return !left.isEmpty }
                return left.contains { name in own != [name] }
            }
            if !isLeft { return false }
        }
        return true
    }

    func objectEdges(_ local: LocalState) -> [Edge] {
        let choices = choices(local.a, local.b)
        let separators = separatorEdges(local, canClose: choices.canClose, hasMore: choices.hasMembers, end: "}")
        let isBeforeName = local.phase == LocalState.Phase.next || local.phase == LocalState.Phase.open && !isPretty
        return isBeforeName ? separators + nameEdges(local, choices) : separators
    }

    func nameEdges(_ local: LocalState, _ choices: ObjectChoices) -> [Edge] {
        var actions: [Action] = []
        if (choices.ranks.last ?? 0) > 0 {
            actions.append(.go(state(LocalState(kind: .key, depth: local.depth, a: local.a, b: local.b))))
        }
        for (index, isAllowed) in choices.regions.enumerated() where isAllowed {
            let language = otherNames(local.a, index, objectProgress[Int(local.b)].written)
            if language == RegexArena.empty { continue }
            let next = LocalState(kind: .otherKey, phase: UInt8(index), depth: local.depth, a: local.a, b: local.b, c: language)
            actions.append(.go(state(next)))
        }
        return actions.isEmpty ? [] : [Edge(bytes: ByteSet(UInt8(ascii: "\"")), actions: actions)]
    }

    func keyEdges(_ local: LocalState) -> [Edge] {
        let object = program.objects[Int(local.a)]
        let choices = choices(local.a, local.b)
        regexes.spend(parts: 4 * object.keys.nodes[Int(local.c)].children.count)
        return object.keys.nodes[Int(local.c)].children.compactMap { byte, child in
            let node = object.keys.nodes[Int(child)]
            guard choices.ranks[Int(node.last)] > choices.ranks[Int(node.first)] else { return nil }
            if node.name >= 0 {
                let name = Int(node.name)
                let next = progress(local.b, of: local.a, writing: name)
                let colon = LocalState(kind: .colon, depth: local.depth, a: local.a, b: next, c: object.names[name].type)
                return Edge(bytes: ByteSet(byte), actions: [.go(state(colon))])
            }
            var next = local
            next.c = child
            return Edge(bytes: ByteSet(byte), actions: [.go(state(next))])
        }
    }

    func afterOtherKey(_ local: LocalState, _ text: Int32) -> StateID {
        // With its closing quote it is valid JSON, because the automaton accepts nothing else.
        let name = JSONText.decoded(itemTexts.bytes(text).dropLast()) ?? []
        let next = progress(local.b, of: local.a, writingOther: name, in: Int(local.phase))
        let type = program.objects[Int(local.a)].regions[Int(local.phase)].type
        return state(LocalState(kind: .colon, depth: local.depth, a: local.a, b: next, c: type))
    }

    func colonEdges(_ local: LocalState) -> [Edge] {
        let hasSpace = isPretty || isSpaced
        if hasSpace, local.phase == 0 {
            var next = local
            next.phase = 1
            return [Edge(bytes: ByteSet(UInt8(ascii: ":")), actions: [.go(state(next))])]
        }
        let value = state(LocalState(kind: .value, depth: local.depth, a: local.c))
        let after = state(LocalState(kind: .object, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: local.b))
        return [Edge(bytes: ByteSet(UInt8(ascii: hasSpace ? " " : ":")), actions: [.push(child: value, next: after)])]
    }
}
