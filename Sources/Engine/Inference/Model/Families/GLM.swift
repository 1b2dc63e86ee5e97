extension ModelFamily {
    /// GLM-4 (0414): norms before and after each branch; only a part of each head is rotated, in adjacent pairs.
    static func glm4(_ r: ShapeReader) throws(ModelError) -> ModelShape { try r.decoder(halves: false, norms: .beforeAndAfter) }
}
