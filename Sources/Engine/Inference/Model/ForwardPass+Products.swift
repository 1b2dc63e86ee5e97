internal import CKernels  // structures of calls

/// Products with matrices and with adapters beside them.
extension ForwardPass {
    func product(
        _ matrix: Matrix, into y: UnsafeMutablePointer<Float>, stride: Int? = nil, adding: Bool = false
    ) -> Product {
        Product(matrix: matrix, activations: nil, y: y, ldy: Int32(stride ?? Int(matrix.rows)), add: adding)
    }

    /// Up to four products of the same input. A variadic parameter would allocate an array.
    func multiply(
        _ input: RowBuffer, _ first: Product, _ second: Product? = nil, _ third: Product? = nil, _ fourth: Product? = nil
    ) {
        var count = 0
        func add(_ product: Product?) {
            guard let product else { return }
            scratch.products[count] = product
            count += 1
        }
        add(first)
        add(second)
        add(third)
        add(fourth)
        multiply(input, count: count)
    }

    /// Computes the first `count` of the scratch memory's products, with the adapters of the sequences.
    func multiply(_ input: RowBuffer, count: Int) {
        let s = scratch
        kernels.multiply(input.rows, s.products, count: count)
        if s.adapted.isEmpty { return }
        s.lowRank.removeAll(keepingCapacity: true)
        for segment in s.adapted {
            guard let adapter = segment.cache.adapter else { continue }
            for index in 0..<count {
                if let term = adapter.term(
                    for: s.products[index], input.rows, firstRow: segment.firstRow, rows: segment.rows)
                {
                    s.lowRank.append(term)
                }
            }
        }
        kernels.addLowRankProducts(s.lowRank)
    }

    /// Computes the last product of a branch and adds it to the residual stream, after the bias and norm, if any.
    func addToResidual(
        _ matrix: Matrix, _ input: RowBuffer, bias: UnsafePointer<Float>?, norm: UnsafePointer<Float>?, _ batch: Batch
    ) {
        let s = scratch
        if bias == nil, norm == nil {
            var matrix = matrix
            matrix.scale *= Float(shape.residualScale)
            s.products[0] = product(matrix, into: s.residual, adding: true)
            multiply(input, count: 1)
            return
        }
        s.products[0] = product(matrix, into: s.branch)
        multiply(input, count: 1)
        kernels.addToResidual(
            s.branch, bias: bias, norm: norm, epsilon: epsilon, scale: Float(shape.residualScale), to: s.residual,
            rows: batch.rows, columns: width)
    }
}
