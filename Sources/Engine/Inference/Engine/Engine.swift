/// Runs the work of sequences with a model, in batches of the tokens that the ``Scheduler`` selects.
///
/// Not thread-safe: all calls are made on the executor of the ``LoadedModel`` that owns it.
final class Engine {
    private let model: any TokenModel
    private let memory: PoolMemory
    private let telemetry: PoolTelemetry
    /// Identifies the contents of the model.
    private let identity: UInt64
    private var scheduler: Scheduler
    private var jobs: [Int: Job] = [:]
    private var lastID = 0
    /// Active jobs that wait for another job's prompt, in the order of their activation.
    private var delayed: [Int] = []

    // Buffers that are kept, so that a pass allocates nothing.
    private var chunks: [Scheduler.Chunk] = []
    private var parts: [PassPart] = []
    private var tokens: [TokenID] = []
    /// The rows of the pass whose logits are wanted, and whose they are.
    private var rows = LogitRows()
    /// Those of which only some candidates are wanted.
    private var choices = LogitRows()
    private var candidates: [TokenID] = []
    private var finished: [Int] = []
    private var states: [RowState] = []
    private var stateJobs: [Job] = []

    /// - Parameter identity: identifies the contents of the model among those whose sequences are in the same memory.
    init(
        model: any TokenModel, memory: PoolMemory, identity: UInt64 = 0,
        limits: Scheduler.Limits = Scheduler.Limits(EngineConfiguration())
    ) {
        (self.model, self.memory, self.identity, telemetry) = (model, memory, identity, memory.telemetry)
        var limits = limits
        limits.batchTokens = min(limits.batchTokens, model.limits.passTokens)
        limits.shortTokens = min(limits.shortTokens, limits.batchTokens)
        limits.active = min(limits.active, model.limits.sequences)
        scheduler = Scheduler(limits: limits)
        tokens.reserveCapacity(EngineLimits.fewRows)
        rows.reserveCapacity(EngineLimits.fewRows)
    }

    /// Numbers of passes and of processed tokens, for tests and reports.
    private(set) var passes = 0
    private(set) var processedTokens = 0
    var waitingCount: Int { scheduler.waitingCount }
    var hasJobs: Bool { !jobs.isEmpty }
    /// Whether the last step found no memory for any job, while another engine may make room.
    private(set) var isStalled = false

    /// Adds the work of a sequence. `completion` is called when it has ended, failed or been cancelled.
    ///
    /// - Throws: ``GenerationFailure/tooManyRequests(waiting:)``
    func submit(
        _ work: any SequenceWork, in cache: any SequenceMemory, priority: Scheduler.Priority, signals: RequestSignals,
        completion: @escaping (Result<Void, any Error>) -> Void
    ) throws(GenerationFailure) {
        lastID += 1
        do { try scheduler.add(lastID, priority) } catch {
            telemetry.noteRefusal(waiting: error.waiting)
            throw .tooManyRequests(waiting: error.waiting)
        }
        telemetry.noteArrival()
        jobs[lastID] = Job(id: lastID, work, cache, priority, signals, completion)
    }

    /// Processes one batch. Returns false if there is nothing to do.
    func step() -> Bool {
        isStalled = false
        readSignals()
        beginDelayed()
        resumeBlocked()
        while let id = scheduler.activate() { if let job = jobs[id] { activate(job) } }
        scheduler.nextBatch(into: &chunks)
        guard !chunks.isEmpty else {
            // If all active jobs wait for something else, whoever ends that begins again.
            let blocked = jobs.values.count { $0.isBlocked }
            return jobs.count > blocked && (blocked == 0 || blocked < scheduler.activeCount)
        }
        forward()
        return !isStalled
    }

    // MARK: - Jobs

    private func activate(_ job: Job) {
        job.isActive = true
        telemetry.noteBegin(after: .now - job.arrival)
        // From now on nobody else empties the cache.
        memory.beginUse(of: job.cache, by: ObjectIdentifier(self))
        begin(job)
    }

    /// Ends the cancelled jobs, and promotes those for which somebody waits.
    private func readSignals() {
        finished.removeAll(keepingCapacity: true)
        for (id, job) in jobs {
            if job.signals.isCancelled { finished.append(id) }
            if job.priority == .background, job.signals.isEscalated {
                job.priority = .interactive
                scheduler.promote(id)
            }
        }
        for id in finished { if let job = jobs[id] { end(job, .failure(CancellationError())) } }
    }

    /// Begins the jobs whose common beginning with another job has been processed, or will not be.
    private func beginDelayed() {
        if delayed.isEmpty { return }
        let waiting = delayed
        delayed.removeAll()
        for id in waiting {
            guard let job = jobs[id], let (source, count) = job.source else { continue }
            if let other = jobs[source], other.isInPrompt, other.cache.tokens.count < count {
                delayed.append(id)
            } else {
                job.source = nil
                begin(job)
            }
        }
    }

