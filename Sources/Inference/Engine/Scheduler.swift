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

        var chunk: Int { min(remaining, boundary) }
    }

    let limits: Limits
    private var waiting: [Entry] = []
    /// Of the requests with long prompts, the one whose last chunk is the longest ago comes first.
    private var active: [Entry] = []
    /// Successive batches in which background work has waited for interactive prompts.
    private var passedOver = 0
    private var activations = 0
    private static let maximumPassedOver = 7

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
        guard active.count < limits.active, !waiting.isEmpty else { return nil }
        let background = active.count { $0.priority == .background }
        let allowsBackground = background < max(1, limits.active / 2)
        let oldest = allowsBackground ? waiting.startIndex : nil
        let interactive = waiting.firstIndex { $0.priority == .interactive }
        let isOldestDue = activations % (Self.maximumPassedOver + 1) == Self.maximumPassedOver
        guard let index = isOldestDue ? oldest ?? interactive : interactive ?? oldest else { return nil }
        activations += 1
        active.append(waiting.remove(at: index))
        return active.last?.id
    }

    /// Sets the number of tokens that a request needs processed. A chunk ends after `boundary` tokens at the latest.
    mutating func setRemaining(_ count: Int, boundary: Int = .max, of id: Int) {
        guard let index = active.firstIndex(where: { $0.id == id }) else { return }
        active[index].remaining = count
        active[index].boundary = max(1, boundary)
    }

    /// The chunks of the next batch, each of another request; none if nothing is to be processed. The caller sets the
    /// remaining tokens of these requests afterwards.
    mutating func nextBatch(into chunks: inout [Chunk]) {
        chunks.removeAll(keepingCapacity: true)
        var room = limits.batchTokens
        for entry in active where entry.remaining > 0 && entry.remaining <= limits.shortTokens && entry.chunk <= room {
            chunks.append(Chunk(id: entry.id, count: entry.chunk))
            room -= entry.chunk
        }
        if !chunks.isEmpty { room = min(room, limits.mixedTokens) }
        let first = chunks.count
        let isBackgroundDue = passedOver >= Self.maximumPassedOver
        let order: [Priority] = isBackgroundDue ? [.background, .interactive] : [.interactive, .background]
        for priority in order {
            for entry in active where entry.priority == priority && entry.remaining > limits.shortTokens && room > 0 {
                let count = min(entry.chunk, room)
                chunks.append(Chunk(id: entry.id, count: count))
                room -= count
            }
        }
        let served = chunks[first...]
        if served.isEmpty { return }
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
