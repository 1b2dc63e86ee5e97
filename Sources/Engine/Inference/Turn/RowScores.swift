internal import Foundation

/// The logits of a row as they were before they are sampled, to report probabilities.
struct RowScores {
    private let logits: [Float]
    private let logTotal: Double
    private var top: [TokenScore.Alternative] = []

    /// - Parameter top: the number of most probable tokens to report; nil if no probabilities are wanted.
    init?(_ row: UnsafeMutableBufferPointer<Float>, top count: Int?) {
        guard let count, !row.isEmpty else { return nil }
        logits = Array(row)
        var exponentials = logits
        let maximum = row[row.indexOfMaximum]
        let total = exponentials.withUnsafeMutableBufferPointer { row.exponentials(maximum: maximum, to: $0) }
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