    /// Lets the jobs go on that wait no longer.
    private func resumeBlocked() {
        for job in jobs.values where job.isBlocked && !job.work.isBlocked {
            job.isBlocked = false
            scheduler.setBlocked(false, of: job.id)
            advance(job)
        }
    }

    /// The job whose prompt begins like that of `job` and is being processed, if waiting for it saves work.
    private func source(for job: Job, cached: Int) -> (id: Int, count: Int)? {
        // Recurrent states can be copied only where there is a checkpoint.
        if job.cache.isRecurrent { return nil }
        var best: (id: Int, count: Int)?
        for other in jobs.values where other !== job && other.isInPrompt && other.source == nil && memory.isShared(other.cache) {
            // Nobody waits for background work.
            if other.priority == .background, job.priority == .interactive { continue }
            if !other.cache.isCompatible(with: job.cache) { continue }
            let count = job.work.prompt.rows.commonPrefix(with: other.work.prompt.rows)
            let gain = count - max(cached, other.cache.tokens.count)
            if gain >= Self.minimumSharedTokens, count > best?.count ?? 0 { best = (other.id, count) }
        }
        return best
    }

    /// Waiting for another job's prompt must save at least this number of tokens.
    private static let minimumSharedTokens = 64

    /// Makes the job's cache contain the longest reusable part of its prompt; the rest is to be processed. If the prompt of
    /// another job begins in the same way, the job waits until that part has been processed.
    private func begin(_ job: Job) {
        let (input, cache) = (job.work.prompt, job.cache)
        let prompt = input.rows
        do { try input.check(width: model.limits.width, batchRows: scheduler.limits.batchTokens) } catch {
            return end(job, .failure(GenerationFailure.unusableInput(error)))
        }
        if let source = source(for: job, cached: cache.reusablePrefix(of: prompt)) {
            job.source = source
            delayed.append(job.id)
            return
        }
        // Without memory for a copy, the prompt is computed.
        try? memory.copyPrefix(to: cache, for: prompt, model: identity, user: ObjectIdentifier(self))
        // Generation starts from the logits of the last token.
        let limit = job.work.wantsPromptLogits ? prompt.count - 1 : prompt.count
        let cached = cache.rewind(to: max(0, cache.reusablePrefix(of: prompt, limit: limit)))
        job.input = input
        job.tokens.append(contentsOf: prompt.ids[cached...])
        job.wanted = job.work.wantsPromptLogits ? .last(1) : .processOnly
        job.isInPrompt = true
        // Recurrent states can be restored only at a checkpoint, so one is saved before the token that is computed each time.
        if cache.isRecurrent { job.checkpoint = prompt.undivided(limit) }
        job.work.begin(cachedTokens: cached)
        if job.remaining > 0 { schedule(job) } else { advance(job) }
    }

    /// Asks the work for its next tokens, and ends the job if there are none.
    private func advance(_ job: Job) {
        job.isInPrompt = false
        job.tokens.removeAll(keepingCapacity: true)
        job.processed = 0
        do {
            while let wanted = try job.work.next(&job.tokens, draft: draftBudget(job)) {
                if case .blocked = wanted {
                    job.isBlocked = true
                    scheduler.setBlocked(true, of: job.id)
                    return schedule(job)
                }
                try select(job)
                job.wanted = wanted
                if job.remaining > 0 { return schedule(job) }
            }
            try select(job)
            end(job, .success(()))
        } catch {
            end(job, .failure(error))
        }
    }

    /// Goes to the branch on which the work goes on, and makes its cache contain the tokens before those that are named.
    private func select(_ job: Job) throws {
        let branch = job.work.branch
        if branch != job.branch?.id {
            leaveBranch(job)
            job.input = job.work.input
            if let branch { return try begin(branch, of: job) }
        }
        truncate(job)
    }

    private func begin(_ branch: WorkBranch, of job: Job) throws {
        let own = job.cache
        let cache: any SequenceMemory
        do {
            cache = try model.makeMemory(capacity: own.capacity, format: own.format, adapter: own.adapter)
        } catch {
            guard case .outOfMemory(let bytes) = error else { throw error }
            throw GenerationFailure.outOfMemory(bytes: bytes)
        }
        cache.domain = own.domain
        let position = job.work.position ?? 0
        var contents = InputRows()
        (job.work.tokens(in: 0..<position) + job.tokens).withUnsafeBufferPointer { contents.append($0, of: job.input?.rows) }
        // Errors of both copies say that there is no memory for them: then the tokens are computed.
        let known = own.reusablePrefix(of: contents)
        if known > 0, let room = memory.reserve(cache.bytesToCopy(known)) {
            try? cache.copyPrefix(of: own, count: known, in: room)
        }
        try? memory.copyPrefix(to: cache, for: contents, model: identity, user: ObjectIdentifier(self))
        let cached = cache.rewind(to: cache.reusablePrefix(of: contents, limit: position))
        job.tokens.removeAll(keepingCapacity: true)
        job.tokens += contents.ids[cached...]
        job.branch = (branch, cache)
        if cache.isRecurrent { job.checkpoint = contents.undivided(position) }
        job.work.begin(cachedTokens: cached)
    }

