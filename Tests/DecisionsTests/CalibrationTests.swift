import Foundation
import TestSupport
import Testing

@testable import Decisions

struct CalibrationTests {
    private static func normalised(_ values: [Double]) -> [Double] {
        let maximum = values.max() ?? 0
        let total = maximum + log(values.reduce(0) { $0 + exp($1 - maximum) })
        return values.map { $0 - total }
    }

    /// Probabilities of two options.
    private static func decision(_ first: Double, expected: Int, kind: String = "choice") -> LabelledDecision {
        LabelledDecision(kind: kind, logProbabilities: [log(first), log(1 - first)], expected: expected)
    }

    /// Numbers from 0 to 1 of a generator, or evenly from a place that it chooses: fewer of those are enough to find a temperature again.
    private struct Draws {
        private var random: SeededGenerator
        private var place = 0.0

        init(seed: UInt64) {
            random = SeededGenerator(seed)
            place = next()
        }

        mutating func next() -> Double { Double(random.next() >> 11) * 0x1p-53 }

        mutating func nextEven() -> Double {
            defer { place = (place + 0.618_033_988_749_894_9).truncatingRemainder(dividingBy: 1) }
            return place
        }
    }

    /// Choices of a model whose logarithms are those of the right probabilities, multiplied.
    private static func choices(_ count: Int, options: Int, factor: Double, seed: UInt64 = 1) -> [LabelledDecision] {
        var draws = Draws(seed: seed)
        return (0..<count).map { _ in
            let values = (0..<options).map { _ in 6 * draws.next() - 3 }
            var rest = draws.nextEven()
            var expected = 0
            for value in normalised(values).dropLast() {
                if rest < exp(value) { break }
                rest -= exp(value)
                expected += 1
            }
            return LabelledDecision(
                kind: "choice", logProbabilities: normalised(values.map { factor * $0 }), expected: expected)
        }
    }

    /// Answers of a model that says no too often, and is too sure.
    private static func predicates(_ count: Int, factor: Double, bias: Double) -> [LabelledDecision] {
        var draws = Draws(seed: 1)
        return (0..<count).map { index in
            let odds = 8 * (Double(index) + 0.5) / Double(count) - 4
            let isTrue = draws.nextEven() < 1 / (1 + exp(-odds))
            return LabelledDecision(
                kind: "predicate", logProbabilities: normalised([factor * odds - bias, 0]), expected: isTrue ? 0 : 1)
        }
    }

    // MARK: - Use

