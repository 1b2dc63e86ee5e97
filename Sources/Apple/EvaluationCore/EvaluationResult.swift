public import Foundation
internal import FoundationModels
public import TabularData

/// The results of an evaluation.
public struct EvaluationResult: Sendable {
    /// The kinds of tables.
    public enum DataFrameKind {
        case summary, detailed
    }

    /// A unique id of the run.
    public let resultID: UUID
    /// The name of the evaluation.
    public var evaluationID: String { header.dataset }
    /// Values that a program adds; they are saved if asked for.
    public var reportMetadata: [String: any Sendable] = [:]
    /// Texts that were given to the run.
    public var evaluationInfo: [String: String] { header.info }
    public let startTime: Date
    public let endTime: Date
    /// The time of the run in seconds.
    public var duration: TimeInterval { endTime.timeIntervalSince(startTime) }

    /// The results of the samples, in their order. An addition of this package.
    public let samples: [SampleResult]
    let header: RunHeader
    let aggregates: [AggregateMetric]
    /// Columns with the samples and outputs themselves; after loading there are only texts.
    var typedColumns: [AnyColumn]?

    init(
        header: RunHeader, start: Date, end: Date, samples: [SampleResult], aggregates: [AggregateMetric], resultID: UUID = UUID()
    ) {
        self.resultID = resultID
        self.header = header
        startTime = start
        endTime = end
        self.samples = samples
        self.aggregates = aggregates
    }

    /// The results of a data set: the mean of each check.
    init(header: RunHeader, start: Date, end: Date, samples: [SampleResult]) {
        var aggregator = MetricsAggregator(samples)
        for name in samples.metricNames { aggregator.computeMean(of: Metric(name)) }
        self.init(header: header, start: start, end: end, samples: samples, aggregates: aggregator.results)
    }

    /// Reads the results of a run file, also of one that was stopped. An addition of this package.
    ///
    /// - Throws: ``EvaluationDataError``
    public init(contentsOfRun url: URL) throws {
        let (header, samples, _) = try EvaluationRunFile.read(url)
        guard let header else { throw EvaluationDataError.notARun(url) }
        let times = samples.compactMap { sample in
            // A result without its time does not count here.
            (try? Date(sample.started, strategy: .iso8601)).map { ($0, $0.addingTimeInterval(sample.plausibleSeconds)) }
        }
        let start = times.map(\.0).min() ?? .distantPast
        self.init(header: header, start: start, end: times.map(\.1).max() ?? start, samples: samples)
    }

    /// When the last sample began, for people; nil without samples.
    package var lastStart: String? {
        // 2026-01-31T12:34:56Z
        samples.map(\.started).filter { !$0.isEmpty }.max().map { $0.prefix(16).replacing("T", with: " ") + " UTC" }
    }

    // MARK: - Tables

    /// A row for each aggregate: `Label`, `Group`, `Value`.
    public var summary: DataFrame {
        var frame = DataFrame()
        frame.append(column: Column(name: "Label", contents: aggregates.map { Optional($0.label) }))
        frame.append(column: Column(name: "Group", contents: aggregates.map(\.group)))
        frame.append(column: Column(name: "Value", contents: aggregates.map { Optional($0.value) }))
        return frame
    }

    /// A row for each sample that has an output: `Input`, `Expected`, `Response`, and a column for each metric.
    public var detailed: DataFrame {
        let kept = samples.indices.filter { samples[$0].response != nil }
        var frame = DataFrame()
        if let typedColumns {
            frame = DataFrame(
                columns: typedColumns.map { column in
                    Column<Any>(name: column.name, contents: kept.map { column[$0] }).eraseToAnyColumn()
                })
        } else {
            frame.append(column: Column(name: "Input", contents: kept.map { Optional(samples[$0].prompt) }))
            frame.append(column: Column(name: "Expected", contents: kept.map { samples[$0].expected }))
            frame.append(column: Column(name: "Response", contents: kept.map { samples[$0].response }))
        }
        for name in samples.metricNames {
            frame.append(column: Column(name: name, contents: kept.map { samples[$0].metrics[Metric(name)] }))
        }
        return frame
    }

    /// The result of an operation that the evaluation computes, or of one over the results of its samples. -1 if no sample counts.
    public func aggregateValue(_ operation: AggregationOperation) -> Double {
        if let known = aggregates.first(where: { $0.operation.isSame(as: operation) }) { return known.value }
        let values = samples.flatMap(\.metrics).filter { $0.name == operation.metricName }.compactMap(\.doubleValue)
        return operation.value(of: values)
    }