    private func leaveBranch(_ job: Job) {
        guard let (id, cache) = job.branch else { return }
        job.branch = nil
        job.checkpoint = nil
        cache.rewind(to: id.keptTokens)
        memory.keep(cache, model: identity)
    }

    /// Removes the tokens that the work does not keep from the cache. Recurrent states can be restored only at a
    /// checkpoint; the kept tokens after it are processed again.
    private func truncate(_ job: Job) {
        guard let position = job.work.position, position < job.current.tokens.count else { return }
        let cached = job.current.rewind(to: position)
        if cached < position, !job.tokens.isEmpty {
            job.tokens.insert(contentsOf: job.work.tokens(in: cached..<position), at: 0)
        }
    }

    /// Recurrent states cannot be rewound.
    private func draftBudget(_ job: Job) -> DraftBudget {
        job.cache.isRecurrent ? .none : DraftBudget(sequences: max(1, scheduler.activeCount - delayed.count))
    }

    private func schedule(_ job: Job) {
        let position = job.current.tokens.count
        var boundary = job.checkpoint.map { $0 > position ? $0 - position : .max } ?? .max
        guard let visible = job.input?.rows.visible, let next = visible.firstIndex(where: { $0.upperBound > position }) else {
            return scheduler.setRemaining(job.remaining, boundary: boundary, of: job.id)
        }
        // A chunk divides no range of rows that see each other: the scheduler knows the next one, and ends before the one after it.
        if visible.indices.contains(next + 1) { boundary = min(boundary, visible[next + 1].lowerBound - position) }
        let whole = visible[next].lowerBound - position..<visible[next].upperBound - position
        scheduler.setRemaining(job.remaining, boundary: boundary, whole: whole, of: job.id)
    }

    private func end(_ job: Job, _ result: Result<Void, any Error>) {
        jobs[job.id] = nil
        scheduler.remove(job.id)
        leaveBranch(job)
        telemetry.noteEnd(wasActive: job.isActive)
        if job.isActive { memory.endUse(of: job.cache) }
        memory.trim()
        job.completion(result)
    }

    // MARK: - Passes

    private func forward() {
        tokens.removeAll(keepingCapacity: true)
        // The buffers must not keep caches and requests alive while the engine is idle.
        defer {
            parts.removeAll(keepingCapacity: true)
            rows.removeAll()
            choices.removeAll()
            states.removeAll(keepingCapacity: true)
            stateJobs.removeAll(keepingCapacity: true)
        }
        reserveMemory()
        if chunks.isEmpty { return }
        for chunk in chunks {
            guard let job = jobs[chunk.id] else { continue }
            parts.append(PassPart(job.current, chunk.count, of: job.input))
            tokens.append(contentsOf: job.tokens[job.processed..<job.processed + chunk.count])
            if job.isInPrompt { telemetry.notePrompt(tokens: chunk.count) }
            guard job.isInPrompt, job.remaining == chunk.count else { continue }
            for layer in job.work.stateLayers {
                states.append(RowState(layer: layer, row: tokens.count - 1))
                stateJobs.append(job)
            }
        }
        do {
            try tokens.withUnsafeBufferPointer { tokens in
                // A pass stops within a layer if nobody waits for its result any more.
                try model.forward(tokens, parts: parts, states: &states) {
                    chunks.allSatisfy { jobs[$0.id]?.signals.isCancelled ?? true }
                }
            }
        } catch {
            return  // the next step ends the cancelled jobs
        }
        passes += 1
        processedTokens += tokens.count
        telemetry.notePass(tokens: tokens.count)
        for (job, state) in zip(stateJobs, states) where !state.values.isEmpty {
            job.work.takeState(state.values, layer: state.layer)
        }
        deliverHiddenRows()
        deliver()
    }

    private func deliverHiddenRows() {
        var first = 0
        for chunk in chunks {
            defer { first += chunk.count }
            guard let job = jobs[chunk.id], job.work.wantsHiddenRows, let hidden = model.hiddenRows(from: first) else { continue }
            job.work.takeHidden(hidden, rows: chunk.count, position: job.current.rows.count - chunk.count)
        }
    }

