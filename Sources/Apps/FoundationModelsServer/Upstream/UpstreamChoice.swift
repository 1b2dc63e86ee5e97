/// Chooses the server for a request: a value without I/O and without a clock.
///
/// Requests of one conversation go to the same server, which has its prompt in the cache: each server has a rank for a key (rendezvous
/// hashing, Thaler and Ravishankar, 1996), so that a server that leaves or comes moves only its own conversations. A server that has a
/// quarter more than its share of the running requests is passed over (bounded loads, arXiv:1608.01350), and so is one that has failed, for
/// a time that doubles with each failure.
struct UpstreamChoice {
    private struct Server {
        let name: String
        var running = 0
        var failures = 0
        /// Passed over until then.
        var ejectedUntil = 0.0
        /// Whether its address for health says that it is well.
        var isHealthy = true
    }

    private var servers: [Server]

    init(_ names: [String]) { servers = names.map { Server(name: $0) } }

    static let firstEjection = 2.0
    private static let longestEjection = 30.0
    private static let overload = 1.25

    /// The server for a request, which runs there from now on; nil if all were tried.
    ///
    /// - Parameters:
    ///   - key: what requests of one conversation have in common.
    ///   - tried: those that have failed for this request.
    mutating func choose(_ key: String, except tried: Set<Int>, now: Double) -> Int? {
        let left = servers.indices.filter { !tried.contains($0) }
        let well = left.filter { servers[$0].ejectedUntil <= now && servers[$0].isHealthy }
        // If all are passed over, the one that comes back first is better than none.
        let candidates =
            well.isEmpty ? Array(left.sorted { servers[$0].ejectedUntil < servers[$1].ejectedUntil }.prefix(1)) : well
        let running = candidates.reduce(0) { $0 + servers[$1].running }
        let bound = Self.overload * Double(running + 1) / Double(max(1, candidates.count))
        let ranked = candidates.sorted { Self.rank(servers[$0].name, key) > Self.rank(servers[$1].name, key) }
        let chosen = ranked.first { Double(servers[$0].running) < bound.rounded(.up) } ?? ranked.first
        if let chosen { servers[chosen].running += 1 }
        return chosen
    }

    private static func rank(_ name: String, _ key: String) -> UInt64 {
        // FNV-1a, and a mixture of its bits (splitmix64), because ends of equal names differ in few of them.
        var hash = (name + "\u{0}" + key).utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
        return hash ^ (hash >> 31)
    }

    /// What a request says of the server.
    enum Outcome { case good, fault, nothing }

    mutating func end(_ server: Int, _ outcome: Outcome, now: Double) {
        servers[server].running -= 1
        switch outcome {
        case .nothing: return
        case .good:
            (servers[server].failures, servers[server].ejectedUntil) = (0, 0)
            return
        case .fault: break
        }
        // Requests that were on their way together fail together: that is one failure.
        if servers[server].ejectedUntil > now { return }
        let time = min(Self.longestEjection, Self.firstEjection * Double(1 << min(servers[server].failures, 5)))
        servers[server].failures += 1
        servers[server].ejectedUntil = now + time
    }

    mutating func noteHealth(_ server: Int, isHealthy: Bool) { servers[server].isHealthy = isHealthy }

    func isEjected(_ server: Int, now: Double) -> Bool { servers[server].ejectedUntil > now || !servers[server].isHealthy }
}
