internal import Foundation
public import FoundationModels
internal import ModelPrompts

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

    /// - Throws: ``EvaluationError/missingTranscript(evaluatorType:)``, ``EvaluatorArgumentError/invalidPattern(_:)``, or an error
    ///   of the model that compares arguments.
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
    /// The number of expectations, and of those that are met.
    private(set) var total = 0
    private(set) var met = 0
    private(set) var failures: [String] = []

    init(calls: [Transcript.ToolCall], model: any LanguageModel) {
        self.calls = calls
        self.model = model
    }

    mutating func compare(_ expected: TrajectoryExpectation) async throws {
        let groups = expected.ordered.map(\.members)
        let unordered = expected.unordered.flatMap(\.members)
        var expectations: [ToolExpectation] = []
        var fits: [[Bool]] = []
        for member in groups.joined() + unordered {
            expectations.append(member)
            var row: [Bool] = []
            for call in calls { row.append(try await matches(call, member)) }
            fits.append(row)
        }
        var assignment = TrajectoryAssignment(fits: fits, groups: groups.map(\.count))
        let best = assignment.best()
        total = expectations.count
        for (index, expectation) in expectations.enumerated() {
            if best[index] != nil {
                met += 1
            } else if calls.contains(where: { $0.toolName == expectation.name }) {
                failures.append("\(expectation.name) was not called with the expected arguments in the expected order.")
            } else {
                failures.append("\(expectation.name) was not called.")
            }
        }
        for member in expected.disallowed.flatMap(\.members) {
            total += 1
            var isMade = false
            for call in calls where !isMade { isMade = try await matches(call, member) }
            if isMade { failures.append("\(member.name) was called, which is not allowed.") } else { met += 1 }
        }
        let used = Set(best.compactMap { $0 })
        if !expected.allowsAdditionalCalls, let other = calls.indices.first(where: { !used.contains($0) }) {
            failures.append("\(calls[other].toolName) was called, which was not expected.")
        }
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
        case .pattern(_, let pattern): return try SearchPattern(pattern).isFound(in: text)
        case .contains(_, let part): return text.contains(part)
        case .hasPrefix(_, let prefix): return text.hasPrefix(prefix)
        case .hasSuffix(_, let suffix): return text.hasSuffix(suffix)
        case .naturalLanguage(let name, let criteria):
            let session = LanguageModelSession(
                model: model, instructions: ModelPrompts.valueInstructions)
            let answer = try await session.respond(
                to: ModelPrompts.meets(text, of: name, criteria),
                generating: Bool.self, options: GenerationOptions(samplingMode: .greedy))
            return answer.content
        }
    }
}

/// Assigns calls to expectations, so that as many as possible are met. Each call meets one expectation at most.
///
/// Ordered expectations are searched, the others matched by augmenting paths (Kuhn 1955). The search is limited by its number of
/// steps; what it has found until then is the result.
struct TrajectoryAssignment {
    /// Whether each expectation fits each call. Ordered expectations come first.
    private let fits: [[Bool]]
    /// The number of expectations in each ordered group.
    private let groups: [Int]
    private var steps = 0
    private var chosen: [Int?]
    private var bestChoice: [Int?] = []
    private var bestCount = -1

    private static let maximumSteps = 20_000

    init(fits: [[Bool]], groups: [Int]) {
        self.fits = fits
        self.groups = groups
        chosen = Array(repeating: nil, count: fits.count)
    }

    /// The call for each expectation; nil if it is not met.
    mutating func best() -> [Int?] {
        search(group: 0, member: 0, index: 0, start: 0, last: 0)
        return bestChoice
    }

    /// - Parameters:
    ///   - start: the first call after those of earlier groups.
    ///   - last: the first call after those of this group so far.
    private mutating func search(group: Int, member: Int, index: Int, start: Int, last: Int) {
        steps += 1
        let possible = chosen[..<index].count { $0 != nil } + fits.count - index
        guard possible > bestCount, steps <= Self.maximumSteps || bestCount < 0 else { return }
        guard group < groups.count else { return matchRest(from: index) }
        guard member < groups[group] else {
            return search(group: group + 1, member: 0, index: index, start: max(start, last), last: max(start, last))
        }
        // Calls that no unordered expectation can use come first.
        let candidates = fits[index].indices.dropFirst(start).filter { fits[index][$0] && !chosen[..<index].contains($0) }
        let rest = fits[groups.reduce(0, +)...]
        let wanted = candidates.filter { call in rest.contains { $0[call] } }
        for call in candidates.filter({ !wanted.contains($0) }) + wanted {
            chosen[index] = call
            search(group: group, member: member + 1, index: index + 1, start: start, last: max(last, call + 1))
        }
        chosen[index] = nil
        search(group: group, member: member + 1, index: index + 1, start: start, last: last)
    }

    private mutating func matchRest(from first: Int) {
        var owners: [Int: Int] = [:]
        let used = Set(chosen[..<first].compactMap { $0 })
        func assign(_ expectation: Int, _ visited: inout Set<Int>) -> Bool {
            for call in fits[expectation].indices where fits[expectation][call] && !used.contains(call) {
                guard visited.insert(call).inserted else { continue }
                if let owner = owners[call], !assign(owner, &visited) { continue }
                owners[call] = expectation
                return true
            }
            return false
        }
        for expectation in first..<fits.count {
            var visited: Set<Int> = []
            _ = assign(expectation, &visited)
        }
        let count = used.count + owners.count
        guard count > bestCount else { return }
        bestCount = count
        bestChoice = chosen
        for index in first..<fits.count { bestChoice[index] = nil }
        for (call, expectation) in owners { bestChoice[expectation] = call }
    }
}
