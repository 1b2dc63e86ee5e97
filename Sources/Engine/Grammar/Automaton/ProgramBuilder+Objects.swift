/// Objects: the listed names in their order, and the other names, grouped by the constraints on their values.
extension ProgramBuilder {
    private static let maximumNames = 5_000

    /// All names that a shape mentions.
    private func listed(_ shape: ObjectShape) -> Set<NameID> {
        var names = shape.required.union(shape.forbidden).union(shape.values.keys)
        for source in shape.sources { for property in arena.objects[Int(source)].properties { names.insert(property.name) } }
        return names
    }

    /// Decides for each witness whether a listed name satisfies it; the remaining witnesses must be satisfied by
    /// unlisted names.
    func expand(
        _ shape: ObjectShape, _ constraint: ConstraintID
    ) throws(SchemaError) -> [(ObjectShape, [ObjectShape.Witness])] {
        var results: [(ObjectShape, [ObjectShape.Witness])] = [(shape, [])]
        results[0].0.witnesses = []
        guard !shape.witnesses.isEmpty else { return results }
        let names = listed(shape).sorted()
        for witness in shape.witnesses {
            var next: [(ObjectShape, [ObjectShape.Witness])] = []
            for (shape, wants) in results {
                next.append((shape, wants + [witness]))
                for name in names where !shape.forbidden.contains(name) && regexes.matches(witness.names, arena.names[Int(name)])
                {
                    var given = shape
                    given.required.insert(name)
                    given.values[name] = arena.all([witness.value, given.values[name] ?? ConstraintArena.anything])
                    if try normalizer.type(try normalizer.value(of: name, in: given)).isNothing { continue }
                    if !given.isContradictory { next.append((given, wants)) }
                }
            }
            results = next
            if results.count > 400 {
                throw SchemaError(.tooComplex, at: arena.pointers[Int(constraint)], "its negations combine in too many ways")
            }
        }
        return results
    }

    mutating func object(
        _ shape: ObjectShape, _ witnesses: [ObjectShape.Witness], _ constraint: ConstraintID
    ) throws(SchemaError) -> Int32? {
        var key = ObjectKey(shape: shape, isCompared: isCompared, isOrderedByName: isOrderedByName)
        key.shape.witnesses = witnesses
        if let known = objectIDs[key] { return known }
        let id = try makeObject(shape, witnesses, constraint)
        objectIDs[key] = .some(id)
        return id
    }

    private mutating func makeObject(
        _ shape: ObjectShape, _ witnesses: [ObjectShape.Witness], _ constraint: ConstraintID
    ) throws(SchemaError) -> Int32? {
        var object = Program.Object()
        object.minimum = shape.minimum
        object.maximum = shape.maximum
        if shape.minimum > Program.maximumCount {
            throw SchemaError(
                .tooComplex, at: arena.pointers[Int(constraint)], "more than \(Program.maximumCount) members are required")
        }
        var allowedNames = regexes.anyText
        for names in shape.names { allowedNames = regexes.intersection([allowedNames, try normalizer.type(names).strings]) }
        // Listed names: those of the sources in their order, then the others.
        var index: [NameID: Int] = [:]
        var chains: [[Int]] = []
        var ids: [NameID] = []
        func add(_ name: NameID) -> Int {
            if let known = index[name] { return known }
            index[name] = ids.count
            ids.append(name)
            return ids.count - 1
        }
        for source in shape.sources.map({ arena.objects[Int($0)] }) where source.isOrdered {
            chains.append(source.properties.map { add($0.name) })
        }
        let ordered = ids.count
        for name in listed(shape).sorted() { _ = add(name) }
        // Unlisted names, grouped by the constraints on their values.
        let listedNames = regexes.words(ids.map { arena.names[Int($0)] })
        let others = regexes.intersection([allowedNames, regexes.complement(listedNames)])
        var finite: [(NameID, ConstraintID)] = []
        if regexes.isOutOfFuel { throw tooManyStates(constraint) }
        if try isAlive(others, constraint) {
            for region in try regions(others, shape, witnesses, constraint) {
                do {
                    if witnesses.isEmpty, let words = try regexes.finiteWords(region.names, limit: 64) {
                        for word in words { finite.append((arena.name(word), region.value)) }
                        continue
                    }
                } catch { throw tooManyStates(constraint) }
                let length: Int
                do { length = try regexes.shortestLength(region.names) } catch { throw tooManyStates(constraint) }
                object.regions.append(
                    Program.Region(names: region.names, type: type(region.value), shortestName: length, wants: region.wants))
            }
        }
        // Names of regions are not counted while a document is generated, so there must be enough of them.
        if !witnesses.isEmpty, shape.minimum > ids.count {
            do {
                let words = try regexes.finiteWords(others, limit: shape.minimum)
                if let words, ids.count + words.count < shape.minimum { return nil }
            } catch { throw tooManyStates(constraint) }
        }
        for (name, _) in finite { _ = add(name) }
        if ids.count > Self.maximumNames {
            throw SchemaError(
                .tooComplex, at: arena.pointers[Int(constraint)], "an object has more than \(Self.maximumNames) names")
        }
        let count = ids.count
        object.required = BitSet(count: count)
        object.unordered = BitSet(count: count)
        if isCompared {
            if isOrderedByName { chains = [(0..<count).sorted { ids[$0] < ids[$1] }] }
            chains.append(Array(0..<count))
        } else if membersInAnyOrder {
            chains = []
            for position in 0..<count { object.unordered.insert(position) }
        } else {
            for position in ordered..<count { object.unordered.insert(position) }
        }
        let finiteValues = Dictionary(finite, uniquingKeysWith: { first, _ in first })
        for (position, name) in ids.enumerated() {
            let text = arena.names[Int(name)]
            let value: ConstraintID
            if let known = finiteValues[name] { value = known } else { value = try normalizer.value(of: name, in: shape) }
            let isRequired = shape.required.contains(name)
            let isAllowed =
                !shape.forbidden.contains(name) && value != ConstraintArena.nothing
                && (allowedNames == regexes.anyText || regexes.matches(allowedNames, text))
            if isRequired, !isAllowed { return nil }
            if isRequired { object.required.insert(position) }
            object.names.append(
                Program.Name(
                    text: text, type: isAllowed ? type(value) : type(ConstraintArena.nothing), isRequired: isRequired,
                    isAllowed: isAllowed))
        }
        object.before = Self.predecessors(chains, count)
        object.wantCount = witnesses.count
        if witnesses.count > 60 { throw SchemaError(.tooComplex, at: arena.pointers[Int(constraint)], "too many negations") }
        program.objects.append(object)
        return Int32(program.objects.count - 1)
    }

