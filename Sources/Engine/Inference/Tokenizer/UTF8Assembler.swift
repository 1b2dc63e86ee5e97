/// Converts the bytes of tokens to text incrementally, in whole characters.
///
/// A character may be split over several tokens: its bytes are buffered until it is complete. Invalid bytes are
/// replaced by U+FFFD, as `String(decoding:as:)` does.
package struct UTF8Assembler {
    private var pending: [UInt8] = []

    package init() {}

    /// Appends bytes and returns the text that is now complete.
    package mutating func append(_ bytes: some Sequence<UInt8>) -> String {
        pending.append(contentsOf: bytes)
        let complete = pending.count - Self.incompleteTail(pending)
        guard complete > 0 else { return "" }
        defer { pending.removeFirst(complete) }
        return String(decoding: pending[..<complete], as: UTF8.self)
    }

    /// Returns the remaining buffered bytes as text, at the end of the input.
    package mutating func finish() -> String {
        defer { pending.removeAll() }
        return String(decoding: pending, as: UTF8.self)
    }

    /// The number of bytes at the end that are the beginning of a valid character.
    private static func incompleteTail(_ bytes: [UInt8]) -> Int {
        for length in 1...3 where length <= bytes.count {
            let byte = bytes[bytes.count - length]
            if byte & 0xC0 == 0x80 { continue }
            let needed = byte >= 0xF0 && byte < 0xF5 ? 4 : byte >= 0xE0 && byte < 0xF0 ? 3 : byte >= 0xC2 && byte < 0xE0 ? 2 : 1
            guard needed > length else { return 0 }
            // Some second bytes make a sequence invalid (overlong, surrogate, beyond U+10FFFF).
            if length >= 2 {
                let second = bytes[bytes.count - length + 1]
                switch byte {
                case 0xE0 where second < 0xA0, 0xED where second > 0x9F, 0xF0 where second < 0x90, 0xF4 where second > 0x8F:
                    return 0
                default: break
                }
            }
            return length
        }
        return 0
    }
}
