internal import JSON

/// Compiles constraints to a ``Program``.
struct ProgramBuilder {
    private let arena: ConstraintArena
    private let normalizer: TypeNormalizer
    private let allowsZeroFraction: Bool
    private let membersInAnyOrder: Bool
    private var program = Program()
    private var typeIDs: [TypeKey: TypeID] = [:]
    private var queue: [TypeKey] = []
    private var objectIDs: [ObjectKey: Int32?] = [:]
    private var scalars: [ScalarKey: RegexID] = [:]
    /// The error of the first type that refers only to itself.
    private var circularReference: SchemaError?
    /// Whether the type that is being compiled is part of an item that is compared with others.
    ///
    /// Objects and arrays that must differ are compared while they are generated, so their values have a single spelling
    /// and their members a single order: an item that equals an earlier one in another spelling would be noticed only at
    /// its end, where nothing else may follow.
    private var isCompared = false
    /// Whether members are ordered by name: in items that are compared and have several shapes, whose declared orders
    /// may differ.
    private var isOrderedByName = false

    private struct TypeKey: Hashable {
        var constraint: ConstraintID
        var isCompared: Bool
        var isOrderedByName: Bool
    }

    private struct ObjectKey: Hashable {
        var shape: ObjectShape
        var isCompared: Bool
        var isOrderedByName: Bool
    }

    private struct ScalarKey: Hashable {
        var isCompared: Bool
        var flags: UInt8
        var numbers: [NumberSpec]
        var strings: RegexID
    }

    private static let maximumTypes = 30_000
    private static let maximumNames = 5_000

    static func build(
        _ root: ConstraintID, _ arena: ConstraintArena, _ options: GrammarOptions
    ) throws(SchemaError) -> (program: Program, notes: [String]) {
        var builder = ProgramBuilder(arena: arena, options)
        builder.program.root = builder.type(root)
        var index = 0
        while index < builder.queue.count {
            if index > maximumTypes {
                throw SchemaError(.tooComplex, at: "", "it has more than \(maximumTypes) types of values")
            }
            try builder.compile(builder.queue[index], as: TypeID(index))
            index += 1
        }
        try builder.measure()
        if builder.program.types[Int(builder.program.root)].shortest >= Program.infiniteLength {
            if let error = builder.circularReference ?? builder.normalizer.incomplete { throw error }
            throw SchemaError(.unsatisfiable, at: try builder.unsatisfiablePointer(root), "no document can satisfy it")
        }
        if builder.program.types[Int(builder.program.root)].shortest > Program.maximumDocument {
            throw SchemaError(.tooComplex, at: "", "even the shortest document is longer than \(Program.maximumDocument) bytes")
        }
        builder.prune()
        // If the arena has reached a limit, its results since then are meaningless.
        if arena.regexes.isFull { throw builder.tooManyStates(root) }
        return (builder.program, builder.normalizer.notes)
    }

    private init(arena: ConstraintArena, _ options: GrammarOptions) {
        self.arena = arena
        allowsZeroFraction = options.allowsZeroFraction
        membersInAnyOrder = options.membersInAnyOrder
        normalizer = TypeNormalizer(arena)
    }

    private var regexes: RegexArena { arena.regexes }

    private mutating func type(_ constraint: ConstraintID) -> TypeID {
        let key = TypeKey(constraint: constraint, isCompared: isCompared, isOrderedByName: isOrderedByName)
        if let id = typeIDs[key] { return id }
        let id = TypeID(program.types.count)
        typeIDs[key] = id
        program.types.append(Program.ValueEntry())
        queue.append(key)
        return id
    }

    private mutating func compile(_ key: TypeKey, as id: TypeID) throws(SchemaError) {
        let constraint = key.constraint
        (isCompared, isOrderedByName) = (key.isCompared, key.isOrderedByName)
        let type: ValueType
        do {
            type = try normalizer.type(constraint)
        } catch let error where error.kind == .unsatisfiable && id != program.root {
            // A reference that leads only to itself. The document is possible if the value is optional.
            circularReference = circularReference ?? error
            return
        }
        var entry = Program.ValueEntry()
        if isCompared, type.objects.count > 1 { isOrderedByName = true }
        entry.scalar = try scalar(type, constraint)
        for shape in type.objects {
            for (expanded, wants) in try expand(shape, constraint) {
                if let object = try object(expanded, wants, constraint) { entry.objects.append(object) }
            }
        }
        for shape in type.arrays { if let array = try array(shape, constraint) { entry.arrays.append(array) } }
        program.types[Int(id)] = entry
        if regexes.isFull { throw tooManyStates(constraint) }
    }

