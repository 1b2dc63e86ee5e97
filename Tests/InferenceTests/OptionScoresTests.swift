import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Inference

/// The probabilities of answers whose possible values are known.
@Suite struct OptionScoresTests {
    /// A model, its file, and room that other programs do not limit: a cache that was freed for them would be computed again.
    private struct Loaded: @unchecked Sendable {  // The file is only kept.
        private let file: TemporaryFile
        let model: LoadedModel

        init(_ builder: GGUFBuilder, threads: Int = 1) async throws {
            file = try TemporaryFile(builder.bytes())
            let memory = PoolMemory(system: SystemMemory(available: { nil }, reserve: 0))
            model = try await LoadedModel.load(path: file.path, threads: threads, memory: memory)
        }

        func scores(
            _ questions: [OptionQuestion], contextSize: Int = 512, format: CacheFormat = .binary16
        ) async throws -> [OptionScores] {
            let model = model
            return try await model.scores(of: questions) { try model.makeSequence(contextSize: contextSize, format: format) }
        }

        /// Each option alone, in a sequence that knows nothing of others.
        func alone(_ question: OptionQuestion, contextSize: Int = 512, format: CacheFormat = .binary16) async throws -> [Double] {
            var values: [Double] = []
            for option in question.options {
                let sequence = try model.makeSequence(contextSize: contextSize, format: format, sharesCache: false)
                values.append(try await model.logProbability(of: option, after: question.prompt, in: sequence))
            }
            return values
        }
    }

    private static func tiny(context: Int = 512) -> GGUFBuilder {
        var tiny = TinyModel()
        tiny.context = context
        return tiny.builder()
    }

