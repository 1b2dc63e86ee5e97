import TestSupport
import Testing

@testable import Inference

/// The scheduler with a simulated clock: time is counted in batches and in tokens.
@Suite struct SchedulerTests {
    /// A request in the simulation: a prompt, then single tokens, now and then a few forced ones.
    private struct Request {
        let id: Int
        let priority: Scheduler.Priority
        let arrival: Int
        var prompt: Int
        var response: Int
        var activated: Int?
        var cancelledAt: Int?
        var boundary: Int?
    }

    private struct Simulation {
        var scheduler: Scheduler
        var requests: [Int: Request] = [:]
        var batches = 0
        var maximumBatch = 0
        /// The maximum number of successive batches without a chunk of an active request, per priority.
        var longestWait: [Scheduler.Priority: Int] = [:]
        private var lastServed: [Int: Int] = [:]

        init(_ limits: Scheduler.Limits = .init()) { scheduler = Scheduler(limits: limits) }

        /// Processes one batch. Returns the ids of the requests that have ended.
        mutating func step(_ random: inout SeededGenerator) -> [Int] {
            while let id = scheduler.activate() {
                requests[id]?.activated = batches
                lastServed[id] = batches
                if let request = requests[id] { schedule(request) }
            }
            var chunks: [Scheduler.Chunk] = []
            scheduler.nextBatch(into: &chunks)
            batches += 1
            let total = chunks.reduce(0) { $0 + $1.count }
            maximumBatch = max(maximumBatch, total)
            #expect(total <= scheduler.limits.batchTokens)
            #expect(Set(chunks.map(\.id)).count == chunks.count)
            var ended: [Int] = []
            for chunk in chunks {
                guard var request = requests[chunk.id] else {
                    Issue.record("a chunk of a request that has ended")
                    continue
                }
                if let last = lastServed[chunk.id] {
                    longestWait[request.priority] = max(longestWait[request.priority] ?? 0, batches - last)
                }
                lastServed[chunk.id] = batches
                if request.prompt > 0 {
                    #expect(chunk.count > 0 && chunk.count <= request.prompt)
                    if let boundary = request.boundary { #expect(chunk.count <= boundary) }
                    request.prompt -= chunk.count
                    request.boundary = request.boundary.flatMap { $0 > chunk.count ? $0 - chunk.count : nil }
                } else {
                    request.response -= chunk.count
                }
                requests[chunk.id] = request
                if request.prompt == 0, request.response <= 0 {
                    ended.append(chunk.id)
                } else {
                    schedule(request, forced: Int.random(in: 0..<8, using: &random) == 0)
                }
            }
            for id in ended { remove(id) }
            return ended
        }

        mutating func remove(_ id: Int) {
            scheduler.remove(id)
            requests[id] = nil
            lastServed[id] = nil
        }

        private mutating func schedule(_ request: Request, forced: Bool = false) {
            let count = request.prompt > 0 ? request.prompt : forced ? min(request.response, 9) : 1
            scheduler.setRemaining(count, boundary: request.prompt > 0 ? request.boundary ?? .max : .max, of: request.id)
        }
    }

