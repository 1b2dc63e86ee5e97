// The module is one for its users.
@_exported public import EvaluationCore
public import Foundation
public import FoundationModels
public import Testing

/// Runs an evaluation before a test. The test reads the result from ``EvaluationContext/current``.
public struct EvaluationTrait: TestTrait, TestScoping {
    public typealias TestScopeProvider = EvaluationTrait

    private let run: nonisolated(nonsending) @Sendable () async throws -> EvaluationResult
    private let recordTranscripts: Bool

    init(
        recordTranscripts: Bool, run: nonisolated(nonsending) @escaping @Sendable () async throws -> EvaluationResult
    ) {
        self.run = run
        self.recordTranscripts = recordTranscripts
    }

    public nonisolated(nonsending) func provideScope(
        for test: Testing.Test, testCase: Testing.Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let result = try await run()
        Attachment.record(
            Array(try result.jsonData(includeTranscripts: recordTranscripts)), named: "\(result.evaluationID).json")
        try await EvaluationContext.$task.withValue(EvaluationContext(result: result)) { try await function() }
    }
}

extension TestTrait where Self == EvaluationTrait {
    /// Runs an evaluation before the test.
    public static func evaluates(
        _ evaluation: any Evaluation, info: [String: String] = [:], recordTranscripts: Bool = false
    ) -> Self { evaluates(evaluation, info: info, recordTranscripts: recordTranscripts, parallel: 1) }

    /// Runs an evaluation before the test, several samples at once. An addition of this package.
    ///
    /// - Parameters:
    ///   - parallel: The number of samples that run at once.
    ///   - file: A file to which each result is added, and with which a run that was stopped continues. A complete one is not run again.
    ///   - fingerprints: Hashes of what else the results depend on, such as the file of the model, by names.
    public static func evaluates(
        _ evaluation: any Evaluation, info: [String: String] = [:], recordTranscripts: Bool = false, parallel: Int,
        file: URL? = nil, fingerprints: [String: String] = [:]
    ) -> Self {
        EvaluationTrait(recordTranscripts: recordTranscripts) {
            try await evaluation.run(info: info, parallel: parallel, file: file, fingerprints: fingerprints)
        }
    }

    /// Runs a data set before the test, several samples at once. An addition of this package.
    ///
    /// - Parameters:
    ///   - dataSet: The file of an ``EvaluationDataSet``.
    ///   - model: The model under test.
    ///   - options: How samples are answered.
    ///   - parallel: The number of samples that run at once.
    ///   - file: A file to which each result is added, and with which a run that was stopped continues. A complete one is not run again.
    ///   - fingerprints: Hashes of what else the results depend on, such as the file of the model, by names.
    public static func evaluates(
        dataSet: URL, on model: any LanguageModel, options: EvaluationDataSet.Options = .init(), info: [String: String] = [:],
        recordTranscripts: Bool = false, parallel: Int = 4, file: URL? = nil, fingerprints: [String: String] = [:]
    ) -> Self {
        EvaluationTrait(recordTranscripts: recordTranscripts) {
            try await EvaluationDataSet(contentsOf: dataSet).run(
                on: model, options: options, info: info, parallel: parallel, file: file, fingerprints: fingerprints)
        }
    }
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
