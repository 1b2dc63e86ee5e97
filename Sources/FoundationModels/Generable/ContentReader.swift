internal import JSON

/// An incremental JSON parser whose partial result can be read at any time. Parsing is linear in the text, regardless
/// of how often the result is read; reading it is linear in the number of members of the open containers.
///
/// A number or literal is complete only when another character follows it: 12 may still become 123.
struct ContentReader: Sendable {
    struct Failure: Error {
        let reason: String
    }

    private struct Container {
        let isObject: Bool
        var elements: [GeneratedContent] = []
        var properties: [String: GeneratedContent] = [:]
        var keys: [String] = []
        /// The name whose value has not been parsed yet.
        var key: String?
        let id: GenerationID?

        mutating func add(_ value: GeneratedContent) {
            guard isObject else { return elements.append(value) }
            guard let name = key else { return }
            if properties.updateValue(value, forKey: name) == nil { keys.append(name) }
            key = nil
        }

        func content(isComplete: Bool) -> GeneratedContent {
            GeneratedContent(
                storage: isObject ? .structure(properties: properties, orderedKeys: keys) : .array(elements), id: id,
                isComplete: isComplete)
        }
    }

    /// The tokens that may come next.
    private enum Expectation {
        case value, valueOrEnd, name, nameOrEnd, colon, commaOrEnd, nothing
    }

    private enum Token {
        case none
        /// In a string: the characters of an unfinished escape sequence, without the backslash, and the high surrogate
        /// that waits for its low one. The string's text so far is in `text`.
        case string(isName: Bool, escape: [UInt8]?, high: UInt32?)
        /// A number, or one of true, false, null.
        case word([UInt8], Word)
    }

    private var stack: [Container] = []
    private var token = Token.none
    private var text: [UInt8] = []
    private var expectation = Expectation.value
    private var root: GeneratedContent?
    private let assignsIDs: Bool

    private static let maximumDepth = 512
    private static let longestNumber = 4_096

    /// - Parameter assignsIDs: Whether lists and objects get an id, which stays the same while they grow.
    init(assignsIDs: Bool = false) { self.assignsIDs = assignsIDs }

    /// Parses more text.
    ///
    /// - Throws: ``Failure`` if the text can no longer be JSON.
    mutating func append(_ more: some StringProtocol) throws(Failure) {
        for byte in more.utf8 { try read(byte) }
    }

    /// The value parsed so far; nil before the first value has begun.
    var content: GeneratedContent? {
        if let root { return root }
        var value: GeneratedContent?
        if case .string(isName: false, _, _) = token {
            value = GeneratedContent(storage: .string(wholeText), isComplete: false)
        }
        for container in stack.reversed() {
            var open = container
            if let value { open.add(value) }
            value = open.content(isComplete: false)
        }
        return value
    }

    /// The complete value, if the text is a complete document; a number may end here.
    mutating func finished() throws(Failure) -> GeneratedContent? {
        if case .word(let bytes, let word) = token, stack.isEmpty, word.isWhole {
            token = .none
            try add(try Self.value(of: bytes, word))
        }
        return root
    }

    /// The complete characters of the open string.
    private var wholeText: String {
        if let whole = String(validating: text, as: UTF8.self) { return whole }
        // Only the last character can be incomplete.
        for length in 1...3 where length < text.count {
            if let whole = String(validating: text.dropLast(length), as: UTF8.self) { return whole }
        }
        return String(decoding: text, as: UTF8.self)
    }

    // MARK: - Reading

    private mutating func read(_ byte: UInt8) throws(Failure) {
        switch token {
        case .string(let isName, let escape, let high): try readInString(byte, isName: isName, escape: escape, high: high)
        case .word(var bytes, var word):
            if word.append(byte) {
                token = .none  // keeps the array unique
                bytes.append(byte)
                guard bytes.count <= Self.longestNumber else { throw Failure(reason: "a number is too long") }
                token = .word(bytes, word)
            } else {
                guard word.isWhole, !Word.isPart(byte) else {
                    let text = String(decoding: bytes.prefix(40) + [byte], as: UTF8.self)
                    throw Failure(reason: "“\(text)” is not a JSON value")
                }
                token = .none
                try add(try Self.value(of: bytes, word))
                try readStructure(byte)
            }
        case .none: try readStructure(byte)
        }
    }

