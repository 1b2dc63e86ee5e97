internal import Foundation

/// A linear classifier of prompts on the states that a prompt leaves in a language model: the residual stream of its last token
/// after some of the middle layers. The model has read the whole prompt, so that it tells a request for harm from the same words in
/// a harmless sense, which a classifier of words cannot.
///
/// The state is computed for the answer in any case. Each probe belongs to the weights of one model, alone or with its adapter for
/// general use; other models have none, and keep the classifier of words alone. Tests/Tools/train_probe.py trains probes.
struct GuardrailProbe: Sendable {
    /// The fingerprint of the model file.
    let fingerprint: String
    /// The indices of the layers, in ascending order.
    let layers: [Int]
    /// Whether it reads the states of the model with its adapter for general use; otherwise those of the model alone.
    let usesAssistant: Bool
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
        fingerprint: String, layers: [Int], usesAssistant: Bool = false, readsSchemas: Bool = true, scale: Float, bias: Float,
        threshold: Float,
        marginOfSuspicion: Float, weights: String
    ) {
        self.fingerprint = fingerprint
        self.layers = layers
        self.usesAssistant = usesAssistant
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

    /// The probe of a model for a kind of prompt; nil if there is none. If none was trained with the adapter for general use, it is that of the
    /// model alone.
    ///
    /// - Parameters:
    ///   - fingerprint: that of the model; nil if it is not known.
    ///   - usesAssistant: whether the conversation uses the model's adapter for general use, and no other.
    static func probe(
        of fingerprint: String?, usesAssistant: Bool, hasSchema: Bool, among probes: [GuardrailProbe] = all
    ) -> GuardrailProbe? {
        let fitting = probes.filter { $0.fingerprint == fingerprint && ($0.readsSchemas || !hasSchema) }
        return fitting.first { $0.usesAssistant == usesAssistant } ?? fitting.first { !$0.usesAssistant }
    }
}
