internal import Foundation
public import FoundationModels

/// Compares the tool calls of a response with those that are expected.
public struct ToolCallEvaluator<Input>: EvaluatorProtocol, Sendable
where Input: ModelSampleProtocol, Input.Expectation == TrajectoryExpectation {
    public typealias Subject = ModelSubject<Input.ExpectedValue>

    /// Whether all expectations are met.
    public let allPass: Metric
    /// The part of the expectations that are met.
    public let percentagePass: Metric
    private let model: any LanguageModel

    /// Creates an evaluator. The system model decides on arguments in natural language.
    public init(allPass: Metric, percentagePass: Metric) {
        self.init(allPass: allPass, percentagePass: percentagePass, argumentMatchModel: SystemLanguageModel.default)
    }

    /// Creates an evaluator with the model that decides on arguments in natural language.
    public init(allPass: Metric, percentagePass: Metric, argumentMatchModel: any LanguageModel) {
        self.allPass = allPass
        self.percentagePass = percentagePass
        model = argumentMatchModel
    }

    /// - Throws: ``EvaluationError/missingTranscript(evaluatorType:)``, or an error of the model that compares arguments.
    public nonisolated(nonsending) func metrics(subject: ModelSubject<Input.ExpectedValue>, input: Input) async throws -> [Metric]
    {
        guard let expected = input.output.expectations else {
            return [allPass.ignore(rationale: "Nothing is expected."), percentagePass.ignore(rationale: "Nothing is expected.")]
        }
        guard let transcript = subject.transcript else {
            throw EvaluationError.missingTranscript(evaluatorType: "\(Self.self)")
        }
        var comparison = TrajectoryComparison(calls: transcript.toolCalls, model: model)
        try await comparison.compare(expected)
        let failures = comparison.failures.joined(separator: " ")
        let part = comparison.total == 0 ? 1 : Double(comparison.met) / Double(comparison.total)
        return [
            comparison.failures.isEmpty ? allPass.passing() : allPass.failing(rationale: failures),
            percentagePass.scoring(part, rationale: failures.isEmpty ? nil : failures),
        ]
    }
}

/// The comparison of tool calls with an expectation.
struct TrajectoryComparison {
    private let calls: [Transcript.ToolCall]
    private let model: any LanguageModel
    private var isUsed: [Bool]
    /// The number of expectations, and of those that are met.
    private(set) var total = 0
    private(set) var met = 0
    private(set) var failures: [String] = []

    init(calls: [Transcript.ToolCall], model: any LanguageModel) {
        self.calls = calls
        self.model = model
        isUsed = Array(repeating: false, count: calls.count)
    }

    mutating func compare(_ expected: TrajectoryExpectation) async throws {
        var next = 0
        for expectation in expected.ordered {
            let members = expectation.isAnyOrderGroup ? expectation.group : [expectation]
            var last = next
            for member in members {
                if let index = try await find(member, from: next) { last = max(last, index + 1) }
            }
            next = last
        }
        for expectation in expected.unordered {
            for member in expectation.isAnyOrderGroup ? expectation.group : [expectation] { _ = try await find(member, from: 0) }
        }
        for expectation in expected.disallowed {
            for member in expectation.isAnyOrderGroup ? expectation.group : [expectation] {
                total += 1
                var isMade = false
                for call in calls where !isMade { isMade = try await matches(call, member) }
                if isMade { failures.append("\(member.name) was called, which is not allowed.") } else { met += 1 }
            }
        }
        if !expected.allowsAdditionalCalls, let index = isUsed.firstIndex(of: false) {
            failures.append("\(calls[index].toolName) was called, which was not expected.")
        }
    }

    /// Finds the first call from an index that meets an expectation and has not met another one.
    private mutating func find(_ expectation: ToolExpectation, from start: Int) async throws -> Int? {
        total += 1
        for index in calls.indices.dropFirst(start) where !isUsed[index] {
            guard try await matches(calls[index], expectation) else { continue }
            isUsed[index] = true
            met += 1
            return index
        }
        let known = calls.contains { $0.toolName == expectation.name }
        failures.append(
            known
                ? "\(expectation.name) was not called with the expected arguments in the expected order."
                : "\(expectation.name) was not called.")
        return nil
    }

    private func matches(_ call: Transcript.ToolCall, _ expectation: ToolExpectation) async throws -> Bool {
        guard call.toolName == expectation.name else { return false }
        for matcher in expectation.arguments {
            guard try await matches(call.arguments, matcher) else { return false }
        }
        return true
    }

    private func matches(_ arguments: GeneratedContent, _ matcher: ArgumentMatcher) async throws -> Bool {
        guard case .structure(let properties, _) = arguments.kind, let value = properties[matcher.argumentName] else {
            return false
        }
        var text: String { if case .string(let text) = value.kind { text } else { value.jsonString } }
        func equals(_ expected: ArgumentValue) -> Bool {
            switch (value.kind, expected) {
            case (.string(let a), .string(let b)): a == b
            case (.bool(let a), .bool(let b)): a == b
            case (.number(let a), .int(let b)): a == Double(b)
            case (.number(let a), .double(let b)): a == b
            default: false
            }
        }
        switch matcher {
        case .exact(_, let expected): return equals(expected)
        case .keyOnly: return true
        case .oneOf(_, let allowed): return allowed.contains(where: equals)
        case .range(_, let minimum, let maximum):
            guard case .number(let number) = value.kind else { return false }
            return number >= minimum ?? -.infinity && number <= maximum ?? .infinity
        case .pattern(_, let pattern): return try text.contains(Regex(pattern))
        case .contains(_, let part): return text.contains(part)
        case .hasPrefix(_, let prefix): return text.hasPrefix(prefix)
        case .hasSuffix(_, let suffix): return text.hasSuffix(suffix)
        case .naturalLanguage(let name, let criteria):
            let session = LanguageModelSession(
                model: model, instructions: "You decide whether a value meets a description. Answer true or false.")
            let answer = try await session.respond(
                to: "Value of \(name): \(text)\nDescription: \(criteria)\nDoes the value meet the description?",
                generating: Bool.self, options: GenerationOptions(samplingMode: .greedy))
            return answer.content
        }
    }
}