    private mutating func readStructure(_ byte: UInt8) throws(Failure) {
        switch (byte, expectation) {
        case (0x20, _), (0x0A, _), (0x0D, _), (0x09, _): return
        case (UInt8(ascii: "{"), .value), (UInt8(ascii: "{"), .valueOrEnd): try open(isObject: true)
        case (UInt8(ascii: "["), .value), (UInt8(ascii: "["), .valueOrEnd): try open(isObject: false)
        case (UInt8(ascii: "\""), .value), (UInt8(ascii: "\""), .valueOrEnd): beginString(isName: false)
        case (UInt8(ascii: "\""), .name), (UInt8(ascii: "\""), .nameOrEnd): beginString(isName: true)
        case (UInt8(ascii: ":"), .colon): expectation = .value
        case (UInt8(ascii: ","), .commaOrEnd): expectation = stack.last?.isObject == true ? .name : .value
        case (UInt8(ascii: "}"), .nameOrEnd): try close(isObject: true)
        case (UInt8(ascii: "}"), .commaOrEnd) where stack.last?.isObject == true: try close(isObject: true)
        case (UInt8(ascii: "]"), .valueOrEnd): try close(isObject: false)
        case (UInt8(ascii: "]"), .commaOrEnd) where stack.last?.isObject == false: try close(isObject: false)
        case (_, .value), (_, .valueOrEnd):
            guard let word = Word(byte) else { throw unexpected(byte) }
            token = .word([byte], word)
        default: throw unexpected(byte)
        }
    }

    private func unexpected(_ byte: UInt8) -> Failure {
        let shown = byte < 0x80 ? "“\(Character(Unicode.Scalar(byte)))”" : "a character"
        switch expectation {
        case .value, .valueOrEnd: return Failure(reason: "\(shown) where a value is expected")
        case .name, .nameOrEnd: return Failure(reason: "\(shown) where a name in quotes is expected")
        case .colon: return Failure(reason: "\(shown) where a colon is expected")
        case .commaOrEnd: return Failure(reason: "\(shown) where a comma or the end is expected")
        case .nothing: return Failure(reason: "unexpected text after the value")
        }
    }

    private mutating func beginString(isName: Bool) {
        text.removeAll(keepingCapacity: true)
        token = .string(isName: isName, escape: nil, high: nil)
    }

    private mutating func open(isObject: Bool) throws(Failure) {
        guard stack.count < Self.maximumDepth else {
            throw Failure(reason: "it is nested more than \(Self.maximumDepth) levels deep")
        }
        stack.append(Container(isObject: isObject, id: assignsIDs ? GenerationID() : nil))
        expectation = isObject ? .nameOrEnd : .valueOrEnd
    }

    private mutating func close(isObject: Bool) throws(Failure) {
        guard let closed = stack.popLast() else { return }
        try add(closed.content(isComplete: true))
    }

    private mutating func add(_ value: GeneratedContent) throws(Failure) {
        if stack.isEmpty {
            root = value
            expectation = .nothing
        } else {
            stack[stack.count - 1].add(value)
            expectation = .commaOrEnd
        }
    }

    private mutating func readInString(_ byte: UInt8, isName: Bool, escape: [UInt8]?, high: UInt32?) throws(Failure) {
        guard var escape else {
            switch byte {
            case UInt8(ascii: "\\"): token = .string(isName: isName, escape: [], high: high)
            case _ where high != nil: throw Failure(reason: "unpaired surrogate")
            case UInt8(ascii: "\""): try endString(isName: isName)
            case ..<0x20: throw Failure(reason: "unescaped control character in a string")
            default: text.append(byte)
            }
            return
        }
        escape.append(byte)
        if escape[0] != UInt8(ascii: "u") {
            guard high == nil, let character = JSONText.character(ofEscape: byte) else {
                throw Failure(reason: "unknown escape sequence in a string")
            }
            text.append(character)
            token = .string(isName: isName, escape: nil, high: nil)
        } else if escape.count < 5 {
            guard escape.count == 1 || JSONText.hexDigit(byte) != nil else { throw Failure(reason: "invalid \\u escape") }
            token = .string(isName: isName, escape: escape, high: high)
        } else {
            try endUnicodeEscape(escape, isName: isName, high: high)
        }
    }

