internal import CKernels
internal import Foundation

/// The KV cache of one sequence, with its tokens: keys and values of attention layers in binary16, states of recurrent
/// layers in binary32.
///
/// Address space is reserved for the whole capacity, but only touched pages use memory. Keys and values can be
/// truncated at any position, recurrent states only at a checkpoint. Not thread-safe: only one engine call at a time
/// may use a sequence.
package final class KVCache {
    /// Tokens that have been processed, in order.
    package private(set) var tokens: [TokenID] = []
    /// The maximum number of positions.
    package let capacity: Int
    /// Whether the model has recurrent layers.
    package let isRecurrent: Bool
    /// Scratch memory for attention that is split over the positions of this cache.
    let partial: UnsafeMutablePointer<Float>

    private let memory: Memory
    private let layers: [Layer]
    private let stateOffset: Int
    private let stateBytes: Int
    /// Bytes of keys and values of one position in all layers.
    private let bytesPerPosition: Int
    private var checkpoints: [Checkpoint] = []
    /// The largest number of tokens so far: memory that was used once stays in use.
    private var peakCount = 0

    /// Sizes and offsets of one layer. A layer that shares the keys and values of another layer has the offsets of that
    /// layer.
    private struct Layer {
        var kvHeads = 0, keyDimension = 0, valueStride = 0
        var keyOffset = 0, valueOffset = 0
        var ownsKeys = false
        var convolutionOffset = 0, stateOffset = 0
    }

    /// A copy of all recurrent states after the first `position` tokens.
    private struct Checkpoint {
        var position: Int
        var states: [UInt8]
    }

    /// The maximum number of checkpoints. Each uses as much memory as all recurrent states.
    private static let maximumCheckpoints = 3

    package init(shape: ModelShape, capacity: Int) throws(ModelError) {
        // Keys are stored in blocks of 16 positions.
        let capacity = (max(1, capacity) + 15) / 16 * 16
        self.capacity = capacity
        isRecurrent = shape.isRecurrent
        var layout = MemoryLayoutBuilder()
        var layers: [Layer] = []
        var partialFloats = 0
        func reserveKeys(_ heads: Int, _ key: Int, _ value: Int, _ queries: Int, _ layout: inout MemoryLayoutBuilder) -> Layer {
            let stride = (value + 15) / 16 * 16
            partialFloats = max(partialFloats, ck_attention_partial_floats(Int32(queries), Int32(value), Int32(capacity)))
            return Layer(
                kvHeads: heads, keyDimension: key, valueStride: stride,
                keyOffset: layout.reserve(capacity * key * heads, of: UInt16.self),
                valueOffset: layout.reserve(capacity * stride * heads, of: UInt16.self), ownsKeys: true)
        }
        for layer in shape.layers {
            switch layer.mixer {
            case .attention(let a):
                if let shared = a.sharedLayer {
                    var copy = layers[shared]
                    copy.ownsKeys = false
                    layers.append(copy)
                } else {
                    layers.append(reserveKeys(a.kvHeads, a.keyDimension, a.valueDimension, a.heads, &layout))
                }
            case .latent(let a): layers.append(reserveKeys(1, a.kvRank + a.rotaryDimension, a.kvRank, a.heads, &layout))
            default: layers.append(Layer())
            }
        }
        stateOffset = layout.bytes
        bytesPerPosition = layout.bytes / capacity
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
        stateBytes = layout.bytes - stateOffset
        let partialOffset = layout.reserve(partialFloats, of: Float.self)
        self.layers = layers
        memory = try Memory(bytes: layout.bytes)
        partial = memory.pointer(at: partialOffset, as: Float.self)
    }

    // MARK: - Pointers

    /// `[kvHeads][capacity/16][keyDimension][16]`
    func keys(layer: Int) -> UnsafeMutablePointer<UInt16> { memory.pointer(at: layers[layer].keyOffset, as: UInt16.self) }

    /// `[kvHeads][capacity][valueStride]`
    func values(layer: Int) -> UnsafeMutablePointer<UInt16> { memory.pointer(at: layers[layer].valueOffset, as: UInt16.self) }

    func valueStride(layer: Int) -> Int { layers[layer].valueStride }

    /// `[width − 1][channels]`
    func convolution(layer: Int) -> UnsafeMutablePointer<Float> {
        memory.pointer(at: layers[layer].convolutionOffset, as: Float.self)
    }

    func state(layer: Int) -> UnsafeMutablePointer<Float> { memory.pointer(at: layers[layer].stateOffset, as: Float.self) }

    private var states: UnsafeMutableRawPointer { memory.base + stateOffset }

    /// Bytes of memory that are in use. Reserved pages that were never written are not counted.
    var usedBytes: Int { max(peakCount, tokens.count) * bytesPerPosition + stateBytes * (1 + checkpoints.count) }

    // MARK: - Positions

    /// The number of leading tokens of `other`, at most `limit`, that need not be recomputed.
    package func reusablePrefix(of other: [TokenID], limit: Int = .max) -> Int {
        var count = 0
        while count < tokens.count, count < other.count, count < limit, tokens[count] == other[count] { count += 1 }
        if !isRecurrent || count == tokens.count { return count }
        return checkpoints.last { $0.position <= count }?.position ?? 0
    }

    /// Truncates the cache to `length` tokens. With recurrent layers, truncates to the last checkpoint at or before
    /// `length`.
    ///
    /// - Returns: the number of remaining tokens.
    @discardableResult package func rewind(to length: Int) -> Int {
        guard length < tokens.count else { return tokens.count }
        peakCount = max(peakCount, tokens.count)
        if !isRecurrent {
            tokens.removeLast(tokens.count - max(0, length))
            return tokens.count
        }
        checkpoints.removeAll { $0.position > length }
        if let checkpoint = checkpoints.last {
            checkpoint.states.withUnsafeBytes {
                states.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(states), byteCount: $0.count)
            }
        } else {
            memset(states, 0, stateBytes)
        }
        tokens.removeLast(tokens.count - (checkpoints.last?.position ?? 0))
        return tokens.count
    }

    /// Saves the recurrent states so that the cache can be rewound to the current position. Does nothing for models
    /// without recurrent layers.
    func addCheckpoint() {
        guard isRecurrent, checkpoints.last?.position != tokens.count else { return }
        checkpoints.removeAll { $0.position > tokens.count }
        if checkpoints.count >= Self.maximumCheckpoints { checkpoints.remove(at: 0) }
        checkpoints.append(
            Checkpoint(position: tokens.count, states: Array(UnsafeRawBufferPointer(start: states, count: stateBytes))))
    }

    /// Discards an unfinished batch: its tokens have not been appended, but recurrent states may have been updated.
    func discardUnfinishedBatch() {
        guard isRecurrent else { return }
        tokens.append(-1)
        rewind(to: tokens.count - 1)
    }

    /// Replaces the contents by the first `count` tokens of another cache of the same model, or fewer if the capacity
    /// or the checkpoints of the other cache do not allow as many.
    func copyPrefix(of other: KVCache, count: Int) {
        var count = min(count, other.tokens.count, capacity)
        checkpoints = []
        if isRecurrent {
            if count == other.tokens.count {
                states.copyMemory(from: other.states, byteCount: stateBytes)
            } else if let checkpoint = other.checkpoints.last(where: { $0.position <= count }) {
                count = checkpoint.position
                checkpoint.states.withUnsafeBytes {
                    states.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(states), byteCount: $0.count)
                }
                checkpoints = [checkpoint]
            } else {
                count = 0
                memset(states, 0, stateBytes)
            }
        }
        for (index, layer) in layers.enumerated() where layer.ownsKeys {
            let keyBytes = (count + 15) / 16 * 16 * layer.keyDimension * 2
            let valueBytes = count * layer.valueStride * 2
            for head in 0..<layer.kvHeads {
                memcpy(
                    keys(layer: index) + head * capacity * layer.keyDimension,
                    other.keys(layer: index) + head * other.capacity * layer.keyDimension,
                    min(keyBytes, capacity * layer.keyDimension * 2, other.capacity * layer.keyDimension * 2))
                memcpy(
                    values(layer: index) + head * capacity * layer.valueStride,
                    other.values(layer: index) + head * other.capacity * layer.valueStride, valueBytes)
            }
        }
        tokens = Array(other.tokens.prefix(count))
    }

    /// Appends tokens that have been processed.
    func append(_ new: UnsafeBufferPointer<TokenID>) { tokens.append(contentsOf: new) }
}
