import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import FoundationModelsGGUF
import Synchronization

struct LongConversation: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "long",
        abstract: "Measures a long conversation: time to first token, recomputed tokens, memory, recalled facts.")

    @Option(help: "Number of turns.") var turns = 1_000
    @Option(help: "Size of the context window in tokens.") var window = 4096
    @Option(help: "Maximum number of tokens of each response.") var answer = 24
    @Option(help: "A GGUF file.") var model: String
    @Option(help: "The compaction policy: standard or summarizing.") var policy = "standard"
    @Option(help: "Seed of the generated conversation.") var seed: UInt64 = 1

    @Flag(help: "Print each turn, and the answers to questions about earlier facts.") var shows = false

    private struct Sample {
        var firstToken: Double
        var input: Int
        var cached: Int
        var output: Int
        var afterCompaction: Bool
    }

    func run() async throws {
        let file = GGUFLanguageModel(url: URL(filePath: model), contextSize: window, checksText: false)
        let instructions = "You are a friendly companion. Answer in one short sentence."
        let compactions = Mutex<[Compaction]>([])
        let conversation = try await Conversation(
            model: file, instructions: instructions, policy: policy == "summarizing" ? .summarizing : .standard,
            onCompaction: { record in compactions.withLock { $0.append(record) } })
        let pinned = "The user must never be offered peanuts."
        try await conversation.pin(pinned)
        var chatter = Chatter(seed: seed, turns: turns)
        var samples: [Sample] = []
        var missing = 0
        var retries = 0
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: answer)
        var known = 0
        var memory: [Double] = []
        for turn in 0..<turns {
            let start = ContinuousClock.now
            var first: Duration?
            var last: Conversation.ResponseStream<String>.Snapshot?
            for try await snapshot in conversation.streamResponse(to: chatter.message(turn), options: options) {
                if first == nil, !snapshot.content.isEmpty { first = start.duration(to: .now) }
                last = snapshot
            }
            if let attempt = last?.attempt, attempt > 1 { retries += 1 }
            let seen = await conversation.transcript.map(\.description).joined()
            if !seen.contains(instructions) || !seen.contains(pinned) { missing += 1 }
            let count = compactions.withLock { $0.count }
            samples.append(
                Sample(
                    firstToken: (first ?? .zero).milliseconds, input: last?.usage.input.totalTokenCount ?? 0,
                    cached: last?.usage.input.cachedTokenCount ?? 0, output: last?.usage.output.totalTokenCount ?? 0,
                    afterCompaction: count != known))
            if shows, let sample = samples.last {
                print(
                    String(
                        format: "  %4d  %7.1f ms  %d input, %d cached, %d output%@", turn, sample.firstToken, sample.input,
                        sample.cached,
                        sample.output, sample.afterCompaction ? "  compacted" : ""))
            }
            known = count
            if turn % max(1, turns / 10) == 0 || turn == turns - 1 { memory.append(Memory.residentMegabytes) }
        }
        report(samples, compactions.withLock { $0 }, missing: missing, retries: retries, memory)
        if let last = samples.last(where: \.afterCompaction) { try await fresh(last, file, options) }
        try await askBack(conversation, chatter, options)
    }

    private func report(
        _ samples: [Sample], _ compactions: [Compaction], missing: Int, retries: Int, _ memory: [Double]
    ) {
        let ordinary = samples.filter { !$0.afterCompaction }
        func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
        // The time grows with the length of the context, so whole cycles from one compaction to the next are compared.
        let ends = samples.indices.filter { samples[$0].afterCompaction }
        func cycle(_ place: Int) -> [Double] {
            guard ends.count > 2 else { return ordinary.map(\.firstToken) }
            let start = place == 0 ? 0 : ends.count - 2
            return samples[(ends[start] + 1)..<ends[start + 1]].map(\.firstToken)
        }
        let computed = samples.reduce(0) { $0 + $1.input - $1.cached }
        // The tokens of all messages: the new input of each request compared with the previous one, and the output.
        var said = 0
        var recomputed = 0
        var before = 0
        for sample in samples {
            let new = max(0, sample.input - before)
            if sample.input >= before { said += new + sample.output }
            recomputed += max(0, sample.input - sample.cached - new)
            before = sample.input + sample.output
        }
        let compacted = compactions.reduce(0) { $0 + $1.tokensAfter }
        print("turns \(samples.count), window \(window), policy \(policy)")
        print("compactions \(compactions.count), requests that exceeded the window and were retried \(retries)")
        print("turns without the instructions or the pinned fact: \(missing)")
        print(
            String(
                format:
                    "time to first token, medians: first cycle %.1f ms, last cycle %.1f ms, all turns %.1f ms; after compactions %.1f ms",
                median(cycle(0)), median(cycle(1)), median(ordinary.map(\.firstToken)),
                samples.filter(\.afterCompaction).isEmpty
                    ? 0 : median(samples.filter(\.afterCompaction).map(\.firstToken))))
        let shares = ordinary.dropFirst().map { Double($0.cached) / Double(max(1, $0.input)) }
        print(String(format: "cached share of the prompt on ordinary turns: median %.1f %%", 100 * median(shares)))
        print(
            String(
                format: "tokens computed %d; recomputed %d in requests + %d after compactions = %.2f per message token (%d)",
                computed, recomputed, compacted, Double(recomputed + compacted) / Double(max(1, said)), said))
        print("resident memory, MB: " + memory.map { String(format: "%.0f", $0) }.joined(separator: " "))
        let seconds = compactions.map(\.seconds)
        if !seconds.isEmpty { print(String(format: "a compaction took %.0f ms (median)", 1000 * median(seconds))) }
        for problem in Set(compactions.compactMap(\.problem)) { print("problem: \(problem)") }
    }

    /// Measures the time to first token of a prompt with the same number of tokens and no cached prefix.
    private func fresh(_ sample: Sample, _ model: GGUFLanguageModel, _ options: GenerationOptions) async throws {
        var text = ""
        while try await model.tokenCount(for: [.prompt(.init(segments: [.text(.init(content: text))]))]) < sample.input {
            text += "river \(text.utf8.count) "
        }
        let start = ContinuousClock.now
        for try await snapshot in LanguageModelSession(model: model).streamResponse(to: text, options: options)
        where !snapshot.content.isEmpty {
            print(
                String(
                    format: "time to first token after the last compaction %.1f ms, of an uncached prompt (%d tokens) %.1f ms",
                    sample.firstToken, sample.input, start.duration(to: .now).milliseconds))
            break
        }
    }

    /// Measures how many of the facts are in the context when the user asks about them.
    private func askBack(_ conversation: Conversation, _ chatter: Chatter, _ options: GenerationOptions) async throws {
        var same = 0
        var other = 0
        var answered = 0
        var carried = 0
        let head = await conversation.transcript.first?.description ?? ""
        // Paraphrases first: the questions put the facts back into the context.
        await conversation.waitForSearch()
        for fact in chatter.facts {
            let found = try await conversation.recall(for: fact.paraphrase)
            let isThere = found.recalledItems.contains { $0.text.contains(fact.evidence) }
            if isThere { other += 1 }
            if shows { print("  \(fact.paraphrase)\(isThere ? "" : " (not found)") \(found.report)") }
        }
        for fact in chatter.facts {
            if head.contains(fact.evidence) { carried += 1 }
            let response = try await conversation.respond(to: fact.question, options: options)
            let isThere = await conversation.transcript.map(\.description).joined().contains(fact.evidence)
            if isThere { same += 1 }
            if response.content.contains(fact.evidence) { answered += 1 }
            if shows { print("  \(fact.question)\(isThere ? "" : " (not in the context)") → \(response.content)") }
        }
        let count = chatter.facts.count
        print("facts in the context when asked in the same words: \(same) of \(count); correct answers: \(answered)")
        print("facts found by paraphrases: \(other) of \(count); facts in the notes kept by compaction: \(carried)")
    }
}

extension Duration {
    var milliseconds: Double {
        Double(components.seconds) * 1e3 + Double(components.attoseconds) * 1e-15
    }
}
