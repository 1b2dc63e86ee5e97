internal import CKernels
internal import Synchronization

/// Copies a file's tensors sequentially into the memory that kernels read: matrices as panels (see `ck_layout`),
/// vectors as binary32.
///
/// All tensors are requested twice: first without memory, to measure the size, then to pack them. Both passes must
/// request the tensors in the same order, so that the offsets are the same. If the memory is a mapped cache file of an
/// earlier run, nothing is copied.
struct TensorPacker {
    let file: GGUFFile
    let adapter: AdapterFile?
    let pool: WorkerPool
    /// The destination memory; nil while measuring.
    private let base: UnsafeMutableRawPointer?
    /// Whether the memory already contains the packed tensors.
    private let isPacked: Bool
    /// Asked before each tensor is packed.
    private let isCancelled: () -> Bool
    /// The size in bytes of the tensors requested so far.
    private(set) var bytes = 0
    /// Whether products with BF16 matrices may round activations to bfloat16 too.
    var roundsActivations = false
    /// Whether any matrix has an integer layout, for which activations must be quantised.
    private(set) var hasIntegerMatrices = false
    /// Whether any matrix has integer scales for 256 columns, for which activations can have a common unit.
    private(set) var hasBlockScales = false
    private var used: Set<String> = []
    /// Where the matrices come from that were requested so far, by their `identity`: equal files have equal identities.
    private(set) var origins: [MatrixOrigin] = []

    init(
        file: GGUFFile, adapter: AdapterFile?, pool: WorkerPool, base: UnsafeMutableRawPointer? = nil, isPacked: Bool = false,
        isCancelled: @escaping () -> Bool = { false }
    ) {
        self.file = file
        self.adapter = adapter
        self.pool = pool
        self.base = base
        self.isPacked = isPacked
        self.isCancelled = isCancelled
    }

    /// Packs a matrix, which must be in the file.
    ///
    /// - Parameters:
    ///   - rows: number of rows of the result.
    ///   - selection: the rows of the tensor to take, in order; nil for all.
    ///   - total: number of rows of the tensor; nil for `rows`.
    ///   - slice: index of the matrix in a tensor with three dimensions, which contains `slices` matrices.
    ///   - isTable: whether only single rows are read: they stay together in memory, while products read 16 rows at once.
    mutating func matrix(
        _ name: String, rows: Int, columns: Int, selection: [Range<Int>]? = nil, of total: Int? = nil, slice: Int = 0,
        slices: Int? = nil, isTable: Bool = false
    ) throws(ModelError) -> Matrix {
        guard let tensor = file.tensors[name] else { throw .missing("tensor \(name)") }
        let total = total ?? rows
        let expected = slices.map { [columns, total, $0] } ?? [columns, total]
        // Some files omit trailing dimensions of size 1.
        let shape = tensor.shape + Array(repeating: 1, count: max(0, expected.count - tensor.shape.count))
        guard shape == expected else {
            throw .invalid(field: "the shape of tensor \(name)", reason: "is \(tensor.shape), not \(expected)")
        }
        used.insert(name)
        let type = Self.packedType(tensor, adapter)
        var panel = ck_panel_bytes(type.kernelType, Int32(columns))
        guard panel > 0 else {
            throw .invalid(field: "the shape of tensor \(name)", reason: "has rows of \(columns), not whole \(type.name) blocks")
        }
        let layout = isTable ? CK_ROWS : ck_type_layout(type.kernelType)
        if isTable { panel = 16 * (columns / type.blockElements * type.blockBytes) }
        let size = (rows + 15) / 16 * panel
        let target = claim(size)
        if ck_layout_is_integer(layout) { hasIntegerMatrices = true }
        if ck_layout_sums_blocks(layout) { hasBlockScales = true }
        let matrix = Matrix(
            rows: Int32(rows), columns: Int32(columns), layout: layout, type: type.kernelType,
            scale: try scale(of: name, slice: slice, slices: slices ?? 1), panel_bytes: panel,
            data: target.map { UnsafePointer($0.assumingMemoryBound(to: UInt8.self)) }, rounds_activations: roundsActivations,
            identity: Int32(origins.count))
        let ranges = selection ?? [0..<rows]
        origins.append(MatrixOrigin(name: name, rows: ranges, slice: slices.map { (slice, $0) }))
        guard let target, !isPacked else { return matrix }
        if let merged = try merged(tensor, rows: total, columns: columns) {
            try merged.withUnsafeBufferPointer { bytes throws(ModelError) in
                try pack(.memory(bytes.baseAddress), matrix, ranges, into: target)
            }
        } else {
            let rowBytes = columns / type.blockElements * type.blockBytes
            let offset = tensor.range.lowerBound + slice * total * rowBytes
            try pack(.file(file.source(of: tensor), offset: offset), matrix, ranges, into: target)
        }
        return matrix
    }

