internal import Synchronization

/// Counts the memory of a pool in bytes, from the decision to use it until it is freed, so that two decisions cannot take the same room.
///
/// It also knows who could make room: an engine that finds none waits as long as another one runs that may end a request.
final class MemoryAccount: Sendable {
    enum Use {
        /// Of a whole model.
        case weights
        /// Keys and values of some positions; each reservation is one page.
        case page
        /// Recurrent states, adapters, and what is not yet divided.
        case other
    }

    private struct Waiter {
        let isEngine: Bool
        let wake: @Sendable () -> Void
    }

    private struct State {
        var used = 0
        var weights = 0
        var pages = 0
        /// The number of times that room may have been made.
        var changes = 0
        /// Engines that have work and do not wait for memory, and loads that are making room.
        var running = 0
        var waiting: [Int: Waiter] = [:]
        var lastWaiter = 0

        mutating func add(_ bytes: Int, _ use: Use, count: Int) {
            used += bytes
            switch use {
            case .weights: weights += bytes
            case .page: pages += count
            case .other: break
            }
        }

        /// Those who are to be woken, outside the lock. Engines run from now on, so that none seems to be the only one.
        mutating func takeWaiting(where isTaken: (Waiter) -> Bool = { _ in true }) -> [Waiter] {
            if waiting.isEmpty { return [] }
            let taken = waiting.filter { isTaken($0.value) }
            for id in taken.keys { waiting[id] = nil }
            running += taken.values.count { $0.isEngine }
            return Array(taken.values)
        }
    }

    /// The maximum number of bytes.
    let limit: Int
    private let state = Mutex(State())
    /// Called after each change with the bytes and the pages that are counted.
    private let observe: @Sendable (_ bytes: Int, _ pages: Int) -> Void

    init(limit: Int, observe: @escaping @Sendable (_ bytes: Int, _ pages: Int) -> Void = { _, _ in }) {
        (self.limit, self.observe) = (limit, observe)
    }

    var used: Int { state.withLock { $0.used } }
    /// The bytes of the weights of all models that still exist.
    var weights: Int { state.withLock { $0.weights } }

    /// - Parameter isLast: nothing else can make room: the limit does not apply.
    /// - Returns: nil if the limit would be exceeded.
    func reserve(_ bytes: Int, for use: Use = .other, isLast: Bool = false) -> MemoryReservation? {
        let counted = state.withLock { state -> (Int, Int)? in
            guard isLast || state.used + bytes <= limit else { return nil }
            state.add(bytes, use, count: 1)
            return (state.used, state.pages)
        }
        guard let (bytesUsed, pages) = counted else { return nil }
        observe(bytesUsed, pages)
        return MemoryReservation(self, bytes, use)
    }

    fileprivate func giveBack(_ bytes: Int, _ use: Use) {
        let (bytesUsed, pages, waiting) = state.withLock { state in
            state.add(-bytes, use, count: -1)
            state.changes += 1
            return (state.used, state.pages, state.takeWaiting())
        }
        observe(bytesUsed, pages)
        for waiter in waiting { waiter.wake() }
    }

    /// A part of a reservation becomes one of its own.
    fileprivate func divide(_ use: Use) {
        guard use == .page else { return }
        let (bytes, pages) = state.withLock { state in
            state.pages += 1
            return (state.used, state.pages)
        }
        observe(bytes, pages)
    }

    // MARK: - Waiting

    /// The number of engines and loads that wait for room, for tests and reports.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Changes whenever room may have been made.
    var changes: Int { state.withLock { $0.changes } }

    /// Something is no longer in use, so that it can be freed for others.
    func noteChange() {
        let waiting = state.withLock { state in
            state.changes += 1
            return state.takeWaiting()
        }
        for waiter in waiting { waiter.wake() }
    }

    /// Whether an engine other than the caller, or a load, runs and may make room.
    var othersRun: Bool { state.withLock { $0.running > 1 } }

    /// An engine has work, or a load makes room. Each call is followed by one of ``leave()``.
    func enter() { state.withLock { $0.running += 1 } }

    func leave() {
        let waiting = state.withLock { state in
            state.running -= 1
            // One of those who wait must go on now, since nobody else makes room.
            return state.running == 0 ? state.takeWaiting(where: \.isEngine) : []
        }
        for waiter in waiting { waiter.wake() }
    }

    /// Lets an engine wait that has entered.
    ///
    /// - Parameters:
    ///   - changes: the changes before it looked for room.
    ///   - wake: called once.
    /// - Returns: what identifies the wait; nil if the engine must look again.
    func park(after changes: Int, wake: @escaping @Sendable () -> Void) -> Int? {
        state.withLock { state in
            guard state.changes == changes, state.running > 1 else { return nil }
            state.running -= 1
            state.lastWaiter += 1
            state.waiting[state.lastWaiter] = Waiter(isEngine: true, wake: wake)
            return state.lastWaiter
        }
    }

    /// An engine that waited goes on, for whatever reason.
    func unpark(_ id: Int) {
        state.withLock { state in if state.waiting.removeValue(forKey: id) != nil { state.running += 1 } }
    }

    /// Waits until room may have been made.
    ///
    /// - Parameter changes: the changes before the caller looked for room.
    /// - Throws: `CancellationError` if the task is cancelled meanwhile.
    func waitForChange(after changes: Int) async throws {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    if state.changes != changes || Task.isCancelled { return false }
                    state.waiting[id] = Waiter(isEngine: false) { continuation.resume() }
                    return true
                }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: id) }?.wake()
        }
        try Task.checkCancellation()
    }
}

/// Bytes that are counted until this object is released.
final class MemoryReservation: Sendable {
    private let account: MemoryAccount
    private let use: MemoryAccount.Use
    private let bytes: Atomic<Int>

    fileprivate init(_ account: MemoryAccount, _ bytes: Int, _ use: MemoryAccount.Use) {
        (self.account, self.use) = (account, use)
        self.bytes = Atomic(bytes)
    }

    /// Makes a part of the bytes a reservation of its own. The caller has reserved at least as many.
    func divide(_ count: Int, for use: MemoryAccount.Use = .other) -> MemoryReservation {
        bytes.subtract(count, ordering: .relaxed)
        account.divide(use)
        return MemoryReservation(account, count, use)
    }

    deinit {
        let rest = bytes.load(ordering: .relaxed)
        if rest != 0 || use == .page { account.giveBack(rest, use) }
    }
}
