internal import CKernels
internal import Foundation

/// Keys and values of one sequence, in binary16, and the tokens they belong to.
///
/// Memory is reserved for the whole capacity at once but only touched pages cost anything: a token takes
/// `2 · layers · kvHeads · headDimension · 2` bytes (23 KB for the default model).
/// Not thread-safe: a sequence is used by one engine call at a time.
package final class KVCache {
    /// Tokens whose keys and values are valid, in order.
    package private(set) var tokens: [TokenID] = []
    /// Positions there is room for.
    package let capacity: Int
    let valueStride: Int
    /// Scratch for attention that is split over this cache's positions.
    let partial: UnsafeMutablePointer<Float>
    private let memory: Memory
    private let layers: Int
    private let kvHeads: Int
    private let headDimension: Int
    private let keyRegion: Int
    private let valueRegion: Int

    package init(configuration: ModelConfiguration, capacity: Int) throws(ModelError) {
        // Keys are stored in blocks of 16 positions.
        self.capacity = (max(1, capacity) + 15) / 16 * 16
        layers = configuration.layers
        kvHeads = configuration.kvHeads
        headDimension = configuration.headDimension
        valueStride = (configuration.headDimension + 15) / 16 * 16
        keyRegion = self.capacity * configuration.headDimension * configuration.kvHeads * 2
        valueRegion = self.capacity * valueStride * configuration.kvHeads * 2
        let partialFloats = ck_attention_partial_floats(
            Int32(configuration.heads), Int32(configuration.headDimension), Int32(self.capacity))
        let cacheBytes = (keyRegion + valueRegion) * configuration.layers
        memory = try Memory(bytes: cacheBytes + partialFloats * 4)
        partial = memory.pointer(at: cacheBytes, as: Float.self)
    }

    /// `[kvHeads][capacity/16][headDimension][16]`
    func keys(layer: Int) -> UnsafeMutablePointer<UInt16> {
        memory.pointer(at: layer * (keyRegion + valueRegion), as: UInt16.self)
    }

    /// `[kvHeads][capacity][valueStride]`
    func values(layer: Int) -> UnsafeMutablePointer<UInt16> {
        memory.pointer(at: layer * (keyRegion + valueRegion) + keyRegion, as: UInt16.self)
    }

    /// How many leading tokens of `other` are already here.
    package func commonPrefix(with other: [TokenID]) -> Int {
        var count = 0
        while count < tokens.count, count < other.count, tokens[count] == other[count] { count += 1 }
        return count
    }

    /// Forgets everything from position `length` on. O(1).
    package func truncate(to length: Int) {
        tokens.removeLast(max(0, tokens.count - length))
    }

    /// Replaces what is here by the first `count` tokens of another cache of the same model.
    func copyBeginning(of other: KVCache, count: Int) {
        let count = min(count, other.tokens.count, capacity)
        let keyBytes = (count + 15) / 16 * 16 * headDimension * 2
        let valueBytes = count * valueStride * 2
        for layer in 0..<layers {
            let (ownKeys, otherKeys) = (keys(layer: layer), other.keys(layer: layer))
            let (ownValues, otherValues) = (values(layer: layer), other.values(layer: layer))
            for head in 0..<kvHeads {
                memcpy(
                    ownKeys + head * capacity * headDimension, otherKeys + head * other.capacity * headDimension,
                    min(keyBytes, capacity * headDimension * 2, other.capacity * headDimension * 2))
                memcpy(
                    ownValues + head * capacity * valueStride, otherValues + head * other.capacity * valueStride, valueBytes)
            }
        }
        tokens = Array(other.tokens.prefix(count))
    }

    /// Records tokens whose keys and values have been written.
    func append(_ new: UnsafeBufferPointer<TokenID>) {
        tokens.append(contentsOf: new)
    }
}
