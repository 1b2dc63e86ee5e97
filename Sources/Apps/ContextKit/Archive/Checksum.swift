import Files
import Foundation

/// Detects corrupted data, not deliberate changes.
enum Checksum {
    static func of(_ data: Data) -> Int64 { of([data]) }

    static func of(turn number: Int, prompt: Data, entries: Data?) -> Int64 {
        let number = withUnsafeBytes(of: UInt64(truncatingIfNeeded: number).littleEndian) { Data($0) }
        return of([number, prompt, Data([entries == nil ? 0 : 1])] + (entries.map { [$0] } ?? []))
    }

    private static func of(_ parts: [Data]) -> Int64 {
        Int64(bitPattern: parts.reduce(FNV.empty) { FNV.hash($1, after: $0) })
    }
}
