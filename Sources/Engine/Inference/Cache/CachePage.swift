/// The keys and values of ``positions`` successive tokens in all layers. Sequences with equal beginnings share pages; a page
/// that several sequences hold is never written.
///
/// Used on the engine's executor only.
final class CachePage {
    static let positions = EngineLimits.pagePositions

    /// The layout of the memory is that of ``KVCache``. Parts that were never written use no memory.
    let memory: Memory
    private let room: MemoryReservation?

    /// - Parameter room: the bytes of the page; nil if nobody counts them.
    init(bytes: Int, room: MemoryReservation?) throws(ModelError) {
        self.room = room
        memory = try Memory(bytes: bytes)
    }

    var base: UnsafeMutablePointer<UInt8> { memory.pointer(as: UInt8.self) }
}
