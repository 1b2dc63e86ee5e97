internal import Foundation

/// Joins the results of several searches by their ranks (reciprocal rank fusion: Cormack, Clarke and Büttcher,
/// doi:10.1145/1571941.1572114).
public enum RankFusion {
    /// The constant of the original is 60, which hardly distinguishes the first ranks. With small budgets, where only the
    /// first few results are used, a small constant finds much more.
    public static let constant = 5.0

    /// The keys of all lists with their scores, best first. The score of a key is Σ weight / (constant + rank).
    ///
    /// - Parameter lists: Keys, best first, and the weight of each.
    public static func fused<Key: Hashable & Comparable>(
        _ lists: [[(key: Key, weight: Double)]], constant: Double = RankFusion.constant
    ) -> [(key: Key, score: Double)] {
        var scores: [Key: Double] = [:]
        for list in lists {
            for (rank, item) in list.enumerated() {
                scores[item.key, default: 0] += item.weight / (constant + Double(rank) + 1)
            }
        }
        return scores.map { ($0.key, $0.value) }.sorted { $0.1 == $1.1 ? $0.0 < $1.0 : $0.1 > $1.1 }
    }
}

/// The logarithm of the odds of a likelihood, at most some 21 on both sides.
public func logOdds(_ likelihood: Double) -> Double {
    let likelihood = min(max(likelihood, 1e-9), 1 - 1e-9)
    return log(likelihood / (1 - likelihood))
}

/// Chooses results that differ from each other (maximal marginal relevance: Carbonell and Goldstein,
/// doi:10.1145/290941.291025).
public enum Diversity {
    /// The indices of the chosen items, in the order of choice: each has the largest value of
    /// `(1 − diversity) · relevance − diversity · similarity to the most similar chosen item`.
    ///
    /// - Parameters:
    ///   - relevance: Of each item, from 0 to 1.
    ///   - vectors: Of each item, of length 1; an empty one is similar to none.
    public static func chosen(count: Int, relevance: [Double], vectors: [[Float]], diversity: Double) -> [Int] {
        var left = Array(relevance.indices)
        var similarity = [Double](repeating: 0, count: relevance.count)
        var chosen: [Int] = []
        while chosen.count < count, !left.isEmpty {
            var best = 0
            var bestValue = -Double.infinity
            for (place, item) in left.enumerated() {
                let value = (1 - diversity) * relevance[item] - diversity * similarity[item]
                if value > bestValue { (best, bestValue) = (place, value) }
            }
            let item = left.remove(at: best)
            chosen.append(item)
            for other in left where vectors[other].count == vectors[item].count {
                var cosine: Float = 0
                for index in vectors[item].indices { cosine += vectors[item][index] * vectors[other][index] }
                similarity[other] = max(similarity[other], Double(cosine))
            }
        }
        return chosen
    }
}
