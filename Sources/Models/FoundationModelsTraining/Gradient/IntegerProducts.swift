internal import CKernels
internal import Inference

/// A frozen matrix and its transpose, packed as inference packs matrices, for products with activations and gradients of 8 bits.
///
/// Products with frozen weights are most of the work of training an adapter. Operands of 8 bits with a scale for every 32 numbers are enough
/// for outputs and for gradients of inputs (SwitchBack, arXiv:2304.13013); the factors of the adapter and their gradients stay numbers of 32
/// bits. The forward pass then computes what inference computes with the adapter.
struct IntegerMatrix: @unchecked Sendable {  // Nothing is written after `init`.
    let forward: ck_matrix
    /// The transpose, as Q8_0.
    let backward: ck_matrix
    private let memory: Memory

    /// The bytes of both; nil for a matrix that has no such products.
    static func bytes(_ type: ck_type, rows: Int, columns: Int) -> Int? {
        let layouts = [ck_type_layout(type), ck_type_layout(CK_TYPE_Q8_0)]
        let forward = ck_panel_bytes(type, Int32(columns))
        guard layouts.allSatisfy(ck_layout_is_integer), forward > 0, rows % 32 == 0, columns % 32 == 0 else { return nil }
        return (rows + 15) / 16 * forward + (columns + 15) / 16 * ck_panel_bytes(CK_TYPE_Q8_0, Int32(rows))
    }

    init?(_ matrix: FrozenMatrix, pool: WorkerPool) throws(ModelError) {
        guard let bytes = Self.bytes(matrix.type, rows: matrix.rows, columns: matrix.columns) else { return nil }
        let memory = try Memory(bytes: bytes, hugePages: true)
        let base = memory.base.assumingMemoryBound(to: UInt8.self)
        func described(_ type: ck_type, rows: Int, columns: Int, at data: UnsafeMutablePointer<UInt8>) -> ck_matrix {
            ck_matrix(
                rows: Int32(rows), columns: Int32(columns), layout: ck_type_layout(type), type: type, scale: 1,
                panel_bytes: ck_panel_bytes(type, Int32(columns)), data: data, rounds_activations: false, identity: 0)
        }
        var forward = described(matrix.type, rows: matrix.rows, columns: matrix.columns, at: base)
        let size = (matrix.rows + 15) / 16 * forward.panel_bytes
        var backward = described(CK_TYPE_Q8_0, rows: matrix.columns, columns: matrix.rows, at: base + size)
        ck_training_pack_panels(pool.handle, matrix.data, matrix.rowBytes, &forward, base)
        let scratch = try Memory(bytes: matrix.columns * matrix.rows / 32 * Int(ck_type_bytes(CK_TYPE_Q8_0)))
        ck_training_pack_transposed(
            pool.handle, matrix.data, matrix.rowBytes, matrix.type, &backward, base + size,
            scratch.base.assumingMemoryBound(to: UInt8.self))
        (self.forward, self.backward, self.memory) = (forward, backward, memory)
    }
}

/// Rows of numbers with their codes of 8 bits.
struct QuantizedRows {
    private let memory: Memory
    private let hasUnits: Bool
    private let elements: Int

    /// - Parameter elements: the largest number of rows times columns.
    init(elements: Int, pool: WorkerPool) throws(ModelError) {
        self.elements = elements
        hasUnits = pool.kernels.pointee.sums_blocks
        memory = try Memory(bytes: Self.bytes(elements: elements))
    }

    /// The numbers, their codes, scales and sums (see `ck_activations`).
    static func bytes(elements: Int) -> Int {
        elements * 4 + elements + elements / 32 * (4 + 4 + 8 + 2 + 2 + 8) + elements / 256 * 4 + 16 * 64
    }

    /// Quantizes rows, which are `stride` apart.
    func quantize(
        _ x: UnsafePointer<Float>, stride: Int, rows: Int, columns: Int, pool: WorkerPool
    ) -> ck_activations {
        var offset = 0
        func place<Value>(_ count: Int, _ type: Value.Type) -> UnsafeMutablePointer<Value> {
            defer { offset += (count * MemoryLayout<Value>.stride + 63) / 64 * 64 }
            return (memory.base + offset).assumingMemoryBound(to: type)
        }
        let copy = place(elements, Float.self)
        let groups = rows * columns / 32
        var activations = ck_activations()
        (activations.count, activations.columns) = (Int32(rows), Int32(columns))
        activations.q = place(elements, Int8.self)
        activations.d = place(groups, Float.self)
        activations.s = place(groups, Float.self)
        activations.sums = place(2 * groups, Int32.self)
        if hasUnits, columns % 256 == 0 {
            activations.unit = place(groups / 8, Float.self)
            activations.factors = place(groups, Int16.self)
            activations.weighted = place(groups, Int16.self)
            activations.starts = place(2 * groups, Int32.self)
        }
        if stride == columns {
            activations.x = x
        } else {
            ck_copy_rows(x, Int32(stride), copy, Int32(columns), Int32(rows), Int32(columns))
            activations.x = UnsafePointer(copy)
        }
        ck_quantize(pool.handle, pool.kernels, &activations)
        return activations
    }
}