    private func tooManyStates(_ constraint: ConstraintID) -> SchemaError {
        SchemaError(.tooComplex, at: arena.pointers[Int(constraint)], "its patterns need too many states")
    }

    // MARK: - Scalars

    private mutating func scalar(_ type: ValueType, _ constraint: ConstraintID) throws(SchemaError) -> RegexID {
        let flags: UInt8 = (type.hasNull ? 1 : 0) | (type.hasTrue ? 2 : 0) | (type.hasFalse ? 4 : 0)
        let key = ScalarKey(isCompared: isCompared, flags: flags, numbers: type.numbers, strings: type.strings)
        if let known = scalars[key] { return known }
        var parts: [RegexID] = []
        if type.hasNull { parts.append(regexes.literal(Array("null".utf8))) }
        if type.hasTrue { parts.append(regexes.literal(Array("true".utf8))) }
        if type.hasFalse { parts.append(regexes.literal(Array("false".utf8))) }
        parts += try numbers(type.numbers, constraint)
        if type.strings != RegexArena.empty { parts.append(regexes.string(type.strings, style(type.strings))) }
        let result = regexes.alternation(parts)
        scalars[key] = result
        return result
    }

    private var spelling: NumberSpelling { isCompared ? .single : allowsZeroFraction ? .any : .integersWithoutFraction }

    private func style(_ strings: RegexID) -> EscapeStyle {
        if regexes.isOpenByForm(strings) { return .any }
        if isCompared { return .single }
        return regexes.isFiniteByForm(strings) ? .needed : .usual
    }

    private func numbers(_ specs: [NumberSpec], _ constraint: ConstraintID) throws(SchemaError) -> [RegexID] {
        var parts: [RegexID] = []
        var words: [[UInt8]] = []
        var decimals: [[UInt8]] = []
        for spec in specs {
            if specs.count > 8, let lower = spec.lower, let upper = spec.upper, lower == upper, spec.multiples.isEmpty,
                spec.notMultiples.isEmpty
            {
                let whole = (lower.value.isNegative ? [UInt8(ascii: "-")] : []) + lower.value.wholeDigits.map { $0 + 0x30 }
                if lower.value.isInteger {
                    words.append(whole)
                } else {
                    decimals.append(whole + [UInt8(ascii: ".")] + lower.value.fractionDigits.map { $0 + 0x30 })
                }
                continue
            }
            do {
                let language = try regexes.number(spec, spelling)
                if try regexes.isAlive(language) { parts.append(language) }
            } catch let error as NumberMachine.UnsupportedNumber {
                throw SchemaError(
                    .unsupported, at: arena.pointers[Int(constraint)], "\(error.value.text) is too long for 'multipleOf'")
            } catch {
                throw tooManyStates(constraint)
            }
        }
        if !decimals.isEmpty {
            let zeros = isCompared ? RegexArena.epsilon : regexes.repetition(regexes.bytes(ByteSet(UInt8(ascii: "0"))), 0, nil)
            parts.append(regexes.concat(regexes.words(decimals), zeros))
        }
        if !words.isEmpty {
            let zero = regexes.literal(Array(".0".utf8))
            let tail = allowsZeroFraction && !isCompared ? regexes.alternation([RegexArena.epsilon, zero]) : RegexArena.epsilon
            parts.append(regexes.concat(regexes.words(words), tail))
        }
        return parts
    }

    private func isAlive(_ language: RegexID, _ constraint: ConstraintID) throws(SchemaError) -> Bool {
        do { return try regexes.isAlive(language) } catch { throw tooManyStates(constraint) }
    }

    // MARK: - Objects

