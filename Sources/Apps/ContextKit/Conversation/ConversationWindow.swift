public import FoundationModels
internal import Logging
internal import Waiting

/// Fits a conversation that a program keeps itself into the window of a model: old turns are left out, and what the last prompt needs of
/// them is put in front of it.
///
/// A ``Conversation`` keeps its turns in an archive. This is for programs whose clients send all turns with each request, or that have a
/// store of their own, such as a server:
///
/// ```swift
/// let window = try ConversationWindow()
/// let fitted = try await window.fit(entries, contextSize: 4096, reserve: 512) { try await model.tokenCount(for: $0) }
/// let transcript = Transcript(entries: fitted.entries)
/// ```
///
/// Use one window for one conversation: it remembers what it has read of the turns. Which turns are left out depends on the conversation
/// alone, and changes in large steps, so that the beginning of the context, and what a model has computed for it, stays the same for many
/// turns. Calls of one window take turns.
public actor ConversationWindow {
    /// A conversation that fits.
    public struct Fitted: Sendable {
        /// The entries for the model.
        public var entries: [Transcript.Entry]
        /// The tokens of the entries.
        public var tokens: Int
        /// The number of turns that were left out.
        public var leftOutTurns = 0
        /// What was found of them; nil if nothing was left out.
        public var recall: Recall?
    }

    /// The last prompt does not fit, even without all turns before it.
    public struct TooLong: Error, Sendable {
        /// The tokens of instructions and prompt.
        public var tokens: Int
        /// The tokens for which there is room.
        public var limit: Int
    }

    private let policy: RecallPolicy?
    private nonisolated let executor: DatabaseExecutor
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let lock = AsyncLock()
    private var archive: ConversationArchive
    /// The turns that are in the archive: their texts, and their tokens.
    private var known: [(text: String, tokens: TurnTokens)] = []

    /// The tokens that a turn adds.
    struct TurnTokens {
        /// Those that the model has read before it answered: of the prompt, and of calls of tools with their outputs.
        var request: Int
        var answer: Int
    }

    /// - Parameter recall: How turns that were left out are found; nil to leave them out for good.
    /// - Throws: ``ConversationError/archive(_:)``
    public init(recall: RecallPolicy? = RecallPolicy()) throws {
        policy = recall
        executor = DatabaseExecutor()
        archive = try Self.emptyArchive()
    }

    private static let id = "window"

    private static func emptyArchive() throws -> ConversationArchive {
        let archive = try ConversationArchive()
        try archive.begin(id, .init())
        return archive
    }

    /// The share of the room above which turns are left out, and that of instructions and turns that remain before the request then: as a
    /// compaction does it.
    private static let threshold = 0.85
    private static let remainder = 0.3

    /// Fits a conversation into a window.
    ///
    /// - Parameters:
    ///   - entries: The whole conversation, with its instructions. Its last prompt is the one to answer.
    ///   - contextSize: The tokens of the window.
    ///   - reserve: The tokens that are kept free for the response.
    ///   - count: The number of tokens of entries, as the model processes them.
    /// - Throws: ``TooLong``, the errors of counting, ``ConversationError/archive(_:)``, or `CancellationError`.
    public func fit(
        _ entries: [Transcript.Entry], contextSize: Int, reserve: Int,
        count: @escaping @Sendable ([Transcript.Entry]) async throws -> Int
    ) async throws -> Fitted {
        try await lock.acquire()
        defer { lock.release() }
        let limit = contextSize - reserve
        let whole = try await count(entries)
        if whole <= limit { return Fitted(entries: entries, tokens: whole) }

        let (head, turns, last) = Self.parts(entries)
        // What cannot fit is known before anything else is counted.
        let fixed = try await count(head + last)
        guard fixed <= limit else { throw TooLong(tokens: fixed, limit: limit) }
        try await learn(turns, count)
        let request = try await count(last)
        var first = Self.firstKept(known.map(\.tokens), request: request, fixed: fixed - request, limit: limit)
        var tokens = 0
        func kept() -> [Transcript.Entry] { head + turns[first...].flatMap(\.entries) + last }
        while true {
            try Task.checkCancellation()
            tokens = try await count(kept())
            if tokens <= limit { break }
            guard first < turns.count else { throw TooLong(tokens: tokens, limit: limit) }
            first += 1
        }
        var fitted = Fitted(entries: kept(), tokens: tokens, leftOutTurns: first)
        try await recall(into: &fitted, turns.count, limit, contextSize, last, count)
        return fitted
    }

    // MARK: - Turns

    /// The instructions, the complete turns, and what began with the last prompt.
    private static func parts(
        _ entries: [Transcript.Entry]
    ) -> (head: [Transcript.Entry], turns: [Turn], last: [Transcript.Entry]) {
        let isPrompt: (Transcript.Entry) -> Bool = { if case .prompt = $0 { true } else { false } }
        let first = entries.firstIndex(where: isPrompt) ?? entries.endIndex
        var turns: [Turn] = []
        var open: [Transcript.Entry] = []
        func close() {
            guard case .prompt(let prompt)? = open.first else { return }
            turns.append(Turn(number: turns.count, prompt: prompt.segments.plainText, date: nil, entries: open))
        }
        for entry in entries[first...] {
            if isPrompt(entry) {
                close()
                open = []
            }
            open.append(entry)
        }
        return (Array(entries[..<first]), turns, open)
    }

    /// Puts the turns into the archive that are not there. A conversation whose beginning has changed is read anew.
    private func learn(_ turns: [Turn], _ count: ([Transcript.Entry]) async throws -> Int) async throws {
        let texts = turns.map(\.text)
        if known.count > turns.count || !zip(known, texts).allSatisfy({ $0.text == $1 }) {
            archive = try Self.emptyArchive()
            known = []
        }
        for turn in turns[known.count...] {
            try Task.checkCancellation()
            // What a template adds to each conversation is counted with each turn: these counts only choose the turns.
            let whole = try await count(turn.entries)
            var tokens = TurnTokens(request: whole, answer: 0)
            if case .response? = turn.entries.last {
                tokens.request = min(whole, try await count(Array(turn.entries.dropLast())))
                tokens.answer = whole - tokens.request
            }
            guard try archive.recordPrompt(turn.prompt, number: turn.number, date: nil, in: Self.id) else { return }
            try archive.recordAnswer(turn.storable, in: Self.id)
            known.append((texts[turn.number], tokens))
        }
    }

    /// The first turn that is kept: as if turns had been left out whenever a request was too long.
    ///
    /// What was left out for a request is left out for all later ones, whatever their length: a prompt alone changes nothing that was
    /// decided before it.
    ///
    /// - Parameters:
    ///   - turns: The tokens of the turns before the request.
    ///   - request: Those of the request.
    ///   - fixed: Those of the instructions.
    static func firstKept(_ turns: [TurnTokens], request: Int, fixed: Int, limit: Int) -> Int {
        var first = 0
        var sum = fixed
        for (index, turn) in (turns + [TurnTokens(request: request, answer: 0)]).enumerated() {
            sum += turn.request
            if Double(sum) > Double(limit) * threshold {
                while first < index, Double(sum - turn.request) > Double(limit) * remainder {
                    sum -= turns[first].request + turns[first].answer
                    first += 1
                }
            }
            sum += turn.answer
        }
        return first
    }

    // MARK: - Recall

    private func recall(
        into fitted: inout Fitted, _ turnCount: Int, _ limit: Int, _ contextSize: Int, _ last: [Transcript.Entry],
        _ count: @escaping @Sendable ([Transcript.Entry]) async throws -> Int
    ) async throws {
        guard let policy, fitted.leftOutTurns > 0, case .prompt(let prompt)? = last.first else { return }
        let text = prompt.segments.plainText
        do {
            try await policy.search.prepare(Self.id, of: archive)
        } catch let error as CancellationError {
            throw error
        } catch {
            // They are searched by words.
            Logger.contextKit.warning("Turns that were left out are not prepared for searches: \(error)")
        }
        var (recall, matches) = try await policy.find(
            for: text, in: Self.id, of: archive, count: turnCount, except: Set(fitted.leftOutTurns..<turnCount))
        defer { fitted.recall = recall }
        if let problem = recall.problem {
            Logger.contextKit.warning("Turns that were left out cannot be searched: \(problem)")
        }
        guard recall.isNeeded else { return }
        let stored = try archive.turns(of: Self.id, numbers: Set(matches.map(\.number)))
        // Templates write no conversation without a prompt: a text is counted as the part of one.
        let base = try await count(last)
        let (entries, tokens) = (fitted.entries, fitted.tokens)
        let block = try await policy.fill(
            &recall, within: min(limit - tokens, policy.tokens(contextSize: contextSize, evidence: recall.evidence)),
            from: matches, stored, count: { try await count(Self.inserting($0, into: last)) - base },
            added: { try await count(Self.inserting($0, into: entries)) - tokens })
        guard let block else { return }
        fitted.entries = Self.inserting(block, into: entries)
        fitted.tokens += recall.tokens
    }

    /// The entries with a text in front of the last prompt.
    private static func inserting(_ text: String, into entries: [Transcript.Entry]) -> [Transcript.Entry] {
        var entries = entries
        guard let place = entries.lastIndex(where: { if case .prompt = $0 { true } else { false } }),
            case .prompt(var prompt) = entries[place]
        else { return entries }
        prompt.segments.insert(.text(.init(id: Message.recalledID, content: text)), at: 0)
        entries[place] = .prompt(prompt)
        return entries
    }
}
