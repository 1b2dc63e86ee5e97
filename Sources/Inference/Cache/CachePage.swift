/// The keys and values of ``positions`` successive tokens in all layers. Sequences with equal beginnings share pages; a page
/// that several sequences hold is never written.
///
/// Used on the engine's executor only.
final class CachePage {
    static let positions = EngineLimits.pagePositions

    /// The layout of the memory is that of ``KVCache``. Parts that were never written use no memory.
    let memory: Memory
    /// The largest number of positions that were ever written.
    var usedPositions = 0

    init(bytes: Int) throws(ModelError) { memory = try Memory(bytes: bytes) }

    var base: UnsafeMutablePointer<UInt8> { memory.pointer(as: UInt8.self) }
}
