/// Builds the languages of the terms of a pattern, from the end of the pattern to its beginning.
struct PatternBuilder {
    private typealias Term = RegexParser.Term

    private let arena: RegexArena
    /// Classes of characters, one of which is the class of the character before a position: all characters, unless the
    /// pattern has lookbehinds.
    private let classes: [ScalarSet]

    private static let maximumClasses = 8

    init(_ term: RegexParser.Term, _ arena: RegexArena) throws(PatternError) {
        self.arena = arena
        var classes = [ScalarSet.all]
        for set in term.setsBehind {
            classes = classes.flatMap { [$0.intersection(set), $0.intersection(set.inverted)] }.filter { !$0.ranges.isEmpty }
            if classes.count > Self.maximumClasses {
                throw PatternError(reason: "the pattern has too many different lookbehinds", isUnsupported: true)
            }
        }
        self.classes = classes
    }

    /// The texts in which a term is found.
    func language(of term: RegexParser.Term) throws(PatternError) -> RegexID {
        let any = arena.anyText
        let rest = try build(term, same(any))
        if classes.count == 1 {
            let later = arena.concat(arena.anyCharacter, arena.concat(any, rest.after[0]))
            return arena.alternation([rest.atStart, later])
        }
        let later = zip(classes, rest.after).map { set, language in
            arena.concat(any, arena.concat(arena.character(of: set), language))
        }
        return arena.alternation([rest.atStart] + later)
    }

    /// The language of the rest of the text from a position on: at the start of the text, and after a character of each
    /// class.
    private struct Rest: Equatable {
        var atStart: RegexID
        var after: [RegexID]

        /// Whether what follows does not depend on what is before.
        var isUniform: Bool { after.allSatisfy { $0 == atStart } }
    }

    private func same(_ language: RegexID) -> Rest {
        Rest(atStart: language, after: [RegexID](repeating: language, count: classes.count))
    }

    private func map(_ rest: Rest, _ transform: (RegexID) -> RegexID) -> Rest {
        Rest(atStart: transform(rest.atStart), after: rest.after.map(transform))
    }

    private func union(_ rests: [Rest]) -> Rest {
        Rest(
            atStart: arena.alternation(rests.map(\.atStart)),
            after: classes.indices.map { index in arena.alternation(rests.map { $0.after[index] }) })
    }

    /// The texts that are in both, for each position.
    private func intersection(_ a: Rest, _ b: Rest) -> Rest {
        Rest(
            atStart: arena.intersection([a.atStart, b.atStart]),
            after: classes.indices.map { arena.intersection([a.after[$0], b.after[$0]]) })
    }

    private func build(_ term: Term, _ rest: Rest) throws(PatternError) -> Rest {
        // Nested repetitions with assertions are built many times.
        arena.spend(8)
        if arena.isFull { throw PatternError(reason: "the pattern is too large", isUnsupported: true) }
        switch term {
        case .empty: return rest
        case .set(let set):
            return same(
                arena.alternation(
                    zip(classes, rest.after).map { part, next in
                        arena.concat(arena.character(of: classes.count == 1 ? set : set.intersection(part)), next)
                    }))
        case .sequence(let parts):
            var rest = rest
            for part in parts.reversed() { rest = try build(part, rest) }
            return rest
        case .choice(let parts):
            var choices: [Rest] = []
            for part in parts { choices.append(try build(part, rest)) }
            return union(choices)
        case .start:
            var result = same(RegexArena.empty)
            result.atStart = rest.atStart
            return result
        case .end: return map(rest) { arena.isNullable[Int($0)] ? RegexArena.epsilon : RegexArena.empty }
        case .ahead(let inner, let isNegative):
            let ahead = try build(inner, same(arena.anyText))
            return intersection(isNegative ? map(ahead, arena.complement) : ahead, rest)
        case .behind(let set, let isNegative):
            var result = rest
            if !isNegative { result.atStart = RegexArena.empty }
            // Each class is entirely inside the set or outside it.
            for (index, part) in classes.enumerated() where part.intersection(set).ranges.isEmpty != isNegative {
                result.after[index] = RegexArena.empty
            }
            return result
        case .repetition(let inner, let minimum, let maximum):
            if inner.hasAssertion { return try unrolled(inner, minimum, maximum, rest) }
            return try repetition(inner, minimum, maximum, rest)
        }
    }

    /// Repetitions of a term without assertions.
    private func repetition(_ inner: Term, _ minimum: Int, _ maximum: Int?, _ rest: Rest) throws(PatternError) -> Rest {
        let body = try PatternBuilder(.empty, arena).build(inner, Rest(atStart: RegexArena.epsilon, after: [RegexArena.epsilon]))
            .atStart
        if rest.isUniform { return same(arena.concat(arena.repetition(body, minimum, maximum), rest.atStart)) }
        // At least one character is read, whose class decides what follows; or nothing, and the position stays.
        let mayBeEmpty = minimum == 0 || arena.isNullable[Int(body)]
        var some = maximum == 0 ? RegexArena.empty : arena.repetition(body, max(1, minimum), maximum)
        if arena.isNullable[Int(some)] {
            some = arena.intersection([some, arena.concat(arena.anyCharacter, arena.anyText)])
        }
        if rest.after.allSatisfy({ $0 == rest.after[0] }) {
            let read = arena.concat(some, rest.after[0])
            var result = same(arena.concat(arena.repetition(body, minimum, maximum), rest.after[0]))
            result.atStart = mayBeEmpty ? arena.alternation([read, rest.atStart]) : read
            return result
        }
        let read = arena.alternation(
            zip(classes, rest.after).map { part, next in
                let ending = arena.concat(arena.anyText, arena.character(of: part))
                return arena.concat(arena.intersection([some, ending]), next)
            })
        return mayBeEmpty ? map(rest) { arena.alternation([read, $0]) } : same(read)
    }

    /// Repetitions of a term with an anchor, a lookahead or a lookbehind. The term depends on the text around it, so each
    /// repetition is built in front of the next one.
    private func unrolled(_ inner: Term, _ minimum: Int, _ maximum: Int?, _ rest: Rest) throws(PatternError) -> Rest {
        guard (maximum ?? minimum) <= 8 else {
            throw PatternError(reason: "an anchor or lookahead is repeated more than eight times", isUnsupported: true)
        }
        var result = rest
        if maximum == nil {
            // The languages would refer to each other, and their number of states would not be limited.
            if inner.repeatsAssertions {
                throw PatternError(reason: "repetitions with anchors or lookaheads are nested", isUnsupported: true)
            }
            guard classes.count == 1 else {
                throw PatternError(reason: "anchors or lookaheads are repeated next to a lookbehind", isUnsupported: true)
            }
            // Repetitions that match no text are excluded. `atStart` is reused for the start of a repetition, where
            // nothing of it has been read: the start of the text cannot occur again.
            let nothing = RegexArena.empty
            let later = inner.withoutStarts
            let inside = try arena.recursive(isNullable: arena.isNullable[Int(rest.after[0])]) {
                (again: RegexID) throws(PatternError) -> RegexID in
                let some = try build(later, Rest(atStart: nothing, after: [again])).atStart
                return arena.alternation([some, rest.after[0]])
            }
            let first = try build(inner, Rest(atStart: nothing, after: [inside])).atStart
            result = Rest(atStart: arena.alternation([first, rest.atStart]), after: [inside])
        }
        for count in stride(from: maximum ?? minimum, to: 0, by: -1) {
            let once = try build(inner, result)
            result = count > minimum ? union([once, rest]) : once
        }
        return result
    }
}
