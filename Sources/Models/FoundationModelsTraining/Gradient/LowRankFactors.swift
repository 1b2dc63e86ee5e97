internal import CKernels
internal import Foundation
package import Inference

/// The trained parameters, after those of an adapter that the new one is used with, if there is one: for each matrix, A `[rank][columns]` and the transpose of B `[rank][rows]`, one after the other in one buffer,
/// with buffers of the same layout for gradients and the moments of AdamW.
package final class LowRankFactors: @unchecked Sendable {  // Used by one thread at a time.
    package struct Place {
        package var name: String
        /// The rows of A that belong to the adapter below, which are not trained.
        var frozen = 0
        /// All rows of A.
        var rank: Int
        var rows: Int
        var columns: Int
        /// The offset of A; that of B follows.
        var offset: Int
        var bOffset: Int { offset + rank * columns }
        var count: Int { rank * (rows + columns) }
        var trained: Int { rank - frozen }
    }

    let places: [String: Place]
    /// In the order of the layers.
    package let order: [Place]
    let scale: Float
    /// The largest rank of a matrix.
    let rank: Int
    let values: Buffer
    package let gradients: Buffer
    let means: Buffer
    let squares: Buffer
    var count: Int { values.count }

    /// - Parameters:
    ///   - matrices: the names of the matrices that are trained, with their shapes.
    ///   - base: an adapter that is not trained, and used together with the new one.
    ///   - others: the matrices of the model that the base may change.
    package init(
        _ matrices: [(name: String, rows: Int, columns: Int)], rank: Int, scale: Float, base: AdapterFile? = nil,
        others: [(name: String, rows: Int, columns: Int)] = []
    ) throws(TrainingError) {
        var order: [Place] = []
        var offset = 0
        let trained = Set(matrices.map(\.name))
        for matrix in matrices + others.filter({ !trained.contains($0.name) }) {
            let frozen = base?.sizes(of: matrix.name)?.rank ?? 0
            let whole = frozen + (trained.contains(matrix.name) ? rank : 0)
            if whole == 0 { continue }
            let place = Place(
                name: matrix.name, frozen: frozen, rank: whole, rows: matrix.rows, columns: matrix.columns, offset: offset)
            order.append(place)
            offset += place.count
        }
        self.order = order
        places = Dictionary(uniqueKeysWithValues: order.map { ($0.name, $0) })
        self.scale = scale
        self.rank = order.reduce(1) { max($0, $1.rank) }
        values = try Buffer(offset)
        gradients = try Buffer(offset)
        means = try Buffer(offset)
        squares = try Buffer(offset)
        guard let base else { return }
        do {
            for place in order {
                guard let (a, b, sizes) = try base.factors(of: place.name) else { continue }
                set(place, 0..<sizes.rank, a: a, b: b, factor: Float(sizes.scale) / scale)
            }
        } catch { throw .invalidAdapter("\(base.path): \(error)") }
    }

    /// Whether there is an adapter below the new one.
    var hasBase: Bool { order.contains { $0.frozen > 0 } }

    /// Sets what belongs to the adapter below to zero, in gradients and moments.
    private func clearFrozen(_ buffer: Buffer) {
        for place in order where place.frozen > 0 {
            (buffer.pointer + place.offset).update(repeating: 0, count: place.frozen * place.columns)
            (buffer.pointer + place.bOffset).update(repeating: 0, count: place.frozen * place.rows)
        }
    }

    /// A is uniform within ±1/√columns, as in PEFT; B is zero, so that the adapter changes nothing at first.
    package func initialize(seed: UInt64) {
        var numbers = SplitMix64(state: seed)
        for place in order {
            let bound = 1 / Float(place.columns).squareRoot()
            for index in place.frozen * place.columns..<place.rank * place.columns {
                values.pointer[place.offset + index] = (2 * numbers.unit() - 1) * bound
            }
        }
    }

    /// Begins with the values of an adapter of the same matrices and rank.
    func initialize(from file: AdapterFile) throws(TrainingError) {
        let trained = order.filter { $0.trained > 0 }
        func fail(_ reason: String) -> TrainingError { .invalidAdapter("\(file.path): training cannot begin with it: \(reason)") }
        guard file.targets == Set(trained.map(\.name)) else {
            throw fail("it changes other matrices than those that are trained")
        }
        do {
            for place in trained {
                guard let (a, b, sizes) = try file.factors(of: place.name), sizes.rank == place.trained else {
                    throw fail("its rank is another than that of the training")
                }
                set(place, place.frozen..<place.rank, a: a, b: b, factor: Float(sizes.scale) / scale)
            }
        } catch let error as TrainingError { throw error } catch { throw fail("\(error)") }
    }

    /// The trained part of B of a matrix, `[rows][trained]`.
    func b(_ place: Place) -> [Float] {
        var b = [Float](repeating: 0, count: place.rows * place.trained)
        for row in 0..<place.rows {
            for r in 0..<place.trained {
                b[row * place.trained + r] = values.pointer[place.bOffset + (place.frozen + r) * place.rows + row]
            }
        }
        return b
    }

    /// The trained part of A, `[trained][columns]`.
    func a(_ place: Place) -> [Float] {
        let first = values.pointer + place.offset + place.frozen * place.columns
        return Array(UnsafeBufferPointer(start: first, count: place.trained * place.columns))
    }

    package func set(_ place: Place, a: [Float], b: [Float]) { set(place, 0..<place.rank, a: a, b: b, factor: 1) }

    /// Sets some of the rows of A, and the columns of B that belong to them: `a` is `[ranks][columns]`, `b` is `[rows][ranks]`.
    private func set(_ place: Place, _ ranks: Range<Int>, a: [Float], b: [Float], factor: Float) {
        (values.pointer + place.offset + ranks.lowerBound * place.columns).update(from: a, count: ranks.count * place.columns)
        for row in 0..<place.rows {
            for (index, r) in ranks.enumerated() {
                values.pointer[place.bOffset + r * place.rows + row] = factor * b[row * ranks.count + index]
            }
        }
    }

    // MARK: - AdamW

    private static let (beta1, beta2, epsilon) = (Float(0.9), Float(0.999), Float(1e-8))

    package var gradientNorm: Double {
        clearFrozen(gradients)
        return ck_training_squares(gradients.pointer, count).squareRoot()
    }

    /// A step of AdamW (arXiv:1711.05101).
    ///
    /// - Parameters:
    ///   - number: the number of the step, from 1.
    ///   - factor: what gradients are multiplied by.
    package func step(_ number: Int, pool: WorkerPool, rate: Float, factor: Float, weightDecay: Float) {
        let number = Double(number)
        clearFrozen(gradients)
        // Decay moves parameters without a gradient too.
        let before = hasBase && weightDecay > 0 ? values.values : nil
        defer {
            if let before {
                for place in order where place.frozen > 0 {
                    for range in [
                        place.offset..<place.offset + place.frozen * place.columns,
                        place.bOffset..<place.bOffset + place.frozen * place.rows,
                    ] { for index in range { values.pointer[index] = before[index] } }
                }
            }
        }
        ck_training_adam(
            pool.handle, values.pointer, gradients.pointer, means.pointer, squares.pointer, count, factor, rate, Self.beta1,
            Self.beta2, Self.epsilon, weightDecay, Float(1 - pow(Double(Self.beta1), number)),
            Float(1 - pow(Double(Self.beta2), number)))
    }
}
