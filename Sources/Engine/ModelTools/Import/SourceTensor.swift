internal import Inference

/// A tensor of a Hugging Face folder with the changes that its GGUF form needs. Numbers are read and changed a part at a time, so that a
/// model of any size needs little memory.
struct SourceTensor {
    /// Dimensions, slowest-varying first.
    var shape: [Int]
    /// The type that the file has, or that holds its numbers.
    var type: TensorType
    /// Some of the numbers, in the order of the shape.
    var values: (Range<Int>) throws -> [Float]

    var count: Int { shape.reduce(1, *) }
    /// The length of a row; a vector is a column of rows of one number.
    private var columns: Int { shape.count > 1 ? shape[shape.count - 1] : 1 }

    init(_ tensor: Safetensors.Tensor) {
        (shape, type, values) = (tensor.shape, tensor.type, { try tensor.values($0) })
    }

    init(shape: [Int], type: TensorType, values: @escaping (Range<Int>) throws -> [Float]) {
        (self.shape, self.type, self.values) = (shape, type, values)
    }

    // MARK: - Changes

    /// The same numbers in another shape.
    func reshaped(_ shape: [Int]) -> SourceTensor { SourceTensor(shape: shape, type: type, values: values) }

    /// Without the dimensions of size 1, but for the last one.
    func squeezed() -> SourceTensor { reshaped(shape.dropLast().filter { $0 != 1 } + shape.suffix(1)) }

    func mapped(_ change: @escaping (Float) -> Float) -> SourceTensor {
        SourceTensor(shape: shape, type: type) { [values] in try values($0).map(change) }
    }

    /// Other rows, in another order.
    ///
    /// - Parameters:
    ///   - shape: the shape of the result, with rows as long as before.
    ///   - source: the row of this tensor that a row of the result is; both count over all dimensions but the last.
    func rows(_ shape: [Int], _ source: @escaping (Int) -> Int) -> SourceTensor {
        SourceTensor(shape: shape, type: type) { [values, columns] range in
            var result: [Float] = []
            result.reserveCapacity(range.count)
            var place = range.lowerBound
            while place < range.upperBound {
                let (row, column) = place.quotientAndRemainder(dividingBy: columns)
                let first = source(row)
                var end = row + 1
                // Rows that are neighbours in the file are read at once.
                while end * columns < range.upperBound, source(end) == first + end - row { end += 1 }
                let count = min(end * columns, range.upperBound) - place
                result += try values(first * columns + column..<first * columns + column + count)
                place += count
            }
            return result
        }
    }

    /// The columns in another order: column i of the result is column `source(i)`.
    func columns(_ source: @escaping (Int) -> Int) -> SourceTensor {
        let order = (0..<columns).map(source)
        return SourceTensor(shape: shape, type: type) { [values, columns] range in
            let rows = range.lowerBound / columns..<(range.upperBound + columns - 1) / columns
            let all = try values(rows.lowerBound * columns..<rows.upperBound * columns)
            return range.map { place in
                let (row, column) = place.quotientAndRemainder(dividingBy: columns)
                return all[(row - rows.lowerBound) * columns + order[column]]
            }
        }
    }

    /// With the last two of at least two dimensions exchanged. A matrix is in memory at a time.
    func transposed() -> SourceTensor {
        final class Matrix {
            var index = -1
            var values: [Float] = []
        }
        let (rows, columns) = (shape[shape.count - 2], shape[shape.count - 1])
        let matrix = Matrix()
        return SourceTensor(shape: shape.dropLast(2) + [columns, rows], type: type) { [values] range in
            try range.map { place in
                let (index, within) = place.quotientAndRemainder(dividingBy: rows * columns)
                if matrix.index != index {
                    matrix.values = try values(index * rows * columns..<(index + 1) * rows * columns)
                    matrix.index = index
                }
                return matrix.values[within % rows * columns + within / rows]
            }
        }
    }

    /// Tensors of one shape as one with another dimension.
    static func stacked(_ parts: [SourceTensor]) -> SourceTensor? {
        guard let first = parts.first, first.count > 0, parts.allSatisfy({ $0.shape == first.shape }) else { return nil }
        return SourceTensor(shape: [parts.count] + first.shape, type: first.type) { [count = first.count] range in
            var values: [Float] = []
            values.reserveCapacity(range.count)
            while values.count < range.count {
                let (part, start) = (range.lowerBound + values.count).quotientAndRemainder(dividingBy: count)
                values += try parts[part].values(start..<start + min(count - start, range.count - values.count))
            }
            return values
        }
    }

    /// Multiplied by factors: one for all numbers, one for each row, or one for each block of a matrix.
    ///
    /// - Parameters:
    ///   - block: the rows and columns of a block; nil if there are no blocks.
    func scaled(by factors: SourceTensor, block: (rows: Int, columns: Int)?) throws(ModelError) -> SourceTensor {
        let columns = columns
        let rows = count / columns
        var index: (Int, Int) -> Int
        if factors.count == 1 {
            index = { _, _ in 0 }
        } else if let block, shape.count == 2, factors.shape.count == 2 {
            let across = (columns + block.columns - 1) / block.columns
            guard factors.shape == [(rows + block.rows - 1) / block.rows, across] else {
                throw .invalid(field: "scales", reason: "have the shape \(factors.shape), for \(shape) in blocks")
            }
            index = { $0 / block.rows * across + $1 / block.columns }
        } else {
            guard factors.count == rows else {
                throw .invalid(field: "scales", reason: "have the shape \(factors.shape), for \(shape)")
            }
            index = { row, _ in row }
        }
        final class Kept { var values: [Float]? }
        let kept = Kept()
        return SourceTensor(shape: shape, type: type) { [values] range in
            // They are few, and read once.
            let own = try kept.values ?? factors.values(0..<factors.count)
            kept.values = own
            var result = try values(range)
            for place in result.indices {
                let (row, column) = (range.lowerBound + place).quotientAndRemainder(dividingBy: columns)
                result[place] *= own[index(row, column)]
            }
            return result
        }
    }
}
