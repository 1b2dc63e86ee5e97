extension Calibration {
    /// What has been fitted for the models of the catalogue; ``none`` for others.
    ///
    /// From `Benchmarks/Decisions/fit.jsonl` by `fm eval --fit`; figures on other questions are in BENCHMARKS.md.
    static func builtIn(for model: String?) -> Calibration { model.flatMap { known[$0] } ?? none }

    private static let known: [String: Calibration] = [
        // Qwen2.5-Coder-1.5B-Instruct with its adapter for general use.
        "a8af0622d2358987+assistant": Calibration(
            entries: [
                .init(kind: "predicate", temperature: 0.91, bias: -0.08, samples: 113),
                .init(kind: "choice", options: 2...3, temperature: 1.52, samples: 112),
                .init(kind: "choice", options: 4...6, temperature: 1.56, samples: 74),
                .init(kind: "choice", options: 7...255, temperature: 1.52, samples: 112),
                .init(kind: "score", temperature: 2.13, samples: 42),
            ])
    ]
}
