import Foundation

/// FNV-1a with 64 bits. It detects corrupted data, not deliberate changes.
enum Checksum {
    static func of(_ data: Data) -> Int64 { of([data]) }

    static func of(turn number: Int, prompt: Data, entries: Data?) -> Int64 {
        let number = withUnsafeBytes(of: UInt64(truncatingIfNeeded: number).littleEndian) { Data($0) }
        return of([number, prompt, Data([entries == nil ? 0 : 1])] + (entries.map { [$0] } ?? []))
    }

    private static func of(_ parts: [Data]) -> Int64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for part in parts {
            part.withUnsafeBytes { bytes in
                for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            }
        }
        return Int64(bitPattern: hash)
    }
}
