internal import Waiting
import Foundation
import FoundationModels
internal import TokenCounts

/// Sending requests, and recording their answers. A request passes through ``answer(_:at:showing:_:)``, which calls the functions below
/// it from the first to the last.
extension Conversation {
    /// Sends a message to a session, which streams the answer.
    typealias Sender<Content: Generable> =
        @Sendable (LanguageModelSession, Message) -> sending LanguageModelSession.ResponseStream<Content>

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - place: The place in the queue, if it has been reserved.
    ///   - show: Receives what has been generated so far.
    func answer<Content: Generable & Sendable>(
        _ request: Request, at place: AsyncLock.Place? = nil, showing show: @Sendable (PartialAnswer) -> Void = { _ in },
        _ send: Sender<Content>
    ) async throws -> LanguageModelSession.Response<Content> {
        // A tool that sends a request to the conversation which waits for the tool would cause a deadlock.
        if hasExclusiveAccess || isRunningTools {
            if let place { lock.giveUp(place) }
            throw LanguageModelSession.Error.concurrentRequests
        }
        return try await exclusively(place) {
            await restoring?.value
            restoring = nil
            await compactIfDue()
            try Task.checkCancellation()
            try saveUnsaved()
            try refresh()
            try request.checkAttachments()
            let date = Self.today ?? Date()
            let (number, message) = try await begin(request, date)
            defer {
                state.end()
                updateSession()
            }
            var attempts: [Attempt] = []
            let response: LanguageModelSession.Response<Content>
            do {
                response = try await attempt(message, &attempts, showing: show, send)
            } catch {
                keepPartial(request, number, date, attempts, error)
                throw error
            }
            state.isCompactionDue = true
            // Waits until this request has ended, because it is not part of it. If the next request begins earlier, that
            // request makes the context smaller itself.
            Self.$sections.withValue([]) {
                _ = Task { try await self.exclusively { await self.compactIfDue() } }
            }
            try record(Turn(number, date, attempts.last?.message ?? message, newEntries).storable)
            return response
        }
    }

    /// Prepares a request, and writes its prompt to the archive under the number of a new turn.
    private func begin(_ request: Request, _ date: Date) async throws -> (number: Int, message: Message) {
        while true {
            let message = try await prepare(request)
            try Task.checkCancellation()
            let number = state.nextNumber
            if try archive.recordPrompt(request.text, number: number, date: date, in: id) { return (state.begin(), message) }
            // Another program that continues the same conversation has used the number in the meantime.
            try refresh()
            // If no newer turn is found, the file is damaged: the turn with this number cannot be read.
            guard state.nextNumber > number else { throw ConversationError.archive(.init("there is no free turn number.")) }
        }
    }

    /// A message that was sent, and what was generated for it.
    private struct Attempt {
        let message: Message
        /// When a request is cancelled, its stream ends immediately, but the session ends later: after the current token, or when a
        /// tool that ignores cancellation returns. Then only this has what was shown.
        var content: GeneratedContent?
        /// The entries of an attempt that was started again; nil if they are in the session.
        var entries: [Transcript.Entry]?

        var text: String? {
            content.map { content in
                // Text, unless it is a structure.
                if case .string(let text) = content.kind { text } else { content.jsonString }
            }
        }
    }

    /// Sends a message, and repeats it once if the window is exceeded. The second time the response itself is too long.
    private func attempt<Content: Generable & Sendable>(
        _ message: Message, _ attempts: inout [Attempt], showing show: @Sendable (PartialAnswer) -> Void,
        _ send: Sender<Content>
    ) async throws -> LanguageModelSession.Response<Content> {
        do {
            return try await response(to: message, &attempts, showing: show, send)
        } catch let error where error.isOverflow {
            // Tools that have run are not run again, because they may have side effects.
            if newEntries.contains(where: { if case .toolOutput = $0 { true } else { false } }) { throw error }
            attempts[0].entries = newEntries
            rebuild()
            await compactNow(.overflow)
            try Task.checkCancellation()
        }
        let second = withoutRecall(message.request)
        if try await !fits(second) { try await evictAllTurns(for: second) }
        lastRecall?.discardTexts()
        return try await response(to: second, &attempts, showing: show, send)
    }

