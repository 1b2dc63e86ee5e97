/// A JSON value that preserves how it was written: the order of members and the digits of numbers.
package indirect enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case number(DecimalNumber)
    case string(String)
    case array([JSONValue])
    case object([Member])

    package struct Member: Sendable, Hashable {
        package var name: String
        package var value: JSONValue

        package init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// The value of the member `name`; the last one if there are several. nil if there is none or this is not an
    /// object.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    // The values of one kind; nil for others.
    package var string: String? { if case .string(let text) = self { text } else { nil } }
    package var integer: Int? { if case .number(let number) = self { Int(number.text) } else { nil } }
    package var double: Double? { if case .number(let number) = self { Double(number.text) } else { nil } }
}

extension JSONValue {
    /// Equality as JSON Schema defines it: numbers by value, objects regardless of the order of their members.
    package func isEqual(to other: JSONValue) -> Bool {
        // A list of pairs, not recursion: values can be nested deeply.
        var open = [(self, other)]
        while let (first, second) = open.popLast() {
            switch (first, second) {
            case (.null, .null): break
            case (.bool(let a), .bool(let b)): if a != b { return false }
            case (.number(let a), .number(let b)): if a != b { return false }
            case (.string(let a), .string(let b)): if !a.utf8.elementsEqual(b.utf8) { return false }
            case (.array(let a), .array(let b)):
                if a.count != b.count { return false }
                open += zip(a, b)
            case (.object(let a), .object(let b)):
                if a.count != b.count { return false }
                for member in a {
                    guard let value = second[member.name] else { return false }
                    open.append((member.value, value))
                }
            default: return false
            }
        }
        return true
    }

    /// Compact JSON text.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Compact JSON text as UTF-8.
    package var bytes: [UInt8] { written(comma: ",", colon: ":") }

    /// JSON text with a space after each comma and colon, as Python's `json.dumps` writes it.
    package var spacedText: String { String(decoding: written(comma: ", ", colon: ": "), as: UTF8.self) }

    /// JSON text with line breaks and an indentation of two spaces per level.
    package var prettyText: String { String(decoding: written(comma: ",", colon: ": ", isIndented: true), as: UTF8.self) }

    /// A part of a value that is being written.
    private enum Part {
        case value(JSONValue)
        case name(String)
        case text(StaticString)
        /// A line break and the indentation of a level.
        case line(Int)
    }

    /// Writes the value. A list of parts, last one first, not recursion: values can be nested deeply.
    private func written(comma: StaticString, colon: StaticString, isIndented: Bool = false) -> [UInt8] {
        var bytes: [UInt8] = []
        var parts = [Part.value(self)]
        var level = 0
        /// Adds the parts of a container in reverse order.
        func add(_ open: StaticString, _ close: StaticString, count: Int, _ item: (Int) -> Void) {
            bytes.append(contentsOf: open.utf8)
            parts.append(.text(close))
            if count > 0 {
                if isIndented { parts.append(.line(level)) }
                level += 1
                for index in (0..<count).reversed() {
                    item(index)
                    if isIndented { parts.append(.line(level)) }
                    if index > 0 { parts.append(.text(comma)) }
                }
            }
        }
        while let part = parts.popLast() {
            switch part {
            case .text(let text): bytes.append(contentsOf: text.utf8)
            case .name(let name): JSONText.quote(name.utf8, into: &bytes)
            case .line(let indentation):
                level = indentation
                bytes.append(0x0A)
                bytes.append(contentsOf: repeatElement(0x20, count: 2 * indentation))
            case .value(.null): bytes.append(contentsOf: "null".utf8)
            case .value(.bool(let value)): bytes.append(contentsOf: (value ? "true" : "false").utf8)
            case .value(.number(let value)): bytes.append(contentsOf: value.text.utf8)
            case .value(.string(let value)): JSONText.quote(value.utf8, into: &bytes)
            case .value(.array(let values)):
                add("[", "]", count: values.count) { parts.append(.value(values[$0])) }
            case .value(.object(let members)):
                add("{", "}", count: members.count) { index in
                    parts.append(.value(members[index].value))
                    parts.append(.text(colon))
                    parts.append(.name(members[index].name))
                }
            }
        }
        return bytes
    }
}

