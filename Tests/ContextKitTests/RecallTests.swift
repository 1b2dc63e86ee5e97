import Foundation
import FoundationModels
import ModelPrompts
import Synchronization
import Testing

@testable import ContextKit

/// Tests which turns are recalled, when, and at what cost.
struct RecallTests {
    private static func filled(_ model: StubModel, turns: Int = 60, search: (any TurnSearch)? = nil) async throws -> Conversation
    {
        var policy = ContextPolicy.standard
        if let search { policy.recall?.search = search }
        let conversation = try await Conversation(model: model, instructions: "You are a companion.", policy: policy)
        let days = [1_683_500_000.0, 1_690_000_000]
        try await Conversation.$today.withValue(Date(timeIntervalSince1970: days[0])) {
            try await conversation.respond(to: "Nadia told me that she begins with a pottery class.")
            try await conversation.respond(to: "Her brother Tobias repairs clocks in Trieste.")
        }
        try await Conversation.$today.withValue(Date(timeIntervalSince1970: days[1])) {
            for turn in 0..<turns { try await conversation.respond(to: "We spoke about weather and food, number\(turn).") }
        }
        #expect(await !conversation.state.turns.contains { $0.number < 2 })
        return conversation
    }

    @Test(
        "[D4] relevant turns are recalled for differently phrased prompts",
        arguments: [
            "When did Nadia start the pottery class?", "Which class was it, the pottery one?", "Tell me about the pottery class.",
            "pottery class Nadia", "What happened on 7 May 2023?", "What was it about the pottery class in May 2023?",
        ])
    func found(prompt: String) async throws {
        let conversation = try await Self.filled(StubModel(contextSize: 500))
        let recall = try await conversation.recall(for: prompt)
        #expect(recall.isNeeded, "\(recall.summary)")
        #expect(recall.recalledItems.contains { $0.text.contains("pottery class") })
    }

    @Test(
        "[D4] small talk recalls nothing",
        arguments: [
            "Good morning! How are you today?", "Thanks, Nadia!", "That is nice to hear.", "Tell me a joke.", "Yes, please.",
            "What is the capital of Norway?", "I slept badly, and then the neighbours began to drill holes into a wall at seven.",
        ])
    func notNeeded(prompt: String) async throws {
        let conversation = try await Self.filled(StubModel(contextSize: 400))
        let recall = try await conversation.recall(for: prompt)
        #expect(!recall.isNeeded, "\(recall.summary)")
        #expect(recall.recalledItems.isEmpty && recall.tokens == 0)
    }

    @Test("[D4] recalled turns are marked as said earlier, with date and speaker") func marked() async throws {
        let model = StubModel(contextSize: 400)
        let conversation = try await Self.filled(model)
        try await conversation.respond(to: "When did Nadia start the pottery class?")
        let asked = try #require(model.requests.last?.lastPrompt)
        #expect(asked.hasPrefix("(Prompt) \(ModelPrompts.recallHeading)"))
        let lines = asked.split(separator: "\n", omittingEmptySubsequences: false)
        let day = try #require(lines.firstIndex { $0.hasPrefix("[") && $0.contains("May 2023") })
        #expect(lines[day + 1] == "User: Nadia told me that she begins with a pottery class.")
        #expect(asked.hasSuffix("\(ModelPrompts.recallFooting)\nWhen did Nadia start the pottery class?"))
        // The archive contains the original prompt.
        #expect(try conversation.archive.turns(of: conversation.id).last?.prompt == "When did Nadia start the pottery class?")
    }

