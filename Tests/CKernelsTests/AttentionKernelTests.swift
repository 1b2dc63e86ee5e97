import CKernels
import Foundation
import TestSupport
import Testing

/// Compares attention over pages of a KV cache with its definition in binary64, for every instruction set.
struct AttentionKernelTests {
    struct Shape: CustomTestStringConvertible {
        var length = 700
        var heads = 4
        var kvHeads = 2
        var headDim = 32
        var valueDim = 32
        var window = 0
        var softCap: Float = 0
        var hasSinks = false

        var testDescription: String {
            "length \(length), \(heads)/\(kvHeads) heads, \(headDim)→\(valueDim), window \(window), cap \(softCap), sinks \(hasSinks)"
        }
    }

    /// Random queries, and a cache whose memory after the last position has the worst contents.
    final class Fixture {
        let shape: Shape
        let bytes: Bool
        let queries: [Float]
        let sinks: [Float]
        /// Values of `[position][head][dimension]`, as the cache represents them.
        private var keys: [Float] = [], values: [Float] = []
        private let pages: [UnsafeMutableRawPointer]
        private let valueOffset: Int
        private var stride: Int { (shape.valueDim + 15) / 16 * 16 }

        init(_ shape: Shape, bytes: Bool) {
            self.shape = shape
            self.bytes = bytes
            var random = SeededGenerator(UInt64(shape.length * 31 + shape.headDim * 7 + shape.window))
            queries = (0..<shape.length * shape.heads * shape.headDim).map { _ in random.uniform(-1...1) }
            sinks = (0..<shape.heads).map { _ in random.uniform(-1...1) }
            let page = Int(CK_PAGE), size = bytes ? 1 : 2
            let stride = (shape.valueDim + 15) / 16 * 16
            let factors = bytes ? 4 * shape.kvHeads * page : 0
            let valueOffset = shape.kvHeads * page * shape.headDim * size + factors
            self.valueOffset = valueOffset
            let pageBytes = valueOffset + shape.kvHeads * page * stride * size + factors
            pages = (0..<(shape.length + page - 1) / page).map { _ in
                let memory = UnsafeMutableRawPointer.allocate(byteCount: pageBytes, alignment: 64)
                // Both 0x7FFF as binary16 and 0x7FFFFFFF as binary32 are not numbers.
                for index in 0..<pageBytes / 4 { memory.storeBytes(of: 0x7FFF_7FFF, toByteOffset: 4 * index, as: UInt32.self) }
                if bytes {
                    for base in [valueOffset, pageBytes] {
                        for index in 1...shape.kvHeads * page {
                            memory.storeBytes(of: 0x7FFF_FFFF, toByteOffset: base - 4 * index, as: UInt32.self)
                        }
                    }
                }
                return memory
            }
            for position in 0..<shape.length {
                let memory = pages[position / page], place = position % page
                for head in 0..<shape.kvHeads {
                    let (keyFactor, valueFactor) = (random.uniform(0.005...0.015), random.uniform(0.005...0.015))
                    if bytes {
                        memory.storeBytes(
                            of: keyFactor, toByteOffset: valueOffset - factors + 4 * (head * page + place), as: Float.self)
                        memory.storeBytes(
                            of: valueFactor, toByteOffset: pageBytes - factors + 4 * (head * page + place), as: Float.self)
                    }
                    func element(_ factor: Float, _ offset: Int) -> Float {
                        if bytes {
                            let integer = Int8(random.uniform(-127...127))
                            memory.storeBytes(of: integer, toByteOffset: offset, as: Int8.self)
                            return Float(integer) * factor
                        }
                        let half = ck_float_to_half(random.uniform(-1...1))
                        memory.storeBytes(of: half, toByteOffset: offset, as: UInt16.self)
                        return ck_half_to_float(half)
                    }
                    for d in 0..<shape.headDim {
                        let index = ((head * page + place / 16 * 16) * shape.headDim) + 16 * d + place % 16
                        keys.append(element(keyFactor, index * size))
                    }
                    for d in 0..<shape.valueDim {
                        values.append(element(valueFactor, valueOffset + ((head * page + place) * stride + d) * size))
                    }
                }
            }
        }

        deinit { for page in pages { page.deallocate() } }

