public import Foundation
internal import FoundationModels
public import TabularData

/// The results of an evaluation.
public struct EvaluationResult: Sendable {
    /// The results for one sample.
    struct Row: Sendable, Codable {
        /// The texts of a transcript.
        struct TranscriptText: Sendable, Codable {
            var instructions: String
            var prompts: [String]
            var toolCalls: [String]
            var toolOutputs: [String]

            init(_ transcript: StructuredTranscript) {
                instructions = transcript.instructionText
                prompts = transcript.prompts
                toolCalls = transcript.toolCalls.map { "\($0.toolName)\($0.arguments.jsonString)" }
                toolOutputs = transcript.toolOutputs.map { $0.segments.modelText }
            }
        }

        var input: String
        var expected: String?
        var response: String?
        private var results: [SavedMetric] = []
        var errors: [String] = []
        var seconds = 0.0
        var transcript: TranscriptText?

        init(input: String, expected: String?) {
            self.input = input
            self.expected = expected
        }

        var metrics: [Metric] {
            get { results.map(\.metric) }
            set { results = newValue.map { SavedMetric($0) } }
        }
    }

    /// The kinds of tables.
    public enum DataFrameKind {
        case summary, detailed
    }

    /// A unique id of the run.
    public let resultID: UUID
    /// The name of the evaluation.
    public let evaluationID: String
    /// Values that a program adds; they are saved if asked for.
    public var reportMetadata: [String: any Sendable] = [:]
    /// Texts that were given to the run.
    public let evaluationInfo: [String: String]
    public let startTime: Date
    public let endTime: Date
    /// The time of the run in seconds.
    public var duration: TimeInterval { endTime.timeIntervalSince(startTime) }

    let rows: [Row]
    let aggregates: [AggregateMetric]
    /// Columns with the samples and outputs themselves; after loading there are only texts.
    var typedColumns: [AnyColumn]?

    init(
        evaluationID: String, info: [String: String], start: Date, end: Date, rows: [Row], aggregates: [AggregateMetric],
        resultID: UUID = UUID()
    ) {
        self.resultID = resultID
        self.evaluationID = evaluationID
        evaluationInfo = info
        startTime = start
        endTime = end
        self.rows = rows
        self.aggregates = aggregates
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
        let kept = rows.indices.filter { rows[$0].response != nil }
        var frame = DataFrame()
        if let typedColumns {
            frame = DataFrame(
                columns: typedColumns.map { column in
                    Column<Any>(name: column.name, contents: kept.map { column[$0] }).eraseToAnyColumn()
                })
        } else {
            frame.append(column: Column(name: "Input", contents: kept.map { Optional(rows[$0].input) }))
            frame.append(column: Column(name: "Expected", contents: kept.map { rows[$0].expected }))
            frame.append(column: Column(name: "Response", contents: kept.map { rows[$0].response }))
        }
        for name in metricNames {
            frame.append(column: Column(name: name, contents: kept.map { rows[$0].metrics[Metric(name)] }))
        }
        return frame
    }

    /// The metrics in the order of their first results.
    var metricNames: [String] {
        var names: [String] = []
        for metric in rows.flatMap(\.metrics) where !names.contains(metric.name) { names.append(metric.name) }
        return names
    }

    /// The result of an operation that the evaluation computes, or of one over the results of its samples. -1 if no sample counts.
    public func aggregateValue(_ operation: AggregationOperation) -> Double {
        if let known = aggregates.first(where: { $0.operation.isSame(as: operation) }) { return known.value }
        let values = rows.flatMap(\.metrics).filter { $0.name == operation.metricName }.compactMap(\.doubleValue)
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

    private struct Document: Codable {
        var resultID: UUID
        var evaluationID: String
        var evaluationInfo: [String: String]
        /// ISO 8601 with fractions of a second.
        var startTime: String
        var endTime: String
        var aggregates: [AggregateMetric]
        var samples: [Row]
        var reportMetadata: [String: String]?
    }

    private func document(_ includeReportMetadata: Bool, _ includeTranscripts: Bool) -> Document {
        Document(
            resultID: resultID, evaluationID: evaluationID, evaluationInfo: evaluationInfo,
            startTime: Self.timeFormat.format(startTime),
            endTime: Self.timeFormat.format(endTime),
            aggregates: aggregates,
            samples: rows.map { row in
                var row = row
                if !includeTranscripts { row.transcript = nil }
                return row
            }, reportMetadata: includeReportMetadata ? reportMetadata.mapValues { "\($0)" } : nil)
    }

    private static var timeFormat: Date.ISO8601FormatStyle { Date.ISO8601FormatStyle(includingFractionalSeconds: true) }

    private static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        return decoder
    }

    /// The results as JSON.
    ///
    /// - Throws: An error of `JSONEncoder`; none is known.
    public func jsonData(
        includeReportMetadata: Bool = false, includeTranscripts: Bool = false,
        jsonOptions: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys]
    ) throws -> Data {
        let encoder = JSONEncoder()
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
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
        let document: Document
        let (start, end): (Date, Date)
        do {
            document = try Self.decoder.decode(Document.self, from: data)
            (start, end) = (try Self.timeFormat.parse(document.startTime), try Self.timeFormat.parse(document.endTime))
        } catch {
            throw EvaluationResultsError.invalidJSONFormat
        }
        self.init(
            evaluationID: document.evaluationID, info: document.evaluationInfo, start: start, end: end,
            rows: document.samples, aggregates: document.aggregates, resultID: document.resultID)
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

/// The result of a metric in a file.
private struct SavedMetric: Sendable, Codable {
    var name: String
    /// "pass", "fail" or "ignored"; nil for a score.
    var result: String?
    var score: Double?
    var rationale: String?

    init(_ metric: Metric) {
        name = metric.name
        rationale = metric.rationale
        switch metric.value {
        case .passing: result = "pass"
        case .failing: result = "fail"
        case .ignore: result = "ignored"
        case .scoring(let value): score = value
        }
    }

    var metric: Metric {
        if let score { return Metric(name, .scoring(score), rationale) }
        return Metric(name, result == "pass" ? .passing : result == "fail" ? .failing : .ignore, rationale)
    }
}
