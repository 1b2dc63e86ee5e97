// OLMo, and EXAONE, which is built like it: norms after the branches only.

extension ModelFamily {
    /// OLMo 2 and 3 (arXiv:2501.00656): the queries and keys of all heads are normalised together.
    static func olmo2(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.decoder(halves: true, headNorm: .whole, norms: .after, windows: r.windows(period: 4))
        shape.rotateWindows(shape.rotaries[0].unscaled)
        return shape
    }

    /// OLMoE (arXiv:2409.02060): the queries and keys of all heads are normalised together; the routing weights are not
    /// normalised.
    static func olmoe(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        try r.decoder(halves: true, headNorm: .whole, normalizes: false)
    }

    /// EXAONE 4.0 32B, whose window llama.cpp knows by the number of layers, also if a file does not specify it.
    package static let largeEXAONE = (layers: 64, window: 4096)

    /// EXAONE 4: each head is normalised. The files of the large model, which has windows in most layers and rotary embedding only in
    /// those, specify the window; those of the small one have none.
    static func exaone4(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        let windows = try r.windows(period: 4, window: r.layers == largeEXAONE.layers ? largeEXAONE.window : nil)
        var shape = try r.decoder(halves: true, headNorm: .heads, norms: .after, windows: windows)
        if windows.contains(where: { $0 != nil }) {
            shape.changeAttention { if $0.window == nil { $0.rotary = nil } }
        }
        return shape
    }
}
