/// Turns the bytes of tokens into text as they come, and never emits half a character.
///
/// A character may be spread over several tokens: its bytes wait until it is whole. Bytes that can never become one are
/// replaced by U+FFFD, as `String(decoding:as:)` does.
package struct UTF8Assembler {
    private var pending: [UInt8] = []

    package init() {}

    /// The text that is complete with these bytes.
    package mutating func append(_ bytes: some Sequence<UInt8>) -> String {
        pending.append(contentsOf: bytes)
        let complete = pending.count - Self.incompleteTail(pending)
        guard complete > 0 else { return "" }
        defer { pending.removeFirst(complete) }
        return String(decoding: pending[..<complete], as: UTF8.self)
    }

    /// What is left when no more bytes will come.
    package mutating func finish() -> String {
        defer { pending.removeAll() }
        return String(decoding: pending, as: UTF8.self)
    }

    /// Bytes at the end that are the beginning of a valid character.
    private static func incompleteTail(_ bytes: [UInt8]) -> Int {
        for length in 1...3 where length <= bytes.count {
            let byte = bytes[bytes.count - length]
            if byte & 0xC0 == 0x80 { continue }
            let needed = byte >= 0xF0 && byte < 0xF5 ? 4 : byte >= 0xE0 && byte < 0xF0 ? 3 : byte >= 0xC2 && byte < 0xE0 ? 2 : 1
            guard needed > length else { return 0 }
            // Some second bytes make a sequence invalid already (overlong, surrogate, beyond U+10FFFF).
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