        /// The result of the last `rows` positions before `end`.
        ///
        /// - Parameter visible: a range whose positions attend to each other.
        func computed(
            _ kernels: UnsafePointer<ck_kernels>, _ pool: OpaquePointer, rows: Int, end: Int? = nil, rounds: Bool,
            visible: Range<Int>? = nil
        ) -> [Float] {
            let end = end ?? shape.length
            let visibleEnds = visible.map { range in
                (end - rows..<end).map { Int32(range.contains($0) ? range.upperBound : 0) }
            }
            var out = [Float](repeating: .nan, count: rows * shape.heads * shape.valueDim)
            var partial = [Float](
                repeating: .nan, count: ck_attention_partial_floats(Int32(shape.heads), Int32(shape.valueDim), Int32(end)))
            let width = shape.heads * shape.headDim
            let addresses = pages.map { Optional($0.assumingMemoryBound(to: UInt8.self)) }
            (visibleEnds ?? []).withUnsafeBufferPointer { visibleEnds in
                queries[(end - rows) * width..<end * width].withUnsafeBufferPointer { queries in
                    out.withUnsafeMutableBufferPointer { out in
                        partial.withUnsafeMutableBufferPointer { partial in
                            sinks.withUnsafeBufferPointer { sinks in
                                addresses.withUnsafeBufferPointer { addresses in
                                    var call = ck_attention()
                                    call.q = queries.baseAddress
                                    call.out = out.baseAddress
                                    call.pages = addresses.baseAddress
                                    call.value_offset = valueOffset
                                    call.partial = partial.baseAddress
                                    call.sinks = shape.hasSinks ? sinks.baseAddress : nil
                                    call.scale = 1 / Float(shape.headDim).squareRoot()
                                    call.soft_cap = shape.softCap
                                    call.rows = Int32(rows)
                                    call.heads = Int32(shape.heads)
                                    call.kv_heads = Int32(shape.kvHeads)
                                    call.head_dim = Int32(shape.headDim)
                                    call.value_dim = Int32(shape.valueDim)
                                    call.value_stride = Int32(stride)
                                    call.length = Int32(end)
                                    call.window = Int32(shape.window)
                                    call.bytes = bytes
                                    call.rounds = rounds
                                    call.visible_end = visible == nil ? nil : visibleEnds.baseAddress
                                    ck_attend(pool, kernels, &call, 1)
                                }
                            }
                        }
                    }
                }
            }
            return out
        }

        /// The definition of attention, of the last `rows` positions.
        func expected(rows: Int, visible: Range<Int> = 0..<0) -> [Double] {
            var result: [Double] = []
            for position in shape.length - rows..<shape.length {
                let first = shape.window > 0 ? max(0, position + 1 - shape.window) : 0
                let last = visible.contains(position) ? visible.upperBound - 1 : position
                for head in 0..<shape.heads {
                    let kvHead = head / (shape.heads / shape.kvHeads)
                    let q = (position * shape.heads + head) * shape.headDim
                    let scores = (first...last).map { key in
                        let k = (key * shape.kvHeads + kvHead) * shape.headDim
                        let product = (0..<shape.headDim).reduce(0.0) { $0 + Double(queries[q + $1]) * Double(keys[k + $1]) }
                        let score = product / Double(shape.headDim).squareRoot(), cap = Double(shape.softCap)
                        return cap > 0 ? cap * tanh(score / cap) : score
                    }
                    let weights = scores.map(exp)
                    let sum = weights.reduce(0, +) + (shape.hasSinks ? exp(Double(sinks[head])) : 0)
                    for d in 0..<shape.valueDim {
                        let mixed = zip(first...last, weights).reduce(0.0) {
                            $0 + $1.1 * Double(values[($1.0 * shape.kvHeads + kvHead) * shape.valueDim + d])
                        }
                        result.append(mixed / sum)
                    }
                }
            }
            return result
        }
    }

    static let shapes = [
        Shape(),
        Shape(length: 769, heads: 12, kvHeads: 2, headDim: 64, valueDim: 64),  // one position in the last page
        Shape(length: 701, heads: 6, kvHeads: 3, headDim: 24, valueDim: 40),  // no multiples of 16
        Shape(length: 801, window: 100),  // begins inside a page
        Shape(length: 530, heads: 7, kvHeads: 1),
        Shape(length: 545, heads: 11, kvHeads: 1),
        Shape(length: 1043, window: 515),
        Shape(length: 625, softCap: 1.5, hasSinks: true),
        Shape(length: 577, heads: 5, kvHeads: 1, headDim: 576, valueDim: 512),  // latent attention
    ]