    /// Reserves memory for the chunks. Those for which there is none are left out until other requests have ended. If that are all, another
    /// engine may make room; if none does, the oldest goes on alone with the last memory, or the newest fails.
    private func reserveMemory() {
        var waiting: [Scheduler.Chunk] = []
        chunks.removeAll { chunk in
            guard let job = jobs[chunk.id] else { return true }
            let bytes = job.bytesToReserve(chunk.count)
            let room = bytes > 0 ? memory.reserve(bytes) : nil
            if bytes > 0, room == nil {
                waiting.append(chunk)
                return true
            }
            return !reserve(chunk, job, in: room)
        }
        guard chunks.isEmpty, let oldest = waiting.min(by: { $0.id < $1.id }), let newest = waiting.max(by: { $0.id < $1.id }),
            let first = jobs[oldest.id], let last = jobs[newest.id]
        else { return }
        isStalled = memory.account.othersRun
        if isStalled { return }
        if let room = memory.reserve(first.bytesToReserve(oldest.count), isLast: true) {
            if reserve(oldest, first, in: room) { chunks.append(oldest) }
        } else {
            let bytes = last.bytesToReserve(newest.count)
            telemetry.noteLack(of: bytes)
            end(last, .failure(GenerationFailure.outOfMemory(bytes: bytes)))
        }
    }

    /// - Returns: false if the job has ended because the memory cannot be mapped.
    private func reserve(_ chunk: Scheduler.Chunk, _ job: Job, in room: MemoryReservation?) -> Bool {
        do {
            try job.current.reserve(chunk.count, in: room, withCheckpoint: job.addsCheckpoint(after: chunk.count))
        } catch {
            end(job, .failure(error))
            return false
        }
        return true
    }

    /// Passes the logits of the last batch to their work, and lets that continue whose tokens are complete.
    private func deliver() {
        var first = 0
        for chunk in chunks {
            defer { first += chunk.count }
            guard let job = jobs[chunk.id] else { continue }
            let start = job.processed
            job.processed += chunk.count
            if job.current.tokens.count == job.checkpoint { job.current.addCheckpoint() }
            switch job.wanted {
            case .last(let count):
                for row in max(start, min(job.processed, job.tokens.count - count))..<job.processed {
                    rows.append(first + row - start, of: job)
                }
            case .first(let count):
                for row in start..<max(start, min(job.processed, count)) { rows.append(first + row - start, of: job) }
            case .candidates where job.remaining == 0: choices.append(first + chunk.count - 1, of: job)
            case .candidates, .processOnly, .blocked: break
            }
        }
        take(rows, candidates: nil)
        collectCandidates(of: choices.jobs)
        take(choices, candidates: candidates)
        for chunk in chunks {
            guard let job = jobs[chunk.id] else { continue }
            if job.remaining > 0 {
                schedule(job)
            } else if job.signals.isCancelled {
                end(job, .failure(CancellationError()))
            } else {
                advance(job)
            }
        }
    }

    /// The candidates of all jobs, each once and in ascending order: the rows of the output matrix are read once for all jobs.
    private func collectCandidates(of jobs: [Job]) {
        candidates.removeAll(keepingCapacity: true)
        for job in jobs { if case .candidates(let tokens) = job.wanted { candidates += tokens } }
        if jobs.count == 1 { return }
        candidates.sort()
        var count = 0
        for index in candidates.indices where index == 0 || candidates[index] != candidates[count - 1] {
            candidates[count] = candidates[index]
            count += 1
        }
        candidates.removeLast(candidates.count - count)
    }

    private func take(_ wanted: LogitRows, candidates: [TokenID]?) {
        let limit = model.limits.logitRows
        for start in stride(from: 0, to: wanted.rows.count, by: limit) {
            let part = start..<min(start + limit, wanted.rows.count)
            model.computeLogits(ofRows: wanted.rows[part], candidates: candidates)
            for index in part { take(wanted.jobs[index], model.logits(index - start)) }
        }
    }

    private func take(_ job: Job, _ logits: UnsafeMutableBufferPointer<Float>) {
        // A cancellation takes effect between two tokens of a batch, too.
        guard jobs[job.id] != nil, !job.signals.isCancelled else { return }
        do { try job.work.take(logits) } catch { end(job, .failure(error)) }
    }
}

/// Rows of a pass, and the jobs that take their logits.
private struct LogitRows {
    private(set) var rows: [Int] = []
    private(set) var jobs: [Job] = []

    mutating func append(_ row: Int, of job: Job) {
        rows.append(row)
        jobs.append(job)
    }

    mutating func removeAll() {
        rows.removeAll(keepingCapacity: true)
        jobs.removeAll(keepingCapacity: true)
    }

    mutating func reserveCapacity(_ count: Int) {
        rows.reserveCapacity(count)
        jobs.reserveCapacity(count)
    }
}
