/// Character references of HTML: `&eacute;`, `&#233;`, and those that need no semicolon, such as `&eacute`.
enum HTMLEntities {
    /// The text of a reference, and its length after the ampersand; nil if there is none, so that the ampersand is text.
    ///
    /// - Parameters:
    ///   - start: The place after the ampersand.
    ///   - isAttribute: In the values of attributes, addresses such as `?a=1&copy=2` contain no references.
    static func reference(in bytes: [UInt8], at start: Int, isAttribute: Bool) -> (text: String, length: Int)? {
        if start < bytes.count, bytes[start] == UInt8(ascii: "#") { return number(in: bytes, at: start) }
        var end = start
        while end < bytes.count, end < start + maximumLength, isLetterOrDigit(bytes[end]) { end += 1 }
        func text(_ length: Int, _ names: [String: String]) -> String? {
            names[String(decoding: bytes[start..<start + length], as: UTF8.self)]
        }
        if end < bytes.count, bytes[end] == UInt8(ascii: ";"), let text = text(end - start, names.all) {
            return (text, end - start + 1)
        }
        // The longest beginning that is a name without a semicolon.
        for length in stride(from: min(end - start, maximumLengthWithoutSemicolon), to: 1, by: -1) {
            guard let text = text(length, names.withoutSemicolon) else { continue }
            let next = start + length < bytes.count ? bytes[start + length] : 0
            return isAttribute && (next == UInt8(ascii: "=") || isLetterOrDigit(next)) ? nil : (text, length)
        }
        return nil
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
    }

    // MARK: - Names

    /// Of a name, without the semicolon.
    private static let maximumLength = 32
    private static let maximumLengthWithoutSemicolon = 6

    private static let names = {
        var (all, withoutSemicolon): ([String: String], [String: String]) = ([:], [:])
        for entry in table.utf8.split(separator: UInt8(ascii: " ")) {
            let parts = entry.split(separator: UInt8(ascii: ":"))
            var text = ""
            for number in parts[0].split(separator: UInt8(ascii: "+")) {
                guard let number = UInt32(Substring(number), radix: 16), let scalar = Unicode.Scalar(number) else { continue }
                text.unicodeScalars.append(scalar)
            }
            for name in parts[1].split(separator: UInt8(ascii: ",")) {
                let isWithoutSemicolon = name.last == UInt8(ascii: "*")
                let name = String(Substring(isWithoutSemicolon ? name.dropLast() : name))
                all[name] = text
                if isWithoutSemicolon { withoutSemicolon[name] = text }
            }
        }
        return (all: all, withoutSemicolon: withoutSemicolon)
    }()

    /// The numbers of names with a semicolon, and of those that are also known without.
    static var counts: (all: Int, withoutSemicolon: Int) { (names.all.count, names.withoutSemicolon.count) }

    // MARK: - Numbers

    private static func number(in bytes: [UInt8], at start: Int) -> (text: String, length: Int)? {
        var index = start + 1
        let isHexadecimal = index < bytes.count && bytes[index] | 0x20 == UInt8(ascii: "x")
        if isHexadecimal { index += 1 }
        let first = index
        var value: UInt32 = 0
        while index < bytes.count, let digit = digit(bytes[index], isHexadecimal) {
            // Larger numbers are no characters.
            value = min(value * (isHexadecimal ? 16 : 10) + digit, 0x11_0000)
            index += 1
        }
        if index == first { return nil }
        if index < bytes.count, bytes[index] == UInt8(ascii: ";") { index += 1 }
        // Pages mean the numbers of C1 controls as those of windows-1252.
        if 0x80...0x9F ~= value { value = Windows1252.scalar(UInt8(value)).value }
        // As in browsers, what is no character becomes U+FFFD.
        let scalar = value == 0 ? nil : Unicode.Scalar(value)
        return (String(Character(scalar ?? "\u{FFFD}")), index - start)
    }

    private static func digit(_ byte: UInt8, _ isHexadecimal: Bool) -> UInt32? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte) - 0x30
        case UInt8(ascii: "a")...UInt8(ascii: "f") where isHexadecimal: UInt32(byte) - 0x61 + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F") where isHexadecimal: UInt32(byte) - 0x41 + 10
        default: nil
        }
    }
}
