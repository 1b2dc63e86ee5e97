public import Foundation
internal import FoundationModels
public import TabularData

/// A test of a feature that uses a model: samples, the feature, and what is measured.
///
/// Samples are processed one after the other, in order. A sample for which the feature fails is left out of the results; a sample
/// for which an evaluator fails has no results of this evaluator.
public protocol Evaluation: Sendable {
    /// The type of the samples.
    associatedtype Sample where Self.Sample == Self.SampleLoader.Sample, Self.Sample.ExpectedValue == Self.Subject.Value
    /// The type of the feature's output.
    associatedtype Subject: EvaluationSubject
    /// The source of the samples.
    associatedtype SampleLoader: Loader
    /// The samples.
    var dataset: Self.SampleLoader { get }
    /// The feature's output for a sample.
    nonisolated(nonsending) func subject(from sample: Self.Sample) async throws -> Self.Subject
    /// What is measured.
    @EvaluatorsBuilder<Self.Sample, Self.Subject> var evaluators: Self.Evaluators { get }
    /// What is computed from the results of all samples.
    func aggregateMetrics(using aggregator: inout MetricsAggregator)
}

extension Evaluation {
    public typealias Evaluators = [any EvaluatorProtocol<Self.Sample, Self.Subject>]

    /// The name of the type.
    public var name: String { "\(Self.self)" }
    /// The column of the detailed results with the samples.
    public var inputColumn: ResultColumn<Self.Sample> { ResultColumn(name: "Input") }
    /// The column of the detailed results with the outputs.
    public var responseColumn: ResultColumn<Self.Subject> { ResultColumn(name: "Response") }
    /// The column of the detailed results with the expected outputs.
    public var expectedColumn: ResultColumn<Self.Sample.ExpectedValue> { ResultColumn(name: "Expected") }

    /// Runs the evaluation.
    ///
    /// - Parameter info: Texts that the result keeps, such as the version of the prompt.
    /// - Throws: An error of the data set, or `CancellationError`.
    public nonisolated(nonsending) func run(info: [String: String] = [:]) async throws -> EvaluationResult {
        let start = Date()
        let evaluators = evaluators
        var rows: [EvaluationResult.Row] = []
        var samples: [Sample?] = []
        var subjects: [Subject?] = []
        func process(_ sample: Sample) async throws {
            try Task.checkCancellation()
            let began = Date()
            var row = EvaluationResult.Row(input: "\(sample.input)", expected: sample.expected.map { ValueText.text(of: $0) })
            samples.append(sample)
            var output: Subject?
            defer { subjects.append(output) }
            do {
                let subject = try await subject(from: sample)
                output = subject
                row.response = ValueText.text(of: subject.value)
                row.transcript = subject.transcript.map { EvaluationResult.Row.TranscriptText($0) }
                for evaluator in evaluators {
                    do {
                        row.metrics += try await Self.metrics(of: evaluator, subject, sample)
                    } catch {
                        // The error of a cancelled task is a consequence of its end.
                        try Task.checkCancellation()
                        row.errors.append(
                            EvaluatorError.failed(
                                evaluator: evaluator, evaluatorType: "\(type(of: evaluator))", reason: Self.reason(error)
                            ).localizedDescription)
                    }
                }
            } catch {
                try Task.checkCancellation()
                row.errors.append(SubjectInferenceError.failed(reason: Self.reason(error)).localizedDescription)
            }
            row.seconds = Date().timeIntervalSince(began)
            rows.append(row)
        }
        // A function for the element type: iterating over the existential loses the type of its errors.
        func processAll(_ stream: some AsyncSequence<Sample, any Error>) async throws {
            for try await sample in stream { try await process(sample) }
        }
        try await processAll(dataset.stream)
        // A stream ends without an error when its task is cancelled.
        try Task.checkCancellation()
        var values: [String: [Double]] = [:]
        for metric in rows.flatMap(\.metrics) {
            if let value = metric.doubleValue { values[metric.name, default: []].append(value) }
        }
        var aggregator = MetricsAggregator(values: values)
        aggregateMetrics(using: &aggregator)
        var result = EvaluationResult(
            evaluationID: name, info: info, start: start, end: Date(), rows: rows, aggregates: aggregator.results)
        result.typedColumns = [
            Column(name: inputColumn.name, contents: samples).eraseToAnyColumn(),
            Column(name: expectedColumn.name, contents: samples.map { $0?.expected }).eraseToAnyColumn(),
            Column(name: responseColumn.name, contents: subjects).eraseToAnyColumn(),
        ]
        return result
    }

    private nonisolated(nonsending) static func metrics<E: EvaluatorProtocol>(
        of evaluator: E, _ subject: Subject, _ sample: Sample
    ) async throws -> [Metric] where E.Input == Sample, E.Subject == Subject {
        try await evaluator.metrics(subject: subject, input: sample)
    }

    private static func reason(_ error: any Error) -> String { (error as? any LocalizedError)?.errorDescription ?? "\(error)" }
}

/// Why an evaluator has no result.
public enum EvaluationError: Error, LocalizedError {
    /// The evaluator compares tool calls, but the output has no transcript.
    case missingTranscript(evaluatorType: String)
    /// Metrics that are aggregated do not exist.
    @available(*, deprecated)
    case metricsNotFound(names: [String])

    public var errorDescription: String? {
        switch self {
        case .missingTranscript(let type):
            "\(type) needs a transcript. Create the ModelSubject with session.transcript.structuredTranscript."
        // The deprecated case.
        default: "Some metrics were not found."
        }
    }
}

/// Why a sample has no output.
public enum SubjectInferenceError: Error, LocalizedError, Codable, Sendable, Hashable {
    case failed(reason: String)

    public var errorDescription: String? {
        switch self {
        case .failed(let reason): "The feature failed: \(reason)"
        }
    }
}

/// Why a sample has no results of an evaluator.
public enum EvaluatorError: Error, LocalizedError, Sendable {
    case failed(evaluator: (any EvaluatorProtocol)?, evaluatorType: String, reason: String)

    public var errorDescription: String? {
        switch self {
        case .failed(_, let type, let reason): "\(type) failed: \(reason)"
        }
    }
}

/// The name and type of a column of the detailed results.
public struct ResultColumn<Value>: Sendable {
    public let name: String
}

extension DataFrame {
    /// The column of detailed results with this name and type.
    public subscript<T>(column: ResultColumn<T>) -> Column<T> { self[column.name, T.self] }
    /// The results of a metric, for each sample; nil for all of them if the metric has none, such as in a run that failed.
    public subscript(metric metric: Metric) -> Column<Metric> {
        // Columns of metrics come last; one of them may have the name of another column.
        guard let column = columns.last(where: { $0.name == metric.name }) else {
            return Column(name: metric.name, contents: [Metric?](repeating: nil, count: shape.rows))
        }
        return column.assumingType(Metric.self)
    }
}
