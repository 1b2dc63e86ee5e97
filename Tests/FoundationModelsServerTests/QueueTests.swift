import Testing

@testable import FoundationModelsServer

@Suite struct QueueTests {
    /// A client with many requests does not delay one with few.
    @Test func clientsHaveEqualShares() throws {
        var queue = FairQueue(slots: 1, limit: 10)
        let first = try queue.add("a")
        #expect(first.begins)
        let more = try (0..<3).map { _ in try queue.add("a").id }
        let other = try queue.add("b").id
        // “a” has had 100 tokens, “b” none.
        #expect(queue.end("a", tokens: 100) == other)
        #expect(queue.end("b", tokens: 500) == more[0])
        // Requests of one client keep their order.
        #expect(queue.end("a", tokens: 10) == more[1])
        #expect(queue.end("a", tokens: 10) == more[2])
        #expect(queue.end("a", tokens: 10) == nil)
        #expect(queue.active == 0)
    }

    /// Who has had nothing for a long time does not save it up.
    @Test func newClientsBeginWhereOthersAre() throws {
        var queue = FairQueue(slots: 1, limit: 10)
        _ = try queue.add("a")
        let second = try queue.add("a").id
        #expect(queue.end("a", tokens: 1_000) == second)
        let late = try queue.add("b").id
        let third = try queue.add("a").id
        // “b” is before “a”, but after one request they are equal again.
        #expect(queue.end("a", tokens: 10) == late)
        let lateAgain = try queue.add("b").id
        #expect(queue.end("b", tokens: 2_000) == third)
        #expect(queue.end("a", tokens: 10) == lateAgain)
    }

    @Test func fullQueueRefuses() throws {
        var queue = FairQueue(slots: 1, limit: 1)
        _ = try queue.add("a")
        let waiting = try queue.add("a").id
        let full = queue
        #expect(throws: FairQueue.Full(waiting: 1)) {
            var queue = full
            _ = try queue.add("b")
        }
        let isCancelled = [queue.cancel(waiting), queue.cancel(waiting)]
        #expect(isCancelled == [true, false])
        let last = try queue.add("b")
        #expect(!last.begins)
    }

    /// A place is free again when a request that waits is cancelled, and when one that runs ends.
    @Test func gateGivesPlacesBack() async throws {
        let gate = RequestGate(slots: 1, limit: 4, maximumWait: .seconds(600))
        let place = try await gate.enter("a")
        let waiting = Task { try await gate.enter("b") }
        while gate.load.waiting == 0 { await Task.yield() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(gate.load.waiting == 0)
        let next = Task { try await gate.enter("c") }
        while gate.load.waiting == 0 { await Task.yield() }
        place.leave(tokens: 1)
        place.leave(tokens: 1)
        let other = try await next.value
        #expect(gate.load.active == 1)
        other.leave(tokens: 1)
        #expect(gate.load.active == 0)
    }

    @Test func limitsOfKeysFillUp() {
        var limits = KeyLimits()
        let key = APIKey(name: "a", key: "x", requestsPerMinute: 2, tokensPerMinute: 60)
        #expect(limits.take(key, now: 0) == nil)
        #expect(limits.take(key, now: 0) == nil)
        #expect(limits.take(key, now: 0) == 30)
        #expect(limits.take(key, now: 30) == nil)
        // More tokens than the minute has: the next request waits until they are paid.
        limits.take(tokens: 120, key, now: 60)
        let wait = limits.take(key, now: 60)
        #expect(wait.map { $0 > 60 && $0 < 62 } == true)
        #expect(limits.take(key, now: 123) == nil)
    }

    @Test func upstreamsKeepConversations() {
        var choice = UpstreamChoice(["a", "b", "c"])
        var homes: [String: Int] = [:]
        for key in 0..<60 {
            let server = choice.choose("\(key)", except: [], now: 0)
            homes["\(key)"] = server
            if let server { choice.end(server, .good, now: 0) }
        }
        #expect(Set(homes.values).count == 3)
        for (key, home) in homes {
            let again = choice.choose(key, except: [], now: 1)
            #expect(again == home)
            if let again { choice.end(again, .good, now: 1) }
        }
        // One that fails is passed over, longer each time, and comes back.
        let first = choice.choose("0", except: [], now: 2)
        #expect(first == homes["0"])
        guard let first else { return }
        choice.end(first, .fault, now: 2)
        #expect(choice.isEjected(first, now: 3))
        #expect(choice.choose("0", except: [], now: 3) != first)
        #expect(!choice.isEjected(first, now: 2 + UpstreamChoice.firstEjection))
        // Requests that fail together count once; the next failure counts twice as long.
        choice.end(first, .fault, now: 3)
        #expect(!choice.isEjected(first, now: 2 + UpstreamChoice.firstEjection))
        choice.end(first, .fault, now: 5)
        #expect(choice.isEjected(first, now: 4.9 + 2 * UpstreamChoice.firstEjection))
        choice.end(first, .good, now: 6)
        #expect(!choice.isEjected(first, now: 6))
        choice.end(first, .fault, now: 6)
        // If all others were tried, it is better than none.
        #expect(choice.choose("0", except: Set(0..<3).subtracting([first]), now: 6) == first)
    }

    /// No server gets much more than its share, also if all requests are of one conversation.
    @Test func upstreamsShareTheLoad() {
        var choice = UpstreamChoice(["a", "b"])
        var counts = [0, 0]
        for _ in 0..<8 { if let server = choice.choose("same", except: [], now: 0) { counts[server] += 1 } }
        #expect(counts.min().map { $0 >= 3 } == true)
    }
}
