internal import Foundation
public import FoundationModels
internal import ModelPrompts

/// How questions are decided.
public struct DecisionOptions: Sendable {
    /// Whether each question is asked with its options in several orders, whose probabilities are averaged: models prefer some places of a
    /// list. It costs one more prompt for each order, without the state, which all have in common.
    public var averagesOrders: Bool
    /// What makes the probabilities mean what they say; nil for that of the model, if this package has one, and none otherwise.
    public var calibration: Calibration?

    /// Creates options.
    public init(averagesOrders: Bool = false, calibration: Calibration? = nil) {
        (self.averagesOrders, self.calibration) = (averagesOrders, calibration)
    }
}

/// The answers to the questions on one state.
public struct DecisionRun: Sendable {
    /// In the order of the questions.
    public let answers: [DecisionAnswer]
    /// Identifies the weights of the model and its adapter, for a ``Calibration``; nil if they are not known.
    public let model: String?
    /// The tokens of all prompts; what they have in common is counted for each, though it is processed once.
    public let promptTokens: Int
    /// Those of ``promptTokens`` that were processed once for several questions.
    package let cachedTokens: Int
    /// The logarithms of the probabilities of each question's options before the calibration.
    package let logProbabilities: [[Double]]
}

extension LanguageModelSession {
    /// Decides several questions on a state. The state is processed once; what remains of the questions is processed together.
    ///
    /// What the session knows, its instructions and what was said before, is known to the questions as well. The transcript does not
    /// change, and a request that is running goes on. The answers do not depend on which questions are asked together. Nothing is
    /// checked by the guardrails: no text is generated.
    ///
    /// ```swift
    /// let run = try await session.decisions(about: mail, [
    ///     .init("Is the writer angry?", .predicate()),
    ///     .init("Which team should answer?", .choice(["billing", "support", "sales"])),
    /// ])
    /// print(run.answers[0].probability, run.answers[1].option.name)
    /// ```
    ///
    /// - Parameter state: What the questions are about; nil for what the session knows.
    /// - Throws: ``DecisionError``, `LanguageModelError.contextSizeExceeded(_:)` if a question does not fit the window, or
    ///   `CancellationError`.
    public func decisions(
        about state: String? = nil, _ questions: [DecisionQuestion], options: DecisionOptions = DecisionOptions(),
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> DecisionRun {
        let (model, entries) = await nextRequest(isolation: isolation)
        guard let reader = OptionReader(model: model) else { throw DecisionError.unsupportedModel }
        return try await reader.decisions(about: state, questions, after: entries, options)
    }
}

extension OptionReader {
    /// Decides questions that follow some entries; see `LanguageModelSession.decisions(about:_:options:isolation:)`.
    package func decisions(
        about state: String?, _ questions: [DecisionQuestion], after entries: [Transcript.Entry],
        _ options: DecisionOptions = DecisionOptions()
    ) async throws -> DecisionRun {
        for question in questions { try question.check() }
        let asked = questions.map { AskedDecision($0, averagesOrders: options.averagesOrders) }
        let before = entries.withDecisionInstructions
        let reading = try await read(asked.flatMap { $0.prompts(about: state, after: before) })
        let calibration = options.calibration ?? .builtIn(for: reading.fingerprint)
        var rest = reading.logProbabilities[...]
        var answers: [DecisionAnswer] = []
        var logProbabilities: [[Double]] = []
        for question in asked {
            let own = question.combined(Array(rest.prefix(question.orders.count)))
            rest = rest.dropFirst(question.orders.count)
            logProbabilities.append(own.logProbabilities)
            answers.append(question.answer(own.logProbabilities, mass: own.mass, calibration))
        }
        return DecisionRun(
            answers: answers, model: reading.fingerprint, promptTokens: reading.promptTokens.reduce(0, +),
            cachedTokens: reading.sharedTokens, logProbabilities: logProbabilities)
    }
}

extension [Transcript.Entry] {
    /// With instructions of this module where there are none.
    var withDecisionInstructions: [Transcript.Entry] {
        if contains(where: { if case .instructions = $0 { true } else { false } }) { return self }
        return [.instructions(.init(segments: [.text(.init(content: DecisionPrompts.instructions))], toolDefinitions: []))] + self
    }
}

/// A question with the prompts that are made of it.
struct AskedDecision {
    let question: DecisionQuestion
    /// For each prompt, the indices of the options in the order in which it lists them.
    let orders: [[Int]]

