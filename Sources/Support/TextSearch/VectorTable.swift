internal import CKernels

/// Vectors of length 1 in memory, as bytes, for exact search by cosine: every vector is compared.
///
/// A vector of 384 elements takes 400 bytes. The cosine that a search finds has an error of about 0.005; callers compute
/// those of the best results again from the original vectors.
public struct VectorTable: Sendable {
    /// The number of elements of a vector.
    public let dimension: Int
    /// The key of each vector.
    public private(set) var keys: [Int64] = []
    private var codes: [Int8] = []
    private var factors: [Float] = []

    /// Creates an empty table.
    public init(dimension: Int) { self.dimension = dimension }

    /// The number of vectors.
    public var count: Int { keys.count }
    /// The largest key; nil without vectors.
    public var largestKey: Int64? { keys.max() }

    /// A vector as it is stored: its factor, then its bytes.
    public static func encoded(_ vector: [Float]) -> [UInt8] {
        let (codes, factor) = quantized(vector)
        return withUnsafeBytes(of: factor.bitPattern.littleEndian) { Array($0) } + codes.map { UInt8(bitPattern: $0) }
    }

    /// Adds a vector.
    public mutating func append(_ key: Int64, _ vector: [Float]) {
        precondition(vector.count == dimension, "the vector is of another model")
        let (codes, factor) = Self.quantized(vector)
        keys.append(key)
        factors.append(factor)
        self.codes += codes
    }

    /// Adds a vector that was stored by ``encoded(_:)``.
    ///
    /// - Returns: false if the data has another length.
    public mutating func append(_ key: Int64, encoded: UnsafeRawBufferPointer) -> Bool {
        guard encoded.count == dimension + 4 else { return false }
        let factor = Float(bitPattern: UInt32(littleEndian: encoded.loadUnaligned(as: UInt32.self)))
        guard factor.isFinite else { return false }
        keys.append(key)
        factors.append(factor)
        codes.append(contentsOf: encoded[4...].lazy.map { Int8(bitPattern: $0) })
        return true
    }

    /// Removes vectors.
    public mutating func remove(_ removed: Set<Int64>) {
        guard !removed.isEmpty else { return }
        var next = 0
        for index in keys.indices where !removed.contains(keys[index]) {
            if index != next {
                (keys[next], factors[next]) = (keys[index], factors[index])
                for column in 0..<dimension { codes[next * dimension + column] = codes[index * dimension + column] }
            }
            next += 1
        }
        keys.removeLast(keys.count - next)
        factors.removeLast(factors.count - next)
        codes.removeLast(codes.count - next * dimension)
    }

    private static func quantized(_ vector: [Float]) -> ([Int8], Float) {
        let largest = vector.reduce(0) { max($0, abs($1)) }
        guard largest > 1e-30, vector.allSatisfy(\.isFinite) else { return ([Int8](repeating: 0, count: vector.count), 0) }
        let inverse = 127 / largest
        return (vector.map { Int8(($0 * inverse).rounded()) }, largest / 127)
    }

    /// The keys of the vectors with the largest cosines, best first, and these cosines.
    ///
    /// - Parameters:
    ///   - query: A vector of length 1.
    ///   - count: The maximum number of results.
    ///   - isIncluded: Called for candidates only; false leaves a vector out.
    public func nearest(
        to query: [Float], count: Int, where isIncluded: (Int64) -> Bool = { _ in true }
    ) -> [(key: Int64, cosine: Float)] {
        precondition(query.count == dimension, "the vector is of another model")
        let count = min(count, keys.count)
        guard count > 0 else { return [] }
        var best: [(key: Int64, cosine: Float)] = []
        // Results are collected up to twice the number and then cut, so that each costs a constant time on average.
        var threshold = -Float.infinity
        func cut() {
            best.sort { $0.cosine > $1.cosine }
            best.removeLast(max(0, best.count - count))
            if best.count == count, let last = best.last { threshold = last.cosine }
        }
        forEachCosine(to: query) { key, cosine in
            guard cosine > threshold, isIncluded(key) else { return }
            best.append((key, cosine))
            if best.count >= 2 * count { cut() }
        }
        cut()
        return best
    }

    /// Calls a function with the key of each vector and its cosine, in the order in which they were added.
    ///
    /// - Parameter query: A vector of length 1.
    public func forEachCosine(to query: [Float], _ body: (Int64, Float) -> Void) {
        precondition(query.count == dimension, "the vector is of another model")
        let (wanted, factor) = Self.quantized(query)
        let blockRows = 1024
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: blockRows) { products in
            guard let out = products.baseAddress else { return }
            codes.withUnsafeBufferPointer { codes in
                guard let start = codes.baseAddress else { return }
                for first in stride(from: 0, to: keys.count, by: blockRows) {
                    let rows = min(blockRows, keys.count - first)
                    ck_kernels_best().pointee.dot_rows(start + first * dimension, rows, wanted, Int32(dimension), out)
                    for row in 0..<rows { body(keys[first + row], Float(products[row]) * factors[first + row] * factor) }
                }
            }
        }
    }
}
