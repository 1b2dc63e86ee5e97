/// The reason why a text is not valid JSON, and its position.
package struct JSONSyntaxError: Error, Equatable, CustomStringConvertible {
    package let line: Int
    package let column: Int
    package let reason: String

    package var description: String { "Not valid JSON at line \(line), column \(column): \(reason)." }
}

/// A part of a JSON document.
package enum JSONEvent: Sendable {
    case open(isObject: Bool)
    /// The name of a member; its value follows.
    case name(String)
    case string(String)
    case number(DecimalNumber)
    case bool(Bool)
    case null
    /// The end of the innermost open array or object.
    case close
}

/// Reads JSON (RFC 8259) strictly and incrementally: UTF-8 must be valid, nesting is limited, and nothing may follow the
/// value. The work is linear in the text, in however many pieces it comes.
///
/// A number or literal is complete only when another character follows it: 12 may still become 123. What the events
/// build is the caller's choice: ``JSONParser`` makes a ``JSONValue`` of them.
package struct JSONReader: Sendable {
    /// The structural token that may come next.
    private enum Expectation {
        case value, valueOrEnd, name, nameOrEnd, colon, commaOrEnd, nothing
    }

    /// The token whose first characters have been read.
    private enum Token {
        case none, string, escape, unicodeEscape, word
    }

    /// Deeper documents are rejected, because other code processes values recursively.
    package static let maximumDepth = 512

    /// For each open container whether it is an object.
    private var stack: [Bool] = []
    private var expectation = Expectation.value
    private var token = Token.none
    /// The bytes of the open string, decoded, or of the open number or literal.
    private var text: [UInt8] = []
    private var isName = false
    /// The digits of the open \u escape, and their value.
    private var unicodeDigits = 0
    private var unicodeUnit: UInt32 = 0
    /// The high surrogate that waits for its low one.
    private var highSurrogate: UInt32?
    private var word = JSONWord.zero
    private var position = 0
    private var line = 1
    private var lineStart = 0

    package init() {}

    /// Reads more of the document.
    ///
    /// - Throws: ``JSONSyntaxError`` if the text can no longer become a JSON document. The reader is not to be used
    ///   afterwards.
    package mutating func append(_ bytes: [UInt8], _ handle: (JSONEvent) -> Void) throws(JSONSyntaxError) {
        var index = 0
        while index < bytes.count {
            if token == .string, highSurrogate == nil {
                // Most bytes of a document are plain characters of strings.
                let start = index
                while index < bytes.count, Self.isPlain(bytes[index]) { index += 1 }
                text.append(contentsOf: bytes[start..<index])
                position += index - start
                if index == bytes.count { return }
            }
            try read(bytes[index], handle)
            index += 1
            position += 1
        }
    }

    /// Ends the text: a number that is the whole document ends here.
    ///
    /// - Returns: Whether the document is complete.
    package mutating func finish(_ handle: (JSONEvent) -> Void) throws(JSONSyntaxError) -> Bool {
        if token == .word, stack.isEmpty, word.isWhole { try endWord(handle) }
        return expectation == .nothing
    }

    /// The complete characters of the open string that is a value; nil if there is none.
    package var openString: String? {
        guard !isName, [.string, .escape, .unicodeEscape].contains(token) else { return nil }
        if let whole = String(validating: text, as: UTF8.self) { return whole }
        // Only the last character can be incomplete.
        for length in 1...3 where length <= text.count {
            if let whole = String(validating: text.dropLast(length), as: UTF8.self) { return whole }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The error of a document that ends here.
    package var truncation: JSONSyntaxError {
        error(token == .none || token == .word ? "unexpected end of the text" : "the string has no closing quote")
    }

    private func error(_ reason: String, before: Int = 0) -> JSONSyntaxError {
        JSONSyntaxError(line: line, column: position - before - lineStart + 1, reason: reason)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    private mutating func read(_ byte: UInt8, _ handle: (JSONEvent) -> Void) throws(JSONSyntaxError) {
        switch token {
        case .none: try readStructure(byte, handle)
        case .string: try readInString(byte, handle)
        case .escape: try readEscape(byte)
        case .unicodeEscape: try readUnicodeEscape(byte)
        case .word:
            if word.append(byte) { return text.append(byte) }
            if !word.isWhole || JSONWord.isPart(byte) {
                let text = String(decoding: text.prefix(40) + [byte], as: UTF8.self)
                throw error("“\(text)” is not a JSON value")
            }
            try endWord(handle)
            try readStructure(byte, handle)
        }
    }

    private mutating func readStructure(_ byte: UInt8, _ handle: (JSONEvent) -> Void) throws(JSONSyntaxError) {
        switch (byte, expectation) {
        case (0x20, _), (0x0D, _), (0x09, _): return
        case (0x0A, _):
            line += 1
            lineStart = position + 1
        case (UInt8(ascii: "{"), .value), (UInt8(ascii: "{"), .valueOrEnd): try open(isObject: true, handle)
        case (UInt8(ascii: "["), .value), (UInt8(ascii: "["), .valueOrEnd): try open(isObject: false, handle)
        case (UInt8(ascii: "\""), .value), (UInt8(ascii: "\""), .valueOrEnd): beginString(isName: false)
        case (UInt8(ascii: "\""), .name), (UInt8(ascii: "\""), .nameOrEnd): beginString(isName: true)
        case (UInt8(ascii: ":"), .colon): expectation = .value
        case (UInt8(ascii: ","), .commaOrEnd): expectation = stack.last == true ? .name : .value
        case (UInt8(ascii: "}"), .nameOrEnd), (UInt8(ascii: "]"), .valueOrEnd): close(handle)
        case (UInt8(ascii: "}"), .commaOrEnd) where stack.last == true: close(handle)
        case (UInt8(ascii: "]"), .commaOrEnd) where stack.last == false: close(handle)
        case (_, .value), (_, .valueOrEnd):
            guard let first = JSONWord(byte) else { throw unexpected(byte) }
            word = first
            token = .word
            text.removeAll(keepingCapacity: true)
            text.append(byte)
        default: throw unexpected(byte)
        }
    }

    private func unexpected(_ byte: UInt8) -> JSONSyntaxError {
        let shown = byte < 0x80 ? "“\(Character(Unicode.Scalar(byte)))”" : "a character"
        switch expectation {
        case .value, .valueOrEnd: return error("\(shown) where a value is expected")
        case .name, .nameOrEnd: return error("\(shown) where a name in quotes is expected")
        case .colon: return error("\(shown) where a colon is expected")
        case .commaOrEnd: return error("\(shown) where a comma or the end is expected")
        case .nothing: return error("unexpected text after the value")
        }
    }

    private mutating func open(isObject: Bool, _ handle: (JSONEvent) -> Void) throws(JSONSyntaxError) {
        if stack.count >= Self.maximumDepth { throw error("it is nested more than \(Self.maximumDepth) levels deep") }
        stack.append(isObject)
        expectation = isObject ? .nameOrEnd : .valueOrEnd
        handle(.open(isObject: isObject))
    }

    private mutating func close(_ handle: (JSONEvent) -> Void) {
        stack.removeLast()
        endValue(.close, handle)
    }

    /// Reports the last event of a value.
    private mutating func endValue(_ event: JSONEvent, _ handle: (JSONEvent) -> Void) {
        token = .none
        expectation = stack.isEmpty ? .nothing : .commaOrEnd
        handle(event)
    }

    // MARK: - Strings

    private mutating func beginString(isName: Bool) {
        self.isName = isName
        text.removeAll(keepingCapacity: true)
        token = .string
    }

    private mutating func readInString(_ byte: UInt8, _ handle: (JSONEvent) -> Void) throws(JSONSyntaxError) {
        if byte == UInt8(ascii: "\\") {
            token = .escape
        } else if highSurrogate != nil {
            throw error("unpaired surrogate")
        } else if byte == UInt8(ascii: "\"") {
            try endString(handle)
        } else if byte < 0x20 {
            throw error("a control character in a string must be escaped")
        } else {
            text.append(byte)
        }
    }

    private mutating func endString(_ handle: (JSONEvent) -> Void) throws(JSONSyntaxError) {
        guard let string = String(validating: text, as: UTF8.self) else { throw error("a string is not valid UTF-8") }
        guard isName else { return endValue(.string(string), handle) }
        token = .none
        expectation = .colon
        handle(.name(string))
    }

    /// Reads the letter after a backslash.
    private mutating func readEscape(_ byte: UInt8) throws(JSONSyntaxError) {
        if byte == UInt8(ascii: "u") {
            (unicodeDigits, unicodeUnit) = (0, 0)
            token = .unicodeEscape
            return
        }
        guard highSurrogate == nil else { throw error("unpaired surrogate") }
        guard let character = JSONText.character(ofEscape: byte) else { throw error("unknown escape sequence in a string") }
        text.append(character)
        token = .string
    }

    private mutating func readUnicodeEscape(_ byte: UInt8) throws(JSONSyntaxError) {
        guard let digit = JSONText.hexDigit(byte) else { throw error("\\u needs four hexadecimal digits") }
        unicodeUnit = unicodeUnit << 4 | digit
        unicodeDigits += 1
        if unicodeDigits < 4 { return }
        token = .string
        let isLow = JSONText.isLowSurrogate(unicodeUnit)
        if let high = highSurrogate, isLow {
            text.append(contentsOf: JSONText.utf8(JSONText.scalar(high: high, low: unicodeUnit)))
            highSurrogate = nil
        } else if highSurrogate != nil || isLow {
            throw error("unpaired surrogate")
        } else if JSONText.isHighSurrogate(unicodeUnit) {
            highSurrogate = unicodeUnit
        } else {
            text.append(contentsOf: JSONText.utf8(unicodeUnit))
        }
    }

    // MARK: - Numbers and literals

    private mutating func endWord(_ handle: (JSONEvent) -> Void) throws(JSONSyntaxError) {
        switch word {
        case .literal(.true, _): endValue(.bool(true), handle)
        case .literal(.false, _): endValue(.bool(false), handle)
        case .literal(.null, _): endValue(.null, handle)
        default:
            guard let number = DecimalNumber(String(decoding: text, as: UTF8.self)) else {
                throw error("a number has too many digits or is out of range", before: text.count)
            }
            endValue(.number(number), handle)
        }
    }
}
