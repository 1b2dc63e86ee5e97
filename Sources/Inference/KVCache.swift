internal import CKernels
internal import Foundation

/// What the layers of a model remember of one sequence, and the tokens it belongs to: keys and values in binary16, and the states
/// of recurrent layers in binary32.
///
/// Memory is reserved for the whole capacity at once but only touched pages cost anything. Keys and values can be cut back to any
/// position; recurrent states only to a checkpoint. Not thread-safe: a sequence is used by one engine call at a time.
package final class KVCache {
    /// Tokens that have been processed, in order.
    package private(set) var tokens: [TokenID] = []
    /// Positions there is room for.
    package let capacity: Int
    /// Whether there are recurrent states.
    package let isRecurrent: Bool
    /// Scratch for attention that is split over this cache's positions.
    let partial: UnsafeMutablePointer<Float>

    private let memory: Memory
    private let layers: [Layer]
    private let stateOffset: Int
    private let stateBytes: Int
    private var checkpoints: [Checkpoint] = []

    /// One layer's part; layers that share another's have its places.
    private struct Layer {
        var kvHeads = 0, keyDimension = 0, valueStride = 0
        var keyOffset = 0, valueOffset = 0
        var ownsKeys = false
        var convolutionOffset = 0, stateOffset = 0
    }

    /// All recurrent states after some tokens.
    private struct Checkpoint {
        var position: Int
        var states: [UInt8]
    }

    /// Checkpoints that are kept: each costs as much as the states.
    private static let maximumCheckpoints = 3

    package init(shape: ModelShape, capacity: Int) throws(ModelError) {
        // Keys are stored in blocks of 16 positions.
        let capacity = (max(1, capacity) + 15) / 16 * 16
        self.capacity = capacity
        isRecurrent = shape.isRecurrent
        var layout = MemoryLayouter()
        var layers: [Layer] = []
        var partialFloats = 0
        func reserveKeys(_ heads: Int, _ key: Int, _ value: Int, _ queries: Int, _ layout: inout MemoryLayouter) -> Layer {
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
        for (index, layer) in shape.layers.enumerated() {
            func reserve(_ convolution: Int, _ state: Int, _ layout: inout MemoryLayouter) {
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

    // MARK: - Places

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

    // MARK: - Positions

    /// How many leading tokens of `other`, at most `limit`, need not be computed again.
    package func reusablePrefix(of other: [TokenID], limit: Int = .max) -> Int {
        var count = 0
        while count < tokens.count, count < other.count, count < limit, tokens[count] == other[count] { count += 1 }
        if !isRecurrent || count == tokens.count { return count }
        return checkpoints.last { $0.position <= count }?.position ?? 0
    }

    /// Forgets everything from position `length` on, and where recurrent states do not reach so exactly, some before it.
    ///
    /// - Returns: how many tokens are left.
    @discardableResult package func rewind(to length: Int) -> Int {
        guard length < tokens.count else { return tokens.count }
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

    /// Makes the current position one that can be returned to. Costs nothing where there are no recurrent states.
    func addCheckpoint() {
        guard isRecurrent, checkpoints.last?.position != tokens.count else { return }
        checkpoints.removeAll { $0.position > tokens.count }
        if checkpoints.count >= Self.maximumCheckpoints { checkpoints.remove(at: 0) }
        checkpoints.append(
            Checkpoint(position: tokens.count, states: Array(UnsafeRawBufferPointer(start: states, count: stateBytes))))
    }

    /// Gives up a batch that was not finished: its tokens are not here yet, but states may have moved.
    func abandonBatch() {
        guard isRecurrent else { return }
        tokens.append(-1)
        rewind(to: tokens.count - 1)
    }

    /// Replaces what is here by the first `count` tokens of another cache of the same model, as many of them as can be reused.
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

    /// Records tokens that have been processed.
    func append(_ new: UnsafeBufferPointer<TokenID>) { tokens.append(contentsOf: new) }
}
