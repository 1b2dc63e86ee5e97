internal import Foundation
internal import Inference

/// A linear classifier of prompts on the states that a prompt leaves in a language model: the residual stream of its last token
/// after some of the middle layers. The model has read the whole prompt, so that it tells a request for harm from the same words in
/// a harmless sense, which a classifier of words cannot.
///
/// The state is computed for the answer in any case. Each probe belongs to the weights of one model; other models have none, and
/// keep the classifier of words alone. Tests/Tools/train_probe.py trains probes.
struct GuardrailProbe: Sendable {
    /// The fingerprint of the model file.
    let fingerprint: String
    /// The indices of the layers, in ascending order.
    let layers: [Int]
    /// Whether prompts with a schema were among those of the training.
    let readsSchemas: Bool
    private let weights: [Float]
    private let bias: Float
    /// The minimum score of an unsafe prompt.
    let threshold: Float

    /// How much lower the score of an unsafe prompt may be if its words are those of unsafe prompts: so that the probe confirms at
    /// least three of four unsafe prompts of authors that it has not seen.
    let marginOfSuspicion: Float

    /// - Parameter weights: a signed byte for each element of the states, one layer after the other, in Base64.
    init(
        fingerprint: String, layers: [Int], readsSchemas: Bool = true, scale: Float, bias: Float, threshold: Float,
        marginOfSuspicion: Float, weights: String
    ) {
        self.fingerprint = fingerprint
        self.layers = layers
        self.readsSchemas = readsSchemas
        self.bias = bias
        self.threshold = threshold
        self.marginOfSuspicion = marginOfSuspicion
        self.weights = (Data(base64Encoded: weights) ?? Data()).map { Float(Int8(bitPattern: $0)) * scale }
    }

    /// The log odds that a prompt is unsafe; nil if not all of the states are there, or if they are not those of the probe's model.
    ///
    /// - Parameter states: for each layer, `[width]`.
    func score(_ states: [Int: [Float]]) -> Float? {
        let all = layers.flatMap { Self.normalised(states[$0] ?? []) }
        guard all.count == weights.count, !all.isEmpty else { return nil }
        let score = zip(all, weights).reduce(bias) { $0 + $1.0 * $1.1 }
        return score.isFinite ? score : nil
    }

    /// A state divided by its root mean square.
    static func normalised(_ state: [Float]) -> [Float] {
        let size = (state.reduce(0) { $0 + $1 * $1 } / Float(max(1, state.count))).squareRoot()
        return state.map { $0 / size }
    }

    /// The probe of a model for a kind of prompt; nil if there is none.
    static func probe(of model: LoadedModel, hasSchema: Bool) -> GuardrailProbe? {
        guard let fingerprint = model.fingerprint else { return nil }
        return all.first { $0.fingerprint == fingerprint && ($0.readsSchemas || !hasSchema) }
    }
}
