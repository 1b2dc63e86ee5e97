public import FoundationModels

/// The answer to a question whose possible values are known.
public struct Decision<Value: Sendable>: Sendable {
    /// The probabilities of all values.
    public let distribution: Distribution<Value>
    /// How sure the model is, from 0 for chance to 1.
    public let confidence: Double

    /// The most probable value.
    public var value: Value { distribution.mostLikely }
}

extension Decision where Value: Equatable {
    /// The probability of a value; 0 if it is not one of those that were asked about.
    public func probability(of value: Value) -> Double { distribution.probability(of: value) }
}

/// A type whose values can be the options of a question.
///
/// ```swift
/// enum Team: String, Choosable { case billing, support, sales }
/// let team = try await session.choice("Which team should answer?", about: mail, from: Team.self)
/// ```
public protocol Choosable: CaseIterable, Hashable, Sendable {
    /// How the model reads the value. Short names are best.
    var optionName: String { get }
    /// What the name means; nil if it says it.
    var optionDescription: String? { get }
}

extension Choosable {
    /// The name of the case.
    public var optionName: String { String(describing: self) }
    public var optionDescription: String? { nil }
}

extension Choosable where Self: RawRepresentable, RawValue == String {
    /// The raw value.
    public var optionName: String { rawValue }
}

extension LanguageModelSession {
    /// How probable it is that the answer to a question is yes, or that a statement is true.
    ///
    /// ```swift
    /// if try await session.probability(of: "Is the writer angry?", about: mail) > 0.8 { escalate(mail) }
    /// ```
    ///
    /// - Parameters:
    ///   - state: What the question is about; nil for what the session knows.
    ///   - yes: What yes means, where the question leaves it open.
    ///   - no: What no means.
    /// - Throws: see ``decisions(about:_:options:isolation:)``
    public func probability(
        of question: String, about state: String? = nil, yes: String? = nil, no: String? = nil,
        options: DecisionOptions = DecisionOptions(), isolation: isolated (any Actor)? = #isolation
    ) async throws -> Double {
        try await answer(.init(question, .predicate(yes: yes, no: no)), state, options, isolation).probability
    }

    /// One of several values, and the probabilities of all of them.
    ///
    /// - Throws: see ``decisions(about:_:options:isolation:)``
    public func choice<Value: Choosable>(
        _ question: String, about state: String? = nil, from type: Value.Type = Value.self,
        options: DecisionOptions = DecisionOptions(), isolation: isolated (any Actor)? = #isolation
    ) async throws -> Decision<Value> {
        let values = Array(Value.allCases)
        let choices = values.map { DecisionQuestion.Option($0.optionName, $0.optionDescription) }
        let answer = try await answer(.init(question, .choice(choices)), state, options, isolation)
        return answer.decision { values[$0] }
    }

    /// One of several options, and the probabilities of all of them.
    ///
    /// - Throws: see ``decisions(about:_:options:isolation:)``
    public func choice(
        _ question: String, about state: String? = nil, from choices: [DecisionQuestion.Option],
        options: DecisionOptions = DecisionOptions(), isolation: isolated (any Actor)? = #isolation
    ) async throws -> Decision<String> {
        try await answer(.init(question, .choice(choices)), state, options, isolation).decision { choices[$0].name }
    }

    /// A level of a scale, counted from 0, and the probabilities of all levels. Its ``Distribution/expectedValue`` lies between levels.
    ///
    /// - Parameter levels: The lowest one first.
    /// - Throws: see ``decisions(about:_:options:isolation:)``
    public func score(
        _ question: String, about state: String? = nil, levels: [DecisionQuestion.Option],
        options: DecisionOptions = DecisionOptions(), isolation: isolated (any Actor)? = #isolation
    ) async throws -> Decision<Int> {
        try await answer(.init(question, .score(levels)), state, options, isolation).decision { $0 }
    }

    private func answer(
        _ question: DecisionQuestion, _ state: String?, _ options: DecisionOptions, _ isolation: isolated (any Actor)?
    ) async throws -> DecisionAnswer {
        try await decisions(about: state, [question], options: options, isolation: isolation).answers[0]
    }
}

extension DecisionAnswer {
    fileprivate func decision<Value: Sendable>(_ value: (Int) -> Value) -> Decision<Value> {
        Decision(distribution: distribution.mapped(value), confidence: confidence)
    }
}
