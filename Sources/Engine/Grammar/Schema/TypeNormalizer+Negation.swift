/// Negations, pushed inward by one level.
extension TypeNormalizer {
    func negation(_ first: ConstraintID) throws(SchemaError) -> ValueType {
        // A loop, because a chain of references may be long.
        var id = first
        var visited: Set<ConstraintID> = []
        while case .reference(let slot) = arena[id] {
            guard visited.insert(id).inserted else { throw error(.unsatisfiable, id, "it contains a circular reference") }
            id = arena.targets[Int(slot)]
        }
        if let type = negations[id] { return type }
        guard inProgress.insert(-1 - id).inserted else { throw error(.unsatisfiable, id, "it contains a circular reference") }
        defer { inProgress.remove(-1 - id) }
        let type: ValueType
        switch arena[id] {
        case .anything: type = ValueType()
        case .nothing: type = ValueType.anything(arena)
        case .all(let parts): type = try union(parts.map { arena.not($0) }, id)
        case .any(let parts) where !parts.allSatisfy({ if case .value = arena[$0] { true } else { false } }):
            type = try self.type(arena.all(parts.map { arena.not($0) }))
        case .not(let part): type = try self.type(part)
        case .one(let parts):
            do { type = try complement(try self.type(id), id) } catch let error where error.kind != .unsatisfiable {
                // Values that satisfy none of the parts; those that satisfy several are left out.
                var none = try self.type(arena.all(parts.map { arena.not($0) }))
                none.isIncomplete = true
                incomplete = incomplete ?? error
                type = none
            }
        default: type = try complement(try self.type(id), id)
        }
        negations[id] = type
        return type
    }

    private func complement(_ type: ValueType, _ id: ConstraintID) throws(SchemaError) -> ValueType {
        if type.isIncomplete { throw incomplete ?? error(.unsupported, id, "'uniqueItems' under two negations") }
        var result = ValueType.anything(arena)
        result.hasNull = !type.hasNull
        result.hasTrue = !type.hasTrue
        result.hasFalse = !type.hasFalse
        for spec in type.numbers {
            var rest: [NumberSpec] = []
            for part in result.numbers {
                for other in spec.complement { if let both = part.intersection(other) { rest.append(both) } }
            }
            result.numbers = rest
            if rest.count > Self.maximumUnion { throw error(.tooComplex, id, "too many numbers are excluded") }
        }
        let language = regexes.complement(type.strings)
        result.strings = try isAlive(language, id) ? language : RegexArena.empty
        for shape in type.objects {
            result.objects = try products(result.objects, try complement(shape, id), id) { $0.intersection($1, arena) }
            try check(result, id)
        }
        for shape in type.arrays {
            // Arrays with equal items are not described: only those that violate another condition.
            if shape.isUnique {
                result.isIncomplete = true
                note("'uniqueItems' under a negation", id, "arrays with equal items are not allowed")
                incomplete = incomplete ?? error(.unsupported, id, "'uniqueItems' under a negation")
            }
            result.arrays = try products(result.arrays, try complement(shape, id), id) { $0.intersection($1, arena) }
            try check(result, id)
        }
        return result
    }

    /// The objects that violate at least one condition of the shape.
    private func complement(_ shape: ObjectShape, _ id: ConstraintID) throws(SchemaError) -> [ObjectShape] {
        var parts: [ObjectShape] = []
        func add(_ part: ObjectShape) { if !part.isContradictory { parts.append(part) } }
        // A required member is absent or has a wrong value: one shape instead of two, because the products of shapes
        // would be too many.
        var required: Set<NameID> = []
        for name in shape.required {
            if let value = try simpleValue(name, shape) {
                required.insert(name)
                add(ObjectShape(values: [name: arena.not(value)]))
            } else {
                add(ObjectShape(forbidden: [name]))
            }
        }
        func wrong(_ name: NameID, _ value: ConstraintID) {
            guard value != ConstraintArena.anything, !required.contains(name) else { return }
            add(ObjectShape(values: [name: arena.not(value)], required: [name]))
        }
        for index in shape.sources {
            let source = arena.objects[Int(index)]
            for property in source.properties { wrong(property.name, property.value) }
            for pattern in source.patterns where pattern.value != ConstraintArena.anything {
                add(ObjectShape(minimum: 1, witnesses: [.init(names: pattern.names, value: arena.not(pattern.value))]))
            }
            if source.additional != ConstraintArena.anything {
                let other = additionalNames(source)
                if try isAlive(other, id) {
                    add(ObjectShape(minimum: 1, witnesses: [.init(names: other, value: arena.not(source.additional))]))
                }
            }
        }
        for (name, value) in shape.values { wrong(name, value) }
        for name in shape.forbidden { add(ObjectShape(required: [name])) }
        for constraint in shape.names {
            let names = try self.type(constraint)
            if names.isIncomplete { throw incomplete ?? error(.unsupported, id, "'propertyNames' under a negation") }
            let others = regexes.complement(names.strings)
            if try isAlive(others, id) {
                add(ObjectShape(minimum: 1, witnesses: [.init(names: others, value: ConstraintArena.anything)]))
            }
        }
        if shape.minimum > 0 { add(ObjectShape(maximum: shape.minimum - 1)) }
        if let maximum = shape.maximum { add(ObjectShape(minimum: maximum + 1)) }
        for witness in shape.witnesses {
            let none = ObjectConstraint(patterns: [.init(names: witness.names, value: arena.not(witness.value))])
            guard case .object(let index) = arena[arena.object(none)] else { continue }
            add(ObjectShape(sources: [index]))
        }
        return parts
    }

    private func complement(_ shape: ArrayShape, _ id: ConstraintID) throws(SchemaError) -> [ArrayShape] {
        var parts: [ArrayShape] = []
        for (index, item) in shape.prefix.enumerated() where item != ConstraintArena.anything {
            var prefix = [ConstraintID](repeating: ConstraintArena.anything, count: index)
            prefix.append(arena.not(item))
            parts.append(ArrayShape(prefix: prefix, minimum: index + 1))
        }
        if shape.rest != ConstraintArena.anything {
            let start = shape.prefix.count
            if shape.rest == ConstraintArena.nothing {
                parts.append(ArrayShape(minimum: start + 1))
            } else {
                parts.append(ArrayShape(minimum: start + 1, contains: [Contains(value: arena.not(shape.rest), start: start)]))
            }
        }
        if shape.minimum > 0 { parts.append(ArrayShape(maximum: shape.minimum - 1)) }
        if let maximum = shape.maximum { parts.append(ArrayShape(minimum: maximum + 1)) }
        for part in shape.contains {
            if part.minimum > 0 {
                parts.append(
                    ArrayShape(contains: [Contains(value: part.value, minimum: 0, maximum: part.minimum - 1, start: part.start)]))
            }
            if let maximum = part.maximum {
                parts.append(
                    ArrayShape(contains: [Contains(value: part.value, minimum: maximum + 1, maximum: nil, start: part.start)]))
            }
        }
        return parts
    }
}
