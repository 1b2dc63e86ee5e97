internal import JSON

/// Writes JSON as the automaton of a schema reads it: without white space between values, and with strings escaped in one way. Works on
/// any division of the text into parts.
struct JSONNormalizer {
    private var isInString = false
    /// The last byte outside of strings, and whether white space has come after it.
    private var last: UInt8 = 0
    private var hasSpace = false
    /// The bytes of an escape that is not complete, without the backslash.
    private var escape: [UInt8]?
    /// The first half of a character outside of the basic plane.
    private var highSurrogate: UInt32?

    /// The normal form of the next part of a text; nil if it has an escape that JSON does not know, or white space within a number or a word.
    mutating func normalize(_ bytes: some Sequence<UInt8>) -> [UInt8]? {
        var output: [UInt8] = []
        for byte in bytes {
            if escape != nil {
                guard take(byte, into: &output) else { return nil }
                continue
            }
            if byte == UInt8(ascii: "\\"), isInString {
                escape = []
                continue
            }
            // Only the second half may follow.
            if highSurrogate != nil { return nil }
            if isInString {
                if byte == UInt8(ascii: "\"") { isInString = false }
                output.append(byte)
            } else if [0x20, 0x0A, 0x0D, 0x09].contains(byte) {
                hasSpace = true
            } else {
                if hasSpace, Self.isPart(last), Self.isPart(byte) { return nil }
                (last, hasSpace) = (byte, false)
                if byte == UInt8(ascii: "\"") { isInString = true }
                output.append(byte)
            }
        }
        return output
    }

    /// Whether a byte belongs to a number, or to true, false or null.
    private static func isPart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "+-.".utf8.contains(byte)
        }
    }

    private mutating func take(_ byte: UInt8, into output: inout [UInt8]) -> Bool {
        var text = escape ?? []
        text.append(byte)
        guard text[0] == UInt8(ascii: "u") else {
            escape = nil
            let known: [UInt8: UInt8] = [
                UInt8(ascii: "\""): 0x22, UInt8(ascii: "\\"): 0x5C, UInt8(ascii: "/"): 0x2F, UInt8(ascii: "b"): 8,
                UInt8(ascii: "f"): 12,
                UInt8(ascii: "n"): 10, UInt8(ascii: "r"): 13, UInt8(ascii: "t"): 9,
            ]
            guard let character = known[byte], highSurrogate == nil else { return false }
            JSONText.escape([character], into: &output)
            return true
        }
        guard text.count == 5 else {
            escape = text
            return true
        }
        escape = nil
        let digits = String(decoding: text.dropFirst(), as: UTF8.self)
        guard digits.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }), let unit = UInt32(digits, radix: 16) else { return false }
        var value = unit
        if let high = highSurrogate {
            highSurrogate = nil
            guard (0xDC00...0xDFFF).contains(unit) else { return false }
            value = 0x1_0000 + (high - 0xD800) << 10 + (unit - 0xDC00)
        } else if (0xD800...0xDBFF).contains(unit) {
            highSurrogate = unit
            return true
        }
        guard let scalar = Unicode.Scalar(value) else { return false }
        JSONText.escape(String(Character(scalar)).utf8, into: &output)
        return true
    }
}
