internal import CKernels  // structures of calls

/// The vectors of encoders.
extension ForwardPass {
    /// Computes the vectors of the segments of the last batch: pooled, projected, and of length 1.
    ///
    /// - Parameter output: receives one vector for each segment, `[segments][embeddingWidth]`.
    func pool(_ segments: [Segment], _ pooling: ModelShape.Pooling, into output: UnsafeMutablePointer<Float>) {
        let s = scratch
        poolRows(segments, pooling)
        var columns = width
        for matrix in weights.tensors.projections {
            multiplyPooled(matrix, rows: segments.count, columns: columns)
            columns = Int(matrix.rows)
        }
        for index in 0..<segments.count {
            let vector = s.branch + index * columns
            var squares = 0.0
            for column in 0..<columns { squares += Double(vector[column]) * Double(vector[column]) }
            let factor = squares > 0 ? Float(1 / squares.squareRoot()) : 0
            for column in 0..<columns { output[index * columns + column] = vector[column] * factor }
        }
    }

    /// Computes the scores of the segments of the last batch, which are pairs of texts. The model must have a classifier.
    ///
    /// - Parameter output: receives one number for each segment.
    func score(_ segments: [Segment], _ pooling: ModelShape.Pooling, into output: UnsafeMutablePointer<Float>) {
        guard let classifier = weights.tensors.classifier else { return }
        let s = scratch
        let count = segments.count
        poolRows(segments, pooling)
        multiplyPooled(classifier.matrix, rows: count, columns: width)
        kernels.activate(
            .exactGelu, s.branch, up: nil, gateBias: classifier.bias, upBias: nil, s.gated.rows, quantizes: false)
        s.normed.set(rows: count, columns: width)
        normalize(s.branch, classifier.norm, into: s.normed)
        for index in 0..<count {
            let row = s.normed.x + index * width
            var sum = Double(classifier.outputBias?[0] ?? 0)
            for column in 0..<width { sum += Double(row[column]) * Double(classifier.output[column]) }
            output[index] = Float(sum)
        }
    }

    /// Multiplies the pooled rows in the memory of branches by a matrix.
    private func multiplyPooled(_ matrix: Matrix, rows: Int, columns: Int) {
        let s = scratch
        s.gated.set(rows: rows, columns: columns)
        s.gated.x.update(from: s.branch, count: rows * columns)
        if quantizes { kernels.quantize(s.gated.rows) }
        multiply(s.gated, product(matrix, into: s.branch))
    }

    /// Writes the pooled row of each segment, normalised if the model does so, to the memory of branches.
    private func poolRows(_ segments: [Segment], _ pooling: ModelShape.Pooling) {
        let s = scratch
        for (index, segment) in segments.enumerated() {
            let rows = s.residual + segment.firstRow * width
            let pooled = s.branch + index * width
            switch pooling {
            case .first: pooled.update(from: rows, count: width)
            case .last: pooled.update(from: rows + (segment.rows - 1) * width, count: width)
            case .mean:
                // The norm is part of each token's output.
                if weights.tensors.outputNorm != nil { normalizeForHead(rows, rows: segment.rows) }
                let outputs = weights.tensors.outputNorm == nil ? rows : s.normed.x
                for column in 0..<width {
                    var sum = 0.0
                    for row in 0..<segment.rows { sum += Double(outputs[row * width + column]) }
                    pooled[column] = Float(sum / Double(segment.rows))
                }
            }
        }
        if pooling != .mean, weights.tensors.outputNorm != nil {
            normalizeForHead(s.branch, rows: segments.count)
            s.branch.update(from: s.normed.x, count: segments.count * width)
        }
    }

    /// The vectors of the tokens of the last batch, each of length 1: `[count][width]`.
    func tokenVectors(count: Int) -> UnsafeBufferPointer<Float> {
        let s = scratch
        if weights.tensors.outputNorm != nil { normalizeForHead(s.residual, rows: count) }
        let vectors = weights.tensors.outputNorm == nil ? s.residual : s.normed.x
        for row in 0..<count {
            let vector = vectors + row * width
            var squares: Float = 0
            for column in 0..<width { squares += vector[column] * vector[column] }
            let factor = squares > 0 ? 1 / squares.squareRoot() : 0
            for column in 0..<width { vector[column] *= factor }
        }
        return UnsafeBufferPointer(start: vectors, count: count * width)
    }
}