    @Test(
        "[D4] recall uses only free tokens, and makes the context smaller only if it is crowded",
        arguments: [200, 300, 700, 2_000])
    func budget(window: Int) async throws {
        let model = StubModel(contextSize: window) { _ in "Words of an answer, so that there is something to bring back." }
        let compactions = Mutex<[Compaction]>([])
        let conversation = try await Conversation(
            model: model, onCompaction: { record in compactions.withLock { $0.append(record) } })
        for turn in 0..<200 {
            try await conversation.respond(to: "The ship Halcyon\(turn % 40) carries grain, cargo number \(turn).")
        }
        let reserve = conversation.policy.reserve(contextSize: window, limit: nil)
        var recalled = 0
        for turn in 0..<40 {
            let before = compactions.withLock { $0.count }
            try await conversation.respond(to: "What does Halcyon\(turn) carry?")
            let recall = try #require(await conversation.lastRecall)
            #expect(recall.tokens <= recall.budget)
            if !recall.recalledItems.isEmpty { recalled += 1 }
            let input = StubModel.count(try #require(model.requests.last))
            #expect(input + reserve <= window)
            for record in compactions.withLock({ $0.dropFirst(before) }) {
                #expect(record.reason == .threshold || record.reason == .recall && record.tokensBefore > window * 2 / 5)
            }
        }
        #expect(recalled >= 30)
        // A small window is crowded before each question.
        let caused = compactions.withLock { $0.count { $0.reason == .recall } }
        let spoken = compactions.withLock { $0.count } - caused
        #expect(spoken < 240 / 3 && caused <= 40, "too many compactions")
    }

    @Test("[D4] recalled turns are removed again, and the entries before them are not computed again")
    func prefix() async throws {
        let model = StubModel(contextSize: 800)
        let conversation = try await Self.filled(model, turns: 90)
        for (question, next) in [("When did Nadia start the pottery class?", "I see."), ("What does Tobias repair?", "Good.")] {
            let before = await conversation.transcript.map(\.description)
            try await conversation.respond(to: question)
            let asked = try #require(model.requests.last).map(\.description)
            // Only the previous turn may have lost the recalled turns in front of its prompt.
            let common = zip(before, asked).prefix { $0 == $1 }.count
            #expect(common >= before.count - 4)
            try await conversation.respond(to: next)
            try await conversation.respond(to: "Well.")
            let later = await conversation.transcript.wholeText
            #expect(!later.contains(ModelPrompts.recallHeading), "recalled turns are removed after one more turn")
        }
    }

    @Test("[D4] the user never waits for a compaction, in any window", arguments: [256, 512, 1_024, 3_000, 4_096])
    func threshold(window: Int) async throws {
        let model = StubModel(contextSize: window) { _ in "An answer of some words." }
        let compactions = Mutex<[Compaction]>([])
        let conversation = try await Conversation(
            model: model, onCompaction: { record in compactions.withLock { $0.append(record) } })
        for turn in 0..<(window / 4) { try await conversation.respond(to: "Message \(turn) with some words in it.") }
        #expect(compactions.withLock { $0.count } > 3)
        #expect(compactions.withLock { $0.allSatisfy { $0.reason == .threshold } })
    }

    private struct Scripted: TurnSearch {
        let turns: [ScoredTurn]

        nonisolated(nonsending) func turns(
            for prompt: String, in conversation: String, of archive: ConversationArchive, count: Int, except known: Set<Int>
        ) async throws -> [ScoredTurn] {
            if prompt == "Fail." { throw CocoaError(.fileReadUnknown) }
            return turns
        }
    }

    @Test("[D4] a custom search can be used; if it fails, the error is reported and the prompt is sent") func otherSearch()
        async throws
    {
        let model = StubModel(contextSize: 400)
        // Numbers of turns that do not exist are ignored.
        let search = Scripted(
            turns: [0, 1, 7_000, -3].map { ScoredTurn(number: $0, score: 1, evidence: 0.9, matches: ["meaning"]) })
        let conversation = try await Self.filled(model, search: search)
        try await conversation.respond(to: "Anything.")
        var recall = try #require(await conversation.lastRecall)
        #expect(recall.recalledItems.filter { $0.match != nil }.map(\.turn) == [0, 1])
        #expect(recall.recalledItems.first?.match?.matches == ["meaning"])
        try await conversation.respond(to: "Fail.")
        recall = try #require(await conversation.lastRecall)
        #expect(recall.problem != nil && recall.recalledItems.isEmpty)
        #expect(model.requests.last?.lastPrompt == "(Prompt) Fail.")
    }

    @Test("[D4] a long turn is shortened to the relevant sentences") func shortened() async throws {
        let model = StubModel(contextSize: 400)
        let conversation = try await Conversation(model: model)
        let filler = (0..<12).map { "Sentence \($0) is about nothing at all." }.joined(separator: " ")
        try await conversation.respond(to: "\(filler) The Halcyon lies in Montevideo. \(filler)")
        for turn in 0..<60 { try await conversation.respond(to: "We spoke about weather, number\(turn).") }
        let recall = try await conversation.recall(for: "Where does the Halcyon lie?")
        let item = try #require(recall.recalledItems.first)
        #expect(item.outcome == .shortened && item.text.contains("The Halcyon lies in Montevideo."))
        #expect(!item.text.contains("Sentence 3"))
    }

    @Test("dates of prompts") func dates() throws {
        #expect(DateWords.words(in: "on 8 May 2023") == ["zzm5", "zzd5x8", "zzy2023"])
        #expect(DateWords.words(in: "May 8th, and in June") == ["zzm5", "zzd5x8", "zzm6"])
        #expect(DateWords.words(in: "2023-05-08") == ["zzy2023", "zzm5", "zzd5x8"])
        #expect(DateWords.words(in: "8.5.2023") == ["zzy2023", "zzm5", "zzd5x8"])
        #expect(DateWords.words(in: "You may march on, 8 of you.") == [])
        // 2026-11-25 is a Wednesday.
        let now = try #require(
            Calendar(identifier: .gregorian).date(from: DateComponents(year: 2026, month: 11, day: 25, hour: 12)))
        for (text, expected) in [
            ("What did I say yesterday?", ["zzd11x24"]), ("Who called last Friday?", ["zzd11x20"]),
            ("Who called last Wednesday?", ["zzd11x18"]), ("What did I plan two weeks ago?", (9...13).map { "zzd11x\($0)" }),
            ("What was it last month?", ["zzy2026", "zzm10"]), ("Where was I last year?", ["zzy2025"]),
            ("Where did we go last summer?", ["zzm6", "zzm7", "zzm8"]), ("What is the last word?", []),
            ("What was it 9223372036854775807 weeks ago?", []),
        ] {
            #expect(DateWords.relativeWords(in: text, now: now).sorted() == expected.sorted(), "\(text)")
        }
        // Who tells something does not ask for it.
        #expect(!RecallQuery("Yesterday I went to Rome.", now: now).words.contains { $0.isDate })
        #expect(RecallQuery("What did I tell you yesterday?", now: now).words.filter(\.isDate).map(\.text) == ["zzd11x24"])
        #expect(RecallQuery("What did we do on 7 May?").words.map(\.text) == ["zzm5", "zzd5x7"])
    }