    mutating func matrixIfPresent(_ name: String, rows: Int, columns: Int) throws(ModelError) -> Matrix? {
        file.tensors[name] == nil ? nil : try matrix(name, rows: rows, columns: columns)
    }

    /// Packs a tensor of `count` numbers with any number of dimensions, which must be in the file.
    ///
    /// - Parameter total: the number of elements of the tensor, of which the first `count` are packed; nil for `count`.
    mutating func vector(_ name: String, count: Int, of total: Int? = nil) throws(ModelError) -> UnsafePointer<Float> {
        guard let vector = try vectorIfPresent(name, count: count, of: total) else { throw .missing("tensor \(name)") }
        return vector
    }

    /// Packs the first row of a matrix as a vector.
    mutating func firstRow(_ name: String, columns: Int) throws(ModelError) -> UnsafePointer<Float> {
        guard let tensor = file.tensors[name] else { throw .missing("tensor \(name)") }
        guard tensor.shape.first == columns else {
            throw .invalid(field: "the shape of tensor \(name)", reason: "is \(tensor.shape), not rows of \(columns)")
        }
        return try vector(name, count: columns, of: tensor.elementCount)
    }

    /// Packs a vector multiplied by a factor.
    mutating func vector(_ name: String, count: Int, times factor: Float) throws(ModelError) -> UnsafePointer<Float> {
        let vector = try vector(name, count: count)
        if base != nil, !isPacked {
            let values = UnsafeMutablePointer(mutating: vector)
            for index in 0..<count { values[index] *= factor }
        }
        return vector
    }

    /// Packs some rows of a matrix transposed, in binary32.
    mutating func transposed(_ name: String, rows: Range<Int>, columns: Int, of total: Int) throws(ModelError) -> Matrix {
        guard let tensor = file.tensors[name] else { throw .missing("tensor \(name)") }
        guard tensor.shape == [columns, total] else {
            throw .invalid(field: "the shape of tensor \(name)", reason: "is \(tensor.shape), not \([columns, total])")
        }
        used.insert(name)
        let panel = ck_panel_bytes(CK_TYPE_F32, Int32(rows.count))
        let target = claim((columns + 15) / 16 * panel)
        let matrix = Matrix(
            rows: Int32(columns), columns: Int32(rows.count), layout: CK_F32, type: CK_TYPE_F32, scale: 1, panel_bytes: panel,
            data: target.map { UnsafePointer($0.assumingMemoryBound(to: UInt8.self)) }, rounds_activations: false,
            identity: Int32(origins.count))
        origins.append(MatrixOrigin(name: name, rows: [rows], slice: nil))
        guard let target, !isPacked else { return matrix }
        let rowBytes = columns / tensor.type.blockElements * tensor.type.blockBytes
        let source = try file.bytes(of: tensor, in: rows.lowerBound * rowBytes..<rows.upperBound * rowBytes)
        let values = tensor.type.decode(source, count: rows.count * columns)
        var turned = [Float](repeating: 0, count: values.count)
        for row in 0..<rows.count {
            for column in 0..<columns { turned[column * rows.count + row] = values[row * columns + column] }
        }
        try turned.withUnsafeBufferPointer { values throws(ModelError) in
            let bytes = UnsafeRawPointer(values.baseAddress)?.assumingMemoryBound(to: UInt8.self)
            try pack(.memory(bytes), matrix, [0..<columns], into: target)
        }
        return matrix
    }

    mutating func vectorIfPresent(
        _ name: String, count: Int, of total: Int? = nil
    ) throws(ModelError) -> UnsafePointer<Float>? {
        guard let tensor = file.tensors[name] else { return nil }
        guard tensor.elementCount == total ?? count else {
            throw .invalid(field: "the shape of tensor \(name)", reason: "is \(tensor.shape), not \([count])")
        }
        used.insert(name)
        guard let target = claim(count * 4)?.assumingMemoryBound(to: Float.self) else {
            return UnsafePointer(UnsafeMutablePointer<Float>.measuring)
        }
        if !isPacked {
            let bytes = count / tensor.type.blockElements * tensor.type.blockBytes
            ck_dequantize(tensor.type.kernelType, try file.bytes(of: tensor, in: 0..<bytes), count, target)
        }
        return UnsafePointer(target)
    }