    private func response<Content: Generable & Sendable>(
        to message: Message, _ attempts: inout [Attempt], showing show: @Sendable (PartialAnswer) -> Void,
        _ send: Sender<Content>
    ) async throws -> LanguageModelSession.Response<Content> {
        attempts.append(Attempt(message: message))
        let stream = send(session, message)
        for try await snapshot in stream {
            attempts[attempts.count - 1].content = snapshot.rawContent
            show(
                PartialAnswer(
                    content: snapshot.rawContent, entries: snapshot.transcriptEntries, usage: snapshot.usage,
                    attempt: attempts.count))
        }
        return try await stream.collect()
    }

    private func record(_ turn: Turn) throws {
        state.add(turn)
        didRecordEntries()
        do { try saveUnsaved() } catch {
            // The answer is available; it is written before the next prompt.
            let problem = ConversationError(archive: error)
            archiveProblem = problem
            // The turn is written before the context: it may be saved even if there was an error.
            guard state.unsavedTurns.contains(where: { $0.number == turn.number }) else { return }
            var reason = problem.localizedDescription
            if case .archive(let failure) = problem { reason = failure.reason }
            throw ConversationError.unsaved(.init(content: turn.response, reason: reason))
        }
    }

    /// After an error, keeps the text generated so far and the results of tools. If there are none, or after a guardrail violation, the
    /// prompt is removed from the archive. A refusal and a part of a value are no answers.
    private func keepPartial(_ request: Request, _ number: Int, _ date: Date, _ attempts: [Attempt], _ error: any Error) {
        var (isUnsafe, isAnswer) = (false, request.schema == nil)
        switch error as? LanguageModelError {
        case .guardrailViolation: isUnsafe = true
        case .refusal: isAnswer = false
        default: break
        }
        // The second attempt may have failed before its first token: the text of the first one was shown.
        let partial = attempts.reversed().lazy.map { attempt in
            let turn = Turn(number, date, attempt.message, attempt.entries ?? self.newEntries)
                .partial(text: isAnswer ? attempt.text : nil)
            return isAnswer ? turn : turn.withoutAnswer
        }.first(where: \.hasAnswer)
        if !isUnsafe, let partial {
            state.add(partial)
            saveContext()
        } else {
            // If this fails, the prompt remains marked as unanswered.
            do {
                try archive.removePrompt(turn: number, in: id)
                state.removed(number)
            } catch { archiveProblem = ConversationError(archive: error) }
        }
        rebuild()
    }

    // MARK: - Space for a request

    /// The message of a request with new facts, and without earlier turns.
    func withoutRecall(_ request: Request) -> Message { Message(request: request, facts: state.newFacts) }

    private func fits(_ message: Message) async throws -> Bool {
        try await count(Array(session.transcript) + [message.entry]) + reserve(message.request) <= model.contextSize
    }

    /// Makes space for a prompt and returns it with the earlier turns that it needs.
    private func prepare(_ request: Request) async throws -> Message {
        // A prompt that does not fit at all is rejected before it is searched for and anything is evicted for it. Nearly
        // all prompts have fewer bytes than the window has tokens.
        if request.text.utf8.count > model.contextSize { try await checkFits(request) }
        let plan = try await plan(for: request)
        let tokens = try await plan.tokensWithoutRecall - count(plan.entries)
        state.expect(promptTokens: tokens, reserve: reserve(request), contextSize: model.contextSize)
        if plan.fits {
            guard needsRoomForRecall(plan) else { return apply(plan) }
            await compactNow(.recall)
            try Task.checkCancellation()
            let second = try await self.plan(for: request)
            if second.fits { return apply(second) }
        }
        let message = withoutRecall(request)
        try await checkFits(request)
        await compactNow(.beforeRequest)
        try Task.checkCancellation()
        let second = try await self.plan(for: request)
        if second.fits { return apply(second) }
        lastRecall = second.recall
        try await evictAllTurns(for: message)
        return message
    }

