extension ModelFamily {
    /// Phi-3, 3.5, 4 and 4-mini (arXiv:2404.14219): fused projections, which the loader splits; some rotate only a part
    /// of each head.
    static func phi3(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        // The window is as long as the original context, which conversations do not exceed here.
        try r.decoder(halves: true, windows: Array(repeating: nil, count: r.layers))
    }
}
