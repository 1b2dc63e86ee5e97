internal import Synchronization

/// What a cursor throws when a step takes more work than it may do at once; see ``Grammar/attempt(_:upTo:_:)``.
package struct GrammarBusy: Error {}

/// The work that the next steps of a cursor may do. It is counted, so that a limit is the same on every machine; a unit is about half a
/// microsecond of a core.
///
/// Not thread-safe: it belongs to whoever uses the cursor.
package final class GrammarWork: @unchecked Sendable {
    /// What is left of the limit, in parts of a unit; nil if there is none.
    fileprivate(set) var left: Int?

    /// What is left of the limit, in units; nil if there is none.
    package var remaining: Int? { left.map { $0 / RegexArena.unit } }

    /// Whether results are meaningless, because the limit was reached.
    var isExceeded: Bool { if let left { left < 0 } else { false } }

    /// Runs steps with the limit of those that other threads make.
    package func withUsualLimit<Result>(_ body: () throws -> Result) rethrows -> Result {
        let before = left
        if before != nil { left = Grammar.fuelToAnswer * RegexArena.unit }
        defer { left = before }
        return try body()
    }
}

extension Grammar {
    /// Runs steps of a cursor that may do a limited amount of work, so that whoever calls them can serve others meanwhile.
    ///
    /// A step that throws ``GrammarBusy`` has changed nothing, and can be repeated without a limit on another thread. What it computed is
    /// kept as far as it was complete.
    ///
    /// - Parameter work: that of the cursor.
    /// - Throws: ``GrammarBusy`` if a step takes more work, or if another thread uses the grammar; the errors of `body`.
    package func attempt<Result>(_ work: GrammarWork, upTo limit: Int, _ body: () throws -> Result) throws -> Result {
        let result = try lock.withLockIfAvailable { _ in
            work.left = limit * RegexArena.unit
            defer { work.left = nil }
            return try body()
        }
        guard let result else { throw GrammarBusy() }
        return result
    }

    /// Runs `body`, which uses the table. Within ``attempt(_:upTo:_:)`` the lock is held already.
    func withLock<Result>(_ table: MaskTable, _ work: GrammarWork?, _ body: () -> Result) -> Result {
        let regexes = table.automaton.regexes
        guard let work, let left = work.left else {
            return lock.withLock { _ in
                regexes.setFuel(Self.fuelToAnswer)
                return body()
            }
        }
        regexes.fuel = left
        let result = body()
        work.left = regexes.fuel
        return result
    }
}
