/// A quality that is measured, and the result for one sample. Metrics are identified by their names.
public struct Metric: Sendable, Equatable, CustomStringConvertible {
    /// A result.
    public enum Value: Equatable, Sendable {
        /// The sample passes.
        case passing
        /// The sample fails.
        case failing
        /// The sample has a score.
        case scoring(Double)
        /// The sample does not count.
        case ignore
    }

    /// The name, which is unique within an evaluation.
    public let name: String
    /// The result; `ignore` for a metric that only names what is measured.
    public let value: Metric.Value
    /// Why the result is as it is.
    public let rationale: String?

    /// The score of a metric that passes or fails because of it.
    let score: Double?

    /// Creates a metric without a result.
    public init(_ name: String) { self.init(name, .ignore, nil) }

    init(_ name: String, _ value: Value, _ rationale: String?, score: Double? = nil) {
        self.name = name
        self.value = value
        self.rationale = rationale
        self.score = score
    }

    /// The metric with the result that the sample passes.
    public func passing(rationale: String? = nil) -> Metric { Metric(name, .passing, rationale) }
    /// The metric with the result that the sample fails.
    public func failing(rationale: String? = nil) -> Metric { Metric(name, .failing, rationale) }
    /// The metric with a score.
    public func scoring(_ value: Double, rationale: String? = nil) -> Metric { Metric(name, .scoring(value), rationale) }
    /// The metric without a result for this sample.
    public func ignore(rationale: String? = nil) -> Metric { Metric(name, .ignore, rationale) }

    /// 1 for a sample that passes, 0 for one that fails, or the score; nil if the sample does not count.
    public var doubleValue: Double? {
        switch value {
        case .passing: 1
        case .failing: 0
        case .scoring(let score): score
        case .ignore: nil
        }
    }

    /// Whether all expectations of tool calls are met.
    public static let toolsAllPass = Metric("Tools: all pass")
    /// The part of the expectations of tool calls that are met.
    public static let toolsPercentagePass = Metric("Tools: percentage")

    public var description: String {
        switch value {
        case .passing: "\(name): pass"
        case .failing: "\(name): fail"
        case .scoring(let score): "\(name): \(score)"
        case .ignore: "\(name): ignored"
        }
    }
}

extension [Metric] {
    /// The result of the metric with the same name.
    public subscript(metric: Metric) -> Metric? { first { $0.name == metric.name } }
}
