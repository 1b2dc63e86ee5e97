internal import CKernels  // structures of calls

/// One call of an operation of the forward pass.
package struct OperationCall: Sendable {
    /// A matrix that was multiplied.
    package struct Factor: Sendable {
        /// The tensor of the file that the matrix comes from; nil if it is not an ordinary one, such as the output head or an expert.
        package var tensor: String?
        package var bytes: Int
        package var weights: Int
    }

    package var name: String
    package var seconds: Double
    /// Of products.
    package var factors: [Factor] = []
    /// The rows of activations of products.
    package var rows = 0
}

/// The time of all calls of one kind of operation.
package struct OperationTime: Sendable {
    package var name: String
    package var calls = 0
    package var seconds = 0.0
    /// The bytes of weights that were read.
    package var weightBytes = 0

    /// The times of calls, in the order of the first of each kind.
    static func sums(of calls: [OperationCall]) -> [OperationTime] {
        var times: [OperationTime] = []
        for call in calls {
            let index = times.firstIndex { $0.name == call.name } ?? times.count
            if index == times.count { times.append(OperationTime(name: call.name)) }
            times[index].calls += 1
            times[index].seconds += call.seconds
            times[index].weightBytes += call.factors.reduce(0) { $0 + $1.bytes }
        }
        return times
    }
}

/// Measures all operations of a forward pass, in order, and sees what they multiply.
final class OperationObserver {
    private(set) var calls: [OperationCall] = []
    private let origins: [MatrixOrigin]
    private let input: ((MatrixOrigin, Activations) -> Void)?

    /// - Parameters:
    ///   - origins: where the matrices of the model come from.
    ///   - input: called with the input of each product before it is computed.
    init(_ origins: [MatrixOrigin], input: ((MatrixOrigin, Activations) -> Void)? = nil) {
        (self.origins, self.input) = (origins, input)
    }

    func measure(_ name: String, _ body: () -> Void) { measure(OperationCall(name: name, seconds: 0), body) }

    func measure(_ rows: Activations, _ products: UnsafeBufferPointer<Product>, _ body: () -> Void) {
        if let input {
            for product in products { input(origins[product.matrix.index], product.activations?.pointee ?? rows) }
        }
        let factors = products.map { product in
            let (matrix, origin) = (product.matrix, origins[product.matrix.index])
            return OperationCall.Factor(
                tensor: origin.isAdaptable ? origin.name : nil, bytes: matrix.bytes,
                weights: Int(matrix.rows) * Int(matrix.columns))
        }
        measure(OperationCall(name: "products", seconds: 0, factors: factors, rows: Int(rows.count)), body)
    }

    private func measure(_ call: OperationCall, _ body: () -> Void) {
        var call = call
        let start = ContinuousClock.now
        body()
        call.seconds = (ContinuousClock.now - start).seconds
        calls.append(call)
    }
}

/// Rows of activations that a matrix is multiplied with; valid during a call.
package struct ObservedRows {
    /// `[count][width]`
    package let values: UnsafePointer<Float>
    package let count: Int
    package let width: Int
}