    /// The aggregates as lines of text, by group.
    public var groupedSummary: String {
        var groups: [String?] = []
        for aggregate in aggregates where !groups.contains(aggregate.group) { groups.append(aggregate.group) }
        let width = aggregates.map(\.label.count).max() ?? 0
        return groups.map { group in
            let lines = aggregates.filter { $0.group == group }.map { aggregate in
                "  \(aggregate.label)\(String(repeating: " ", count: width - aggregate.label.count))  "
                    + String(format: "%.3f", aggregate.value)
            }
            return ([group ?? evaluationID] + lines).joined(separator: "\n")
        }.joined(separator: "\n")
    }

    // MARK: - JSON

    private struct Document<Sample: Codable>: Codable {
        var resultID: UUID
        var evaluationID: String
        var evaluationInfo: [String: String]
        /// A hash of the samples, and hashes of what else the results depend on.
        var fingerprint: String?
        var fingerprints: [String: String]?
        /// ISO 8601 with fractions of a second.
        var startTime: String
        var endTime: String
        var aggregates: [AggregateMetric]
        var samples: [Sample]
        var reportMetadata: [String: String]?

        func map<Other: Codable>(_ body: (Sample) -> Other) -> Document<Other> {
            Document<Other>(
                resultID: resultID, evaluationID: evaluationID, evaluationInfo: evaluationInfo, fingerprint: fingerprint,
                fingerprints: fingerprints, startTime: startTime, endTime: endTime, aggregates: aggregates,
                samples: samples.map(body), reportMetadata: reportMetadata)
        }
    }

    /// A sample in a file of an earlier version.
    private struct EarlierSample: Codable {
        struct Result: Codable {
            var name: String
            /// "pass", "fail" or "ignored"; nil for a score.
            var result: String?
            var score: Double?
            var rationale: String?
        }

        var input: String
        var expected: String?
        var response: String?
        var results: [Result]
        var errors: [String]
        var seconds: Double
        var transcript: SampleResult.TranscriptText?

        var sample: SampleResult {
            var sample = SampleResult(prompt: input)
            (sample.expected, sample.response, sample.errors) = (expected, response, errors)
            (sample.seconds, sample.transcript) = (seconds, transcript)
            sample.checks = results.map {
                let passes = $0.result == "pass" ? true : $0.result == "fail" ? false : nil
                return SampleResult.Check(name: $0.name, passes: passes, score: $0.score, reason: $0.rationale)
            }
            return sample
        }
    }

    private func document(_ includeReportMetadata: Bool, _ includeTranscripts: Bool) -> Document<SampleResult> {
        Document(
            resultID: resultID, evaluationID: evaluationID, evaluationInfo: evaluationInfo, fingerprint: header.fingerprint,
            fingerprints: header.contents, startTime: Self.timeFormat.format(startTime),
            endTime: Self.timeFormat.format(endTime), aggregates: aggregates,
            samples: samples.map { sample in
                var sample = sample
                if !includeTranscripts { (sample.transcript, sample.instructions, sample.calls) = (nil, nil, nil) }
                return sample
            }, reportMetadata: includeReportMetadata ? reportMetadata.mapValues { "\($0)" } : nil)
    }

    private static var timeFormat: Date.ISO8601FormatStyle { Date.ISO8601FormatStyle(includingFractionalSeconds: true) }