    /// Divides the unlisted names by the patterns that they match.
    private mutating func regions(
        _ others: RegexID, _ shape: ObjectShape, _ witnesses: [ObjectShape.Witness], _ constraint: ConstraintID
    ) throws(SchemaError) -> [(names: RegexID, value: ConstraintID, wants: UInt64)] {
        var parts: [(names: RegexID, values: [ConstraintID], wants: UInt64)] = [(others, [], 0)]
        for source in shape.sources.map({ arena.objects[Int($0)] }) {
            var split: [(names: RegexID, values: [ConstraintID], wants: UInt64)] = []
            for part in parts {
                var unmatched = [(names: part.names, values: part.values, isMatched: false)]
                for pattern in source.patterns {
                    var next: [(names: RegexID, values: [ConstraintID], isMatched: Bool)] = []
                    for piece in unmatched {
                        let inside = regexes.intersection([piece.names, pattern.names])
                        let outside = regexes.intersection([piece.names, regexes.complement(pattern.names)])
                        if try isAlive(inside, constraint) { next.append((inside, piece.values + [pattern.value], true)) }
                        if try isAlive(outside, constraint) { next.append((outside, piece.values, piece.isMatched)) }
                    }
                    unmatched = next
                    if unmatched.count > 100 {
                        throw SchemaError(
                            .tooComplex, at: arena.pointers[Int(constraint)], "patterns of names overlap in too many ways")
                    }
                }
                for piece in unmatched {
                    split.append((piece.names, piece.values + (piece.isMatched ? [] : [source.additional]), 0))
                }
            }
            parts = split
        }
        // The names that a region shares with a witness can satisfy it.
        for (index, witness) in witnesses.enumerated() {
            for part in parts {
                let common = regexes.intersection([part.names, witness.names])
                if try isAlive(common, constraint) {
                    parts.append((common, part.values + [witness.value], part.wants | 1 << UInt64(index)))
                }
            }
            if parts.count > 200 {
                throw SchemaError(.tooComplex, at: arena.pointers[Int(constraint)], "its negations combine in too many ways")
            }
        }
        var merged: [(names: RegexID, value: ConstraintID, wants: UInt64)] = []
        for part in parts {
            let value = arena.all(part.values)
            if value == ConstraintArena.nothing { continue }
            if let known = merged.firstIndex(where: { $0.value == value && $0.wants == part.wants }) {
                merged[known].names = regexes.alternation([merged[known].names, part.names])
            } else {
                merged.append((part.names, value, part.wants))
            }
        }
        return merged
    }

    /// For each name, the names before it in any of the given orders; if orders contradict each other, the first takes
    /// precedence, so that all names together always have an order.
    private static func predecessors(_ chains: [[Int]], _ count: Int) -> [BitSet] {
        var before = [BitSet](repeating: BitSet(count: count), count: count)
        // All names that some sequence of predecessors leads to.
        var ancestors = before
        for (number, chain) in chains.enumerated() {
            var seen = BitSet(count: count)
            for (place, position) in chain.enumerated() {
                if number == 0 {
                    (before[position], ancestors[position]) = (seen, seen)
                    seen.insert(position)
                    continue
                }
                for other in chain[..<place].reversed() where !ancestors[other].contains(position) {
                    before[position].insert(other)
                    if ancestors[position].contains(other) { continue }
                    var more = ancestors[other]
                    more.insert(other)
                    for name in 0..<count where name == position || ancestors[name].contains(position) {
                        ancestors[name].formUnion(more)
                    }
                }
            }
        }
        return before
    }
}
