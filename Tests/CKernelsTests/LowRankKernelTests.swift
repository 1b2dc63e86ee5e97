import CKernels
import TestSupport
import Testing

/// Products with low-rank matrices, for every instruction set.
struct LowRankKernelTests {
    static let sets: [ck_isa] = [CK_SCALAR] + KernelTests.sets

    @Test("low-rank products equal sums in binary64, and a row has the same bits alone and among others", arguments: sets)
    func lowRankProducts(set: ck_isa) throws {
        let kernels = try #require(ck_kernels_for(set))
        // Columns that are not a multiple of the parts of a sum, outputs that are not a multiple of a vector.
        for (columns, rank, outputs, rows) in [(64, 16, 16, 1), (67, 16, 40, 37), (130, 32, 23, 17), (3, 16, 5, 4)] {
            var random = SeededGenerator(UInt64(columns + rank))
            let padded = (outputs + 15) / 16 * 16
            func halves(_ count: Int) -> [UInt16] { (0..<count).map { _ in ck_float_to_half(random.uniform(-1...1)) } }
            let a = halves(columns * rank), b = halves(rank * padded)
            let x = (0..<rows * columns).map { _ in random.uniform(-1...1) }
            let before = (0..<rows * outputs).map { _ in random.uniform(-1...1) }
            func result(_ ranges: [Range<Int>], _ add: (inout ck_low_rank, Range<Int>) -> Void) -> [Float] {
                var y = before
                x.withUnsafeBufferPointer { x in
                    y.withUnsafeMutableBufferPointer { y in
                        a.withUnsafeBufferPointer { a in
                            b.withUnsafeBufferPointer { b in
                                var term = ck_low_rank(
                                    x: x.baseAddress, y: y.baseAddress, a: a.baseAddress, b: b.baseAddress, rows: Int32(rows),
                                    columns: Int32(columns), rank: Int32(rank), outputs: Int32(outputs),
                                    ldy: Int32(outputs), scale: 0.5)
                                for range in ranges { add(&term, range) }
                            }
                        }
                    }
                }
                return y
            }
            let most = Int(CK_LOW_RANK_ROWS), single = (0..<rows).map { $0..<$0 + 1 }
            func whole(_ term: inout ck_low_rank, _ rows: Range<Int>) {
                kernels.pointee.low_rank(&term, Int32(rows.lowerBound), Int32(rows.count))
            }
            let together = result(stride(from: 0, to: rows, by: most).map { $0..<min($0 + most, rows) }, whole)
            #expect(together == result(single, whole), "\(columns) columns, \(rows) rows")
            let divided = result(single) { term, row in
                let parts = Int(CK_LOW_RANK_PARTS)
                var sums = [Float](repeating: .nan, count: parts * rank)
                for part in 0..<parts {
                    sums.withUnsafeMutableBufferPointer { sums in
                        kernels.pointee.low_rank_part(
                            &term, Int32(row.lowerBound), Int32(part), sums.baseAddress.map { $0 + part * rank })
                    }
                }
                for output in stride(from: 0, to: padded, by: 16) {
                    kernels.pointee.low_rank_outputs(&term, Int32(row.lowerBound), sums, Int32(output), Int32(output + 16))
                }
            }
            #expect(together == divided, "\(columns) columns, \(rows) rows")
            for row in 0..<rows {
                let inner = (0..<rank).map { r in
                    (0..<columns).reduce(0.0) { $0 + Double(x[row * columns + $1]) * Double(ck_half_to_float(a[$1 * rank + r])) }
                }
                for output in 0..<outputs {
                    let sum = (0..<rank).reduce(0.0) {
                        $0 + inner[$1] * Double(ck_half_to_float(b[output / 16 * 16 * rank + $1 * 16 + output % 16]))
                    }
                    let expected = Double(before[row * outputs + output]) + 0.5 * sum
                    #expect(abs(Double(together[row * outputs + output]) - expected) < 1e-3 * max(1, abs(expected)))
                }
            }
        }
    }

    @Test("low-rank products have the same bits with any number of threads", arguments: [1, 3, 17])
    func threads(rows: Int) throws {
        let columns = 67, rank = 16, outputs = 40, terms = 2
        var random = SeededGenerator(UInt64(rows))
        let a = (0..<columns * rank).map { _ in ck_float_to_half(random.uniform(-1...1)) }
        let b = (0..<rank * 48).map { _ in ck_float_to_half(random.uniform(-1...1)) }
        let x = (0..<rows * columns).map { _ in random.uniform(-1...1) }
        func result(threads: Int32) throws -> [Float] {
            let pool = try #require(ck_pool_create(threads))
            defer { ck_pool_destroy(pool) }
            var y = [Float](repeating: 0, count: terms * rows * outputs)
            x.withUnsafeBufferPointer { x in
                y.withUnsafeMutableBufferPointer { y in
                    a.withUnsafeBufferPointer { a in
                        b.withUnsafeBufferPointer { b in
                            let list = (0..<terms).map { term in
                                ck_low_rank(
                                    x: x.baseAddress, y: y.baseAddress.map { $0 + term * rows * outputs }, a: a.baseAddress,
                                    b: b.baseAddress, rows: Int32(rows), columns: Int32(columns), rank: Int32(rank),
                                    outputs: Int32(outputs), ldy: Int32(outputs), scale: 0.5)
                            }
                            ck_add_low_rank_products(pool, ck_kernels_best(), list, Int32(terms))
                        }
                    }
                }
            }
            return y
        }
        // With four threads, two products of few rows are divided.
        let alone = try result(threads: 1)
        #expect(alone.contains { $0 != 0 })
        #expect(try result(threads: 4) == alone)
        #expect(try result(threads: 2) == alone)
    }
}
