/// Decides which requests are processed, and which wait: a value without I/O.
///
/// Each client has the same share of the work, in tokens, however many requests it sends: of those that wait, the next one is of the
/// client that has had the least. A client that comes anew begins where the others are (start-time fair queueing, Goyal et al., 1996), so
/// that nobody saves up a share. Requests of one client are processed in the order of their arrival.
struct FairQueue {
    struct Full: Error, Equatable { let waiting: Int }

    private struct Waiting {
        let id: Int
        let client: String
    }

    /// Requests that are processed at the same time.
    let slots: Int
    /// Requests that may wait.
    let limit: Int
    private var waiting: [Waiting] = []
    /// The work of each client that has requests, in tokens.
    private var work: [String: Int] = [:]
    private var requests: [String: Int] = [:]
    /// The least work of those that have been served last.
    private var clock = 0
    private(set) var active = 0
    private var lastID = 0

    init(slots: Int, limit: Int) { (self.slots, self.limit) = (max(1, slots), max(0, limit)) }

    var waitingCount: Int { waiting.count }

    /// Adds a request.
    ///
    /// - Returns: its number, and whether it may begin now.
    mutating func add(_ client: String) throws(Full) -> (id: Int, begins: Bool) {
        if active >= slots, waiting.count >= limit { throw Full(waiting: waiting.count) }
        lastID += 1
        if requests[client] == nil { work[client] = clock }
        requests[client, default: 0] += 1
        if active < slots, waiting.isEmpty {
            active += 1
            clock = work[client] ?? clock
            return (lastID, true)
        }
        waiting.append(Waiting(id: lastID, client: client))
        return (lastID, false)
    }

    /// A request that waits is gone; false if it does not wait.
    mutating func cancel(_ id: Int) -> Bool {
        guard let place = waiting.firstIndex(where: { $0.id == id }) else { return false }
        leave(waiting.remove(at: place).client)
        return true
    }

    /// A request that was processed has ended.
    ///
    /// - Parameter tokens: the work that it was.
    /// - Returns: the request that begins in its place; nil if none waits.
    mutating func end(_ client: String, tokens: Int) -> Int? {
        active -= 1
        work[client, default: clock] += max(1, tokens)
        leave(client)
        guard active < slots else { return nil }
        // Of clients with the same work, the one that waits longest.
        guard let place = waiting.indices.min(by: { (work[waiting[$0].client] ?? 0, $0) < (work[waiting[$1].client] ?? 0, $1) })
        else { return nil }
        let next = waiting.remove(at: place)
        active += 1
        clock = work[next.client] ?? clock
        return next.id
    }

    private mutating func leave(_ client: String) {
        requests[client, default: 1] -= 1
        // Who has no request any more begins anew, but not with less than before: the clock has gone on meanwhile.
        if requests[client] == 0 { (requests[client], work[client]) = (nil, nil) }
    }
}