    @Test func temperaturesChangeNoOrder() throws {
        var draws = Draws(seed: 5)
        for round in 0..<50 {
            let values = Self.normalised((0..<(2 + round % 7)).map { _ in -20 * draws.next() })
            let order = values.indices.sorted { values[$0] > values[$1] }
            var last = 1.0
            for temperature in [0.2, 0.5, 1, 2, 8] {
                let calibration = Calibration(entries: [.init(kind: "score", temperature: temperature)])
                let weights = calibration.weights(values, kind: "score")
                #expect(weights.indices.sorted { weights[$0] > weights[$1] } == order)
                // The higher it is, the less sure the model is.
                let largest = try #require(Distribution(values, weights: weights)).probabilityOfMostLikely
                #expect(largest <= last)
                last = largest
            }
            let plain = try #require(Distribution(values, weights: Calibration.none.weights(values, kind: "score")))
            for (probability, value) in zip(plain.probabilities, values) { #expect(abs(probability - exp(value)) < 1e-12) }
        }
    }

    @Test func entriesAreThoseOfKindAndNumberOfOptions() {
        let calibration = Calibration(
            entries: [
                .init(kind: "choice", options: 2...3, temperature: 2), .init(kind: "choice", options: 4...6, temperature: 4),
                .init(kind: "predicate", temperature: 1, bias: log(4)),
            ])
        #expect(calibration.entry(kind: "choice", options: 3)?.temperature == 2)
        #expect(calibration.entry(kind: "choice", options: 4)?.temperature == 4)
        #expect(calibration.entry(kind: "choice", options: 7) == nil && calibration.entry(kind: "score", options: 3) == nil)
        let even = [log(0.5), log(0.5)]
        // The bias is that of yes against no.
        let weights = calibration.weights(even, kind: "predicate")
        #expect(abs(weights[0] / weights[1] - 4) < 1e-12)
        #expect(calibration.weights(even, kind: "choice") == [1, 1] && calibration.weights(even, kind: "value") == [1, 1])
        #expect(Calibration.builtIn(for: nil) == Calibration.none && Calibration.builtIn(for: "another") == Calibration.none)
    }

    /// A file of temperatures is written by people too.
    @Test func unusableTemperaturesAndProbabilities() {
        let values = [log(0.75), log(0.25)]
        for temperature in [0, -1, .nan, .infinity] as [Double] {
            let weights = Calibration(entries: [.init(kind: "choice", temperature: temperature)]).weights(values, kind: "choice")
            #expect(abs(weights[0] / weights[1] - 3) < 1e-12, "\(temperature)")
        }
        #expect(Calibration.none.weights([-.infinity, -.infinity], kind: "choice") == [1, 1])
        #expect(Calibration.none.weights([-.infinity, -3], kind: "choice") == [0, 1])
        #expect(Calibration.none.weights([], kind: "choice") == [])
    }

    @Test func filesKeepEverything() throws {
        var calibration = Calibration(
            model: "0123+assistant",
            entries: [
                .init(kind: "choice", options: 4...6, temperature: 1.56, samples: 74), .init(kind: "value", temperature: 2),
            ])
        #expect(try JSONDecoder().decode(Calibration.self, from: JSONEncoder().encode(calibration)) == calibration)
        calibration.model = nil
        #expect(try JSONDecoder().decode(Calibration.self, from: JSONEncoder().encode(calibration)) == calibration)
    }

    // MARK: - Fitting

    @Test(arguments: [0.5, 1, 2.5]) func temperaturesAreFoundAgain(factor: Double) throws {
        let decisions = Self.choices(400, options: 5, factor: factor)
        let calibration = Calibration.fitted(to: decisions, model: "m")
        let entry = try #require(calibration.entry(kind: "choice", options: 5))
        #expect(abs(entry.temperature / factor - 1) < 0.1, "\(entry.temperature)")
        #expect(entry.bias == 0 && entry.samples == 400 && calibration.model == "m")
        // No temperature beside it makes the right answers more probable.
        let best = Calibration.loss(decisions, temperature: entry.temperature, bias: 0)
        for other in [0.9, 1.1] {
            #expect(Calibration.loss(decisions, temperature: other * entry.temperature, bias: 0) > best)
        }
        let (before, after) = (DecisionQuality(decisions), DecisionQuality(decisions, calibration: calibration))
        #expect(before.accuracy == after.accuracy && after.logLoss <= before.logLoss)
        if factor != 1 { #expect(after.calibrationError < before.calibrationError) }
    }

    @Test func biasesAreFoundAgain() throws {
        let decisions = Self.predicates(150, factor: 2, bias: 0.8)
        let calibration = Calibration.fitted(to: decisions)
        let entry = try #require(calibration.entry(kind: "predicate", options: 2))
        #expect(calibration.entries.count == 1, "the other kinds have no questions")
        #expect(abs(entry.bias - 0.8) < 0.3, "\(entry.bias)")
        #expect(abs(entry.temperature / 2 - 1) < 0.15, "\(entry.temperature)")
        let (before, after) = (DecisionQuality(decisions), DecisionQuality(decisions, calibration: calibration))
        #expect(after.logLoss < before.logLoss && after.calibrationError < before.calibrationError)
    }

    /// Thirty questions of a number of options have a temperature of their own; fewer have that of all.
    @Test func fewQuestionsShareATemperature() throws {
        let three = Self.choices(40, options: 3, factor: 1)
        let five = Self.choices(10, options: 5, factor: 3)
        let one = LabelledDecision(kind: "choice", logProbabilities: [0], expected: 0)
        let calibration = Calibration.fitted(to: three + five + [one])
        #expect(calibration.entries.map(\.samples) == [40, 50, 50])
        #expect(calibration.entries.map(\.minimumOptions) == [2, 4, 7])
        #expect(calibration.entries[1].temperature == calibration.entries[2].temperature)
        #expect(calibration.entries[0].temperature != calibration.entries[1].temperature)
        let more = Calibration.fitted(to: three + Self.choices(30, options: 5, factor: 3))
        #expect(more.entries.map(\.samples) == [40, 30, 70])
        #expect(Calibration.fitted(to: []) == Calibration.none && Calibration.fitted(to: [one]) == Calibration.none)
    }

    // MARK: - Quality

    @Test func qualityOfKnownDecisions() {
        // Four that are sure, of which three are right; two that are not.
        let decisions = [
            Self.decision(0.95, expected: 0), Self.decision(0.95, expected: 0), Self.decision(0.05, expected: 1),
            Self.decision(0.95, expected: 1), Self.decision(0.65, expected: 0), Self.decision(0.35, expected: 0),
        ]
        let quality = DecisionQuality(decisions)
        #expect(quality.count == 6 && abs(quality.accuracy - 4.0 / 6) < 1e-12)
        #expect(quality.bins.map(\.count) == [2, 4], "the ranges without decisions are left out")
        for (bin, expected) in zip(quality.bins, [(0.65, 0.5), (0.95, 0.75)]) {
            #expect(abs(bin.probability - expected.0) < 1e-12 && bin.accuracy == expected.1)
        }
        #expect(abs(quality.calibrationError - (2 * 0.15 + 4 * 0.2) / 6) < 1e-12)
        let loss = -(3 * log(0.95) + log(0.05) + log(0.65) + log(0.35)) / 6
        #expect(abs(quality.logLoss - loss) < 1e-12)
    }

    /// A probability of 1 belongs to the last range, and a right answer of probability 0 has a loss that is a number.
    @Test func qualityOfExtremeDecisions() {
        let certain = LabelledDecision(kind: "choice", logProbabilities: [0, -.infinity], expected: 0)
        let wrong = LabelledDecision(kind: "choice", logProbabilities: [0, -.infinity], expected: 1)
        let quality = DecisionQuality([certain, wrong])
        #expect(quality.bins == [.init(count: 2, probability: 1, accuracy: 0.5)] && quality.calibrationError == 0.5)
        #expect(quality.logLoss.isFinite && quality.logLoss > 10)
        let none = DecisionQuality([])
        #expect(none.count == 0 && none.accuracy == 0 && none.bins.isEmpty)
        #expect(none.calibrationError == 0 && none.logLoss == 0)
    }

    /// What a report shows of a calibration is the same whether its temperatures are in the probabilities or beside them.
    @Test func appliedCalibrations() {
        let decisions = Self.choices(60, options: 4, factor: 2)
        let calibration = Calibration(entries: [.init(kind: "choice", temperature: 2)])
        let (applied, beside) = (
            DecisionQuality(decisions.map { calibration.applied(to: $0) }), DecisionQuality(decisions, calibration: calibration)
        )
        #expect(applied.accuracy == beside.accuracy && abs(applied.logLoss - beside.logLoss) < 1e-9)
        #expect(abs(applied.calibrationError - beside.calibrationError) < 1e-9)
    }
}
