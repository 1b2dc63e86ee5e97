internal import CKernels  // structures of calls

/// One or several adapters in memory, used beside the weights of a loaded model: sequences with different adapters, or none, are
/// processed in the same batch. A token reads the adapters' matrices in addition to the weights. Several adapters are one whose rank is
/// the sum of theirs.
package final class LowRankAdapter: Sendable {
    /// Identifies the files.
    let identity: UInt64
    /// The number of bytes of its matrices.
    package let bytes: Int
    private let memory: Memory
    private let room: MemoryReservation?
    /// By the `identity` of the model's matrices, so that they also apply after the model was loaded again; nil where nothing changes.
    private let factors: [Factor?]

    /// The two matrices for one matrix of the model, in binary16 and in the order of ``LowRankProduct``.
    private struct Factor: @unchecked Sendable {  // The memory is never written after `init`.
        var a: UnsafePointer<UInt16>
        var b: UnsafePointer<UInt16>
        var columns, rank, outputs: Int32
    }

    /// - Parameters:
    ///   - origins: where the matrices of the model come from.
    ///   - reserve: receives the bytes of the adapter; nil if nobody counts them.
    /// - Returns: nil if the adapter changes a matrix that is not used in the ordinary way, such as the embeddings, or has a
    ///   rank above ``EngineLimits/adapterRank`` or values outside the range of binary16. Such an adapter must be merged into the weights.
    /// - Throws: ``ModelError`` if the adapter does not fit the model.
    init?(
        _ files: [AdapterFile], for origins: [MatrixOrigin], model: GGUFFile,
        reserve: (Int) -> MemoryReservation? = { _ in nil }
    ) throws(ModelError) {
        for file in files { try file.check(model) }
        guard let identity = AdapterFile.identity(of: files) else { return nil }
        self.identity = identity
        let targets = files.reduce(into: Set<String>()) { $0.formUnion($1.targets) }
        let matrices = origins.indices.filter { targets.contains(origins[$0].name) && origins[$0].isAdaptable }
        guard Set(matrices.map { origins[$0].name }) == targets else { return nil }
        // First the sizes, then the values.
        var layout = MemoryLayoutBuilder()
        var places: [(matrix: Int, origin: MatrixOrigin, columns: Int, rank: Int, a: Int, b: Int)] = []
        for matrix in matrices {
            let origin = origins[matrix]
            let sizes = files.compactMap { $0.sizes(of: origin.name) }
            guard let columns = sizes.first?.columns, sizes.allSatisfy({ $0.columns == columns }) else { return nil }
            let rank = Self.padded(sizes.reduce(0) { $0 + $1.rank })
            guard rank <= EngineLimits.adapterRank else { return nil }
            let a = layout.reserve(columns * rank, of: UInt16.self)
            let b = layout.reserve(rank * Self.padded(origin.rowCount), of: UInt16.self)
            places.append((matrix, origin, columns, rank, a, b))
        }
        room = reserve(layout.bytes)
        memory = try Memory(bytes: layout.bytes)
        bytes = layout.bytes
        var factors = [Factor?](repeating: nil, count: origins.count)
        for (matrix, origin, columns, rank, aOffset, bOffset) in places {
            let a = memory.pointer(at: aOffset, as: UInt16.self)
            let b = memory.pointer(at: bOffset, as: UInt16.self)
            var first = 0
            for file in files {
                guard let (aValues, bValues, size) = try file.factors(of: origin.name) else { continue }
                let scale = Float(size.scale)
                let isInRange = { (values: [Float], scale: Float) in values.allSatisfy { abs(scale * $0) <= Self.largest } }
                guard isInRange(aValues, 1), isInRange(bValues, scale) else { return nil }
                for r in 0..<size.rank {
                    for column in 0..<columns { a[column * rank + first + r] = ck_float_to_half(aValues[r * columns + column]) }
                    var output = 0
                    for rows in origin.rows {
                        for row in rows {
                            b[output / 16 * 16 * rank + (first + r) * 16 + output % 16] = ck_float_to_half(
                                scale * bValues[row * size.rank + r])
                            output += 1
                        }
                    }
                }
                first += size.rank
            }
            factors[matrix] = Factor(
                a: UnsafePointer(a), b: UnsafePointer(b), columns: Int32(columns), rank: Int32(rank),
                outputs: Int32(origin.rowCount))
        }
        self.factors = factors
    }

    /// The largest value of binary16.
    private static let largest: Float = 65_504

    private static func padded(_ count: Int) -> Int { (count + 15) / 16 * 16 }

    /// The product to add to `rows` rows of a product of the model, from `firstRow` on; nil if the adapter does not change
    /// its matrix.
    func term(for product: Product, _ input: Activations, firstRow: Int, rows: Int) -> LowRankProduct? {
        guard let factor = factors[product.matrix.index] else { return nil }
        return LowRankProduct(
            x: input.x + firstRow * Int(input.columns), y: product.y + firstRow * Int(product.ldy), a: factor.a, b: factor.b,
            rows: Int32(rows), columns: factor.columns, rank: factor.rank, outputs: factor.outputs,
            ldy: product.ldy, scale: product.matrix.scale)
    }
}
