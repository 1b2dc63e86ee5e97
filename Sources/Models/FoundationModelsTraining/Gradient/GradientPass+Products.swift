internal import CKernels
internal import Inference

/// Products with frozen matrices and with factors.
extension GradientPass {
    /// Packs rows as the left operand of products.
    func pack(
        _ x: UnsafePointer<Float>, stride: Int, count: Int, k: Int, transposed: Bool = false, in memory: UnsafeMutableRawPointer
    ) -> ck_training_operand {
        // The gradients of factors are sums over rows that are read as they are: rounding these rows would take longer than the product.
        var operand = ck_training_operand(panels: memory, count: Int32(count), k: Int32(k), rounds: rounds && !transposed)
        ck_training_pack(pool.handle, x, Int32(stride), transposed, &operand)
        return operand
    }

    func product(
        _ matrix: FrozenMatrix, transposed: Bool, _ x: ck_training_operand, _ y: UnsafeMutablePointer<Float>, stride: Int,
        scale: Float = 1, adds: Bool
    ) -> ck_training_product {
        ck_training_product(
            weights: matrix.data, row_bytes: matrix.rowBytes, type: matrix.type, rows: Int32(matrix.rows),
            columns: Int32(matrix.columns), transposed: transposed, x: x, y: y, ldy: Int32(stride), scale: scale * matrix.scale,
            add: adds)
    }

    /// The same with a matrix of numbers.
    func product(
        _ numbers: UnsafePointer<Float>, rows: Int, columns: Int, rowStride: Int? = nil, transposed: Bool,
        _ x: ck_training_operand,
        _ y: UnsafeMutablePointer<Float>, stride: Int, scale: Float = 1, adds: Bool
    ) -> ck_training_product {
        ck_training_product(
            weights: UnsafeRawPointer(numbers).assumingMemoryBound(to: UInt8.self), row_bytes: 4 * (rowStride ?? columns),
            type: CK_TYPE_F32, rows: Int32(rows), columns: Int32(columns), transposed: transposed, x: x, y: y, ldy: Int32(stride),
            scale: scale, add: adds)
    }

    func multiply(_ products: [ck_training_product]) {
        products.withUnsafeBufferPointer {
            ck_training_multiply(pool.handle, kernels, $0.baseAddress, Int32($0.count))
        }
    }

    func integerProduct(
        _ matrix: ck_matrix, _ y: UnsafeMutablePointer<Float>, stride: Int, scale: Float, adds: Bool
    ) -> ck_product {
        var matrix = matrix
        matrix.scale = scale
        return ck_product(matrix: matrix, activations: nil, y: y, ldy: Int32(stride), add: adds)
    }

    /// Products of rows, which are `stride` apart, with matrices of integers.
    func multiply(_ products: [ck_product], _ x: UnsafePointer<Float>, stride: Int, rows: Int, columns: Int) {
        guard !products.isEmpty, let quantized = work.quantized else { return }
        // The codes of so many rows stay in a core's cache while the panels of the matrices pass.
        for first in Swift.stride(from: 0, to: rows, by: Self.integerRows) {
            let count = min(Self.integerRows, rows - first)
            var activations = quantized.quantize(x + first * stride, stride: stride, rows: count, columns: columns, pool: pool)
            let part = products.map { product in
                var product = product
                product.y += first * Int(product.ldy)
                return product
            }
            part.withUnsafeBufferPointer {
                ck_matmul(pool.handle, forwardKernels, &activations, $0.baseAddress, Int32($0.count))
            }
        }
    }

    static var integerRows: Int { 256 }

