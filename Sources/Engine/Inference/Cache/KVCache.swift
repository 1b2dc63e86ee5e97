internal import Foundation

/// The format of keys and values in a cache.
package enum CacheFormat: String, Sendable, Hashable {
    case binary16
    /// 8 bits for each element, and a factor for each key and value of a head: half the memory, with a small loss of
    /// precision.
    case int8
}

/// The KV cache of one sequence, with its tokens: keys and values of attention layers in a ``CacheFormat``, in pages that
/// sequences with equal beginnings share, and states of recurrent layers in binary32.
///
/// Keys and values can be truncated at any position, recurrent states only at a checkpoint. Not thread-safe: only one
/// engine call at a time may use a sequence.
package final class KVCache: SequenceMemory {
    package private(set) var rows = InputRows()
    /// The token of each row.
    package var tokens: [TokenID] { rows.ids }
    /// The maximum number of positions.
    package let capacity: Int
    package let isRecurrent: Bool
    /// Whether positions are rotated with the factors for long contexts. Such keys differ from others.
    let usesLongFactors: Bool
    let format: CacheFormat
    let adapter: LowRankAdapter?
    var registration: Int?
    var domain: UInt64 = 0
    /// Scratch memory for attention that is split over the positions of this cache.
    let partial: UnsafeMutablePointer<Float>

    /// The pages up to the last token, and perhaps more. Their memory is in `pageTable`, for the kernels.
    private(set) var pages: [CachePage] = []
    let pageTable: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>
    let pageBytes: Int
    /// Scratch memory.
    private let memory: Memory
    private let layers: [Layer]
    let stateBytes: Int
    /// The recurrent states; nil before the first token.
    private var recurrent: RecurrentStates?
    private var checkpoints: [Checkpoint] = []
    /// Room for the next checkpoint.
    private var checkpointRoom: MemoryReservation?

    /// Sizes and offsets of one layer. A layer that shares the keys and values of another layer has the offsets of that
    /// layer. Keys and values are in pages, states in `recurrent`.
    private struct Layer {
        var kvHeads = 0, keyDimension = 0, valueStride = 0
        var keyOffset = 0, valueOffset = 0
        var ownsKeys = false
        var convolutionOffset = 0, stateOffset = 0
    }

    fileprivate struct RecurrentStates {
        let memory: Memory
        let room: MemoryReservation?
    }

    /// A copy of all recurrent states after the first `position` tokens.
    fileprivate struct Checkpoint {
        var position: Int
        var states: [UInt8]
        let room: MemoryReservation?
    }

    /// The maximum number of checkpoints. Each uses as much memory as all recurrent states.
    static let maximumCheckpoints = 3

    /// - Parameter sharesLayers: all layers use the same memory, which is enough for texts that are processed in one pass.
    package init(
        shape: ModelShape, capacity: Int, format: CacheFormat = .binary16, adapter: LowRankAdapter? = nil,
        sharesLayers: Bool = false
    ) throws(ModelError) {
        (self.format, self.adapter) = (format, adapter)
        let elementBytes = format == .int8 ? 1 : 2
        // Keys are stored in blocks of 16 positions.
        let capacity = (max(1, capacity) + 15) / 16 * 16
        self.capacity = capacity
        isRecurrent = shape.isRecurrent
        usesLongFactors = shape.rotaries.contains { $0.longFactors != nil && capacity > $0.originalContext }
        var page = MemoryLayoutBuilder()
        var layers: [Layer] = []
        var partialFloats = 0
        /// Elements of 8 bits are followed by their factors.
        func bytes(_ heads: Int, _ dimension: Int) -> Int {
            CachePage.positions * heads * (dimension * elementBytes + (format == .int8 ? MemoryLayout<Float>.size : 0))
        }
        func reservePartial(_ queries: Int, _ value: Int) {
            partialFloats = max(
                partialFloats, AttentionCall.partialFloats(heads: queries, valueDimension: value, capacity: capacity))
        }
        func reserveKeys(_ heads: Int, _ key: Int, _ value: Int, _ queries: Int, _ layout: inout MemoryLayoutBuilder) -> Layer {
            let stride = (value + 15) / 16 * 16
            reservePartial(queries, value)
            return Layer(
                kvHeads: heads, keyDimension: key, valueStride: stride,
                keyOffset: layout.reserve(bytes(heads, key), of: UInt8.self),
                valueOffset: layout.reserve(bytes(heads, stride), of: UInt8.self), ownsKeys: true)
        }
        var pageBytes = 0
        for layer in shape.layers {
            if sharesLayers { page = MemoryLayoutBuilder() }
            defer { pageBytes = max(pageBytes, page.bytes) }
            switch layer.mixer {
            case .attention(let a):
                if let shared = a.sharedLayer {
                    var copy = layers[shared]
                    copy.ownsKeys = false
                    layers.append(copy)
                    reservePartial(a.heads, a.valueDimension)
                } else {
                    layers.append(reserveKeys(a.kvHeads, a.keyDimension, a.valueDimension, a.heads, &page))
                }
            case .latent(let a): layers.append(reserveKeys(1, a.kvRank + a.rotaryDimension, a.kvRank, a.heads, &page))
            default: layers.append(Layer())
            }
        }
        self.pageBytes = pageBytes
        var layout = MemoryLayoutBuilder()
        for (index, layer) in shape.layers.enumerated() {
            func reserve(_ convolution: Int, _ state: Int, _ layout: inout MemoryLayoutBuilder) {
                layers[index].convolutionOffset = layout.reserve(convolution, of: Float.self)
                layers[index].stateOffset = layout.reserve(state, of: Float.self)
            }
            switch layer.mixer {
            case .delta(let d):
                reserve((d.convolution - 1) * d.mixedWidth, d.valueHeads * d.valueDimension * d.keyDimension, &layout)
            case .mamba(let m): reserve((m.convolution - 1) * m.mixedWidth, m.inner * m.stateSize, &layout)
            case .convolution(let width): reserve((width - 1) * shape.width, 0, &layout)
            default: break
            }
        }
        stateBytes = layout.bytes
        self.layers = layers
        memory = try Memory(bytes: partialFloats * MemoryLayout<Float>.stride)
        partial = memory.pointer(as: Float.self)
        let count = (capacity + CachePage.positions - 1) / CachePage.positions
        pageTable = .allocate(capacity: count)
        pageTable.initialize(repeating: nil, count: count)
    }

    deinit { pageTable.deallocate() }

    // MARK: - Pointers

    /// The offsets in each page of a layer's keys, `[kvHeads][positions/16][keyDimension][16]`, and values,
    /// `[kvHeads][positions][valueStride]`, in bytes.
    func place(layer: Int) -> (keys: Int, values: Int) { (layers[layer].keyOffset, layers[layer].valueOffset) }

    func valueStride(layer: Int) -> Int { layers[layer].valueStride }

    /// `[width − 1][channels]`
    func convolution(layer: Int) -> UnsafeMutablePointer<Float> {
        (states + layers[layer].convolutionOffset).assumingMemoryBound(to: Float.self)
    }

    func state(layer: Int) -> UnsafeMutablePointer<Float> {
        (states + layers[layer].stateOffset).assumingMemoryBound(to: Float.self)
    }

    private var states: UnsafeMutableRawPointer {
        // No input can cause this: the engine passes only tokens on for which it has reserved memory, states included.
        guard let recurrent else { preconditionFailure("the caller reserves the states") }
        return recurrent.memory.base
    }

    private func allocateStates(in room: MemoryReservation?) throws(ModelError) {
        guard isRecurrent, recurrent == nil else { return }
        recurrent = RecurrentStates(memory: try Memory(bytes: stateBytes), room: room?.divide(stateBytes))
    }

    // MARK: - Pages

    /// Bytes of keys and values of one position, of all layers.
    package var bytesPerPosition: Int { pageBytes / CachePage.positions }

    /// The number of positions in the pages.
    var reservedPositions: Int { pages.count * CachePage.positions }

    func bytesToReserve(_ count: Int, withCheckpoint: Bool) -> Int {
        if count == 0 { return 0 }
        let size = CachePage.positions
        var bytes = withCheckpoint ? stateBytes : 0
        if isRecurrent, recurrent == nil { bytes += stateBytes }
        for index in tokens.count / size...(tokens.count + count - 1) / size
        where index >= pages.count || !isKnownUniquelyReferenced(&pages[index]) {
            bytes += pageBytes
        }
        return bytes
    }

    /// Adds pages, and replaces those that other sequences hold by copies.
    func reserve(_ count: Int, in room: MemoryReservation?, withCheckpoint: Bool) throws {
        if count == 0 { return }
        guard count <= capacity - tokens.count else {
            throw GenerationFailure.promptTooLong(tokens: tokens.count + count, contextSize: capacity)
        }
        try allocateStates(in: room)
        if withCheckpoint { checkpointRoom = room?.divide(stateBytes) }
        let size = CachePage.positions
        for index in tokens.count / size...(tokens.count + count - 1) / size {
            if index == pages.count {
                pages.append(try makePage(in: room))
            } else if !isKnownUniquelyReferenced(&pages[index]) {
                let copy = try makePage(in: room)
                copyPositions(tokens.count - index * size, from: pages[index], to: copy)
                pages[index] = copy
            }
            pageTable[index] = pages[index].base
        }
    }

    private func makePage(in room: MemoryReservation?) throws(ModelError) -> CachePage {
        try CachePage(bytes: pageBytes, room: room?.divide(pageBytes, for: .page))
    }

    var isEmpty: Bool { pages.isEmpty && recurrent == nil }

    private struct Contents {
        fileprivate let rows: InputRows
        fileprivate let pages: [CachePage]
        fileprivate let recurrent: RecurrentStates?
        fileprivate let checkpoints: [Checkpoint]
        fileprivate let room: MemoryReservation?
    }

    func takeContents() -> Any {
        defer {
            (rows, pages, recurrent, checkpoints, checkpointRoom) = (InputRows(), [], nil, [], nil)
        }
        for index in pages.indices { pageTable[index] = nil }
        return Contents(rows: rows, pages: pages, recurrent: recurrent, checkpoints: checkpoints, room: checkpointRoom)
    }

    /// The parts are the keys and values of each page, the recurrent states, and those of the checkpoints.
    func forEachPart(_ body: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
        let size = CachePage.positions
        for (index, page) in pages.enumerated() where index * size < tokens.count {
            let count = min(size, tokens.count - index * size)
            try forEachRange(positions: count) { try body(.init(start: page.base + $0, count: $1)) }
        }
        guard isRecurrent else { return }
        try body(.init(start: states, count: stateBytes))
        for index in checkpoints.indices { try checkpoints[index].states.withUnsafeMutableBytes { try body($0) } }
    }

    var checkpointPositions: [Int] { checkpoints.map(\.position) }

    var layout: SequenceLayout {
        SequenceLayout(
            pageBytes: pageBytes, stateBytes: stateBytes, elementBits: format == .int8 ? 8 : 16, usesLongFactors: usesLongFactors)
    }

    func begin(
        _ rows: InputRows, checkpoints positions: [Int], reserve: (Int) throws -> MemoryReservation?
    ) throws {
        _ = takeContents()
        let room = try reserve(bytesToReserve(rows.count, withCheckpoint: false) + positions.count * stateBytes)
        try self.reserve(rows.count, in: room, withCheckpoint: false)
        self.rows = rows
        checkpoints = positions.map {
            Checkpoint(position: $0, states: [UInt8](repeating: 0, count: stateBytes), room: room?.divide(stateBytes))
        }
    }

    /// Calls `body` with the offset and the size of each range of a page that its first `positions` positions use. Keys are
    /// stored in blocks of 16 positions.
    private func forEachRange(positions: Int, _ body: (Int, Int) throws -> Void) rethrows {
        let (size, element) = (CachePage.positions, format == .int8 ? 1 : 2)
        let padded = (positions + 15) / 16 * 16
        for layer in layers where layer.ownsKeys {
            for (offset, width, count) in [
                (layer.keyOffset, layer.keyDimension * element, padded),
                (layer.valueOffset, layer.valueStride * element, positions),
            ] {
                for head in 0..<layer.kvHeads { try body(offset + head * size * width, count * width) }
                guard format == .int8 else { continue }
                let (factors, bytes) = (offset + layer.kvHeads * size * width, MemoryLayout<Float>.size)
                for head in 0..<layer.kvHeads { try body(factors + head * size * bytes, count * bytes) }
            }
        }
    }

    /// Copies the first `count` positions of a page.
    private func copyPositions(_ count: Int, from source: CachePage, to target: CachePage) {
        guard count > 0 else { return }
        forEachRange(positions: count) { memcpy(target.base + $0, source.base + $0, $1) }
    }

    /// Frees the pages after the last token.
    private func trimPages() {
        let needed = (tokens.count + CachePage.positions - 1) / CachePage.positions
        while pages.count > needed {
            pages.removeLast()
            pageTable[pages.count] = nil
        }
    }

    func isCompatible(with other: any SequenceMemory) -> Bool {
        guard let other = other as? KVCache else { return false }
        return domain == other.domain && usesLongFactors == other.usesLongFactors && isOf(other.format, other.adapter)
    }

    // MARK: - Positions

    func reusablePrefix(of other: InputRows, limit: Int) -> Int {
        let count = rows.commonPrefix(with: other, limit: limit)
        if !isRecurrent || count == rows.count { return count }
        return checkpoints.last { $0.position <= count }?.position ?? 0
    }

    @discardableResult package func rewind(to length: Int) -> Int { rewind(to: length, keepsPages: false) }

    /// Rewinds, and may keep the pages after the last token for the next tokens.
    @discardableResult package func rewind(to length: Int, keepsPages: Bool) -> Int {
        guard length < tokens.count else { return tokens.count }
        defer { if !keepsPages { trimPages() } }
        let length = rows.undivided(max(0, length))
        if isRecurrent { restoreCheckpoint(before: length) } else { rows.truncate(to: length) }
        return rows.count
    }

    /// Restores the states of the last checkpoint at or before a position, and removes what came later.
    private func restoreCheckpoint(before position: Int) {
        checkpoints.removeAll { $0.position > position }
        if let checkpoint = checkpoints.last {
            checkpoint.states.withUnsafeBytes {
                states.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(states), byteCount: $0.count)
            }
        } else {
            memset(states, 0, stateBytes)
        }
        rows.truncate(to: checkpoints.last?.position ?? 0)
    }

    func addCheckpoint() {
        let room = checkpointRoom.take()
        guard isRecurrent, checkpoints.last?.position != tokens.count else { return }
        checkpoints.removeAll { $0.position > tokens.count }
        if checkpoints.count >= Self.maximumCheckpoints { checkpoints.remove(at: 0) }
        checkpoints.append(
            Checkpoint(
                position: tokens.count, states: Array(UnsafeRawBufferPointer(start: states, count: stateBytes)),
                room: room))
    }

    /// Discards an unfinished batch: its tokens have not been appended, but recurrent states may have been updated.
    func discardUnfinishedBatch() {
        guard isRecurrent else { return }
        restoreCheckpoint(before: tokens.count)
        trimPages()
    }

    /// One page at most is copied: fewer rows than asked for may be.
    func bytesToCopy(_ count: Int) -> Int { count == 0 ? 0 : pageBytes + (isRecurrent && recurrent == nil ? stateBytes : 0) }

    func copyPrefix(of other: any SequenceMemory, count: Int, in room: MemoryReservation?) throws(ModelError) {
        // No input can cause this: the pool copies only between memories of one model that are compatible.
        guard let other = other as? KVCache else { preconditionFailure("the caller compares the memories: see isCompatible") }
        var count = other.rows.undivided(min(count, other.rows.count, capacity))
        let checkpoint = other.checkpoints.last { $0.position <= count }
        if isRecurrent, count < other.tokens.count { count = checkpoint?.position ?? 0 }
        // Whole pages are shared; the positions of the last one are copied, because both sequences will write to it.
        let size = CachePage.positions
        var shared = Array(other.pages[..<(count / size)])
        if count % size > 0 {
            let last = try makePage(in: room)
            copyPositions(count % size, from: other.pages[count / size], to: last)
            shared.append(last)
        }
        try allocateStates(in: room)
        // Nothing can fail from here on: tokens, pages and states always belong together.
        checkpoints = []
        if isRecurrent {
            if count > 0, count == other.tokens.count {
                states.copyMemory(from: other.states, byteCount: stateBytes)
            } else if let checkpoint {
                checkpoint.states.withUnsafeBytes {
                    states.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(states), byteCount: $0.count)
                }
                checkpoints = [checkpoint]
            } else {
                memset(states, 0, stateBytes)
            }
        }
        pages = shared
        for index in pages.indices { pageTable[index] = pages[index].base }
        rows = other.rows.prefix(count)
    }

    /// Appends tokens that have been processed, which may be rows of `input`.
    func append(_ new: UnsafeBufferPointer<TokenID>, of input: ModelInput?) { rows.append(new, of: input?.rows) }
}