    private mutating func endUnicodeEscape(_ escape: [UInt8], isName: Bool, high: UInt32?) throws(Failure) {
        var unit: UInt32 = 0
        for byte in escape.dropFirst() {
            guard let digit = JSONText.hexDigit(byte) else { throw Failure(reason: "invalid \\u escape") }
            unit = unit << 4 | digit
        }
        var waiting: UInt32?
        if let high, JSONText.isLowSurrogate(unit) {
            text.append(contentsOf: JSONText.utf8(JSONText.scalar(high: high, low: unit)))
        } else if high != nil || JSONText.isLowSurrogate(unit) {
            throw Failure(reason: "unpaired surrogate")
        } else if JSONText.isHighSurrogate(unit) {
            waiting = unit
        } else {
            text.append(contentsOf: JSONText.utf8(unit))
        }
        token = .string(isName: isName, escape: nil, high: waiting)
    }

    private mutating func endString(isName: Bool) throws(Failure) {
        guard let whole = String(validating: text, as: UTF8.self) else { throw Failure(reason: "a string is not valid UTF-8") }
        token = .none
        if isName {
            stack[stack.count - 1].key = whole
            expectation = .colon
        } else {
            try add(GeneratedContent(storage: .string(whole)))
        }
    }

    private static func value(of bytes: [UInt8], _ word: Word) throws(Failure) -> GeneratedContent {
        switch word {
        case .literal(.true, _): return GeneratedContent(storage: .bool(true))
        case .literal(.false, _): return GeneratedContent(storage: .bool(false))
        case .literal(.null, _): return GeneratedContent(storage: .null)
        default:
            let text = String(decoding: bytes, as: UTF8.self)
            guard let number = DecimalNumber(text) else { throw Failure(reason: "a number is out of range") }
            return GeneratedContent(storage: .number(GeneratedNumber(value: number.nearestDouble, text: text)))
        }
    }
}

/// The parsing state of a number or one of true, false, null.
private enum Word {
    enum Literal: String {
        case `true`, `false`, null
    }

    case literal(Literal, length: Int)
    /// The states of a number, named after its last part.
    case minus, zero, whole, point, fraction, e, sign, exponent

    /// Nil if neither a number nor a literal begins with this byte.
    init?(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "t"): self = .literal(.true, length: 1)
        case UInt8(ascii: "f"): self = .literal(.false, length: 1)
        case UInt8(ascii: "n"): self = .literal(.null, length: 1)
        case UInt8(ascii: "-"): self = .minus
        case UInt8(ascii: "0"): self = .zero
        case UInt8(ascii: "1")...UInt8(ascii: "9"): self = .whole
        default: return nil
        }
    }

    /// Whether the number or literal may end here.
    var isWhole: Bool {
        switch self {
        case .literal(let literal, let length): length == literal.rawValue.utf8.count
        case .zero, .whole, .fraction, .exponent: true
        case .minus, .point, .e, .sign: false
        }
    }

    /// Whether the byte can be part of a number or a literal; any other byte ends it.
    static func isPart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "E"),
            UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    /// - Returns: False if the byte cannot continue the number or literal.
    mutating func append(_ byte: UInt8) -> Bool {
        switch (self, byte) {
        case (.literal(let literal, let length), _):
            let bytes = literal.rawValue.utf8
            guard length < bytes.count, bytes[bytes.index(bytes.startIndex, offsetBy: length)] == byte else { return false }
            self = .literal(literal, length: length + 1)
        case (.minus, UInt8(ascii: "0")): self = .zero
        case (.minus, UInt8(ascii: "1")...UInt8(ascii: "9")): self = .whole
        case (.whole, UInt8(ascii: "0")...UInt8(ascii: "9")): self = .whole
        case (.zero, UInt8(ascii: ".")), (.whole, UInt8(ascii: ".")): self = .point
        case (.point, UInt8(ascii: "0")...UInt8(ascii: "9")), (.fraction, UInt8(ascii: "0")...UInt8(ascii: "9")):
            self = .fraction
        case (.zero, UInt8(ascii: "e")), (.whole, UInt8(ascii: "e")), (.fraction, UInt8(ascii: "e")),
            (.zero, UInt8(ascii: "E")), (.whole, UInt8(ascii: "E")), (.fraction, UInt8(ascii: "E")):
            self = .e
        case (.e, UInt8(ascii: "+")), (.e, UInt8(ascii: "-")): self = .sign
        case (.e, UInt8(ascii: "0")...UInt8(ascii: "9")), (.sign, UInt8(ascii: "0")...UInt8(ascii: "9")),
            (.exponent, UInt8(ascii: "0")...UInt8(ascii: "9")):
            self = .exponent
        default: return false
        }
        return true
    }
}