    @Test("[D4] a question is evidence, and the same words in a statement are less") func asked() async throws {
        let conversation = try await Self.filled(StubModel(contextSize: 500))
        let asked = try await conversation.recall(for: "When did Nadia start the pottery class?")
        let told = try await conversation.recall(for: "Nadia is in the pottery class again, and I stay at home and read.")
        #expect(asked.evidence > told.evidence)
    }

    @Test("[D4] an uncertain need gets fewer tokens, and something must be worth its tokens") func worth() async throws {
        var policy = RecallPolicy()
        #expect(policy.tokens(contextSize: 4_096, evidence: 0.95) == 3_072)
        #expect(policy.tokens(contextSize: 4_096, evidence: 0.5) < 1_100)
        #expect(policy.tokens(contextSize: 4_096, evidence: policy.minimumEvidence) < 320)
        policy.minimumGain = 0.01
        let turn = Turn(number: 0, prompt: "The key lies under the pot beside the door.", date: nil, entries: [])
        func items(_ score: Double) async throws -> [Recall.Item] {
            let found = ScoredTurn(number: 0, side: .user, score: score, evidence: 1)
            let block = RecallBlock(
                matches: [found], turns: [0: turn], damaged: [], policy: policy, words: [],
                count: { $0.split(separator: " ").count })
            return try await block.items(within: 200)
        }
        #expect(try await items(0.9).map(\.outcome) == [.recalled])
        #expect(try await items(0.05).map(\.outcome) == [.weak])
    }

    @Test("[D4] what is likely and does not fit is counted in the text") func omission() async throws {
        let turns = (0..<4).map {
            Turn(number: $0, prompt: "On day \($0) I walked to the lake and back.", date: nil, entries: [])
        }
        let found = turns.map { ScoredTurn(number: $0.number, side: .user, score: $0.number == 3 ? 0.1 : 0.6, evidence: 1) }
        func text(_ limit: Int) async throws -> String {
            let block = RecallBlock(
                matches: found, turns: Dictionary(uniqueKeysWithValues: turns.map { ($0.number, $0) }), damaged: [],
                policy: RecallPolicy(), words: [], count: { $0.split(separator: " ").count })
            return RecallBlock.text(try await block.items(within: limit))
        }
        let whole = try await text(200)
        #expect(whole.contains("day 3") && !whole.contains("did not fit"))
        let short = try await text(30)
        #expect(short.contains("day 0") && !short.contains("day 1"))
        #expect(short.contains("\n(2 more messages about this did not fit here.)\n\n\(ModelPrompts.recallFooting)"), "\(short)")
    }