    /// The results as JSON.
    ///
    /// - Throws: An error of `JSONEncoder`; none is known.
    public func jsonData(
        includeReportMetadata: Bool = false, includeTranscripts: Bool = false,
        jsonOptions: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys]
    ) throws -> Data {
        let encoder = JSONEncoder.results
        encoder.outputFormatting = .withoutEscapingSlashes
        if jsonOptions.contains(.prettyPrinted) { encoder.outputFormatting.insert(.prettyPrinted) }
        if jsonOptions.contains(.sortedKeys) { encoder.outputFormatting.insert(.sortedKeys) }
        return try encoder.encode(document(includeReportMetadata, includeTranscripts))
    }

    /// Writes the results to a file in a folder, whose name has the evaluation and the time.
    ///
    /// - Throws: An error of Foundation if the file cannot be written.
    @discardableResult
    public func saveJSON(
        to directory: URL, includeReportMetadata: Bool = false, includeTranscripts: Bool = false
    ) throws -> URL {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let time = startTime.ISO8601Format().replacing(":", with: "-")
        // The name of an evaluation that was loaded from a file may be anything.
        let name = evaluationID.map { $0.isLetter || $0.isNumber ? $0 : "-" }
        let url = directory.appending(path: "\(String(name))-\(time)-\(resultID.uuidString.prefix(8)).json")
        try jsonData(includeReportMetadata: includeReportMetadata, includeTranscripts: includeTranscripts)
            .write(to: url, options: .atomic)
        return url
    }

    /// Reads results from a file.
    ///
    /// - Throws: ``EvaluationResultsError``
    public static func loadJSON(from url: URL) throws -> EvaluationResult {
        guard FileManager.default.fileExists(atPath: url.path) else { throw EvaluationResultsError.fileNotFound(url) }
        return try EvaluationResult(jsonData: Data(contentsOf: url))
    }

    /// Reads results from JSON.
    ///
    /// - Throws: ``EvaluationResultsError``
    public init(jsonData data: Data) throws {
        if data.isEmpty { throw EvaluationResultsError.emptyJSONFile }
        let document: Document<SampleResult>
        let (start, end): (Date, Date)
        do {
            do { document = try JSONDecoder.results.decode(Document<SampleResult>.self, from: data) } catch {
                document = try JSONDecoder.results.decode(Document<EarlierSample>.self, from: data).map(\.sample)
            }
            (start, end) = (try Self.timeFormat.parse(document.startTime), try Self.timeFormat.parse(document.endTime))
        } catch {
            throw EvaluationResultsError.invalidJSONFormat
        }
        self.init(
            header: RunHeader(
                dataset: document.evaluationID, fingerprint: document.fingerprint, info: document.evaluationInfo,
                contents: document.fingerprints),
            start: start, end: end, samples: document.samples, aggregates: document.aggregates, resultID: document.resultID)
        reportMetadata = document.reportMetadata ?? [:]
    }

    /// A table whose elements are texts, numbers and Boolean values.
    ///
    /// - Throws: Nothing at present.
    public func jsonRepresentableDataFrame(of kind: EvaluationResult.DataFrameKind) throws -> DataFrame {
        if kind == .summary { return summary }
        var texts = self
        texts.typedColumns = nil
        return DataFrame(
            columns: texts.detailed.columns.map { column in
                Column<Any>(name: column.name, contents: column.map { ($0 as? Metric).map { $0.doubleValue as Any } ?? $0 })
                    .eraseToAnyColumn()
            })
    }

    /// Reads the results of several runs, a line each.
    ///
    /// - Throws: ``EvaluationResultsError``
    public nonisolated(nonsending) static func loadJSONLines(from url: URL) async throws -> [EvaluationResult] {
        guard FileManager.default.fileExists(atPath: url.path) else { throw EvaluationResultsError.fileNotFound(url) }
        let lines = try Data(contentsOf: url).split(separator: UInt8(ascii: "\n")).filter { $0 != Data([0x0D]) }
        return try lines.map { try EvaluationResult(jsonData: Data($0)) }
    }
}

extension Collection where Element == EvaluationResult {
    /// Writes the results of several runs, a line each.
    ///
    /// - Throws: An error of Foundation if the file cannot be written.
    @discardableResult
    public func saveJSONLines(
        to url: URL, includeReportMetadata: Bool = false, includeTranscripts: Bool = false
    ) throws -> URL {
        var data = Data()
        for result in self {
            data += try result.jsonData(
                includeReportMetadata: includeReportMetadata, includeTranscripts: includeTranscripts, jsonOptions: [.sortedKeys])
            data.append(UInt8(ascii: "\n"))
        }
        try data.write(to: url, options: .atomic)
        return url
    }
}

/// Why results cannot be read.
public enum EvaluationResultsError: LocalizedError, Equatable {
    case fileNotFound(URL)
    case emptyJSONFile
    case invalidJSONFormat

    public var errorDescription: String? {
        switch self {
        case .fileNotFound(let url): "There is no file at \(url.path)."
        case .emptyJSONFile: "The file with the results is empty."
        case .invalidJSONFormat: "The file does not contain the results of an evaluation."
        }
    }
}