    /// The numbers of a small tensor, read directly from the file; nil if the file does not contain it.
    mutating func values(_ name: String) throws(ModelError) -> [Float]? {
        guard let tensor = file.tensors[name] else { return nil }
        used.insert(name)
        return try file.values(of: tensor)
    }

    /// Throws if the file contains a tensor that has not been requested, because ignoring it would change the model's
    /// results.
    func checkAllUsed(layers: Int, architecture: String) throws(ModelError) {
        for name in file.tensorNames where !used.contains(name) {
            // Parts of a file that text generation does not use: vision, audio, multi-token prediction.
            if ["v.", "mm.", "a.", "mtp"].contains(where: name.hasPrefix) || name.contains("nextn.") { continue }
            let parts = name.split(separator: ".")
            if parts.first == "blk", parts.count > 1, let layer = Int(parts[1]), layer >= layers { continue }
            // Rotary factors that this shape does not use, and activation scales, because activations are quantised
            // dynamically.
            if parts.contains(where: { $0.hasPrefix("rope_f") }) || name.hasSuffix("input_scale") { continue }
            throw .unsupported(field: "tensor", value: name, supported: "the tensors of the \(architecture) architecture")
        }
    }

    /// Marks a tensor as used that may be in the file but is not needed.
    mutating func skip(_ name: String) { used.insert(name) }

    // MARK: - Private

    /// Reserves memory aligned to a cache line; nil while measuring.
    private mutating func claim(_ size: Int) -> UnsafeMutableRawPointer? {
        defer { bytes += (size + 63) / 64 * 64 }
        return base.map { $0 + bytes }
    }

    /// The type that a tensor is packed from. With an adapter merged, quantised matrices become Q8_0, others (and those
    /// whose columns are not a multiple of 32) F32.
    private static func packedType(_ tensor: GGUFTensor, _ adapter: AdapterFile?) -> TensorType {
        guard let adapter, adapter.targets.contains(tensor.name) else { return tensor.type }
        return !tensor.type.isQuantized || tensor.shape[0] % 32 != 0 ? .f32 : .q8_0
    }

    /// The factor of a matrix, which some files store in a separate tensor: one for all slices or one for each; else 1.
    private mutating func scale(of name: String, slice: Int, slices: Int) throws(ModelError) -> Float {
        guard name.hasSuffix(".weight") else { return 1 }
        let key = name.dropLast(6) + "scale"
        guard let tensor = file.tensors[String(key)], [1, slices].contains(tensor.elementCount) else { return 1 }
        used.insert(String(key))
        let values = try file.values(of: tensor)
        return values[values.count == 1 ? 0 : slice]
    }

    /// The whole tensor with the adapter merged, in the packed type; nil if no adapter changes it.
    private func merged(_ tensor: GGUFTensor, rows: Int, columns: Int) throws(ModelError) -> [UInt8]? {
        guard let adapter, adapter.targets.contains(tensor.name) else { return nil }
        var values = try file.values(of: tensor)
        try adapter.merge(into: &values, of: tensor.name, rows: rows, columns: columns)
        return Self.packedType(tensor, adapter).encode(values)
    }

    private func pack(
        _ source: PackSource, _ matrix: Matrix, _ ranges: [Range<Int>], into target: UnsafeMutableRawPointer
    ) throws(ModelError) {
        if isCancelled() { throw .cancelled }
        let panels = (Int(matrix.rows) + 15) / 16
        let type = matrix.type
        let rowBytes = Int(matrix.columns / ck_type_block(type)) * Int(ck_type_bytes(type))
        let failure = PackFailure()
        ranges.withUnsafeBufferPointer { ranges in
            var job = PackJob(
                source: source, rowBytes: rowBytes, matrix: matrix, ranges: ranges,
                destination: target.assumingMemoryBound(to: UInt8.self),
                panelsPerChunk: max(1, min(64, panels / (pool.threads * 4))), failure: failure)
            let chunks = Int32((panels + job.panelsPerChunk - 1) / job.panelsPerChunk)
            withUnsafeMutablePointer(to: &job) { job in
                ck_pool_run(
                    pool.handle, chunks,
                    { context, chunk in context?.assumingMemoryBound(to: PackJob.self).pointee.run(Int(chunk)) }, job)
            }
        }
        if let error = failure.error.withLock({ $0 }) { throw error }
    }
}

