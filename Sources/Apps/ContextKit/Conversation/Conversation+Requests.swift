internal import AsyncLocks
import Foundation
import FoundationModels
internal import TokenCounts

/// Sending requests, and recording their answers.
extension Conversation {
    func ask<Result: Sendable>(
        _ prompt: String, _ schema: GenerationSchema?, _ options: GenerationOptions, _ place: AsyncLock.Place? = nil,
        _ operation: Operation<Result>
    ) async throws -> Result {
        // A tool that sends a request to the conversation which waits for the tool would cause a deadlock.
        if hasExclusiveAccess || isRunningTools {
            if let place { lock.giveUp(place) }
            throw LanguageModelSession.Error.concurrentRequests
        }
        let result = try await exclusively(place) {
            await restoring?.value
            restoring = nil
            await compactIfDue()
            try Task.checkCancellation()
            try saveUnsaved()
            try refresh()
            let request = Request(prompt: prompt, schema: schema, options: options)
            let date = Self.today ?? Date()
            var asked = try await prepare(request)
            try Task.checkCancellation()
            // Another program that continues the same conversation may have used the number in the meantime.
            while try !archive.recordPrompt(prompt, number: state.nextNumber, date: date, in: id) {
                let taken = state.nextNumber
                try refresh()
                // If no newer turn is found, the file is damaged: the turn with this number cannot be read.
                guard state.nextNumber > taken else { throw ConversationError.archive(.init("there is no free turn number.")) }
                asked = try await prepare(request)
                try Task.checkCancellation()
            }
            let number = state.begin()
            defer {
                state.end()
                updateSession()
            }
            let partial = PartialResponse()
            let result: Result
            do {
                result = try await attempt(request, asked, partial, operation)
            } catch {
                keepPartial(request, asked, number, date, partial, error)
                throw error
            }
            state.isCompactionDue = true
            // Waits until this request has ended, because it is not part of it. If the next request begins earlier, that
            // request makes the context smaller itself.
            Self.$sections.withValue([]) {
                _ = Task { try await self.exclusively { await self.compactIfDue() } }
            }
            try record(turn(number, prompt, date, newEntries, asked).encodable)
            return result
        }
        return result
    }

    /// Sends a request to a session, and stores what has been generated so far.
    typealias Operation<Result> =
        @Sendable (
            _ session: LanguageModelSession, _ prompt: String, _ attempt: Int, _ partial: PartialResponse
        ) async throws -> sending Result

    /// The text that is sent for a prompt, and whether recalled turns are in front of it.
    struct Message {
        var text: String
        var hasRecalled = false
    }

    /// A prompt and the form of its response.
    struct Request {
        let prompt: String
        let schema: GenerationSchema?
        let options: GenerationOptions

        func entry(_ text: String) -> Transcript.Entry {
            .prompt(
                .init(
                    segments: [.text(.init(content: text))], options: options,
                    responseFormat: schema.map { Transcript.ResponseFormat(schema: $0) }))
        }
    }

    /// Sends a request, and repeats it once if the window is exceeded. The second time the response itself is too long.
    private func attempt<Result>(
        _ request: Request, _ asked: Message, _ partial: PartialResponse, _ operation: Operation<Result>
    ) async throws -> sending Result {
        do {
            return try await operation(session, asked.text, 1, partial)
        } catch let error where error.isOverflow {
            // Tools that have run are not run again, because they may have side effects.
            if newEntries.contains(where: { if case .toolOutput = $0 { true } else { false } }) { throw error }
            partial.startAgain(after: newEntries)
            rebuild()
            await compactNow(.overflow)
            try Task.checkCancellation()
        }
        let plain = state.withNewFacts(request.prompt)
        if try await !fits(plain, request) { try await evictAllTurns(for: plain, request) }
        lastRecall?.discardTexts()
        return try await operation(session, plain, 2, partial)
    }

