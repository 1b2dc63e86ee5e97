public import CoreMetrics
internal import Synchronization

/// Figures of a program in the text format of Prometheus, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/).
///
/// A program that serves models bootstraps the metrics system with it before the first model is loaded:
/// `MetricsSystem.bootstrap(PrometheusMetrics.shared)`.
public final class PrometheusMetrics: MetricsFactory, Sendable {
    /// The figures of this process.
    public static let shared = PrometheusMetrics()

    private struct Key: Hashable {
        let name: String
        let labels: [String]
    }

    fileprivate final class Value: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler, TimerHandler,
        Sendable
    {
        enum Kind: String { case counter, gauge, histogram }

        private struct State {
            var sum = 0.0
            var count = 0
            var buckets: [Int]
        }

        let kind: Kind
        /// What a unit of the recorded numbers is in the unit of the text.
        let scale: Double
        let bounds: [Double]
        private let state: Mutex<State>

        init(_ kind: Kind, scale: Double = 1, bounds: [Double] = []) {
            (self.kind, self.scale, self.bounds) = (kind, scale, bounds)
            state = Mutex(State(buckets: Array(repeating: 0, count: bounds.count)))
        }

        func increment(by amount: Int64) { increment(by: Double(amount)) }
        func increment(by amount: Double) { state.withLock { $0.sum += amount } }
        func decrement(by amount: Double) { state.withLock { $0.sum -= amount } }
        func set(_ value: Int64) { set(Double(value)) }
        func set(_ value: Double) { state.withLock { $0.sum = value } }
        func reset() { state.withLock { $0 = State(buckets: Array(repeating: 0, count: bounds.count)) } }
        func record(_ value: Int64) { record(Double(value)) }
        func recordNanoseconds(_ duration: Int64) { record(Double(duration)) }

        func record(_ value: Double) {
            if kind == .gauge { return set(value) }
            let scaled = value * scale
            state.withLock { state in
                state.sum += scaled
                state.count += 1
                for (place, bound) in bounds.enumerated() where scaled <= bound { state.buckets[place] += 1 }
            }
        }

        func lines(_ name: String, _ labels: [String]) -> [String] {
            func line(_ name: String, _ labels: [String], _ value: String) -> String {
                name + (labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}") + " " + value
            }
            let state = state.withLock { $0 }
            guard kind == .histogram else { return [line(name, labels, PrometheusMetrics.text(state.sum))] }
            return zip(bounds, state.buckets).map { bound, count in
                line(name + "_bucket", labels + ["le=\"\(PrometheusMetrics.text(bound))\""], "\(count)")
            } + [
                line(name + "_bucket", labels + ["le=\"+Inf\""], "\(state.count)"),
                line(name + "_sum", labels, PrometheusMetrics.text(state.sum)), line(name + "_count", labels, "\(state.count)"),
            ]
        }
    }

    private let values = Mutex<[Key: Value]>([:])

    /// Creates a collection without figures.
    public init() {}

    private static let seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
    private static let amounts = [1.0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192]

    fileprivate static func text(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)"
    }

    private func value(
        _ label: String, _ dimensions: [(String, String)], _ make: () -> Value
    ) -> Value {
        let name = String(label.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == ":") ? $0 : "_" })
        let labels = dimensions.sorted { $0.0 < $1.0 }.map { name, value in
            let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
            return "\(name)=\"\(escaped)\""
        }
        return values.withLock { values in
            let key = Key(name: name, labels: labels)
            if let known = values[key] { return known }
            let made = make()
            values[key] = made
            return made
        }
    }

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        value(label, dimensions) { Value(.counter) }
    }

    public func makeFloatingPointCounter(label: String, dimensions: [(String, String)]) -> any FloatingPointCounterHandler {
        value(label, dimensions) { Value(.counter) }
    }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        value(label, dimensions) { Value(.gauge) }
    }

    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        value(label, dimensions) { aggregate ? Value(.histogram, bounds: Self.amounts) : Value(.gauge) }
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        value(label, dimensions) { Value(.histogram, scale: 1e-9, bounds: Self.seconds) }
    }

    // Figures of a server stay until it ends: a metric that is made again goes on where it was.
    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
    public func destroyMeter(_ handler: any MeterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}

    /// All figures, sorted by name.
    public var text: String {
        let all = values.withLock { $0 }.sorted { ($0.key.name, $0.key.labels.joined()) < ($1.key.name, $1.key.labels.joined()) }
        var lines: [String] = []
        var last = ""
        for (key, value) in all {
            if key.name != last { lines.append("# TYPE \(key.name) \(value.kind.rawValue)") }
            last = key.name
            lines += value.lines(key.name, key.labels)
        }
        return lines.map { $0 + "\n" }.joined()
    }
}
