/// Decides which tokens of which requests are processed next. A value without I/O: it knows numbers of tokens only.
///
/// A batch has, first, the next tokens of all requests that have only few to process: those are generating. Prompts share
/// the rest of the batch, one chunk each in turn, so that a request waits no longer than one chunk for its next token.
/// Interactive prompts precede those of background work, which still gets every eighth batch.
struct Scheduler {
    enum Priority: Sendable { case interactive, background }

    struct Limits {
        /// Requests that are processed at the same time. The others wait, in the order of their arrival.
        var active = 8
        /// Requests that may wait.
        var waiting = 1_024
        /// Tokens of a batch.
        var batchTokens = EngineLimits.passTokens
        /// Tokens of prompts in a batch that has tokens of generating requests too.
        var mixedTokens = 64
        /// A request with at most this number of tokens to process need not wait for its turn.
        var shortTokens = EngineLimits.fewRows
    }

    /// The queue of waiting requests is full.
    struct Full: Error {
        let waiting: Int
    }

    struct Chunk: Equatable {
        let id: Int
        let count: Int
    }

    private struct Entry {
        let id: Int
        var priority: Priority
        /// Tokens to process; 0 until the request is active and has named some.
        var remaining = 0
        /// A chunk must end after this number of tokens.
        var boundary = Int.max
        /// Tokens that must be in one batch.
        var whole: Range<Int>?
        /// Whether it waits for something other than the model, and takes no place of others.
        var isBlocked = false

        var chunk: Int { min(remaining, boundary) }

        /// The tokens of a chunk for which there is `room`, or 0 if they must not be divided.
        ///
        /// - Parameter most: the room of the whole batch, for tokens that must not be divided.
        func chunk(room: Int, most: Int) -> Int {
            let count = min(chunk, room)
            guard let whole, whole.lowerBound < count, count < whole.upperBound else { return count }
            if whole.lowerBound > 0 { return whole.lowerBound }
            return whole.upperBound <= most ? min(whole.upperBound, chunk) : 0
        }
    }

    let limits: Limits
    private var waiting: [Entry] = []
    /// Of the requests with long prompts, the one whose last chunk is the longest ago comes first.
    private var active: [Entry] = []
    /// Successive batches in which background work has waited for interactive prompts.
    private var passedOver = 0
    private var activations = 0
    private static let maximumPassedOver = 7
    /// Whether the last batch had only tokens that had no room beside those of others.
    private var wasAlone = false

    init(limits: Limits = Limits()) { self.limits = limits }

    var waitingCount: Int { waiting.count }
    var activeCount: Int { active.count }

    mutating func add(_ id: Int, _ priority: Priority) throws(Full) {
        guard waiting.count < limits.waiting else { throw Full(waiting: waiting.count) }
        waiting.append(Entry(id: id, priority: priority))
    }

    mutating func remove(_ id: Int) {
        waiting.removeAll { $0.id == id }
        active.removeAll { $0.id == id }
    }

    /// Makes a request interactive, because somebody waits for it now.
    mutating func promote(_ id: Int) {
        if let index = waiting.firstIndex(where: { $0.id == id }) { waiting[index].priority = .interactive }
        if let index = active.firstIndex(where: { $0.id == id }) { active[index].priority = .interactive }
    }

    /// Makes the next waiting request active; nil if there is none, or no place. Interactive requests come first, but every
    /// eighth is the one that has waited longest. Background work leaves half of the places to interactive requests.
    mutating func activate() -> Int? {
        guard !waiting.isEmpty, active.count(where: { !$0.isBlocked }) < limits.active else { return nil }
        let background = active.count { $0.priority == .background && !$0.isBlocked }
        let allowsBackground = background < max(1, limits.active / 2)
        let oldest = allowsBackground ? waiting.startIndex : nil
        let interactive = waiting.firstIndex { $0.priority == .interactive }
        let isOldestDue = activations % (Self.maximumPassedOver + 1) == Self.maximumPassedOver
        guard let index = isOldestDue ? oldest ?? interactive : interactive ?? oldest else { return nil }
        activations += 1
        active.append(waiting.remove(at: index))
        return active.last?.id
    }

    /// Sets the number of tokens that a request needs processed.
    ///
    /// - Parameters:
    ///   - boundary: a chunk ends after this number of them at the latest.
    ///   - whole: those that no chunk divides, at most ``Limits/batchTokens``. `boundary` is not among them.
    mutating func setRemaining(_ count: Int, boundary: Int = .max, whole: Range<Int>? = nil, of id: Int) {
        guard let index = active.firstIndex(where: { $0.id == id }) else { return }
        active[index].remaining = count
        active[index].boundary = max(1, boundary)
        active[index].whole = whole.flatMap { $0.count <= limits.batchTokens ? $0 : nil }
    }

    mutating func setBlocked(_ isBlocked: Bool, of id: Int) {
        guard let index = active.firstIndex(where: { $0.id == id }) else { return }
        active[index].isBlocked = isBlocked
    }

    /// The chunks of the next batch, at most ``Limits/active``, each of another request; none if nothing is to be processed. The
    /// caller sets the remaining tokens of these requests afterwards.
    mutating func nextBatch(into chunks: inout [Chunk]) {
        chunks.removeAll(keepingCapacity: true)
        var room = limits.batchTokens
        for entry in active
        where entry.remaining > 0 && entry.remaining <= limits.shortTokens && entry.chunk <= room
            && chunks.count < limits.active
        {
            chunks.append(Chunk(id: entry.id, count: entry.chunk))
            room -= entry.chunk
        }
        var most = room
        if !chunks.isEmpty { room = min(room, limits.mixedTokens) }
        var first = chunks.count
        var alone: Chunk?
        let isBackgroundDue = passedOver >= Self.maximumPassedOver
        let order: [Priority] = isBackgroundDue ? [.background, .interactive] : [.interactive, .background]
        for priority in order {
            for entry in active
            where entry.priority == priority && entry.remaining > limits.shortTokens && room > 0
                && chunks.count < limits.active
            {
                let count = entry.chunk(room: room, most: most)
                guard count > 0 else {
                    if priority == order[0], alone == nil {
                        alone = Chunk(id: entry.id, count: entry.chunk(room: room, most: limits.batchTokens))
                    }
                    continue
                }
                chunks.append(Chunk(id: entry.id, count: count))
                most -= count
                room = min(room - count, most)
            }
        }
        // Tokens that must not be divided have every second batch if they have no room beside the others.
        wasAlone = alone != nil && !wasAlone
        if let alone, wasAlone {
            chunks.removeAll(keepingCapacity: true)
            chunks.append(alone)
            first = 0
        }
        let served = chunks[first...]
        var (waits, isServed) = (false, false)
        for entry in active where entry.priority == .background && entry.remaining > limits.shortTokens {
            if served.contains(where: { $0.id == entry.id }) { isServed = true } else { waits = true }
        }
        passedOver = waits && !isServed ? passedOver + 1 : 0
        // Those that were served are last in turn.
        for chunk in served {
            guard let index = active.firstIndex(where: { $0.id == chunk.id }) else { continue }
            active.append(active.remove(at: index))
        }
    }
}
