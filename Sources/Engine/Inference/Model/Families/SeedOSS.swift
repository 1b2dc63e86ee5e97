extension ModelFamily {
    /// Seed-OSS: the norm before the feed-forward network has another name.
    static func seedOSS(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        try r.decoder(halves: true, feedForwardNorm: .postAttentionNorm)
    }
}