    /// A turn with these entries. The second attempt sends a prompt without recalled turns.
    private func turn(
        _ number: Int, _ prompt: String, _ date: Date, _ entries: [Transcript.Entry], _ asked: Message
    ) -> Turn {
        var turn = Turn(number: number, prompt: prompt, date: date, entries: entries)
        turn.hasRecalled =
            asked.hasRecalled
            && entries.contains { if case .prompt(let sent) = $0 { sent.segments.plainText == asked.text } else { false } }
        return turn
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
    private func keepPartial(
        _ request: Request, _ asked: Message, _ number: Int, _ date: Date, _ response: PartialResponse, _ error: any Error
    ) {
        var (isUnsafe, isAnswer) = (false, request.schema == nil)
        switch error as? LanguageModelError {
        case .guardrailViolation: isUnsafe = true
        case .refusal: isAnswer = false
        default: break
        }
        func kept(_ entries: [Transcript.Entry], _ text: String?) -> Turn {
            let turn = turn(number, request.prompt, date, entries, asked).partial(text: isAnswer ? text : nil)
            return isAnswer ? turn : turn.withoutAnswer
        }
        var partial = kept(newEntries, response.text)
        // The second attempt may have failed before its first token: the text of the first one was shown.
        if !partial.hasAnswer, let first = response.firstAttempt { partial = kept(first.entries, first.text) }
        if !isUnsafe, partial.hasAnswer {
            state.add(partial)
            do { try saveUnsaved() } catch { archiveProblem = ConversationError(archive: error) }
        } else {
            // If this fails, the prompt remains marked as unanswered.
            do {
                try archive.removePrompt(turn: number, in: id)
                state.removed(number)
            } catch { archiveProblem = ConversationError(archive: error) }
        }
        rebuild()
    }

    private func fits(_ prompt: String, _ request: Request) async throws -> Bool {
        try await count(Array(session.transcript) + [request.entry(prompt)]) + reserve(request) <= model.contextSize
    }

    /// Makes space for a prompt and returns it with the earlier turns that it needs.
    private func prepare(_ request: Request) async throws -> Message {
        // A prompt that does not fit at all is rejected before it is searched for and anything is evicted for it. Nearly
        // all prompts have fewer bytes than the window has tokens.
        if request.prompt.utf8.count > model.contextSize { try await checkFits(request) }
        let plan = try await plan(for: request)
        let tokens = try await plan.plainTokens - count(plan.entries)
        state.expect(promptTokens: tokens, reserve: reserve(request), contextSize: model.contextSize)
        if plan.fits {
            guard needsRoomForRecall(plan) else { return apply(plan) }
            await compactNow(.recall)
            try Task.checkCancellation()
            let second = try await self.plan(for: request)
            if second.fits { return apply(second) }
        }
        let plain = state.withNewFacts(request.prompt)
        try await checkFits(request)
        await compactNow(.beforeRequest)
        try Task.checkCancellation()
        let second = try await self.plan(for: request)
        if second.fits { return apply(second) }
        lastRecall = second.recall
        try await evictAllTurns(for: plain, request)
        return Message(text: plain)
    }

    /// Whether the context should be made smaller because something that is worth its tokens did not fit beside it. A context that is
    /// small already would not give much room, and would be computed again.
    private func needsRoomForRecall(_ plan: Plan) -> Bool {
        guard plan.recall.isNeeded, plan.recall.isBudgetExhausted, let policy = policy.recall else { return false }
        let wanted = policy.tokens(contextSize: model.contextSize, evidence: plan.recall.evidence)
        return plan.recall.budget < wanted && plan.plainTokens > model.contextSize.share(Self.crowdedShare)
    }

    /// A compaction leaves some 22 % of the window.
    private static let crowdedShare = 0.4

    /// - Throws: ``ConversationError/promptTooLarge(_:)`` if the prompt does not fit the window without any turns.
    private func checkFits(_ request: Request) async throws {
        let head = state.head(pinned: state.draft().pinned)
        let counts = try await model.tokenCounts(
            of: head + [request.entry(state.withNewFacts(request.prompt))], without: head)
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
        return Message(text: plan.text, hasRecalled: plan.recall.tokens > 0)
    }

    /// For a prompt that takes nearly the whole window: evicts all turns and, if necessary, leaves out the carried text
    /// until the next compaction.
    private func evictAllTurns(for prompt: String, _ request: Request) async throws {
        var bare = state.draft()
        bare.evict { _ in true }
        let carried = bare.carried
        if try await count(bare.entries + [request.entry(prompt)]) + reserve(request) > model.contextSize { bare.carried = "" }
        state.adopt(bare)
        rebuild()
        state.carryLater(carried)
    }
}

extension Turn {
    /// The turn with an incomplete answer.
    ///
    /// - Parameter text: The text generated so far: a cancelled session that has not ended yet has no entry for it.
    func partial(text: String?) -> Turn {
        var turn = encodable
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