/// Where the rows of a matrix are before they are packed.
private enum PackSource {
    case memory(UnsafePointer<UInt8>?)
    case file(SourceFile, offset: Int)
}

/// The error of a worker thread, which cannot throw.
private final class PackFailure: Sendable {
    let error = Mutex<ModelError?>(nil)
}

/// The parameters of packing; stored on the caller's stack while the pool runs.
private struct PackJob {
    let source: PackSource
    let rowBytes: Int
    let matrix: Matrix
    let ranges: UnsafeBufferPointer<Range<Int>>
    let destination: UnsafeMutablePointer<UInt8>
    let panelsPerChunk: Int
    let failure: PackFailure

    /// The index of the tensor's row that becomes a row of the matrix.
    private func sourceRow(_ row: Int) -> Int {
        var left = row
        for range in ranges {
            if left < range.count { return range.lowerBound + left }
            left -= range.count
        }
        return 0
    }

    /// Rows are read from a file in blocks of about this size: large enough that system calls do not matter.
    private static let blockBytes = 1 << 20

    func run(_ chunk: Int) {
        let first = chunk * panelsPerChunk * 16
        let rows = first..<min(first + panelsPerChunk * 16, Int(matrix.rows))
        switch source {
        case .memory(nil): break
        case .memory(let start?): pack(rows) { start + sourceRow($0) * rowBytes }
        case .file(let file, let offset):
            let blockRows = max(1, min(panelsPerChunk, Self.blockBytes / (16 * rowBytes))) * 16
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: blockRows * rowBytes, alignment: 64)
            defer { buffer.deallocate() }
            for first in stride(from: rows.lowerBound, to: rows.upperBound, by: blockRows) {
                let block = first..<min(first + blockRows, rows.upperBound)
                do { try read(block, from: file, at: offset, into: buffer) } catch {
                    failure.error.withLock { $0 = error }
                    return
                }
                pack(block) { row in
                    UnsafePointer(buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)).map { $0 + (row - first) * rowBytes }
                }
            }
        }
    }

    /// Reads rows of the matrix in as few parts as the file's order permits.
    private func read(
        _ rows: Range<Int>, from file: SourceFile, at offset: Int, into buffer: UnsafeMutableRawBufferPointer
    ) throws(ModelError) {
        var row = rows.lowerBound
        while row < rows.upperBound {
            let position = sourceRow(row)
            var next = row + 1
            while next < rows.upperBound, sourceRow(next) == position + next - row { next += 1 }
            let target = (row - rows.lowerBound) * rowBytes..<(next - rows.lowerBound) * rowBytes
            try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[target]), at: offset + position * rowBytes)
            row = next
        }
    }

    /// Packs the panels of some rows, which are at the given addresses.
    private func pack(_ rows: Range<Int>, _ address: (Int) -> UnsafePointer<UInt8>?) {
        var matrix = matrix
        for first in stride(from: rows.lowerBound, to: rows.upperBound, by: 16) {
            let count = min(16, rows.upperBound - first)
            withUnsafeTemporaryAllocation(of: UnsafePointer<UInt8>?.self, capacity: 16) { pointers in
                for row in 0..<count { pointers[row] = address(first + row) }
                ck_pack(&matrix, pointers.baseAddress, Int32(count), destination + first / 16 * matrix.panel_bytes)
            }
        }
    }
}

/// Where a packed matrix comes from: rows of a tensor of the file.
struct MatrixOrigin: Sendable {
    let name: String
    let rows: [Range<Int>]
    /// For a tensor with three dimensions, the index of the matrix and the number of matrices.
    let slice: (index: Int, count: Int)?

    var rowCount: Int { rows.reduce(0) { $0 + $1.count } }

    /// Whether it is the matrix of one of the experts of a layer.
    var isOfExpert: Bool { slice != nil && name.hasBytes(of: "_exps.") }

    /// Whether a low-rank adapter may change the matrix while the model runs: those that are multiplied with the activations of a whole
    /// batch.
    var isAdaptable: Bool {
        // Older files have a tensor for each expert, such as blk.0.ffn_up.7.weight.
        slice == nil && name.split(separator: ".").count <= 4 && TensorName(of: name)?.entry.isMerged != true
    }
}