    /// y = W·x + bias + scale·B·A·x for matrices with the same input.
    func apply(
        _ projections: [FrozenModel.Projection], low: ArraySlice<Buffer>, x: UnsafePointer<Float>, rows: Int,
        to y: UnsafeMutablePointer<Float>, stride: Int
    ) {
        guard let columns = projections.first?.matrix.columns else { return }
        let operand = pack(x, stride: columns, count: rows, k: columns, in: work.operand)
        var products: [ck_training_product] = []
        var integers: [ck_product] = []
        for (projection, low) in zip(projections, low) {
            if let matrix = self.integers[projection.matrix.name] {
                integers.append(
                    integerProduct(
                        matrix.forward, y + projection.offset, stride: stride, scale: projection.matrix.scale, adds: false))
            } else {
                products.append(
                    product(projection.matrix, transposed: false, operand, y + projection.offset, stride: stride, adds: false))
            }
            if let (place, rank) = place(projection) {
                products.append(
                    product(
                        factors.values.pointer + place.offset, rows: rank, columns: place.columns, transposed: false, operand,
                        low.pointer, stride: rank, adds: false))
            }
        }
        multiply(products)
        multiply(integers, x, stride: columns, rows: rows, columns: columns)
        for (projection, low) in zip(projections, low) {
            if let bias = projection.bias {
                for row in 0..<rows {
                    let out = y + row * stride + projection.offset
                    for column in bias.indices { out[column] += bias[column] }
                }
            }
            guard let (place, rank) = place(projection) else { continue }
            let operand = pack(low.pointer, stride: rank, count: rows, k: rank, in: work.small)
            multiply([
                product(
                    factors.values.pointer + place.bOffset, rows: rank, columns: place.rows, transposed: true, operand,
                    y + projection.offset, stride: stride, scale: factors.scale * projection.matrix.scale, adds: true)
            ])
        }
    }

    /// The factors of a matrix and how many of their rows count now; nil if none.
    private func place(_ projection: FrozenModel.Projection) -> (place: LowRankFactors.Place, rank: Int)? {
        guard let place = factors.places[projection.matrix.name] else { return nil }
        // The frozen rows come first.
        let rank = isBase ? place.frozen : place.rank
        return rank > 0 ? (place, rank) : nil
    }

    /// The gradient of ``apply``: of the factors, and of the input, which is overwritten.
    func applyBackward(
        _ projections: [FrozenModel.Projection], low: ArraySlice<Buffer>, x: UnsafePointer<Float>, rows: Int,
        dy: UnsafePointer<Float>, stride: Int, dx: UnsafeMutablePointer<Float>?
    ) {
        var isFirst = true
        for (projection, low) in zip(projections, low) {
            let matrix = projection.matrix
            let gradient = dy + projection.offset
            let place = factors.places[matrix.name]
            if dx == nil, place == nil { continue }
            let operand = pack(gradient, stride: stride, count: rows, k: matrix.rows, in: work.operand)
            var products: [ck_training_product] = []
            if let dx {
                if let integer = integers[matrix.name] {
                    let product = integerProduct(
                        integer.backward, dx, stride: matrix.columns, scale: matrix.scale, adds: !isFirst)
                    multiply([product], gradient, stride: stride, rows: rows, columns: matrix.rows)
                } else {
                    products.append(product(matrix, transposed: true, operand, dx, stride: matrix.columns, adds: !isFirst))
                }
                isFirst = false
            }
            if let place {
                products.append(
                    product(
                        factors.values.pointer + place.bOffset, rows: place.rank, columns: place.rows, transposed: false, operand,
                        work.low.pointer, stride: place.rank, scale: factors.scale * matrix.scale, adds: false))
            }
            multiply(products)
            guard let place else { continue }
            let lowTransposed = pack(
                low.pointer, stride: place.rank, count: place.rank, k: rows, transposed: true, in: work.small)
            multiply([
                product(
                    gradient, rows: rows, columns: place.rows, rowStride: stride, transposed: true, lowTransposed,
                    factors.gradients.pointer + place.bOffset, stride: place.rows, scale: factors.scale * matrix.scale,
                    adds: true)
            ])
            let upTransposed = pack(
                work.low.pointer, stride: place.rank, count: place.rank, k: rows, transposed: true, in: work.small)
            multiply([
                product(
                    x, rows: rows, columns: place.columns, transposed: true, upTransposed,
                    factors.gradients.pointer + place.offset, stride: place.columns, adds: true)
            ])
            guard let dx else { continue }
            let up = pack(work.low.pointer, stride: place.rank, count: rows, k: place.rank, in: work.small)
            multiply([
                product(
                    factors.values.pointer + place.offset, rows: place.rank, columns: place.columns, transposed: true, up, dx,
                    stride: place.columns, adds: true)
            ])
        }
    }

    /// x · Aᵀ of one matrix.
    func lowOnly(_ projection: FrozenModel.Projection, low: Buffer, x: UnsafePointer<Float>, rows: Int) {
        guard let place = factors.places[projection.matrix.name] else { return }
        let operand = pack(x, stride: place.columns, count: rows, k: place.columns, in: work.operand)
        multiply([
            product(
                factors.values.pointer + place.offset, rows: place.rank, columns: place.columns, transposed: false, operand,
                low.pointer, stride: place.rank, adds: false)
        ])
    }
}