    /// All names that a shape mentions.
    private func listed(_ shape: ObjectShape) -> Set<NameID> {
        var names = shape.required.union(shape.forbidden).union(shape.values.keys)
        for source in shape.sources { for property in arena.objects[Int(source)].properties { names.insert(property.name) } }
        return names
    }

    /// Decides for each witness whether a listed name satisfies it; the remaining witnesses must be satisfied by
    /// unlisted names.
    private func expand(
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

    private mutating func object(
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

    // MARK: - Arrays

    private mutating func array(_ shape: ArrayShape, _ constraint: ConstraintID) throws(SchemaError) -> Int32? {
        var array = Program.Array()
        array.minimum = shape.minimum
        array.maximum = shape.maximum
        array.isUnique = shape.isUnique && shape.maximum.map { $0 > 1 } ?? true
        array.contains = shape.contains.filter { $0.minimum > 0 || $0.maximum != nil }
        if array.contains.count > 4 {
            throw SchemaError(.tooComplex, at: arena.pointers[Int(constraint)], "more than four 'contains' in one array")
        }
        var length = shape.prefix.count
        for part in array.contains { length = max(length, part.start) }
        if length > 10_000 { throw SchemaError(.tooComplex, at: arena.pointers[Int(constraint)], "too many items are listed") }
        let outer = isCompared
        if array.isUnique, try hasStructures(shape) { isCompared = true }
        for index in 0..<length { array.prefix.append(itemTypes(shape.item(index), index, array.contains)) }
        array.rest = itemTypes(shape.rest, length, array.contains)
        isCompared = outer
        for part in array.contains where part.minimum > Program.maximumContains {
            throw SchemaError(
                .tooComplex, at: arena.pointers[Int(constraint)], "more than \(Program.maximumContains) items are counted")
        }
        if array.isUnique {
            for types in array.prefix + [array.rest] {
                for type in types { if let type { try checkUnique(queue[Int(type)].constraint, shape.minimum) } }
            }
            if shape.minimum > 64 {
                throw SchemaError(.tooComplex, at: arena.pointers[Int(constraint)], "more than 64 unique items are required")
            }
            if array.contains.contains(where: { $0.minimum > 1 }) || shape.minimum > 1 && !shape.prefix.isEmpty {
                throw SchemaError(
                    .unsupported, at: arena.pointers[Int(constraint)],
                    "'uniqueItems' together with 'minContains' of two or more, or with required 'prefixItems'")
            }
            if try !hasEnough(shape, constraint) { return nil }
        }
        program.arrays.append(array)
        return Int32(program.arrays.count - 1)
    }

    /// Whether items may be objects or arrays.
    private func hasStructures(_ shape: ArrayShape) throws(SchemaError) -> Bool {
        for item in shape.prefix + [shape.rest] where item != ConstraintArena.nothing {
            let type = try normalizer.type(item)
            if !type.objects.isEmpty || !type.arrays.isEmpty { return true }
        }
        return false
    }

    /// The types of an item, indexed by the bit mask of the conditions that it counts for.
    private mutating func itemTypes(_ item: ConstraintID, _ index: Int, _ contains: [Contains]) -> [TypeID?] {
        (0..<(1 << contains.count)).map { mask in
            var parts = [item]
            for (number, part) in contains.enumerated() {
                let counts = mask >> number & 1 == 1
                if counts, index < part.start { return nil }
                if counts {
                    parts.append(part.value)
                } else if part.maximum != nil, index >= part.start {
                    parts.append(arena.not(part.value))
                }
            }
            let all = arena.all(parts)
            return all == ConstraintArena.nothing ? nil : type(all)
        }
    }

    /// Whether enough different items exist for the minimum length.
    private func hasEnough(_ shape: ArrayShape, _ constraint: ConstraintID) throws(SchemaError) -> Bool {
        guard shape.minimum > 1, shape.prefix.isEmpty else { return true }
        let type = try normalizer.type(shape.rest)
        var numbers = 0
        for spec in type.numbers {
            guard let lower = spec.lower, let upper = spec.upper, spec.isInteger == true || lower == upper else { return true }
            guard let first = lower.value.integer ?? (lower == upper ? 0 : nil),
                let last = upper.value.integer ?? (lower == upper ? 0 : nil)
            else { return true }
            let (span, overflow) = last.subtractingReportingOverflow(first)
            if overflow || span > 1_000 { return true }
            numbers += span + 1 - (lower.isExclusive ? 1 : 0) - (upper.isExclusive && last != first ? 1 : 0)
        }
        do {
            guard let words = try regexes.finiteWords(type.strings, limit: shape.minimum) else { return true }
            let others = (type.hasNull ? 1 : 0) + (type.hasTrue ? 1 : 0) + (type.hasFalse ? 1 : 0)
            return words.count + others + numbers >= shape.minimum
        } catch { throw tooManyStates(constraint) }
    }

    /// The number of different objects and arrays is not computed, so two or more of them must not be required.
    private func checkUnique(_ constraint: ConstraintID, _ minimum: Int) throws(SchemaError) {
        let type = try normalizer.type(constraint)
        guard minimum < 2 || type.objects.isEmpty && type.arrays.isEmpty else {
            throw SchemaError(
                .unsupported, at: arena.pointers[Int(constraint)],
                "'uniqueItems' for arrays that require two or more items that can be objects or arrays")
        }
    }

    // MARK: - Lengths

    /// Finds the lengths of the shortest documents by iteration to a fixed point. A type that stays `infiniteLength` cannot be
    /// satisfied.
    private mutating func measure() throws(SchemaError) {
        var scalarLengths = [Int](repeating: Program.infiniteLength, count: program.types.count)
        for (index, type) in program.types.enumerated() where type.scalar != RegexArena.empty {
            let constraint = queue[index].constraint
            do { scalarLengths[index] = try regexes.shortestLength(type.scalar) } catch { throw tooManyStates(constraint) }
            let content = regexes.stringContent(afterQuote: type.scalar)?.content ?? RegexArena.empty
            let isPlain = regexes.lengthWindow(content) != nil || regexes.isFiniteByForm(content)
            if scalarLengths[index] > (isPlain ? Program.maximumText : Program.maximumPattern) + 2 {
                throw SchemaError(.tooComplex, at: arena.pointers[Int(constraint)], "even the shortest string is too long")
            }
        }
        var hasChanged = true
        while hasChanged {
            hasChanged = false
            for index in program.types.indices.reversed() {
                let entry = program.types[index]
                var shortest = scalarLengths[index]
                for object in entry.objects {
                    program.measureObject(Int(object))
                    shortest = min(shortest, program.objects[Int(object)].shortest)
                }
                for array in entry.arrays {
                    program.measureArray(Int(array))
                    shortest = min(shortest, program.arrays[Int(array)].shortest)
                }
                if shortest < entry.shortest {
                    program.types[index].shortest = shortest
                    hasChanged = true
                }
            }
        }
    }

    /// Removes everything that cannot be satisfied.
    private mutating func prune() {
        for index in program.types.indices {
            program.types[index].objects.removeAll { program.objects[Int($0)].shortest >= Program.infiniteLength }
            program.types[index].arrays.removeAll { program.arrays[Int($0)].shortest >= Program.infiniteLength }
        }
        for index in program.objects.indices { program.pruneObject(index) }
        for index in program.arrays.indices { program.pruneArray(index) }
    }

    /// The pointer to the innermost part that cannot be satisfied by itself.
    private mutating func unsatisfiablePointer(_ root: ConstraintID) throws(SchemaError) -> String {
        var current = root
        var seen: Set<ConstraintID> = []
        while seen.insert(current).inserted {
            guard case .reference(let slot) = arena[current] else { break }
            current = arena.targets[Int(slot)]
        }
        // A required member without valid values is more informative than the object around it.
        var id = typeIDs[TypeKey(constraint: root, isCompared: false, isOrderedByName: false)] ?? 0
        var visited: Set<TypeID> = [id]
        while let object = program.types[Int(id)].objects.first,
            let name = program.objects[Int(object)].names.first(where: {
                $0.isRequired && program.types[Int($0.type)].shortest >= Program.infiniteLength
            }), visited.insert(name.type).inserted
        {
            id = name.type
            current = queue[Int(id)].constraint
        }
        return arena.pointers[Int(current)]
    }
}
