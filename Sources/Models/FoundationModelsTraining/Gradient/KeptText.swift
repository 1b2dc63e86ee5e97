internal import Foundation
internal import Inference

/// Texts that have nothing to do with the task and conversations whose answers are to stay as they are, with the model's own predictions
/// for them. A step that also learns these predictions changes the model for the task and little else (learning without forgetting,
/// arXiv:1606.09282).
package struct KeptText {
    /// The most likely tokens after each token of a batch, and their probabilities, both `[targets][likely]`.
    package struct Predictions {
        var likely: Int
        var tokens: [Int32] = []
        var probabilities: [Float] = []
    }

    private let batches: [TrainingBatch]
    /// Of the first batches that were asked for; of later ones, they are computed again each time.
    private var predictions: [Int: Predictions] = [:]
    private static let maximumPredictions = 64
    /// The mean number of tokens of a text.
    static let usualTokens = 180
    /// The longest text in tokens.
    private static let maximumTokens = 256
    /// The tokens of a batch's text and conversations together. A text and one longer conversation may have more.
    static let tokensWithConversations = 768
    private static let likelyTokens = 64

    /// A batch for each text; with conversations, as many batches as it takes to hold them, each with the next of the texts.
    ///
    /// - Parameter conversations: none with more than `maximumRows` tokens.
    init(_ encoder: SequenceEncoder, conversations: [TrainingSequence], maximumRows: Int) {
        let texts = PlainText.parts.map { encoder.tokens(of: $0).prefix(Self.maximumTokens) }
            .filter { $0.count > 1 }
        var batches: [TrainingBatch] = []
        func begin(rows: Int) {
            var batch = TrainingBatch()
            let text = texts.isEmpty ? [] : Array(texts[batches.count % texts.count].prefix(rows))
            if text.count > 1 { batch.add(text, isLearned: [Bool](repeating: true, count: text.count)) }
            batches.append(batch)
        }
        let limit = min(maximumRows, Self.tokensWithConversations)
        for conversation in conversations {
            let count = conversation.tokens.count
            if batches.isEmpty || batches[batches.count - 1].tokens.count + count > limit { begin(rows: maximumRows - count) }
            batches[batches.count - 1].add(conversation)
        }
        if batches.isEmpty { for _ in texts { begin(rows: maximumRows) } }
        self.batches = batches
    }

    /// The batch that a step learns, with the predictions of the model without the adapter that is trained; nil if the model has no token for any text.
    mutating func batch(
        of step: Int, _ pass: GradientPass, isCancelled: () -> Bool
    ) throws(TrainingError) -> (batch: TrainingBatch, predictions: Predictions)? {
        guard !batches.isEmpty else { return nil }
        let index = step % batches.count
        if let known = predictions[index] { return (batches[index], known) }
        let found = try pass.predictions(batches[index], likely: Self.likelyTokens, isCancelled: isCancelled)
        if predictions.count < Self.maximumPredictions { predictions[index] = found }
        return (batches[index], found)
    }
}
