/// Finds the minimum of a smooth convex function with L-BFGS.
package enum Minimizer {
    /// The number of earlier steps that estimate the curvature.
    private static let memory = 10

    /// - Parameters:
    ///   - start: Where to begin.
    ///   - tolerance: The minimisation ends when the largest element of the gradient is less than this share of that at the beginning.
    ///   - function: The value at a point; writes the gradient. What it throws ends the minimisation.
    package static func minimum(
        from start: [Double], maximumSteps: Int, tolerance: Double = 1e-7, _ function: ([Double], inout [Double]) throws -> Double
    ) rethrows -> [Double] {
        var point = start
        var gradient = [Double](repeating: 0, count: start.count)
        var value = try function(point, &gradient)
        let end = tolerance * max(1e-300, size(gradient))
        var steps: [(change: [Double], slope: [Double], product: Double)] = []
        for _ in 0..<maximumSteps {
            guard size(gradient) > end else { break }
            var direction = self.direction(gradient, steps)
            var descent = product(direction, gradient)
            if descent >= 0 {  // rounding has spoilt the estimate of the curvature
                steps = []
                direction = gradient.map { -$0 }
                descent = product(direction, gradient)
            }
            // Halves the step until the value falls enough; the first step has no estimate of the curvature.
            var length = steps.isEmpty ? min(1, 1 / max(1e-300, size(gradient))) : 1
            var next = point
            var nextGradient = gradient
            var nextValue = value
            var isLower = false
            for _ in 0..<40 {
                for index in next.indices { next[index] = point[index] + length * direction[index] }
                nextValue = try function(next, &nextGradient)
                if nextValue <= value + 1e-4 * length * descent {
                    isLower = true
                    break
                }
                length /= 2
            }
            guard isLower else { break }  // as exact as the numbers allow
            let change = zip(next, point).map { $0 - $1 }
            let slope = zip(nextGradient, gradient).map { $0 - $1 }
            let curvature = product(change, slope)
            if curvature > 0 {
                if steps.count == memory { steps.removeFirst() }
                steps.append((change, slope, curvature))
            }
            (point, gradient, value) = (next, nextGradient, nextValue)
        }
        return point
    }

    /// The negative gradient, multiplied by the estimated inverse of the curvature.
    private static func direction(_ gradient: [Double], _ steps: [(change: [Double], slope: [Double], product: Double)])
        -> [Double]
    {
        var direction = gradient.map { -$0 }
        var shares: [Double] = []
        for step in steps.reversed() {
            let share = product(step.change, direction) / step.product
            shares.append(share)
            for index in direction.indices { direction[index] -= share * step.slope[index] }
        }
        if let last = steps.last {
            let scale = last.product / product(last.slope, last.slope)
            for index in direction.indices { direction[index] *= scale }
        }
        for step in steps {
            let share = (shares.popLast() ?? 0) - product(step.slope, direction) / step.product
            for index in direction.indices { direction[index] += share * step.change[index] }
        }
        return direction
    }

    private static func product(_ a: [Double], _ b: [Double]) -> Double {
        var sum = 0.0
        for index in a.indices { sum += a[index] * b[index] }
        return sum
    }

    private static func size(_ vector: [Double]) -> Double { vector.reduce(0) { max($0, abs($1)) } }
}