    /// Whether the context should be made smaller because something that is worth its tokens did not fit beside it. A context that is
    /// small already would not give much room, and would be computed again.
    private func needsRoomForRecall(_ plan: Plan) -> Bool {
        guard plan.recall.isNeeded, plan.recall.isBudgetExhausted, let policy = policy.recall else { return false }
        let wanted = policy.tokens(contextSize: model.contextSize, evidence: plan.recall.evidence)
        return plan.recall.budget < wanted && plan.tokensWithoutRecall > model.contextSize.share(Self.crowdedShare)
    }

    /// A compaction leaves some 22 % of the window.
    private static let crowdedShare = 0.4

    /// - Throws: ``ConversationError/promptTooLarge(_:)`` if the prompt does not fit the window without any turns.
    private func checkFits(_ request: Request) async throws {
        let head = state.head(pinned: state.draft().pinned)
        let counts = try await model.tokenCounts(
            of: head + [withoutRecall(request).entry], without: head)
        guard counts.whole + reserve(request) <= model.contextSize else {
            throw ConversationError.promptTooLarge(
                .init(
                    contextSize: model.contextSize, fixedTokens: counts.rest, promptTokens: counts.part,
                    responseReserve: reserve(request)))
        }
    }

    /// Applies a plan to the context and returns its message.
    private func apply(_ plan: Plan) -> Message {
        if let turns = plan.turns {
            state.replaceTurns(turns)
            rebuild()
        }
        lastRecall = plan.recall
        ConversationTrace.record(plan.recall)
        return plan.message
    }

    /// For a prompt that takes nearly the whole window: evicts all turns and, if necessary, leaves out the carried text
    /// until the next compaction.
    private func evictAllTurns(for message: Message) async throws {
        var bare = state.draft()
        bare.evict { _ in true }
        let carried = bare.carried
        let tokens = try await count(bare.entries + [message.entry])
        if tokens + reserve(message.request) > model.contextSize { bare.carried = "" }
        state.adopt(bare)
        rebuild()
        state.carryLater(carried)
    }
}

extension Turn {
    /// The turn of a message. A session joins what the conversation has added to a prompt with the prompt: here they are segments of
    /// their own, by whose ids they are found again.
    init(_ number: Int, _ date: Date, _ message: Message, _ entries: [Transcript.Entry]) {
        self.init(number: number, prompt: message.request.text, date: date, entries: entries)
        guard message.hasAdditions, let index = entries.firstIndex(where: { if case .prompt = $0 { true } else { false } }),
            case .prompt(var prompt) = entries[index]
        else { return }
        prompt.segments = message.segments
        self.entries[index] = .prompt(prompt)
    }

    /// The turn with an incomplete answer.
    ///
    /// - Parameter text: The text generated so far: a cancelled session that has not ended yet has no entry for it.
    func partial(text: String?) -> Turn {
        var turn = storable
        // Calls without outputs are removed: the model would see calls without results.
        var answered: Set<String> = []
        for case .toolOutput(let output) in turn.entries { answered.insert(output.id) }
        turn.entries.removeAll { entry in
            guard case .toolCalls(let calls) = entry else { return false }
            return !calls.allSatisfy { answered.contains($0.id) }
        }
        if let text, !text.isEmpty, !turn.entries.contains(where: { $0.isResponse(text) }),
            turn.entries.last.map({ if case .response = $0 { false } else { true } }) ?? true
        {
            turn.entries.append(.response(Transcript.Response(assetIDs: [], segments: [.text(.init(content: text))])))
        }
        return turn
    }
}

extension Transcript.Entry {
    /// Whether the entry is a response with this text.
    func isResponse(_ text: String) -> Bool {
        guard case .response(let response) = self else { return false }
        return response.segments.contains { if case .text(let segment) = $0 { segment.content == text } else { false } }
    }
}
