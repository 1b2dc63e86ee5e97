internal import Files
public import Foundation
internal import FoundationModels
internal import Synchronization
public import TabularData

/// A test of a feature that uses a model: samples, the feature, and what is measured.
///
/// A sample for which the feature fails is left out of the tables of results; a sample for which an evaluator fails has no results of
/// this evaluator.
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

    /// Runs the evaluation, one sample after the other.
    ///
    /// - Parameter info: Texts that the result keeps, such as the version of the prompt.
    /// - Throws: An error of the data set, or `CancellationError`.
    public nonisolated(nonsending) func run(info: [String: String] = [:]) async throws -> EvaluationResult {
        try await run(info: info, parallel: 1)
    }

    /// Runs the evaluation, several samples at once, with a file that keeps their results. An addition of this package.
    ///
    /// The result has the order of the samples, however many run at once. An ``Evaluator`` is called for one sample at a time; the
    /// feature and evaluators of other types are called for several.
    ///
    /// - Parameters:
    ///   - info: Texts that the result keeps and reports show, such as the version of the prompt. `model`, `adapter`, `settings` and
    ///     `judge` come first in reports.
    ///   - parallel: The number of samples that run at once. A single one runs on the actor of the caller.
    ///   - file: A file to which each result is added. A run that was stopped continues with it, if the samples, `info` and
    ///     `fingerprints` are the same. A sample for which the feature failed runs again.
    ///   - fingerprints: Hashes of what else the results depend on, such as the file of the model, by names.
    ///   - progress: Called at the beginning, and after each sample.
    /// - Throws: An error of the data set, ``EvaluationDataError`` for the file, or `CancellationError`.
    public nonisolated(nonsending) func run(
        info: [String: String] = [:], parallel: Int, file: URL? = nil, fingerprints: [String: String] = [:],
        progress: (EvaluationProgress) -> Void = { _ in }
    ) async throws -> EvaluationResult {
        let start = Date()
        let samples = try await Self.collected(dataset.stream)
        // A stream ends without an error when its task is cancelled.
        try Task.checkCancellation()
        let header = RunHeader(
            dataset: name, fingerprint: try file.map { _ in try Self.fingerprint(of: samples) }, info: info,
            contents: fingerprints.isEmpty ? nil : fingerprints)
        let items = samples.enumerated().map { index, sample in
            let reported = sample as? any ReportedSample
            return EvaluationRunner.Item(
                key: .init(id: reported?.id ?? "sample \(index + 1)"), class: reported?.class)
        }
        let evaluators = evaluators
        let outputs = Outputs<Subject>()
        let results = try await EvaluationRunner(header: header, parallel: parallel, file: file).run(items, progress: progress) {
            let (result, output) = try await answer(to: samples[$0], evaluators)
            outputs[$0] = output
            return result
        }
        var aggregator = MetricsAggregator(results)
        aggregateMetrics(using: &aggregator)
        var result = EvaluationResult(
            header: header, start: start, end: Date(), samples: results, aggregates: aggregator.results)
        let responses = results.enumerated().map { index, result in
            // Of an earlier run there is only the text.
            outputs[index] ?? (Subject.self as? any RecordedSubject.Type)?.init(result) as? Subject
        }
        result.typedColumns = [
            Column(name: inputColumn.name, contents: samples.map { Optional($0) }).eraseToAnyColumn(),
            Column(name: expectedColumn.name, contents: samples.map(\.expected)).eraseToAnyColumn(),
            Column(name: responseColumn.name, contents: responses).eraseToAnyColumn(),
        ]
        return result
    }

    // For the element type: iterating over the existential loses the type of its errors.
    private nonisolated(nonsending) static func collected(
        _ stream: some AsyncSequence<Sample, any Error>
    ) async throws -> [Sample] {
        var samples: [Sample] = []
        for try await sample in stream { samples.append(sample) }
        return samples
    }

    private static func fingerprint(of samples: [Sample]) throws -> String {
        let hash = try samples.reduce(FNV.empty) { FNV.hash(try JSONEncoder.results.encode($1), after: $0) }
        return String(hash, radix: 16)
    }

    private nonisolated(nonsending) func answer(
        to sample: Sample, _ evaluators: Evaluators
    ) async throws -> (SampleResult, Subject?) {
        let began = ContinuousClock.now
        var result = SampleResult(prompt: "\(sample.input)")
        result.expected = sample.expected.map { ValueText.text(of: $0) }
        var output: Subject?
        do {
            let subject = try await subject(from: sample)
            output = subject
            result.response = ValueText.text(of: subject.value)
            if let transcript = subject.transcript { result.add(transcript) }
            if let usage = (subject as? any RecordedSubject)?.usage { result.add(usage) }
            for evaluator in evaluators {
                do {
                    result.checks += try await Self.metrics(of: evaluator, subject, sample).map { SampleResult.Check($0) }
                } catch {
                    // The error of a cancelled task is a consequence of its end.
                    try Task.checkCancellation()
                    result.errors.append(
                        EvaluatorError.failed(
                            evaluator: evaluator, evaluatorType: "\(type(of: evaluator))", reason: Self.reason(error)
                        ).localizedDescription)
                }
            }
        } catch {
            try Task.checkCancellation()
            (result.layer, result.detail) = (.error, Self.reason(error))
            result.errors.append(SubjectInferenceError.failed(reason: Self.reason(error)).localizedDescription)
        }
        result.seconds = (ContinuousClock.now - began) / .seconds(1)
        return (result, output)
    }

    private nonisolated(nonsending) static func metrics<E: EvaluatorProtocol>(
        of evaluator: E, _ subject: Subject, _ sample: Sample
    ) async throws -> [Metric] where E.Input == Sample, E.Subject == Subject {
        try await evaluator.metrics(subject: subject, input: sample)
    }

    private static func reason(_ error: any Error) -> String { (error as? any LocalizedError)?.errorDescription ?? "\(error)" }
}

/// The outputs of a run, by the numbers of their samples.
private final class Outputs<Subject>: @unchecked Sendable {
    // Unchecked: outputs need not be Sendable. Each comes from one task, which does not use it any more, and is read after all tasks.
    private let lock = Mutex(())
    private var outputs: [Int: Subject] = [:]

    subscript(index: Int) -> Subject? {
        get { lock.withLock { _ in outputs[index] } }
        set { lock.withLock { _ in outputs[index] = newValue } }
    }
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
