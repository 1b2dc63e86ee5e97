internal import JSON

/// Arrays: the types of their items, and what is needed to count and to compare items.
extension ProgramBuilder {
    mutating func array(_ shape: ArrayShape, _ constraint: ConstraintID) throws(SchemaError) -> Int32? {
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
}
