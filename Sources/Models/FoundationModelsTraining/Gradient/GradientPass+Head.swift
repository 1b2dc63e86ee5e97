internal import CKernels
internal import Foundation
internal import Inference

// The output head: the loss of the learned tokens, and its gradient by the last layer's output.
extension GradientPass {
    /// - Parameters:
    ///   - factor: what the gradient is multiplied by; nil to compute the loss only.
    ///   - expected: probabilities that are learned instead of the next tokens.
    func head(_ batch: TrainingBatch, factor: Float?, expected: KeptText.Predictions? = nil, _ result: inout Result) {
        var losses = [Float](repeating: 0, count: headChunk)
        var isRight = [Bool](repeating: false, count: headChunk)
        for start in stride(from: 0, to: batch.targets.count, by: headChunk) {
            let targets = batch.targets[start..<min(start + headChunk, batch.targets.count)]
            computeLogits(targets)
            let (count, vocabulary) = (Int32(targets.count), Int32(model.shape.vocabularySize))
            let softCap = Float(model.shape.logitSoftCap)
            if let expected {
                expected.tokens.withUnsafeBufferPointer { tokens in
                    expected.probabilities.withUnsafeBufferPointer { probabilities in
                        guard let tokens = tokens.baseAddress, let probabilities = probabilities.baseAddress else { return }
                        ck_training_divergence(
                            pool.handle, kernels, logits.pointer, count, vocabulary, tokens + start * expected.likely,
                            probabilities + start * expected.likely, Int32(expected.likely), softCap, factor ?? 0, &losses)
                    }
                }
            } else {
                ck_training_cross_entropy(
                    pool.handle, kernels, logits.pointer, count, vocabulary, targets.map(\.token), softCap, factor ?? 0, &losses,
                    &isRight)
            }
            for index in targets.indices.lazy.map({ $0 - start }) {
                result.loss += Double(losses[index])
                result.right += isRight[index] ? 1 : 0
            }
            result.targets += targets.count
            if factor != nil { backwardHead(targets) }
        }
    }

    /// The probabilities of the most likely tokens after each target's row, without the adapter that is trained, but with the one below it.
    func predictions(
        _ batch: TrainingBatch, likely: Int, isCancelled: () -> Bool
    ) throws(TrainingError) -> KeptText.Predictions {
        isBase = true
        defer { isBase = false }
        try forward(batch, isCancelled)
        let vocabulary = model.shape.vocabularySize
        let count = min(likely, vocabulary)
        var predictions = KeptText.Predictions(likely: count)
        for start in stride(from: 0, to: batch.targets.count, by: headChunk) {
            let targets = batch.targets[start..<min(start + headChunk, batch.targets.count)]
            computeLogits(targets)
            for row in targets.indices.lazy.map({ $0 - start }) {
                let row = UnsafeMutableBufferPointer(start: logits.pointer + row * vocabulary, count: vocabulary)
                if isCancelled() { throw .cancelled }
                let cap = Float(model.shape.logitSoftCap)
                if cap > 0 { kernels.pointee.soft_cap(row.baseAddress, cap, Int32(vocabulary)) }
                let largest = Self.largest(row, count: count)
                let sum = kernels.pointee.exponentials(row.baseAddress, row[largest[0]], Int32(vocabulary))
                predictions.tokens += largest.map(Int32.init)
                predictions.probabilities += largest.map { row[$0] / sum }
            }
        }
        return predictions
    }

    /// The places of the largest values, the largest first; the first of equal ones comes first.
    private static func largest(_ values: UnsafeMutableBufferPointer<Float>, count: Int) -> [Int] {
        var places: [Int] = []
        places.reserveCapacity(count + 1)
        for place in values.indices {
            let value = values[place]
            if places.count == count, let last = places.last, !(value > values[last]) { continue }
            var (low, high) = (0, places.count)
            while low < high {
                let middle = (low + high) / 2
                if values[places[middle]] < value { high = middle } else { low = middle + 1 }
            }
            places.insert(place, at: low)
            if places.count > count { places.removeLast() }
        }
        return places
    }

    /// The logits of targets, before a soft cap.
    private func computeLogits(_ targets: ArraySlice<(row: Int, token: Int32)>) {
        let width = model.shape.width
        let vocabulary = model.shape.vocabularySize
        let last = inputs[model.layers.count].pointer
        let (rows, normed) = (headRows.pointer, headRows.pointer + headChunk * width)
        for (index, target) in targets.enumerated() {
            (rows + index * width).update(from: last + target.row * width, count: width)
        }
        if let weight = model.outputNorm {
            norm(rows, stride: width, weight, rows: targets.count, to: normed, outputStride: width)
        } else {
            normed.update(from: rows, count: targets.count * width)
        }
        if let matrix = integers[model.head.name] {
            let scale = Float(model.shape.logitScale) * model.head.scale
            multiply(
                [integerProduct(matrix.forward, logits.pointer, stride: vocabulary, scale: scale, adds: false)], normed,
                stride: width, rows: targets.count, columns: width)
        } else {
            let operand = pack(normed, stride: width, count: targets.count, k: width, in: work.operand)
            multiply([
                product(
                    model.head, transposed: false, operand, logits.pointer, stride: vocabulary,
                    scale: Float(model.shape.logitScale),
                    adds: false)
            ])
        }
        if let bias = model.headBias {
            for row in targets.indices.lazy.map({ $0 - targets.startIndex }) {
                for token in 0..<vocabulary { logits.pointer[row * vocabulary + token] += bias[token] }
            }
        }
    }

    private func backwardHead(_ targets: ArraySlice<(row: Int, token: Int32)>) {
        let rows = headRows.pointer
        let scale = Float(model.shape.logitScale)
        let width = model.shape.width
        let vocabulary = model.shape.vocabularySize
        let count = targets.count
        // The panels of all logits at once would take as much memory as the logits: the vocabulary is split.
        let part = min(vocabulary, work.wide.count / headChunk / 256 * 256)
        var isFirst = true
        if let matrix = integers[model.head.name] {
            multiply(
                [
                    integerProduct(
                        matrix.backward, headGradients.pointer, stride: width, scale: scale * model.head.scale, adds: false)
                ],
                logits.pointer, stride: vocabulary, rows: count, columns: vocabulary)
        }
        for first in integers[model.head.name] == nil ? stride(from: 0, to: vocabulary, by: part) : stride(from: 0, to: 0, by: 1)
        {
            let tokens = min(part, vocabulary - first)
            let operand = pack(
                logits.pointer + first, stride: vocabulary, count: count, k: tokens,
                in: UnsafeMutableRawPointer(work.wide.pointer))
            let matrix = FrozenMatrix(
                name: model.head.name, rows: tokens, columns: width, type: model.head.type, rowBytes: model.head.rowBytes,
                data: model.head.data + first * model.head.rowBytes, scale: model.head.scale)
            multiply([
                product(matrix, transposed: true, operand, headGradients.pointer, stride: width, scale: scale, adds: !isFirst)
            ])
            isFirst = false
        }
        for (index, target) in targets.enumerated() {
            let dx = gradient.pointer + target.row * width
            if let weight = model.outputNorm {
                kernels.pointee.norm_backward(
                    rows + index * width, weight, headGradients.pointer + index * width, Float(model.shape.normEpsilon),
                    Int32(width), dx)
            } else {
                for column in 0..<width { dx[column] += headGradients.pointer[index * width + column] }
            }
        }
    }
}
