public import Decisions
internal import Foundation

extension EvaluationReport {
    /// How good the decisions of a kind of question are.
    public struct DecisionSummary: Sendable, Encodable {
        /// The kind: predicate, choice or score; all for all of them.
        public let kind: String
        /// Accuracy and calibration, with the probabilities that the run had.
        public let quality: DecisionQuality
        /// The same with temperatures that are fitted to the other half of the decisions, for each half: what a calibration from as many
        /// questions of this kind would bring. Nil for fewer than 40 decisions.
        public let fitted: DecisionQuality?
    }

    /// The kinds of decisions, if there are any, and all of them if there are several kinds.
    static func decisions(_ samples: [SampleResult]) -> [DecisionSummary] {
        let decided = samples.compactMap(\.decision)
        let kinds = ["predicate", "choice", "score"].filter { kind in decided.contains { $0.kind == kind } }
        var summaries = kinds.map { kind in summary(kind, decided.filter { $0.kind == kind }) }
        if kinds.count > 1 { summaries.append(summary("all", decided)) }
        return summaries
    }

    private static func summary(_ kind: String, _ decided: [SampleResult.Decision]) -> DecisionSummary {
        let labelled = decided.map(\.labelled)
        var fitted: DecisionQuality?
        if labelled.count >= 40 {
            let halves = [0, 1].map { half in labelled.enumerated().filter { $0.offset % 2 == half }.map(\.element) }
            let judged = [0, 1].flatMap { half in
                let calibration = Calibration.fitted(to: halves[1 - half])
                return halves[half].map { calibration.applied(to: $0) }
            }
            fitted = DecisionQuality(judged)
        }
        return DecisionSummary(kind: kind, quality: DecisionQuality(decided.map(\.calibrated)), fitted: fitted)
    }
}

extension SampleResult.Decision {
    /// With the probabilities of the run.
    fileprivate var calibrated: LabelledDecision {
        LabelledDecision(kind: kind, logProbabilities: probabilities.map { $0 > 0 ? log($0) : -700 }, expected: expected)
    }

    /// Before any temperature.
    package var labelled: LabelledDecision {
        LabelledDecision(kind: kind, logProbabilities: logProbabilities, expected: expected)
    }
}