extension StaticString {
    fileprivate var utf8: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}

/// JSON string syntax (RFC 8259, section 7).
package enum JSONText {
    /// Appends `text` in quotes, escaping only the characters that must be escaped.
    package static func quote(_ text: some Sequence<UInt8>, into bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        escape(text, into: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    package static func escape(_ text: some Sequence<UInt8>, into bytes: inout [UInt8]) {
        for byte in text {
            if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                bytes.append(byte)
                continue
            }
            bytes.append(UInt8(ascii: "\\"))
            if let letter = shortEscape(of: byte) {
                bytes.append(letter)
            } else {
                let hex = Array("0123456789abcdef".utf8)
                bytes.append(contentsOf: [UInt8(ascii: "u"), UInt8(ascii: "0"), UInt8(ascii: "0")])
                bytes.append(contentsOf: [hex[Int(byte >> 4)], hex[Int(byte & 15)]])
            }
        }
    }

    package static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    package static func isAlphanumeric(_ byte: UInt8) -> Bool {
        isDigit(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    /// The text of a JSON string with this body; nil if the body is not valid.
    package static func decoded(_ body: some Sequence<UInt8>) -> [UInt8]? {
        // The reason does not matter: the body is not that of a string.
        guard case .string(let text)? = try? JSONParser.parse([UInt8(ascii: "\"")] + body + [UInt8(ascii: "\"")]) else {
            return nil
        }
        return Array(text.utf8)
    }

    /// The index of the first quote in `bytes` that is not escaped; nil if there is none.
    package static func endOfString(_ bytes: [UInt8]) -> Int? {
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "\"") { return index }
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return nil
    }

    /// The letter after the backslash, for characters that must be escaped and have a short escape.
    package static func shortEscape(of byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): byte
        case 0x08: UInt8(ascii: "b")
        case 0x0C: UInt8(ascii: "f")
        case 0x0A: UInt8(ascii: "n")
        case 0x0D: UInt8(ascii: "r")
        case 0x09: UInt8(ascii: "t")
        default: nil
        }
    }

    /// The character that a short escape with this letter represents.
    package static func character(ofEscape letter: UInt8) -> UInt8? {
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): letter
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: nil
        }
    }

    package static func hexDigit(_ byte: UInt8) -> UInt32? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(byte - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(byte - UInt8(ascii: "A") + 10)
        default: nil
        }
    }

    package static func isHighSurrogate(_ value: UInt32) -> Bool { (0xD800...0xDBFF).contains(value) }
    package static func isLowSurrogate(_ value: UInt32) -> Bool { (0xDC00...0xDFFF).contains(value) }

    package static func scalar(high: UInt32, low: UInt32) -> UInt32 { 0x10000 + (high - 0xD800) << 10 + (low - 0xDC00) }

    /// UTF-8 encoding of a Unicode scalar value.
    package static func utf8(_ scalar: UInt32) -> [UInt8] {
        switch scalar {
        case ..<0x80: [UInt8(scalar)]
        case ..<0x800: [0xC0 | UInt8(scalar >> 6), 0x80 | UInt8(scalar & 63)]
        case ..<0x10000: [0xE0 | UInt8(scalar >> 12), 0x80 | UInt8(scalar >> 6 & 63), 0x80 | UInt8(scalar & 63)]
        default:
            [
                0xF0 | UInt8(scalar >> 18 & 7), 0x80 | UInt8(scalar >> 12 & 63), 0x80 | UInt8(scalar >> 6 & 63),
                0x80 | UInt8(scalar & 63),
            ]
        }
    }
}