    /// Whatever the memory after the last position contains.
    @Test("equals the definition", arguments: shapes, [false, true])
    func equalsTheDefinition(shape: Shape, bytes: Bool) throws {
        let pool = try #require(ck_pool_create(2))
        defer { ck_pool_destroy(pool) }
        let fixture = Fixture(shape, bytes: bytes)
        let expected = fixture.expected(rows: 3)
        let size = expected.reduce(0) { $0 + abs($1) } / Double(expected.count)
        for set in [CK_SCALAR] + KernelTests.sets {
            let kernels = try #require(ck_kernels_for(set))
            for rounds in [false, true] {
                // Rounding to 8 significant bits changes a product by at most 1/256, and errors of different signs cancel.
                let tolerance = (rounds ? 0.05 : 0.001) * size
                for rows in [1, 3] {
                    let found = fixture.computed(kernels, pool, rows: rows, rounds: rounds)
                    let errors = zip(found, expected.suffix(found.count)).map { abs(Double($0) - $1) }
                    // Not `<`, because a comparison with what is not a number is false.
                    #expect(errors.allSatisfy { $0 <= tolerance }, "\(set), \(rows) rows, rounds \(rounds)")
                }
            }
        }
    }

    /// Within a page, and from one page to the next; and a row has the same result in every batch that contains the range.
    @Test("positions of a visible range attend to each other", arguments: [false, true], [0, 100])
    func visibleRanges(bytes: Bool, window: Int) throws {
        let pool = try #require(ck_pool_create(2))
        defer { ck_pool_destroy(pool) }
        let fixture = Fixture(Shape(length: 531, window: window), bytes: bytes)
        let width = fixture.shape.heads * fixture.shape.valueDim
        for visible in [505..<520, 500..<531, 515..<516] {
            let expected = fixture.expected(rows: 40, visible: visible)
            let size = expected.reduce(0) { $0 + abs($1) } / Double(expected.count)
            for set in [CK_SCALAR] + KernelTests.sets {
                let kernels = try #require(ck_kernels_for(set))
                let found = fixture.computed(kernels, pool, rows: 40, rounds: false, visible: visible)
                #expect(zip(found, expected).allSatisfy { abs(Double($0) - $1) <= 0.001 * size }, "\(set), \(visible)")
                let rows = 531 - visible.lowerBound
                let fewer = fixture.computed(kernels, pool, rows: rows, rounds: false, visible: visible)
                #expect(fewer.map(\.bitPattern) == found.suffix(rows * width).map(\.bitPattern), "\(set), \(visible)")
            }
        }
    }

    /// Rows from `CK_ROUNDED_FROM` on may be rounded, earlier ones never; and a row has the same result in every batch.
    @Test("the position of a row decides whether it is rounded", arguments: [false, true])
    func roundedRows(bytes: Bool) throws {
        let pool = try #require(ck_pool_create(2))
        defer { ck_pool_destroy(pool) }
        let fixture = Fixture(Shape(length: 531), bytes: bytes)
        let width = fixture.shape.heads * fixture.shape.valueDim
        let limit = Int(CK_ROUNDED_FROM)
        for set in [CK_SCALAR] + KernelTests.sets {
            let kernels = try #require(ck_kernels_for(set))
            let exact = fixture.computed(kernels, pool, rows: 40, rounds: false).map(\.bitPattern)
            let rounded = fixture.computed(kernels, pool, rows: 40, rounds: true).map(\.bitPattern)
            let before = (limit - (531 - 40)) * width
            #expect(exact[..<before] == rounded[..<before], "\(set)")
            for (rows, end) in [(1, 531), (1, 514), (1, 512), (3, 513), (20, 525)] {
                let some = fixture.computed(kernels, pool, rows: rows, end: end, rounds: true).map(\.bitPattern)
                let first = (end - rows - (531 - 40)) * width
                #expect(some == Array(rounded[first..<first + some.count]), "\(set), \(rows) rows before \(end)")
            }
        }
    }
}