    @Test("[D4] the sides of a turn are recalled separately, a short answer with its question") func sides() async throws {
        let turn = Turn(
            number: 3, prompt: "Long story. Is the ferry at nine?", date: nil,
            entries: [.response(.init(assetIDs: [], segments: [.text(.init(content: "No, at ten."))]))])
        func text(_ sides: [ScoredTurn.Side?]) async throws -> String {
            let found = sides.map { ScoredTurn(number: 3, side: $0, score: 1, evidence: 1) }
            let block = RecallBlock(
                matches: found, turns: [3: turn], damaged: [], policy: RecallPolicy(), words: [],
                count: { $0.split(separator: " ").count })
            return RecallBlock.text(try await block.items(within: 200))
        }
        #expect(try await text([.model]).contains("User: … Is the ferry at nine?\nAssistant: No, at ten."))
        let both = try await text([.model, .user])
        #expect(both.contains("User: Long story. Is the ferry at nine?\nAssistant: No, at ten.") && !both.contains("…"))
        #expect(try await !text([.user]).contains("Assistant"))
    }

    @Test("[D4] a question of frequent words finds the only turn that contains all of them") func together()
        async throws
    {
        let conversation = try await Conversation(model: StubModel(contextSize: 500))
        try await conversation.respond(to: "By the way, my street is called Halberd Lane.")
        for turn in 0..<120 {
            let prompt = turn % 12 == 3 ? "Which street food is good" : turn % 12 == 7 ? "What is this bird called" : "Go on"
            try await conversation.respond(to: "\(prompt), number\(turn)?")
        }
        let recall = try await conversation.recall(for: "What is my street called?")
        #expect(recall.recalledItems.map(\.turn).contains(0), "\(recall)")
    }

    @Test("[D4] the cost of a search does not grow with the conversation") func flat() async throws {
        func rows(_ turns: Int) async throws -> Int {
            let archive = try ConversationArchive()
            try archive.begin("a", .init())
            for number in 0..<turns {
                let prompt = "Everyday words about the weather, subject\(number % 50)."
                #expect(try archive.recordPrompt(prompt, number: number, date: nil, in: "a"))
                let answer = Transcript.Entry.response(.init(assetIDs: [], segments: [.text(.init(content: "Yes."))]))
                try archive.recordAnswer(Turn(number: number, prompt: prompt, date: nil, entries: [answer]), in: "a")
            }
            let found = try await HybridSearch(model: nil).turns(
                for: "What about the weather and subject7?", in: "a", of: archive, count: turns, except: [])
            #expect(found.first?.number.quotientAndRemainder(dividingBy: 50).remainder == 7)
            return found.count
        }
        #expect(try await rows(400) <= 120)
        #expect(try await rows(4_000) <= 120)
    }

    @Test("[D4] recalled turns stay for one more turn, also after turns with recalled turns of their own") func oneMoreTurn()
        async throws
    {
        let model = StubModel(contextSize: 1_000)
        let conversation = try await Self.filled(model, turns: 120)
        try await conversation.respond(to: "When did Nadia start the pottery class?")
        try await conversation.respond(to: "What does Tobias repair in Trieste?")
        try await conversation.respond(to: "And why?")
        let prompts = try #require(model.requests.last).wholeText.split(separator: ModelPrompts.recallHeading)
        #expect(prompts.count == 2 && prompts.last?.contains("repairs clocks") == true)
        try await conversation.respond(to: "Good.")
        #expect(model.requests.last?.wholeText.contains(ModelPrompts.recallHeading) == false)
        // The archive contains the prompts without recalled turns.
        let stored = try conversation.archive.turns(of: conversation.id)
        #expect(!stored.flatMap(\.entries).contains { $0.description.contains(ModelPrompts.recallHeading) })
    }

    @Test("[D4] a long turn that was found only by its date is recalled if it fits") func longTurnByDate() async throws {
        let conversation = try await Conversation(model: StubModel(contextSize: 1_000))
        let long = (0..<30).map { "Line \($0) of the plan is this." }.joined(separator: " ")
        try await Conversation.$today.withValue(Date(timeIntervalSince1970: 1_683_500_000)) {
            _ = try await conversation.respond(to: long)
            _ = try await conversation.respond(to: "Short.")
        }
        for turn in 0..<150 { try await conversation.respond(to: "We spoke about weather, number\(turn).") }
        let recall = try await conversation.recall(for: "What did we talk about on 7 May 2023?")
        #expect(recall.recalledItems.contains { $0.turn == 0 && $0.text.contains("Line 0 of the plan") }, "\(recall.report)")
    }
}