    @Test func generatingRequestsShareBatchesWithOnePrompt() throws {
        var scheduler = Scheduler(limits: .init(active: 4, batchTokens: 100, mixedTokens: 30, shortTokens: 4))
        for id in 0..<4 { try scheduler.add(id, .interactive) }
        for id in 0..<4 { #expect(scheduler.activate() == id) }
        #expect(scheduler.activate() == nil)
        scheduler.setRemaining(1, of: 0)
        scheduler.setRemaining(3, of: 1)
        scheduler.setRemaining(200, of: 2)
        scheduler.setRemaining(50, of: 3)
        var chunks: [Scheduler.Chunk] = []
        scheduler.nextBatch(into: &chunks)
        #expect(chunks == [.init(id: 0, count: 1), .init(id: 1, count: 3), .init(id: 2, count: 30)])
        // Prompts take turns.
        scheduler.setRemaining(170, of: 2)
        scheduler.nextBatch(into: &chunks)
        #expect(chunks.last == .init(id: 3, count: 30))
        // Without generating requests, the whole batch is for prompts.
        for id in 0..<2 { scheduler.setRemaining(0, of: id) }
        scheduler.setRemaining(20, of: 3)
        scheduler.nextBatch(into: &chunks)
        #expect(chunks == [.init(id: 2, count: 100)])
        scheduler.setRemaining(70, of: 2)
        scheduler.nextBatch(into: &chunks)
        #expect(chunks == [.init(id: 3, count: 20), .init(id: 2, count: 70)])
    }

    /// Neither the limit beside generating requests nor that of a batch divides them.
    @Test func tokensThatBelongTogetherAreInOneBatch() throws {
        var scheduler = Scheduler(limits: .init(active: 4, batchTokens: 100, mixedTokens: 30, shortTokens: 4))
        for id in 0..<2 { try scheduler.add(id, .interactive) }
        for id in 0..<2 { #expect(scheduler.activate() == id) }
        var chunks: [Scheduler.Chunk] = []
        func next(_ generating: Int, _ remaining: Int, _ whole: Range<Int>?) -> [Scheduler.Chunk] {
            scheduler.setRemaining(generating, of: 0)
            scheduler.setRemaining(remaining, whole: whole, of: 1)
            scheduler.nextBatch(into: &chunks)
            return chunks
        }
        #expect(next(2, 300, 10..<60) == [.init(id: 0, count: 2), .init(id: 1, count: 10)], "up to the range")
        #expect(next(2, 290, 0..<50) == [.init(id: 0, count: 2), .init(id: 1, count: 50)], "more than the limit beside others")
        #expect(next(2, 290, 0..<20) == [.init(id: 0, count: 2), .init(id: 1, count: 30)])
        #expect(next(2, 290, 40..<60) == [.init(id: 0, count: 2), .init(id: 1, count: 30)])
        #expect(next(0, 290, 70..<120) == [.init(id: 1, count: 70)])
        #expect(next(0, 290, 0..<100) == [.init(id: 1, count: 100)])
        // No room beside others: every second batch.
        #expect(next(2, 290, 0..<100) == [.init(id: 1, count: 100)])
        #expect(next(2, 290, 0..<100) == [.init(id: 0, count: 2)])
        #expect(next(2, 290, 0..<100) == [.init(id: 1, count: 100)])
        #expect(next(2, 290, nil) == [.init(id: 0, count: 2), .init(id: 1, count: 30)])
        // More than a batch; the engine refuses such a request.
        #expect(next(0, 290, 0..<101) == [.init(id: 1, count: 100)])
        // Background work waits, but not for ever.
        scheduler.remove(1)
        try scheduler.add(2, .background)
        #expect(scheduler.activate() == 2)
        scheduler.setRemaining(2, of: 0)
        scheduler.setRemaining(290, whole: 0..<100, of: 2)
        var waited = 0
        repeat {
            scheduler.nextBatch(into: &chunks)
            waited += 1
        } while chunks == [.init(id: 0, count: 2)] && waited < 20
        #expect(chunks == [.init(id: 2, count: 100)] && waited == 8)
    }

    @Test func theQueueHasALimit() throws {
        var scheduler = Scheduler(limits: .init(active: 1, waiting: 3))
        for id in 0..<3 { try scheduler.add(id, .interactive) }
        #expect(throws: Scheduler.Full.self) { try scheduler.add(3, .interactive) }
        #expect(scheduler.activate() == 0)
        try scheduler.add(3, .interactive)
        scheduler.remove(1)
        #expect(scheduler.activate() == nil, "the only place is taken")
        scheduler.remove(0)
        #expect(scheduler.activate() == 2)
    }

    @Test func interactiveRequestsPrecedeBackgroundWork() throws {
        var scheduler = Scheduler(limits: .init(active: 4, batchTokens: 64))
        for id in 0..<4 { try scheduler.add(id, .background) }
        try scheduler.add(10, .interactive)
        #expect(scheduler.activate() == 10)
        #expect(scheduler.activate() == 0)
        #expect(scheduler.activate() == 1)
        #expect(scheduler.activate() == nil, "half of the places are for interactive requests")
        for id in [10, 0, 1] { scheduler.setRemaining(10_000, of: id) }
        var served: [Int] = []
        var chunks: [Scheduler.Chunk] = []
        for _ in 0..<32 {
            scheduler.nextBatch(into: &chunks)
            served += chunks.map(\.id)
        }
        #expect(served.count { $0 == 10 } == 28)
        #expect(served.count { $0 == 0 } == 2 && served.count { $0 == 1 } == 2)
        // Somebody waits for background work now.
        scheduler.promote(1)
        scheduler.nextBatch(into: &chunks)
        #expect(chunks.first?.id != 0)
        scheduler.promote(2)
        scheduler.remove(10)
        #expect(scheduler.activate() == 2)
    }

    /// Random arrivals, lengths, priorities and cancellations: every request ends, in bounded time, and nothing is left.
    @Test(arguments: [1, 2, 3, 4, 5])
    func randomLoad(seed: UInt64) throws {
        var random = SeededGenerator(seed)
        var simulation = Simulation(.init(active: Int.random(in: 1...12, using: &random), waiting: 500))
        var next = 0
        var ended = 0
        var cancelled = 0
        var rejected = 0
        while next < 3_000 || !simulation.requests.isEmpty {
            // Arrivals come in bursts.
            if next < 3_000, Int.random(in: 0..<40, using: &random) == 0 {
                for _ in 0..<Int.random(in: 1...20, using: &random) {
                    let request = Request(
                        id: next, priority: Int.random(in: 0..<5, using: &random) == 0 ? .background : .interactive,
                        arrival: simulation.batches, prompt: Int.random(in: 1...900, using: &random),
                        response: Int.random(in: 0...60, using: &random),
                        boundary: Bool.random(using: &random) ? Int.random(in: 1...900, using: &random) : nil)
                    next += 1
                    do {
                        try simulation.scheduler.add(request.id, request.priority)
                        simulation.requests[request.id] = request
                    } catch {
                        rejected += 1
                    }
                }
            }
            if Int.random(in: 0..<30, using: &random) == 0,
                let id = simulation.requests.keys.sorted().randomElement(using: &random)
            {
                simulation.remove(id)
                cancelled += 1
            }
            ended += simulation.step(&random).count
            try #require(simulation.batches < 1_000_000, "requests starve")
        }
        #expect(ended + cancelled + rejected >= 3_000)
        #expect(simulation.scheduler.activeCount == 0 && simulation.scheduler.waitingCount == 0)
        // An active interactive request waits for at most one chunk of each other one, or of background work now and then.
        let active = simulation.scheduler.limits.active
        #expect((simulation.longestWait[.interactive] ?? 0) <= 2 * active + 2)
        #expect((simulation.longestWait[.background] ?? 0) <= 16 * active)
        #expect(simulation.maximumBatch > 1)
    }

    /// With a constant load of interactive requests, background requests still end.
    @Test func nothingStarves() throws {
        var random = SeededGenerator(9)
        var simulation = Simulation(.init(active: 4))
        try simulation.scheduler.add(0, .background)
        simulation.requests[0] = Request(id: 0, priority: .background, arrival: 0, prompt: 2_000, response: 20)
        var next = 1
        while simulation.requests[0] != nil {
            while simulation.scheduler.waitingCount < 10 {
                try simulation.scheduler.add(next, .interactive)
                simulation.requests[next] = Request(
                    id: next, priority: .interactive, arrival: simulation.batches, prompt: 300, response: 30)
                next += 1
            }
            _ = simulation.step(&random)
            try #require(simulation.batches < 2_000)
        }
    }

    /// Proposals are short requests, and all requests that generate fit one pass.
    @Test func limitsFitTogether() {
        let limits = Scheduler.Limits()
        #expect(limits.active <= EngineLimits.sequences)
        #expect(limits.active * limits.shortTokens + limits.mixedTokens <= limits.batchTokens)
        for sequences in 1...2 * EngineLimits.fewRows {
            let rows = DraftBudget(sequences: sequences).maximum + 1
            #expect(rows <= limits.shortTokens && (rows == 1 || rows * sequences <= EngineLimits.fewRows))
        }
    }
}