    /// The most orders of a question's options.
    static let maximumOrders = 6

    init(_ question: DecisionQuestion, averagesOrders: Bool) {
        self.question = question
        let count = question.options.count
        let all = Array(0..<count)
        if case .predicate = question.kind {
            // True comes before false whatever the order.
            orders = [all]
        } else if !averagesOrders || count < 2 {
            orders = [all]
        } else if case .score = question.kind {
            // A scale in another order than up or down is none.
            orders = [all, all.reversed()]
        } else {
            // Each option at as many places, as far as the orders suffice.
            let rotations = Swift.min(count, Self.maximumOrders)
            orders = (0..<rotations).map { turn in all.map { ($0 + turn * count / rotations) % count } }
        }
    }

    /// A prompt for each order.
    func prompts(about state: String?, after entries: [Transcript.Entry]) -> [OptionPrompt] {
        orders.map { order in
            let (text, answers, closing) = text(order)
            let prompt = (state.map { DecisionPrompts.state($0) } ?? "") + text
            return OptionPrompt(
                entries + [.prompt(.init(segments: [.text(.init(content: prompt))]))], options: answers, closing: closing)
        }
    }

    /// Longer options, and those of several lines, are not read as answers but by their letters.
    private static let longestName = 48
    private static let letters = (UInt8(ascii: "A")...UInt8(ascii: "Z")).map { String(UnicodeScalar($0)) }

    /// Of the forms that were compared, on 267 questions for development with the default model, these are right most often; see
    /// BENCHMARKS.md.
    private func text(_ order: [Int]) -> (text: String, answers: [String], closing: OptionPrompt.Closing) {
        if case .predicate(let yes, let no) = question.kind {
            return (DecisionPrompts.trueOrFalse(question.text, yes: yes, no: no), ["true", "false"], .none)
        }
        let options = order.map { question.options[$0] }.map { DecisionPrompts.Option($0.name, $0.description) }
        let isLong = options.contains { $0.name.count > Self.longestName || $0.name.contains(where: \.isNewline) }
        guard isLong, options.count <= Self.letters.count else {
            return (DecisionPrompts.named(question.text, options), options.map(\.name), .endOfTurn)
        }
        let letters = Array(Self.letters.prefix(options.count))
        return (DecisionPrompts.lettered(question.text, options, letters), letters, .none)
    }

    /// The mean of the logarithms of the probabilities over all orders, in the order of the question.
    func combined(_ readings: [[Double]]) -> (logProbabilities: [Double], mass: Double) {
        var sums = [Double](repeating: 0, count: question.options.count)
        var mass = 0.0
        for (order, reading) in zip(orders, readings) {
            // A single option is certain, and the model is not asked.
            let total = reading.logarithmOfSum
            mass += exp(total)
            for (place, option) in order.enumerated() where place < reading.count { sums[option] += reading[place] - total }
        }
        let count = Double(Swift.max(1, readings.count))
        return (sums.map { $0 / count }, Swift.min(1, mass / count))
    }

    func answer(_ logProbabilities: [Double], mass: Double, _ calibration: Calibration) -> DecisionAnswer {
        let weights = calibration.weights(logProbabilities, kind: question.kind.name)
        let indices = Array(logProbabilities.indices)
        // There is at least one option.
        let distribution = Distribution(indices, weights: weights) ?? .certain(0)
        return DecisionAnswer(question: question, distribution: distribution, mass: mass)
    }
}

extension [Double] {
    /// log Σ exp.
    fileprivate var logarithmOfSum: Double {
        guard let maximum = self.max(), maximum.isFinite else { return 0 }
        return maximum + log(reduce(0) { $0 + exp($1 - maximum) })
    }
}
