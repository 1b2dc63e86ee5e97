internal import Foundation

/// The logits of a row as they were before they are sampled, to report probabilities.
struct RowScores {
    private let logits: [Float]
    private let logTotal: Double
    private var top: [TokenScore.Alternative] = []

    /// - Parameter top: the number of most probable tokens to report; nil if no probabilities are wanted.
    init?(_ row: UnsafeMutableBufferPointer<Float>, top count: Int?, _ operations: any Operations) {
        guard let count, let base = row.baseAddress else { return nil }
        logits = Array(row)
        var exponentials = logits
        let maximum = logits[operations.indexOfMaximum(base, count: logits.count)]
        let size = logits.count
        let total = exponentials.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.map {
                operations.exponentials(base, maximum: maximum, inverseTemperature: 1, count: size, to: $0)
            } ?? 1
        }
        logTotal = Double(maximum) + log(Double(total))
        for (token, logit) in logits.enumerated() where count > 0 {
            let logProbability = Double(logit) - logTotal
            if top.count == count, logProbability <= top[count - 1].logProbability { continue }
            let place = top.firstIndex { $0.logProbability < logProbability } ?? top.count
            top.insert(.init(token: TokenID(token), logProbability: logProbability), at: place)
            if top.count > count { top.removeLast() }
        }
    }

    func score(of token: TokenID) -> TokenScore {
        TokenScore(token: token, logProbability: Double(logits[Int(token)]) - logTotal, top: top)
    }
}

extension Operations {
    /// The probability that the next token is one of a few.
    func probability(of tokens: [TokenID], _ logits: UnsafeMutableBufferPointer<Float>) -> Double {
        guard let maximum = logits.max(), maximum.isFinite else { return 0 }
        func weight(_ logit: Float) -> Double { Double(exp(logit - maximum)) }
        return tokens.reduce(0) { $0 + weight(logits[Int($1)]) } / logits.reduce(0) { $0 + weight($1) }
    }
}
