// The module is one for its users.
@_exported public import EvaluationCore
public import Testing

/// Runs an evaluation before a test. The test reads the result from ``EvaluationContext/current``.
public struct EvaluationTrait: TestTrait, TestScoping {
    public typealias TestScopeProvider = EvaluationTrait

    private let evaluation: any Evaluation
    private let info: [String: String]
    private let recordTranscripts: Bool

    init(evaluation: any Evaluation, info: [String: String], recordTranscripts: Bool) {
        self.evaluation = evaluation
        self.info = info
        self.recordTranscripts = recordTranscripts
    }

    public nonisolated(nonsending) func provideScope(
        for test: Testing.Test, testCase: Testing.Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let result = try await evaluation.run(info: info)
        Attachment.record(
            Array(try result.jsonData(includeTranscripts: recordTranscripts)), named: "\(result.evaluationID).json")
        try await EvaluationContext.$task.withValue(EvaluationContext(result: result)) { try await function() }
    }
}

extension TestTrait where Self == EvaluationTrait {
    /// Runs an evaluation before the test.
    public static func evaluates(
        _ evaluation: any Evaluation, info: [String: String] = [:], recordTranscripts: Bool = false
    ) -> Self { EvaluationTrait(evaluation: evaluation, info: info, recordTranscripts: recordTranscripts) }
}

/// The evaluation of the running test.
public struct EvaluationContext: Sendable {
    @TaskLocal static var task: EvaluationContext?

    /// The evaluation of the running test. The test must have the trait `.evaluates(_:info:recordTranscripts:)`.
    public static var current: EvaluationContext {
        // As in Apple's module, the value is not optional: a test without the trait is a mistake in the program.
        guard let task else { preconditionFailure("EvaluationContext.current needs a test with the trait .evaluates(…).") }
        return task
    }

    /// The results.
    public let result: EvaluationResult
}
