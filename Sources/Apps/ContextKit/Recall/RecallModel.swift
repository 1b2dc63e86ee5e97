import Foundation

/// Estimates from a search whether a prompt needs anything that was said earlier, and which utterances it needs: two logistic
/// regressions, each by words, with vectors, and with what a ranker says.
///
/// `Tests/Tools/train_recall.py` writes the weights, from the features that `context-bench recall --features` writes for
/// conversations of several authors (BENCHMARKS.md, “Recall”).
package enum RecallModel {
    /// What is known of a prompt and of the best results of its search.
    package struct PromptFeatures: Sendable {
        /// Of the prompt alone, and of the words that it shares with turns.
        package var words: [Double]
        /// Of the similarity of vectors; empty without vectors.
        package var meaning: [Double]
        /// Of a ranker; empty without one.
        package var pairs: [Double] = []
    }

    /// What is known of an utterance that a search has found.
    package struct UtteranceFeatures: Sendable {
        package var words: [Double]
        package var meaning: [Double]
        /// With a ranker, all that counts then; empty without one.
        package var pairs: [Double]
    }

    /// The likelihood that the prompt needs anything that was said earlier.
    static func need(_ features: PromptFeatures) -> Double {
        if features.meaning.isEmpty { return value(features.words, needByWords) }
        if features.pairs.isEmpty { return value(features.words + features.meaning, needByMeaning) }
        return value(features.words + features.meaning + features.pairs, needByPairs)
    }

    /// The likelihood that the prompt needs the utterance, if it needs anything.
    static func relevance(_ features: UtteranceFeatures) -> Double {
        if features.meaning.isEmpty { return value(features.words, relevanceByWords) }
        if features.pairs.isEmpty { return value(features.words + features.meaning, relevanceByMeaning) }
        return value(features.pairs, relevanceByPairs)
    }

    /// The same of a turn, by what a ranker says of its better side and by its strength as a result of the search.
    static func relevance(pair logit: Double, best: Double, strength: Double) -> Double {
        value([logit, logit - best, strength], relevanceByPairs)
    }

    /// The logistic function of the weighted sum and the last weight, the constant.
    private static func value(_ features: [Double], _ weights: [Double]) -> Double {
        let sum = zip(features, weights).reduce(weights.last ?? 0) { $0 + $1.0 * $1.1 }
        return 1 / (1 + exp(-sum))
    }
}
