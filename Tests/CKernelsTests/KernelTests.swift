import CKernels
import Foundation
import Inference
import TestSupport
import Testing

/// Compares every instruction set with the scalar reference, for every layout, with odd shapes and token counts.
struct KernelTests {
    static let sets: [ck_isa] = [CK_AVX2, CK_AVX512, CK_AMX, CK_NEON].filter { ck_kernels_for($0) != nil }

    /// A packed random matrix and quantised activations.
    final class Case {
        let data: [UInt8]
        let matrix: ck_matrix
        var x: [Float]
        var q: [Int8], d: [Float], s: [Float], sums: [Int32]
        /// Empty if the scales of activations have no common unit.
        var unit: [Float], factors: [Int16], weighted: [Int16], starts: [Int32]
        private let packed: UnsafeMutablePointer<UInt8>

        /// - Parameter hasUnit: Whether the scales of 256 activations have a common unit.
        init(
            _ type: TensorType, rows: Int, columns: Int, tokens: Int, roundsActivations: Bool = false, hasUnit: Bool = false
        ) {
            var random = SeededGenerator(UInt64(rows * 31 + columns * 7 + tokens))
            let kind = ck_type(rawValue: type.rawValue)
            data = TinyModel.randomBlocks(type, rows * columns, &random)
            let panel = ck_panel_bytes(kind, Int32(columns))
            let packed = UnsafeMutablePointer<UInt8>.allocate(capacity: panel * ((rows + 15) / 16))
            self.packed = packed
            var matrix = ck_matrix(
                rows: Int32(rows), columns: Int32(columns), layout: ck_type_layout(kind), type: kind, scale: 1,
                panel_bytes: panel, data: packed, rounds_activations: roundsActivations, identity: 0)
            let rowBytes = columns / type.blockElements * type.blockBytes
            data.withUnsafeBufferPointer { data in
                for first in stride(from: 0, to: rows, by: 16) {
                    let count = min(16, rows - first)
                    let pointers = (0..<count).map { row in data.baseAddress.map { $0 + (first + row) * rowBytes } }
                    ck_pack(&matrix, pointers, Int32(count), packed + first / 16 * panel)
                }
            }
            self.matrix = matrix
            x = (0..<tokens * columns).map { _ in random.uniform(-2...2) }
            q = .init(repeating: 0, count: tokens * columns)
            d = .init(repeating: 0, count: tokens * columns / 32)
            s = d
            sums = .init(repeating: 0, count: tokens * columns / 16)
            unit = .init(repeating: 0, count: hasUnit ? tokens * columns / 256 : 0)
            factors = .init(repeating: 0, count: tokens * columns / 32)
            weighted = factors
            starts = sums
        }

