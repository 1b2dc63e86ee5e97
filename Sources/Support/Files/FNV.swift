/// FNV-1a with 64 bits (Fowler, Noll and Vo), whose result is the same in every process. It identifies contents and recognises accidental changes,
/// not deliberate ones.
public enum FNV {
    /// The hash of no bytes.
    public static let empty: UInt64 = 0xCBF2_9CE4_8422_2325

    /// The hash of bytes after those whose hash is `state`.
    @inlinable public static func hash(_ bytes: some Sequence<UInt8>, after state: UInt64 = empty) -> UInt64 {
        // Of contiguous bytes, the loop is several times as fast.
        bytes.withContiguousStorageIfAvailable { $0.reduce(state) { step($0, UInt64($1)) } }
            ?? bytes.reduce(state) { step($0, UInt64($1)) }
    }

    /// The hash after one more word, which is a byte where the hash is that of bytes.
    @inlinable public static func step(_ state: UInt64, _ word: UInt64) -> UInt64 { (state ^ word) &* 0x100_0000_01B3 }
}
