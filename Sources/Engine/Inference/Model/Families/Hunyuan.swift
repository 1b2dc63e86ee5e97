internal import Foundation

extension ModelFamily {
    /// Hunyuan: each head is normalised after rotation.
    static func hunyuan(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.decoder(halves: true, headNorm: .rotatedHeads)
        if let alpha = try r.number("rope.scaling.alpha"), alpha > 0 {
            let dimensions = Double(shape.rotaries[0].dimensions)
            shape.rotaries[0].base *= pow(alpha, dimensions / (dimensions - 2))
        }
        return shape
    }
}
