internal import JSON

/// Compiles constraints to a ``Program``.
struct ProgramBuilder {
    let arena: ConstraintArena
    let normalizer: TypeNormalizer
    private let allowsZeroFraction: Bool
    let membersInAnyOrder: Bool
    var program = Program()
    private var typeIDs: [TypeKey: TypeID] = [:]
    var queue: [TypeKey] = []
    var objectIDs: [ObjectKey: Int32?] = [:]
    private var scalars: [ScalarKey: RegexID] = [:]
    /// The error of the first type that refers only to itself.
    private var circularReference: SchemaError?
    /// Whether the type that is being compiled is part of an item that is compared with others.
    ///
    /// Objects and arrays that must differ are compared while they are generated, so their values have a single spelling
    /// and their members a single order: an item that equals an earlier one in another spelling would be noticed only at
    /// its end, where nothing else may follow.
    var isCompared = false
    /// Whether members are ordered by name: in items that are compared and have several shapes, whose declared orders
    /// may differ.
    var isOrderedByName = false

    struct TypeKey: Hashable {
        var constraint: ConstraintID
        var isCompared: Bool
        var isOrderedByName: Bool
    }

    struct ObjectKey: Hashable {
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

    var regexes: RegexArena { arena.regexes }

    mutating func type(_ constraint: ConstraintID) -> TypeID {
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

    func tooManyStates(_ constraint: ConstraintID) -> SchemaError {
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

    func isAlive(_ language: RegexID, _ constraint: ConstraintID) throws(SchemaError) -> Bool {
        do { return try regexes.isAlive(language) } catch { throw tooManyStates(constraint) }
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