    /// A model with recurrent states. The recorded ones have no tokenizer.
    private static func recurrent(_ name: String) throws -> GGUFBuilder {
        var builder = try ModelRecipe.load(name).builder()
        builder.metadata.removeAll { $0.0 == "tokenizer.ggml.model" }
        let letters = (0x21...0x7C).map { String(UnicodeScalar(UInt8($0))) }
        let tokens = letters + ["th", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
        builder.metadata += [
            ("tokenizer.ggml.model", .string("gpt2")), ("tokenizer.ggml.pre", .string("smollm")),
            ("tokenizer.ggml.tokens", .strings(tokens)),
            ("tokenizer.ggml.token_type", .int32s(tokens.indices.map { $0 < tokens.count - 3 ? 1 : 3 })),
            ("tokenizer.ggml.merges", .strings(["t h"])), ("tokenizer.ggml.eos_token_id", .uint32(95)),
            ("tokenizer.chat_template", .string(TinyModel.chatML)),
        ]
        return builder
    }

    private static let recurrentNames = ["granitehybrid", "lfm2", "qwen35"]

    private static func prompt(_ number: Int, count: Int, vocabulary: Int = 90) -> [TokenID] {
        (0..<count).map { TokenID(($0 * 7 + $0 / 11 + number * 13) % vocabulary + 1) }
    }

    /// Options of all shapes: the last token of each is its own, so that none begins with another one.
    private static func options(_ count: Int, _ random: inout SeededGenerator) -> [[TokenID]] {
        (0..<count).map { index in
            let beginning = (0..<Int.random(in: 0...5, using: &random)).map { _ in TokenID.random(in: 1...3, using: &random) }
            return beginning + [TokenID(10 + index)]
        }
    }

    /// What has to be processed of options: each beginning that is not an option, once.
    private static func beginnings(_ options: [[TokenID]]) -> Int {
        Set(options.flatMap { option in option.indices.dropFirst().map { Array(option[..<$0]) } }).count
    }

    // MARK: - Values

    /// Up to two tokens are added in the same order as they are where an option is computed alone. In longer ones, the tokens that no other
    /// option has are added up first.
    private func check(_ scores: OptionScores, _ question: OptionQuestion, _ alone: [Double], _ comment: String = "") {
        #expect(scores.logProbabilities.count == question.options.count)
        for (index, option) in question.options.enumerated() {
            let (value, expected) = (scores.logProbabilities[index], alone[index])
            if option.count <= 2 {
                #expect(value == expected, "\(comment) option \(index)")
            } else {
                #expect(abs(value - expected) < 1e-9, "\(comment) option \(index): \(value), \(expected)")
            }
        }
    }

    @Test(arguments: [CacheFormat.binary16, .int8])
    func scoresAreSumsOfTheirTokens(format: CacheFormat) async throws {
        let loaded = try await Loaded(Self.tiny(), threads: 2)
        let shapes: [[[TokenID]]] = [
            // Single tokens.
            [[5], [9], [77]],
            // Common beginnings, at several levels.
            [[5, 9, 31], [5, 9, 8], [5, 7], [40]], [[6, 6, 6, 1], [6, 6, 6, 2], [6, 6, 6, 3, 4, 5]],
            // Of different lengths, without anything in common.
            [[1, 2, 3, 4], [9, 8, 9, 8, 9, 8, 9, 8, 9, 8], [50]],
            // One that goes on where another one ends: it is at least as improbable.
            [[12, 13], [12, 13, 14]],
        ]
        for (number, count) in [1, 2, 40, 300].enumerated() {
            let questions = shapes.enumerated().map {
                OptionQuestion(prompt: Self.prompt(number, count: count) + [TokenID($0.offset + 1)], options: $0.element)
            }
            let scores = try await loaded.scores(questions, format: format)
            for (question, score) in zip(questions, scores) {
                check(score, question, try await loaded.alone(question, format: format), "after \(count) tokens,")
                #expect(score.promptTokens == count + 1)
            }
        }
    }

    /// More places of a tree than are computed together.
    @Test func manyOptions() async throws {
        let loaded = try await Loaded(Self.tiny())
        var random = SeededGenerator(3)
        let question = OptionQuestion(prompt: Self.prompt(1, count: 60), options: Self.options(200, &random))
        let scores = try await loaded.scores([question])
        check(scores[0], question, try await loaded.alone(question))
        // Equal options, which the caller need not find.
        let twice = OptionQuestion(prompt: question.prompt, options: [[5, 9], [5, 9]])
        let values = try await loaded.scores([twice])[0].logProbabilities
        #expect(values == [values[0], values[0]] && values[0] < 0)
    }

    /// An option need not fit a batch of the engine.
    @Test func optionsLongerThanABatch() async throws {
        let loaded = try await Loaded(Self.tiny(context: 1_024))
        let prompt = Self.prompt(2, count: 70)
        let long = Self.prompt(5, count: EngineLimits.passTokens + 60)
        let other = [long[0] + 1]
        let scores = try await loaded.scores([OptionQuestion(prompt: prompt, options: [long, other])], contextSize: 1_024)[0]
        // In parts that fit: the probability of the second one after the first one.
        let parts = [
            OptionQuestion(prompt: prompt, options: [Array(long[..<200]), other]),
            OptionQuestion(prompt: prompt + long[..<200], options: [Array(long[200...])]),
        ]
        let first = try await loaded.alone(parts[0], contextSize: 1_024)
        let second = try await loaded.alone(parts[1], contextSize: 1_024)
        #expect(abs(scores.logProbabilities[0] - first[0] - second[0]) < 1e-9)
        #expect(scores.logProbabilities[1] == first[1])
    }

    /// Nothing depends on what is asked together, or in which order, or how many processors compute.
    @Test(arguments: [(CacheFormat.binary16, 1), (.binary16, 2), (.int8, 1)])
    func otherQuestionsDoNotMatter(format: CacheFormat, threads: Int) async throws {
        let loaded = try await Loaded(Self.tiny(), threads: threads)
        var random = SeededGenerator(7)
        let beginning = Self.prompt(0, count: 80)
        let questions = (0..<24).map { number in
            let rest = (0..<Int.random(in: 1...90, using: &random)).map { _ in TokenID.random(in: 1...250, using: &random) }
            return OptionQuestion(
                prompt: beginning + rest, options: Self.options(Int.random(in: 2...12, using: &random), &random))
        }
        var alone: [[Double]] = []
        for question in questions {
            // In a model that has computed nothing before.
            let fresh = try await Loaded(Self.tiny(), threads: threads)
            alone.append(try await fresh.scores([question], format: format)[0].logProbabilities)
        }
        #expect(try await loaded.scores(questions, format: format).map(\.logProbabilities) == alone)
        #expect(try await loaded.scores(questions.reversed(), format: format).map(\.logProbabilities) == alone.reversed())
        // Two callers at once, and again with what is in memory now.
        let expected = alone
        try await withThrowingTaskGroup(of: Void.self) { group in
            for half in [questions[..<12], questions[12...]] {
                group.addTask {
                    let values = try await loaded.scores(Array(half), format: format).map(\.logProbabilities)
                    #expect(values == Array(expected[half.indices]))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test(arguments: recurrentNames)
    func recurrentModels(name: String) async throws {
        let loaded = try await Loaded(Self.recurrent(name))
        #expect(loaded.model.shape.isRecurrent)
        var random = SeededGenerator(11)
        let beginning = Self.prompt(0, count: 70)
        let questions = (0..<6).map { number in
            OptionQuestion(
                prompt: beginning + Self.prompt(number + 1, count: 3 + 9 * number), options: Self.options(8, &random))
        }
        let together = try await loaded.scores(questions, contextSize: 256)
        for (question, scores) in zip(questions, together) {
            let fresh = try await Loaded(Self.recurrent(name))
            #expect(try await fresh.scores([question], contextSize: 256)[0].logProbabilities == scores.logProbabilities)
            check(scores, question, try await fresh.alone(question, contextSize: 256), name)
        }
    }

    // MARK: - Work

    /// What questions begin with is processed once, what options begin with too, and no last token of an option.
    private func checkWork(_ loaded: Loaded, _ options: [[[TokenID]]], contextSize: Int) async throws {
        let beginning = Self.prompt(0, count: 100)
        let questions = options.enumerated().map { number, options in
            OptionQuestion(prompt: beginning + [TokenID(number + 1), 5, TokenID(number + 20)], options: options)
        }
        let before = await loaded.model.processed.tokens
        let scores = try await loaded.scores(questions, contextSize: contextSize)
        let processed = await loaded.model.processed.tokens - before
        let ofOptions = options.reduce(0) { $0 + Self.beginnings($1) }
        #expect(processed == 100 + 3 * questions.count + ofOptions)
        #expect(scores.map(\.promptTokens) == questions.map { _ in 103 })
        // The first one has processed for all.
        #expect(scores.map(\.sharedTokens) == [0] + questions.dropFirst().map { _ in 100 })
        #expect(scores.map(\.optionTokens) == options.map { Self.beginnings($0) })
    }

    @Test func beginningsAreProcessedOnce() async throws {
        var random = SeededGenerator(2)
        let single: [[TokenID]] = [[5], [9], [77]]
        let tree = Self.options(30, &random)
        #expect(Self.beginnings(single) == 0 && Self.beginnings(tree) > 30)
        let mixed: [[[TokenID]]] = [[[5, 9, 31], [5, 9, 8], [5, 7], [40]], single, [[6, 6, 1], [6, 6, 2]]]
        for options in [[single, single, single], mixed, [tree, tree, tree]] {
            try await checkWork(Loaded(Self.tiny()), options, contextSize: 512)
        }
    }

    @Test(arguments: recurrentNames)
    func beginningsAreProcessedOnceByRecurrentModels(name: String) async throws {
        let options: [[[TokenID]]] = [[[5, 9, 31], [5, 9, 8], [5, 7], [40]], [[5], [9]], [[6, 6, 1, 2], [6, 6, 2, 1]]]
        try await checkWork(Loaded(Self.recurrent(name)), options, contextSize: 256)
    }

    /// The only answer is certain.
    @Test func singleOptionsAreNotComputed() async throws {
        let loaded = try await Loaded(Self.tiny())
        let question = OptionQuestion(prompt: Self.prompt(1, count: 50), options: [[4, 8, 15]])
        let scores = try await loaded.scores([question])
        #expect(scores == [OptionScores(logProbabilities: [0], promptTokens: 50, sharedTokens: 0, optionTokens: 0)])
        #expect(await loaded.model.processed.tokens == 0)
        #expect(try await loaded.scores([]).isEmpty)
    }

    // MARK: - Ends

    /// Found before anything is processed, whichever question it is.
    @Test func promptsThatDoNotFit() async throws {
        let loaded = try await Loaded(Self.tiny())
        let short = OptionQuestion(prompt: Self.prompt(1, count: 50), options: [[4], [5]])
        let long = OptionQuestion(
            prompt: Self.prompt(1, count: 493), options: [[4], Self.prompt(3, count: 20)])
        await #expect(throws: GenerationFailure.promptTooLong(tokens: 513, contextSize: 512)) {
            try await loaded.scores([short, long])
        }
        await #expect(throws: GenerationFailure.emptyPrompt) {
            try await loaded.scores([short, OptionQuestion(prompt: [], options: [[4], [5]])])
        }
        #expect(await loaded.model.processed.tokens == 0)
        // The whole window can be used.
        let whole = OptionQuestion(prompt: Array(long.prompt.dropFirst()), options: long.options)
        let scores = try await loaded.scores([whole])[0]
        let first = try await loaded.alone(OptionQuestion(prompt: whole.prompt, options: [[4]]))
        #expect(scores.logProbabilities[0] == first[0] && scores.logProbabilities[1] < 0)
    }

    @Test func cancelledQuestions() async throws {
        let loaded = try await Loaded(Self.tiny())
        let questions = (0..<96).map { number in
            OptionQuestion(prompt: Self.prompt(number, count: 400), options: [[4, 5, 6], [7, 8], [9]])
        }
        // Before anything was done.
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await loaded.scores(questions)
        }
        await #expect(throws: CancellationError.self) { try await early.value }
        // While questions are being processed.
        let before = await loaded.model.processed.tokens
        let task = Task { try await loaded.scores(questions) }
        await eventually { await loaded.model.processed.tokens > before }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await loaded.model.waitingRequests == 0)
        // Nothing half done is left behind.
        let fresh = try await Loaded(Self.tiny())
        let last = Array(questions.suffix(3))
        let expected = try await fresh.scores(last)
        #expect(try await loaded.scores(last) == expected)
    }
}
