internal import Decisions
public import Foundation
internal import Reports

/// What a result shows: by class, by check, and the samples that failed. An addition of this package.
///
/// ```swift
/// let report = EvaluationReport(result, comparedWith: try EvaluationResult(contentsOfRun: earlier), minimum: 0.9)
/// print(report.text)
/// try Data(report.junitXML.utf8).write(to: URL(filePath: "results.xml"))
/// ```
public struct EvaluationReport: Sendable {
    /// The samples of a class.
    public struct Share: Sendable, Encodable {
        /// The name of the class.
        public let name: String
        /// How many samples passed.
        public let passed: Int
        /// The number of samples.
        public let count: Int
        /// The lower end of the 95 % confidence interval of the share that passes.
        public let low: Double
        /// The upper end of the interval.
        public let high: Double
        /// How many samples each layer stopped.
        public let layers: [String: Int]

        init(_ name: String, _ results: [SampleResult]) {
            self.name = name
            count = results.count
            passed = results.count(where: \.passes)
            // Answers to one sample with several seeds are not independent: the interval is that of as many samples as there are.
            let samples = Set(results.map(\.id)).count
            let interval = EvaluationStatistics.interval(Double(samples) * Double(passed) / Double(max(1, count)), of: samples)
            (low, high) = (interval.lowerBound, interval.upperBound)
            layers = Dictionary(results.compactMap { $0.layer.map { ($0.rawValue, 1) } }, uniquingKeysWith: +)
        }

        /// The share of the samples that passed.
        public var share: Double { count == 0 ? 0 : Double(passed) / Double(count) }
    }

    /// The results of a check.
    public struct CheckSummary: Sendable, Encodable {
        /// The name of the check.
        public let name: String
        /// How many samples passed.
        public let passed: Int
        /// How many samples passed or failed.
        public let count: Int
        /// The mean of the scores, for checks that have one.
        public let score: Double?

        init(_ name: String, _ results: [SampleResult]) {
            let checks = results.flatMap(\.checks).filter { $0.name == name }
            let scores = checks.compactMap(\.score)
            self.name = name
            passed = checks.count { $0.passes == true }
            count = checks.count { $0.passes != nil }
            score = scores.isEmpty ? nil : scores.reduce(0, +) / Double(scores.count)
        }

        /// “3 of 4”; nothing for a check that has only scores.
        var shareText: String { count == 0 ? "" : "\(passed) of \(count)" }
    }

    let header: RunHeader
    /// The results, ordered by the ids of the samples.
    public let samples: [SampleResult]
    /// The differences from an earlier run.
    public let comparison: EvaluationComparison?
    let risks: RiskTable?
    /// The share of samples that must pass.
    public let minimum: Double
    /// The classes, in the order of their first samples.
    public let classes: [Share]
    /// The checks, in the order of their first results.
    public let checks: [CheckSummary]
    /// All samples.
    public let total: Share
    /// The decisions by their kinds; empty if there are none.
    public let decisions: [DecisionSummary]

    /// Creates a report.
    ///
    /// - Parameters:
    ///   - earlier: The result of a run to compare with.
    ///   - risks: A text with the risks of the feature. To a Markdown table that has a column “tested by” with texts such as
    ///     `class "unsafe"`, the results of these classes are added.
    ///   - minimum: The share of samples that must pass.
    public init(
        _ result: EvaluationResult, comparedWith earlier: EvaluationResult? = nil, risks: String? = nil, minimum: Double = 1
    ) {
        header = result.header
        let samples = result.samples.sorted(by: SampleResult.isInOrder)
        self.samples = samples
        comparison = earlier.map { result.comparison(with: $0) }
        self.minimum = minimum
        total = Share("all", samples)
        var names: [String] = []
        for sample in samples { if let name = sample.class, !names.contains(name) { names.append(name) } }
        let classes = names.map { name in Share(name, samples.filter { $0.class == name }) }
        self.classes = classes
        self.risks = risks.map { RiskTable($0, classes) }
        checks = samples.metricNames.map { CheckSummary($0, samples) }
        decisions = Self.decisions(samples)
    }

    /// The samples that did not pass.
    public var failures: [SampleResult] { samples.filter { !$0.passes } }
    var seconds: Double { samples.reduce(0) { $0 + $1.seconds } }

