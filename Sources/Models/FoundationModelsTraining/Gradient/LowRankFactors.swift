internal import CKernels
internal import Foundation
package import Inference

/// The trained parameters: for each matrix, A `[rank][columns]` and the transpose of B `[rank][rows]`, one after the other in one buffer,
/// with buffers of the same layout for gradients and the moments of AdamW.
package final class LowRankFactors: @unchecked Sendable {  // Used by one thread at a time.
    package struct Place {
        package var name: String
        var rank: Int
        var rows: Int
        var columns: Int
        /// The offset of A; that of B follows.
        var offset: Int
        var bOffset: Int { offset + rank * columns }
        var count: Int { rank * (rows + columns) }
    }

    let places: [String: Place]
    /// In the order of the layers.
    package let order: [Place]
    let scale: Float
    let rank: Int
    let values: Buffer
    package let gradients: Buffer
    let means: Buffer
    let squares: Buffer
    var count: Int { values.count }

    /// - Parameter matrices: the names of the matrices that are trained, with their shapes.
    package init(_ matrices: [(name: String, rows: Int, columns: Int)], rank: Int, scale: Float) throws(TrainingError) {
        var order: [Place] = []
        var offset = 0
        for matrix in matrices {
            let place = Place(name: matrix.name, rank: rank, rows: matrix.rows, columns: matrix.columns, offset: offset)
            order.append(place)
            offset += place.count
        }
        self.order = order
        places = Dictionary(uniqueKeysWithValues: order.map { ($0.name, $0) })
        self.scale = scale
        self.rank = rank
        values = try Buffer(offset)
        gradients = try Buffer(offset)
        means = try Buffer(offset)
        squares = try Buffer(offset)
    }

    /// A is uniform within ±1/√columns, as in PEFT; B is zero, so that the adapter changes nothing at first.
    package func initialize(seed: UInt64) {
        var numbers = SplitMix64(state: seed)
        for place in order {
            let bound = 1 / Float(place.columns).squareRoot()
            for index in 0..<place.rank * place.columns {
                values.pointer[place.offset + index] = (2 * numbers.unit() - 1) * bound
            }
        }
    }

    /// B of a matrix, `[rows][rank]`.
    func b(_ place: Place) -> [Float] {
        var b = [Float](repeating: 0, count: place.rows * place.rank)
        for row in 0..<place.rows {
            for r in 0..<place.rank { b[row * place.rank + r] = values.pointer[place.bOffset + r * place.rows + row] }
        }
        return b
    }

    func a(_ place: Place) -> [Float] {
        Array(UnsafeBufferPointer(start: values.pointer + place.offset, count: place.rank * place.columns))
    }

    package func set(_ place: Place, a: [Float], b: [Float]) {
        (values.pointer + place.offset).update(from: a, count: place.rank * place.columns)
        for row in 0..<place.rows {
            for r in 0..<place.rank { values.pointer[place.bOffset + r * place.rows + row] = b[row * place.rank + r] }
        }
    }

    // MARK: - AdamW

    private static let (beta1, beta2, epsilon) = (Float(0.9), Float(0.999), Float(1e-8))

    package var gradientNorm: Double { ck_training_squares(gradients.pointer, count).squareRoot() }

    /// A step of AdamW (arXiv:1711.05101).
    ///
    /// - Parameters:
    ///   - number: the number of the step, from 1.
    ///   - factor: what gradients are multiplied by.
    package func step(_ number: Int, pool: WorkerPool, rate: Float, factor: Float, weightDecay: Float) {
        let number = Double(number)
        ck_training_adam(
            pool.handle, values.pointer, gradients.pointer, means.pointer, squares.pointer, count, factor, rate, Self.beta1,
            Self.beta2, Self.epsilon, weightDecay, Float(1 - pow(Double(Self.beta1), number)),
            Float(1 - pow(Double(Self.beta2), number)))
    }
}
