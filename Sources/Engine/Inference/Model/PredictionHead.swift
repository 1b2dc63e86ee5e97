internal import Foundation

/// The layer with which some models predict the token after the next one (multi-token prediction, arXiv:2404.19737; DeepSeek-V3,
/// arXiv:2412.19437, section 2.2). Its input is a projection of the next token's embedding and of the token's residual stream; its
/// output gives the logits, and takes the place of the stream for the token after that.
///
/// Not thread-safe, as the model.
final class PredictionHead {
    /// A model of the one layer.
    private let model: NeuralModel
    /// The row of the last pass that counts.
    private var last = 0
    private var parts: [PassPart] = []
    private var next: [TokenID] = []
    /// The time of a row, relative to that of a token in the model.
    var cost: Double

    var width: Int { model.shape.width }

    /// - Returns: nil if the file has no such layer, or one whose tokens cannot be withdrawn.
    init?(of model: NeuralModel, file: GGUFFile) throws(ModelError) {
        let layer = model.shape.layers.count
        guard !model.shape.isRecurrent, let shape = try ModelShape(predicting: layer, of: file) else { return nil }
        self.model = try NeuralModel(predicting: shape, layer: layer, after: model, file: file)
        cost = Double(self.model.bytesPerToken) / Double(max(1, model.bytesPerToken))
    }

    func makeCache(capacity: Int) throws(ModelError) -> KVCache { try KVCache(shape: model.shape, capacity: capacity) }

    /// Processes the first rows of `hidden`, `[][width]`, each with the token after it.
    ///
    /// - Returns: false if there is no memory for them.
    func process(_ hidden: [Float], _ tokens: ArraySlice<TokenID>, _ cache: KVCache) -> Bool {
        var row = 0
        while row < tokens.count {
            let count = min(model.limits.passTokens, tokens.count - row)
            hidden.withUnsafeBufferPointer { hidden in
                guard let start = hidden.baseAddress else { return }
                model.scratch.residual.update(from: start + row * width, count: count * width)
            }
            guard forward(tokens[(tokens.startIndex + row)..<(tokens.startIndex + row + count)], cache) else { return false }
            row += count
        }
        return true
    }

    /// The most probable token after those of the last row that was processed.
    var bestToken: TokenID {
        model.computeLogits(ofRows: [last], candidates: nil)
        return TokenID(model.logits(0).indexOfMaximum)
    }

    /// Goes on as if `token` were the next one.
    ///
    /// - Returns: false if there is no memory for it.
    func `continue`(with token: TokenID, _ cache: KVCache) -> Bool {
        let residual = model.scratch.residual
        if last > 0 { residual.update(from: residual + last * width, count: width) }
        return forward(CollectionOfOne(token), cache)
    }

    private func forward(_ tokens: some Collection<TokenID>, _ cache: KVCache) -> Bool {
        next.removeAll(keepingCapacity: true)
        next.append(contentsOf: tokens)
        parts.append(PassPart(cache, tokens.count))
        defer { parts.removeAll(keepingCapacity: true) }
        do {
            try cache.reserve(tokens.count)
            var none: [RowState] = []
            try next.withUnsafeBufferPointer { try model.forward($0, parts: parts, states: &none) { false } }
        } catch {
            return false
        }
        last = tokens.count - 1
        return true
    }
}

extension ModelShape {
    /// The shape of the first layer that predicts, after `layer` ordinary ones, as a model of one layer; nil if the file has none.
    fileprivate init?(predicting layer: Int, of file: GGUFFile) throws(ModelError) {
        guard file.tensors[LayerNames(layer)(.predictionInput)] != nil else { return nil }
        self = try ModelFamily.shape(of: file, withPredictions: true)
        guard layers.count > layer else { return nil }
        layers = [layers[layer]]
        // A layer that takes something of others cannot be alone.
        if case .attention(let attention) = layers[0].mixer, attention.sharedLayer != nil { return nil }
        if isRecurrent || isEncoder || perLayerWidth > 0 { return nil }
    }
}
