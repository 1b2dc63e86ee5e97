internal import Foundation
internal import Inference

/// Texts that have nothing to do with the task, with the model's own predictions for them. A step that also learns these predictions
/// changes the model for the task and little else (learning without forgetting, arXiv:1606.09282).
package struct KeptText {
    /// The most likely tokens after each token of a batch, and their probabilities, both `[targets][likely]`.
    package struct Predictions {
        var likely: Int
        var tokens: [Int32] = []
        var probabilities: [Float] = []
    }

    private let parts: [(batch: TrainingBatch, predictions: Predictions)]
    /// The mean number of tokens of a part.
    static let usualTokens = 180
    /// The longest part in tokens.
    private static let maximumTokens = 256
    private static let likelyTokens = 64

    /// Computes the predictions of the model without the adapter.
    init(_ encoder: SequenceEncoder, _ pass: GradientPass, isCancelled: () -> Bool) throws(TrainingError) {
        var parts: [(batch: TrainingBatch, predictions: Predictions)] = []
        for text in PlainText.parts {
            let tokens = encoder.tokens(of: text).prefix(min(Self.maximumTokens, pass.maximumRows))
            guard tokens.count > 1 else { continue }
            var batch = TrainingBatch()
            batch.add(Array(tokens), isLearned: [Bool](repeating: true, count: tokens.count))
            parts.append((batch, try pass.predictions(batch, likely: Self.likelyTokens, isCancelled: isCancelled)))
        }
        self.parts = parts
    }

    /// The part that a step learns; nil if the model has no token for any text.
    func part(of step: Int) -> (batch: TrainingBatch, predictions: Predictions)? {
        parts.isEmpty ? nil : parts[step % parts.count]
    }
}