    /// Whether enough samples passed.
    public var isPassed: Bool { total.share >= minimum }

    /// Whether enough samples passed, in words.
    public var verdict: String {
        func percent(_ share: Double) -> String {
            // 99.6 % is not 100 %.
            let text = String(format: "%.1f", 100 * share)
            return (text.hasSuffix(".0") ? String(text.dropLast(2)) : text) + " %"
        }
        return "\(total.passed) of \(total.count) passed (\(percent(total.share))); required: \(percent(minimum)): "
            + (isPassed ? "passed" : "failed")
    }

    static func reasons(_ sample: SampleResult) -> String {
        (sample.checks.filter { $0.passes == false }.map { "\($0.name): \($0.reason ?? "")" } + sample.errors)
            .joined(separator: "; ")
    }

    // MARK: - JSON and JUnit

    private struct Document: Encodable {
        struct Comparison: Encodable {
            var earlier: RunHeader
            var date: String?
            var common: Int
            var passedBefore: Double
            var passedNow: Double
            /// Nil if the runs have no samples in common, like the ends of its interval.
            var difference: Double?
            var low: Double?
            var high: Double?
            var better: Int
            var worse: Int
            var probability: Double
            var changes: [EvaluationComparison.Change]
            var layerChanges: [EvaluationComparison.LayerChange]
        }

        var header: RunHeader
        var minimum: Double
        var passed: Bool
        var total: Share
        var classes: [Share]
        var checks: [CheckSummary]
        var decisions: [DecisionSummary]?
        var comparison: Comparison?
        /// The rows of the table, by its columns.
        var risks: [[String: String]]?
        var samples: [SampleResult]
    }

    /// The report as JSON.
    ///
    /// - Throws: An error of `JSONEncoder`; none is known.
    public func json() throws -> Data {
        let encoder = JSONEncoder.results
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let document = Document(
            header: header, minimum: minimum, passed: isPassed, total: total, classes: classes, checks: checks,
            decisions: decisions.isEmpty ? nil : decisions,
            comparison: comparison.map {
                .init(
                    earlier: $0.earlier, date: $0.date, common: $0.common, passedBefore: $0.passedBefore,
                    passedNow: $0.passedAfter, difference: $0.difference, low: $0.interval?.lowerBound,
                    high: $0.interval?.upperBound, better: $0.better, worse: $0.worse, probability: $0.probability,
                    changes: $0.changes, layerChanges: $0.layerChanges)
            },
            risks: risks.map { risks in
                risks.rows.map { Dictionary(zip(risks.columns, $0), uniquingKeysWith: { first, _ in first }) }
            }, samples: samples)
        return try encoder.encode(document) + [0x0A]
    }

    /// The report as JUnit XML: a test case for each sample.
    public var junitXML: String {
        var lines = [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "<testsuite name=\"\(header.dataset.xmlEscaped)\" tests=\"\(samples.count)\" failures=\"\(failures.count)\" "
                + "time=\"\(String(format: "%.3f", seconds))\">",
        ]
        for sample in samples {
            let start =
                "  <testcase classname=\"\((sample.class ?? header.dataset).xmlEscaped)\" name=\"\(sample.title.xmlEscaped)\" "
                + "time=\"\(String(format: "%.3f", sample.seconds))\""
            if sample.passes {
                lines.append(start + "/>")
            } else {
                let text = "\(sample.prompt)\n\n\(sample.response ?? "")"
                lines.append(start + ">")
                lines.append(
                    "    <failure message=\"\(Self.reasons(sample).xmlEscaped)\">\(text.xmlEscaped)</failure>")
                lines.append("  </testcase>")
            }
        }
        return (lines + ["</testsuite>", ""]).joined(separator: "\n")
    }
}

extension String {
    /// The text for XML and HTML.
    var xmlEscaped: String { withoutControls.htmlEscaped }

    /// The text without control characters, which do not exist in XML.
    var withoutControls: String {
        let scalars = unicodeScalars.filter { scalar in
            scalar == "\n" || scalar == "\t" || scalar.value >= 0x20 && scalar.value != 0xFFFE && scalar.value != 0xFFFF
        }
        return String(String.UnicodeScalarView(scalars))
    }
}

/// “1 sample”, “2 samples”
enum Count {
    static func text(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
}
