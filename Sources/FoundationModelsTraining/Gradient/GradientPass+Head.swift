internal import CKernels
internal import Foundation
internal import Inference

// The output head: the loss of the learned tokens, and its gradient by the last layer's output.
extension GradientPass {
    func head(_ batch: TrainingBatch, divisor: Int?, _ result: inout Result) {
        let width = model.shape.width
        let vocabulary = model.shape.vocabularySize
        let last = inputs[model.layers.count].pointer
        let (rows, normed) = (headRows.pointer, headRows.pointer + headChunk * width)
        var losses = [Float](repeating: 0, count: headChunk)
        var isRight = [Bool](repeating: false, count: headChunk)
        for start in stride(from: 0, to: batch.targets.count, by: headChunk) {
            let targets = batch.targets[start..<min(start + headChunk, batch.targets.count)]
            let count = targets.count
            for (index, target) in targets.enumerated() {
                (rows + index * width).update(from: last + target.row * width, count: width)
            }
            if let weight = model.outputNorm {
                norm(rows, stride: width, weight, rows: count, to: normed, outputStride: width)
            } else {
                normed.update(from: rows, count: count * width)
            }
            let scale = Float(model.shape.logitScale)
            let operand = pack(normed, stride: width, count: count, k: width, in: work.operand)
            multiply([
                product(model.head, transposed: false, operand, logits.pointer, stride: vocabulary, scale: scale, adds: false)
            ])
            if let bias = model.headBias {
                for row in 0..<count { for token in 0..<vocabulary { logits.pointer[row * vocabulary + token] += bias[token] } }
            }
            let tokens = targets.map(\.token)
            ck_training_cross_entropy(
                pool.handle, kernels, logits.pointer, Int32(count), Int32(vocabulary), tokens, Float(model.shape.logitSoftCap),
                divisor.map { 1 / Float($0) } ?? 0, &losses, &isRight)
            for index in 0..<count {
                result.loss += Double(losses[index])
                result.right += isRight[index] ? 1 : 0
            }
            result.targets += count
            guard divisor != nil else { continue }
            backwardHead(targets, rows, scale)
        }
    }

    private func backwardHead(
        _ targets: ArraySlice<(row: Int, token: Int32)>, _ rows: UnsafePointer<Float>, _ scale: Float
    ) {
        let width = model.shape.width
        let vocabulary = model.shape.vocabularySize
        let count = targets.count
        // The panels of all logits at once would take as much memory as the logits: the vocabulary is split.
        let part = min(vocabulary, work.wide.count / headChunk / 256 * 256)
        var isFirst = true
        for first in stride(from: 0, to: vocabulary, by: part) {
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
