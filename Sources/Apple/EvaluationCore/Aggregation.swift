internal import Foundation

/// A number computed from the results of all samples.
public enum AggregationOperation: Sendable, Equatable, Codable {
    case mean(of: Metric)
    case median(of: Metric)
    case mode(of: Metric)
    case minimum(of: Metric)
    case maximum(of: Metric)
    case standardDeviation(of: Metric)
    case variance(of: Metric)
    case custom(label: String)

    private var parts: (name: String, metric: Metric?) {
        switch self {
        case .mean(let metric): ("Mean", metric)
        case .median(let metric): ("Median", metric)
        case .mode(let metric): ("Mode", metric)
        case .minimum(let metric): ("Minimum", metric)
        case .maximum(let metric): ("Maximum", metric)
        case .standardDeviation(let metric): ("Standard deviation", metric)
        case .variance(let metric): ("Variance", metric)
        case .custom(let label): (label, nil)
        }
    }

    /// The operation with the name of its metric.
    public var label: String { parts.metric.map { "\(parts.name) of \($0.name)" } ?? parts.name }

    var metricName: String? { parts.metric?.name }

    /// Whether two operations are of one kind on one metric, whatever results the metrics carry.
    func isSame(as other: AggregationOperation) -> Bool {
        parts.name == other.parts.name && metricName == other.metricName
    }

    private enum CodingKeys: CodingKey { case operation, metric, label }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        if case .custom(let label) = self {
            try container.encode(label, forKey: .label)
        } else {
            try container.encode(parts.name, forKey: .operation)
            try container.encode(metricName, forKey: .metric)
        }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let label = try container.decodeIfPresent(String.self, forKey: .label) {
            self = .custom(label: label)
            return
        }
        let metric = Metric(try container.decode(String.self, forKey: .metric))
        let name = try container.decode(String.self, forKey: .operation)
        let all: [AggregationOperation] = [
            .mean(of: metric), .median(of: metric), .mode(of: metric), .minimum(of: metric), .maximum(of: metric),
            .standardDeviation(of: metric), .variance(of: metric),
        ]
        guard let known = all.first(where: { $0.parts.name == name }) else {
            throw DecodingError.dataCorruptedError(
                forKey: .operation, in: container, debugDescription: "\(name) is not an operation on metrics.")
        }
        self = known
    }

    /// Apple's value for a metric without results.
    static let withoutValues = -1.0

    /// The result for the values of the samples that count.
    func value(of values: [Double]) -> Double {
        if values.isEmpty { return Self.withoutValues }
        let mean = values.reduce(0, +) / Double(values.count)
        func variance() -> Double { values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(values.count) }
        switch self {
        case .mean, .custom: return mean
        case .median:
            let sorted = values.sorted()
            return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
        case .mode:
            let counts = Dictionary(values.map { ($0, 1) }, uniquingKeysWith: +)
            // The smallest of several, so that the result does not depend on an order.
            return counts.min { ($1.value, $0.key) < ($0.value, $1.key) }?.key ?? mean
        case .minimum: return values.min() ?? mean
        case .maximum: return values.max() ?? mean
        case .variance: return variance()
        case .standardDeviation: return variance().squareRoot()
        }
    }
}

/// The result of an operation.
public struct AggregateMetric: Sendable, Codable, Equatable {
    public let operation: AggregationOperation
    /// The group that it belongs to.
    public let group: String?
    /// The number; -1 if no sample counts.
    public let value: Double

    /// The operation with the name of its metric.
    public var label: String { operation.label }
    /// The name of the metric; nil for operations of the program.
    public var sourceMetric: String? { operation.metricName }
}

/// Collects what an evaluation computes from the results of its samples.
public struct MetricsAggregator {
    private(set) var results: [AggregateMetric] = []
    /// The values of the samples that count, by the names of their metrics.
    private let values: [String: [Double]]

    init(_ samples: [SampleResult]) {
        values = Dictionary(grouping: samples.flatMap(\.metrics), by: \.name).mapValues { $0.compactMap(\.doubleValue) }
    }

    fileprivate mutating func add(_ operation: AggregationOperation, group: String? = nil) {
        let values = operation.metricName.flatMap { self.values[$0] } ?? []
        results.append(AggregateMetric(operation: operation, group: group, value: operation.value(of: values)))
    }

    fileprivate mutating func add(_ metric: Metric, _ label: String, group: String?, _ body: ([Double]) -> Double) {
        results.append(
            AggregateMetric(operation: .custom(label: label), group: group, value: body(values[metric.name] ?? [])))
    }

    /// Collects results with a heading of their own.
    public mutating func group(_ name: String, _ body: (inout MetricsAggregator.Group) -> Void) {
        var group = Group(name: name, aggregator: self)
        body(&group)
        self = group.aggregator
    }

    public mutating func computeMean(of metric: Metric) { add(.mean(of: metric)) }
    public mutating func computeMedian(of metric: Metric) { add(.median(of: metric)) }
    public mutating func computeMode(of metric: Metric) { add(.mode(of: metric)) }
    public mutating func computeMinimum(of metric: Metric) { add(.minimum(of: metric)) }
    public mutating func computeMaximum(of metric: Metric) { add(.maximum(of: metric)) }
    public mutating func computeStandardDeviation(of metric: Metric) { add(.standardDeviation(of: metric)) }
    public mutating func computeVariance(of metric: Metric) { add(.variance(of: metric)) }

    /// Computes a number with a function of the values of the samples that count.
    public mutating func custom(of metric: Metric, label: String, _ body: ([Double]) -> Double) {
        add(metric, label, group: nil, body)
    }

    /// Results with a common heading.
    public struct Group {
        public let name: String
        fileprivate var aggregator: MetricsAggregator

        fileprivate init(name: String, aggregator: MetricsAggregator) {
            self.name = name
            self.aggregator = aggregator
        }

        public mutating func computeMean(of metric: Metric) { aggregator.add(.mean(of: metric), group: name) }
        public mutating func computeMedian(of metric: Metric) { aggregator.add(.median(of: metric), group: name) }
        public mutating func computeMode(of metric: Metric) { aggregator.add(.mode(of: metric), group: name) }
        public mutating func computeMinimum(of metric: Metric) { aggregator.add(.minimum(of: metric), group: name) }
        public mutating func computeMaximum(of metric: Metric) { aggregator.add(.maximum(of: metric), group: name) }
        public mutating func computeStandardDeviation(of metric: Metric) {
            aggregator.add(.standardDeviation(of: metric), group: name)
        }
        public mutating func computeVariance(of metric: Metric) { aggregator.add(.variance(of: metric), group: name) }

        /// Computes a number with a function of the values of the samples that count.
        public mutating func custom(of metric: Metric, label: String, _ body: ([Double]) -> Double) {
            aggregator.add(metric, label, group: name, body)
        }
    }
}