        /// Calls `body` with the arrays of the activations.
        func withActivations(tokens: Int, _ body: (inout ck_activations) -> Void) {
            x.withUnsafeBufferPointer { x in
                q.withUnsafeMutableBufferPointer { q in
                    d.withUnsafeMutableBufferPointer { d in
                        s.withUnsafeMutableBufferPointer { s in
                            sums.withUnsafeMutableBufferPointer { sums in
                                unit.withUnsafeMutableBufferPointer { unit in
                                    factors.withUnsafeMutableBufferPointer { factors in
                                        weighted.withUnsafeMutableBufferPointer { weighted in
                                            starts.withUnsafeMutableBufferPointer { starts in
                                                var a = ck_activations(
                                                    count: Int32(tokens), columns: matrix.columns, x: x.baseAddress,
                                                    q: q.baseAddress, d: d.baseAddress, s: s.baseAddress, sums: sums.baseAddress,
                                                    unit: unit.isEmpty ? nil : unit.baseAddress, factors: factors.baseAddress,
                                                    weighted: weighted.baseAddress, starts: starts.baseAddress)
                                                body(&a)
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }

        deinit { packed.deallocate() }

        /// - Parameters:
        ///   - inPairs: Computes two panels together where the instruction set can.
        ///   - quantizer: The kernels that quantize the activations, if others.
        func product(
            _ kernels: UnsafePointer<ck_kernels>, tokens: Int, adding: Bool, inPairs: Bool = false,
            quantizer: UnsafePointer<ck_kernels>? = nil
        ) -> [Float] {
            let rows = Int(matrix.rows)
            var y = [Float](repeating: adding ? 1 : .nan, count: tokens * rows)
            var matrix = matrix
            withActivations(tokens: tokens) { a in
                if ck_layout_is_integer(matrix.layout) {
                    for row in 0..<tokens { (quantizer ?? kernels).pointee.quantize(&a, Int32(row)) }
                }
                let panels = (rows + 15) / 16
                var panel = 0
                while panel < panels {
                    if inPairs, panel + 1 < panels,
                        kernels.pointee.pair?(&matrix, Int32(panel), &a, &y, Int32(rows), adding) == true
                    {
                        panel += 2
                    } else {
                        kernels.pointee.panel(&matrix, Int32(panel), &a, &y, Int32(rows), adding)
                        panel += 1
                    }
                }
            }
            return y
        }
    }

    /// Each layout is at most 5 % larger than the tensor in the file.
    @Test(arguments: TensorType.allCases)
    func panelsAreAsSmallAsTheFile(type: TensorType) {
        let panel = Int(ck_panel_bytes(ck_type(rawValue: type.rawValue), 1024))
        let file = 16 * 1024 / type.blockElements * type.blockBytes
        #expect(panel >= file && Double(panel) <= 1.05 * Double(file), "\(type.name): \(panel) for \(file)")
    }

    /// FNV-1a of panels of 16 rows by 256 columns.
    static let digests: [String: UInt64] = [
        "F32": 0xC74B_E763_63DB_D925, "F16": 0x1F9C_1B99_81C2_7225, "Q4_0": 0x4D02_38C7_F382_78A5,
        "Q4_1": 0x75A8_881D_0AAB_50E5, "Q5_0": 0x648D_8ED6_03AB_FF39, "Q5_1": 0x8984_754D_96B0_D385,
        "Q8_0": 0xC499_F2BC_D68A_C8E5, "Q2_K": 0xF220_7FF9_7367_F991, "Q3_K": 0xE02E_5E14_F711_1C91,
        "Q4_K": 0xFEF5_38D0_12C5_830D, "Q5_K": 0x9A4C_03F7_9EA1_0C5F, "Q6_K": 0x2AEF_BEC0_6FD8_9ED7,
        "IQ4_NL": 0x4D02_38C7_F382_78A5, "IQ4_XS": 0x3CC4_EE16_CF4B_FD1F, "BF16": 0x1F9C_1B99_81C2_7225,
        "MXFP4": 0xDD4B_7BF6_9F0E_5045,
    ]

    @Test(
        "files with packed weights have another version when a layout changes: increase CK_PACKED_VERSION, then the digests here")
    func layoutsHaveAVersion() {
        #expect(CK_PACKED_VERSION == 7)
        for type in TensorType.allCases where type.isFast {
            let row = 256 / type.blockElements * type.blockBytes
            let data = (0..<16 * row).map { UInt8(truncatingIfNeeded: ($0 * $0) >> 3 + 7 * $0) }
            var panel = [UInt8](repeating: 0, count: ck_panel_bytes(type.kernelType, 256))
            var matrix = ck_matrix(
                rows: 16, columns: 256, layout: ck_type_layout(type.kernelType), type: type.kernelType, scale: 1,
                panel_bytes: panel.count, data: nil, rounds_activations: false, identity: 0)
            data.withUnsafeBufferPointer { data in
                ck_pack(&matrix, (0..<16).map { index in data.baseAddress.map { $0 + index * row } }, 16, &panel)
            }
            let digest = panel.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
            #expect(digest == Self.digests[type.name], "\(type): \(String(digest, radix: 16))")
        }
    }

    /// Two panels that are computed together have the same results, bit by bit, for every number of tokens.
    @Test(arguments: [TensorType.q8_0, .q4_K])
    func pairsEqualPanels(type: TensorType) throws {
        for set in Self.sets {
            let kernels = try #require(ck_kernels_for(set))
            for (rows, tokens) in [(32, 12), (45, 13), (33, 17), (64, 23), (80, 40)] {
                let fixture = Case(type, rows: rows, columns: 512, tokens: tokens)
                for adding in [false, true] {
                    let one = fixture.product(kernels, tokens: tokens, adding: adding)
                    let two = fixture.product(kernels, tokens: tokens, adding: adding, inPairs: true)
                    #expect(one.map(\.bitPattern) == two.map(\.bitPattern), "\(set) \(rows) × \(tokens)")
                }
            }
        }
    }

    @Test(
        arguments: TensorType.allCases,
        [(16, 256, 1), (17, 512, 5), (33, 256, 16), (48, 1280, 37), (18, 352, 6)])
    func productsEqualTheReference(type: TensorType, shape: (rows: Int, columns: Int, tokens: Int)) throws {
        guard shape.columns % type.blockElements == 0 else { return }
        let scalar = try #require(ck_kernels_for(CK_SCALAR))
        for set in Self.sets {
            let kernels = try #require(ck_kernels_for(set))
            for (adding, hasUnit) in [(false, false), (true, false), (false, true), (true, true)] {
                guard !hasUnit || shape.columns % 256 == 0 else { continue }
                let test = Case(
                    type, rows: shape.rows, columns: shape.columns, tokens: shape.tokens, hasUnit: hasUnit)
                // With a common unit, a scale between two of its multiples may be rounded to either: see
                // `scalesWithACommonUnit`.
                let expected = test.product(
                    scalar, tokens: shape.tokens, adding: adding, quantizer: hasUnit ? kernels : nil)
                let found = test.product(kernels, tokens: shape.tokens, adding: adding)
                // The integer parts are equal; only the order of float additions differs.
                for (a, b) in zip(expected, found) { #expect(abs(a - b) <= 1e-4 * max(1, abs(a)), "\(set) \(type)") }
            }
        }
    }

    /// The nearest value with eight significant bits, ties to even.
    static func bfloat(_ x: Float) -> Float {
        Float(bitPattern: (x.bitPattern + 0x7FFF + (x.bitPattern >> 16 & 1)) & 0xFFFF_0000)
    }

    /// Where activations may be rounded, they are rounded to the nearest, or used as they are.
    @Test func bfloatActivationsAreRoundedToTheNearest() throws {
        let scalar = try #require(ck_kernels_for(CK_SCALAR))
        for set in Self.sets {
            let kernels = try #require(ck_kernels_for(set))
            func isClose(_ a: [Float], _ b: [Float]) -> Bool { zip(a, b).allSatisfy { abs($0 - $1) <= 1e-4 * max(1, abs($0)) } }
            for adding in [false, true] {
                let test = Case(.bf16, rows: 37, columns: 544, tokens: 17, roundsActivations: true)
                let exact = test.product(scalar, tokens: 17, adding: adding)
                let found = test.product(kernels, tokens: 17, adding: adding)
                test.x = test.x.map(Self.bfloat)
                let rounded = test.product(scalar, tokens: 17, adding: adding)
                #expect(isClose(exact, found) || isClose(rounded, found), "\(set)")
                #expect(!isClose(exact, rounded))
            }
        }
    }

    /// Whatever else is in the batch, bit by bit.
    @Test(arguments: TensorType.allCases) func aRowHasTheSameProductInEveryBatch(type: TensorType) throws {
        for set in Self.sets {
            let kernels = try #require(ck_kernels_for(set))
            for hasUnit in [false, true] {
                let test = Case(type, rows: 45, columns: 768, tokens: 70, roundsActivations: true, hasUnit: hasUnit)
                let all = test.product(kernels, tokens: 70, adding: false, inPairs: true).map(\.bitPattern)
                for tokens in [1, 2, 3, 4, 5, 7, 12, 13, 20, 24, 31, 64, 65] {
                    let some = test.product(kernels, tokens: tokens, adding: false, inPairs: true).map(\.bitPattern)
                    #expect(some == Array(all[..<some.count]), "\(set), \(tokens) of 70")
                }
            }
        }
    }

    /// Activations that are hard to quantize: outliers, zeros, one sign only, equal magnitudes, tiny and huge numbers.
    static let rows: [(name: String, value: @Sendable (Int) -> Float)] = [
        ("ordinary", { sinf(Float($0 * $0)) }), ("outlier", { $0 % 256 == 17 ? 900 : cosf(Float($0)) }),
        ("zeros", { $0 % 64 < 32 ? 0 : 1 }), ("one sign", { _ in 3 }), ("negative", { Float($0 % 7) - 9 }),
        ("magnitudes", { $0 % 3 == 0 ? -5 : 5 }), ("tiny", { Float($0 % 5) * 1e-36 }),
        ("denormal", { Float($0 % 3) * 12 * Float.leastNonzeroMagnitude }),
        ("huge", { Float($0 % 11 - 5) * 1e34 }), ("nothing", { _ in 0 }),
    ]

    /// With a common unit: codes reproduce the activations, every sum that products add fits into its integers, and all
    /// instruction sets agree.
    @Test func scalesWithACommonUnit() throws {
        let columns = 512
        for set in [CK_SCALAR] + Self.sets {
            let kernels = try #require(ck_kernels_for(set))
            for (name, value) in Self.rows {
                let test = Case(.q6_K, rows: 16, columns: columns, tokens: 1, hasUnit: true)
                test.x = (0..<columns).map(value)
                test.withActivations(tokens: 1) { kernels.pointee.quantize(&$0, 0) }
                for block in 0..<columns / 256 {
                    let unit = test.unit[block]
                    var total = 0
                    for group in block * 8..<block * 8 + 8 {
                        let columns = group * 32..<group * 32 + 32
                        let codes = columns.map { Int(test.q[$0]) }
                        let factor = Int(test.factors[group]), label = "\(set) \(name) \(group)"
                        #expect((0...127).contains(factor) && codes.allSatisfy { abs($0) <= 127 }, "\(label)")
                        #expect(test.d[group] == unit * Float(factor) || factor == 0, "\(label)")
                        let (low, high) = (codes[..<16].reduce(0) { $0 + abs($1) }, codes[16...].reduce(0) { $0 + abs($1) })
                        #expect(max(low, high) <= 1023, "\(label)")
                        total += (low + high) * factor
                        let sums = [codes[..<16].reduce(0, +), codes[16...].reduce(0, +)]
                        for half in 0..<2 {
                            #expect(Int(test.sums[2 * group + half]) == -sums[half], "\(label)")
                            #expect(Int(test.starts[2 * group + half]) == -32 * sums[half], "\(label)")
                        }
                        let weighted = Int(test.weighted[group])
                        #expect(abs(8 * weighted - factor * (sums[0] + sums[1])) <= 4, "\(label)")
                        guard unit > 4e-37 else { continue }
                        for column in columns {
                            let error = abs(test.x[column] - test.d[group] * Float(test.q[column]))
                            #expect(error <= test.d[group] * 0.501, "\(label): \(test.x[column])")
                        }
                    }
                    #expect(total < 1 << 19, "\(set) \(name)")
                }
            }
        }
    }

    /// Activations that are not numbers, or infinite, have products that are not numbers, in any number of tokens.
    @Test(arguments: [TensorType.q4_K, .q5_K, .q6_K], [Float.nan, .infinity, -.infinity])
    func activationsThatAreNotNumbers(type: TensorType, value: Float) throws {
        for set in [CK_SCALAR] + Self.sets {
            let kernels = try #require(ck_kernels_for(set))
            let test = Case(type, rows: 16, columns: 512, tokens: 20, hasUnit: true)
            test.x[512 * 3 + 300] = value
            let found = test.product(kernels, tokens: 20, adding: false)
            for token in 0..<20 {
                #expect(found[16 * token..<16 * token + 16].allSatisfy { $0.isFinite } == (token != 3), "\(set) \(token)")
            }
        }
    }

    /// Compares the scalar product with values decoded independently of the packing.
    @Test(arguments: TensorType.allCases)
    func scalarProductEqualsDequantizedProduct(type: TensorType) throws {
        let (rows, columns) = (19, 512)
        let test = Case(type, rows: rows, columns: columns, tokens: 1)
        var weights = [Float](repeating: 0, count: rows * columns)
        ck_dequantize(ck_type(rawValue: type.rawValue), test.data, rows * columns, &weights)
        let found = test.product(try #require(ck_kernels_for(CK_SCALAR)), tokens: 1, adding: false)
        for row in 0..<rows {
            let exact = (0..<columns).reduce(0.0) { $0 + Double(weights[row * columns + $1]) * Double(test.x[$1]) }
            let size = (0..<columns).reduce(0.0) { $0 + abs(Double(weights[row * columns + $1]) * Double(test.x[$1])) }
            // Rounding an activation to 8 bits changes it by at most 1/254 of the maximum of its block. The errors
            // are random and partly cancel, so the tolerance is less than the worst case.
            let tolerance = ck_layout_is_integer(ck_type_layout(type.kernelType)) ? size / 254 : size * 1e-6
            #expect(abs(Double(found[row]) - exact) <= tolerance + 1e-6)
        }
    }

    @Test(arguments: TensorType.allCases)
    func rowsOfPackedMatrices(type: TensorType) {
        let (rows, columns) = (21, 256)
        let test = Case(type, rows: rows, columns: columns, tokens: 1)
        var weights = [Float](repeating: 0, count: rows * columns)
        ck_dequantize(ck_type(rawValue: type.rawValue), test.data, rows * columns, &weights)
        var matrix = test.matrix
        var row = [Float](repeating: 0, count: columns)
        for index in [0, 7, 16, 20] {
            ck_matrix_row(&matrix, Int32(index), &row)
            for column in 0..<columns {
                #expect(abs(row[column] - weights[index * columns + column]) <= 1e-6)
            }
        }
    }

    @Test func halfPrecisionRoundTrip() {
        for bits in UInt16.min ... .max where bits & 0x7C00 != 0x7C00 {
            #expect(ck_float_to_half(ck_half_to_float(bits)) == bits)
        }
        #expect(ck_float_to_half(65_520) == 0x7C00)
        #expect(ck_float_to_half(1e-9) == 0)
        #expect(ck_half_to_float(0x7C00) == .infinity)
    }

    @Test func elementwiseKernels() throws {
        let scalar = try #require(ck_kernels_for(CK_SCALAR)).pointee
        var random = SeededGenerator(3)
        for set in Self.sets {
            let kernels = try #require(ck_kernels_for(set)).pointee
            for n in [1, 7, 16, 33, 576] {
                let x = (0..<n).map { _ in random.uniform(-20...20) }
                let w = (0..<n).map { _ in random.uniform(-1...1) }
                var (a, b) = ([Float](repeating: 0, count: n), [Float](repeating: 0, count: n))
                scalar.rmsnorm(x, w, 1e-5, Int32(n), &a)
                kernels.rmsnorm(x, w, 1e-5, Int32(n), &b)
                for (p, q) in zip(a, b) { #expect(abs(p - q) <= 1e-5) }
                var (g, h) = (x, x)
                scalar.add(&g, w, 0.5, Int32(n))
                kernels.add(&h, w, 0.5, Int32(n))
                for (index, (p, q)) in zip(g, h).enumerated() {
                    #expect(abs(p - x[index] - 0.5 * w[index]) <= 1e-5 && abs(p - q) <= 1e-5)
                }
                for kind in [CK_SILU, CK_GELU, CK_RELU_SQUARED, CK_SWIGLU_OAI] {
                    (g, h) = (x, x)
                    scalar.activate(kind, &g, w, Int32(n))
                    kernels.activate(kind, &h, w, Int32(n))
                    for (p, q) in zip(g, h) { #expect(abs(p - q) <= 1e-4 * max(1, abs(p))) }
                }
                #expect(scalar.argmax(x, Int32(n)) == kernels.argmax(x, Int32(n)))
                let most = x.max() ?? 0
                let (s, t) = (scalar.exp_shifted(x, most, 0.5, Int32(n), &a), kernels.exp_shifted(x, most, 0.5, Int32(n), &b))
                #expect(abs(s - t) <= 1e-4 * s)
            }
        }
    }

    /// Every chunk runs exactly once, with many or few chunks and with regions in immediate succession.
    @Test(arguments: [1, 2, 3, 8])
    func poolRunsEveryChunkOnce(threads: Int) throws {
        let pool = try #require(ck_pool_create(Int32(threads)))
        defer { ck_pool_destroy(pool) }
        for round in 0..<2003 {
            // The last rounds have more chunks than one region of the pool.
            let chunks = round < 2000 ? [0, 1, 2, 7, 64, 1000][round % 6] : [65_535, 65_536, 200_001][round - 2000]
            var counts = [UInt8](repeating: 0, count: max(1, chunks))
            counts.withUnsafeMutableBufferPointer { buffer in
                ck_pool_run(
                    pool, Int32(chunks),
                    { context, chunk in
                        context?.assumingMemoryBound(to: UInt8.self)[Int(chunk)] += 1
                    }, buffer.baseAddress)
            }
            #expect(counts.allSatisfy { $0 == (chunks == 0 ? 0 : 1) })
        }
    }

    /// Models that share a pool call it at the same time.
    @Test(arguments: [1, 2, 4])
    func poolTakesSeveralCallers(threads: Int) throws {
        let pool = try #require(ck_pool_create(Int32(threads)))
        defer { ck_pool_destroy(pool) }
        nonisolated(unsafe) let shared = pool
        let chunks = 50
        DispatchQueue.concurrentPerform(iterations: 8) { caller in
            for _ in 0..<200 {
                var values = [Int32](repeating: 0, count: chunks)
                values.withUnsafeMutableBufferPointer { buffer in
                    ck_pool_run(
                        shared, Int32(chunks),
                        { context, chunk in context?.assumingMemoryBound(to: Int32.self)[Int(chunk)] += chunk },
                        buffer.baseAddress)
                }
                #expect(values == (0..<Int32(chunks)).map { $0 })
            }
        }
    }
}
