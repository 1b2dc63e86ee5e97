/// The reason why a text is not valid JSON, and its position.
package struct JSONSyntaxError: Error, Equatable, CustomStringConvertible {
    package let line: Int
    package let column: Int
    package let reason: String

    package var description: String { "Not valid JSON at line \(line), column \(column): \(reason)." }
}

/// Parses JSON (RFC 8259) strictly: UTF-8 must be valid, nesting is limited, and nothing may follow the value.
///
/// Open arrays and objects are a list, not recursion, so that deep documents need no large stack.
package struct JSONParser {
    private let bytes: [UInt8]
    private var index = 0
    private var open: [Container] = []

    /// An array or object that is open. Its contents are changed in place: copying them at each value would take
    /// quadratic time.
    private struct Container {
        var isObject: Bool
        var values: [JSONValue] = []
        var members: [JSONValue.Member] = []
        /// The name of the member whose value is next.
        var name = ""
    }

    /// Deeper documents are rejected, because other code processes values recursively.
    package static let maximumDepth = 512

    package static func parse(_ text: some Sequence<UInt8>) throws(JSONSyntaxError) -> JSONValue {
        var parser = JSONParser(bytes: Array(text))
        parser.skipSpace()
        let value = try parser.value()
        parser.skipSpace()
        if parser.index < parser.bytes.count { throw parser.error("unexpected text after the value") }
        return value
    }

    package static func parse(_ text: String) throws(JSONSyntaxError) -> JSONValue { try parse(text.utf8) }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private func error(_ reason: String) -> JSONSyntaxError {
        let before = bytes[..<min(index, bytes.count)]
        let line = before.count { $0 == 0x0A } + 1
        let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        return JSONSyntaxError(line: line, column: before.count - start + 1, reason: reason)
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }

    private mutating func take(_ literal: StaticString) -> Bool {
        let count = literal.utf8CodeUnitCount
        guard index + count <= bytes.count,
            bytes[index..<index + count].elementsEqual(UnsafeBufferPointer(start: literal.utf8Start, count: count))
        else { return false }
        index += count
        return true
    }

    private mutating func value() throws(JSONSyntaxError) -> JSONValue {
        while true {
            if let value = try beginning(), let root = try complete(value) { return root }
        }
    }

    /// Reads a scalar or an empty container, which it returns, or the beginning of a container, which it opens.
    private mutating func beginning() throws(JSONSyntaxError) -> JSONValue? {
        switch next {
        case UInt8(ascii: "{"):
            try enter()
            if next == UInt8(ascii: "}") {
                index += 1
                return .object([])
            }
            open.append(Container(isObject: true, name: try name()))
            return nil
        case UInt8(ascii: "["):
            try enter()
            if next == UInt8(ascii: "]") {
                index += 1
                return .array([])
            }
            open.append(Container(isObject: false))
            return nil
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): if take("true") { return .bool(true) }
        case UInt8(ascii: "f"): if take("false") { return .bool(false) }
        case UInt8(ascii: "n"): if take("null") { return .null }
        case .some(UInt8(ascii: "-")), .some(UInt8(ascii: "0")...UInt8(ascii: "9")): return .number(try number())
        default: break
        }
        throw error(next == nil ? "unexpected end of the text" : "a value is expected")
    }

    /// Adds a complete value to the innermost open container, and closes the containers that end after it.
    ///
    /// - Returns: the document if it is complete.
    private mutating func complete(_ value: JSONValue) throws(JSONSyntaxError) -> JSONValue? {
        var value = value
        while !open.isEmpty {
            let last = open.count - 1
            skipSpace()
            let hasMore = next == UInt8(ascii: ",")
            if open[last].isObject {
                open[last].members.append(JSONValue.Member(open[last].name, value))
                if !hasMore, next != UInt8(ascii: "}") { throw error("',' or '}' is expected") }
            } else {
                open[last].values.append(value)
                if !hasMore, next != UInt8(ascii: "]") { throw error("',' or ']' is expected") }
            }
            index += 1
            if hasMore {
                skipSpace()
                if open[last].isObject { open[last].name = try name() }
                return nil
            }
            let container = open.removeLast()
            value = container.isObject ? .object(container.members) : .array(container.values)
        }
        return value
    }

    private mutating func enter() throws(JSONSyntaxError) {
        if open.count >= Self.maximumDepth { throw error("nested more than \(Self.maximumDepth) levels deep") }
        index += 1
        skipSpace()
    }

    /// Reads a member's name and the colon.
    private mutating func name() throws(JSONSyntaxError) -> String {
        guard next == UInt8(ascii: "\"") else { throw error("a name in quotes is expected") }
        let name = try string()
        skipSpace()
        guard next == UInt8(ascii: ":") else { throw error("':' is expected") }
        index += 1
        skipSpace()
        return name
    }

    private mutating func number() throws(JSONSyntaxError) -> DecimalNumber {
        let start = index
        let letters = Array("+-.eE0123456789".utf8)
        while let byte = next, letters.contains(byte) { index += 1 }
        guard let number = DecimalNumber(String(decoding: bytes[start..<index], as: UTF8.self)) else {
            index = start
            throw error("the number is invalid or too long")
        }
        return number
    }

    private mutating func string() throws(JSONSyntaxError) -> String {
        index += 1
        var content: [UInt8] = []
        while let byte = next {
            index += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: content, as: UTF8.self) else { throw error("the string is not valid UTF-8") }
                return text
            case UInt8(ascii: "\\"):
                guard let letter = next else { throw error("the text ends inside an escape") }
                index += 1
                if letter == UInt8(ascii: "u") {
                    content.append(contentsOf: JSONText.utf8(try escapedScalar()))
                } else if let character = JSONText.character(ofEscape: letter) {
                    content.append(character)
                } else {
                    throw error("unknown escape sequence")
                }
            case ..<0x20: throw error("a control character must be escaped")
            default: content.append(byte)
            }
        }
        throw error("the string has no closing quote")
    }

    private mutating func escapedScalar() throws(JSONSyntaxError) -> UInt32 {
        let high = try hexDigits()
        if JSONText.isLowSurrogate(high) { throw error("unpaired surrogate") }
        guard JSONText.isHighSurrogate(high) else { return high }
        guard take("\\u") else { throw error("unpaired surrogate") }
        let low = try hexDigits()
        guard JSONText.isLowSurrogate(low) else { throw error("unpaired surrogate") }
        return JSONText.scalar(high: high, low: low)
    }

    private mutating func hexDigits() throws(JSONSyntaxError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = JSONText.hexDigit(byte) else {
                throw error("four hexadecimal digits are expected")
            }
            value = value << 4 | digit
            index += 1
        }
        return value
    }
}
