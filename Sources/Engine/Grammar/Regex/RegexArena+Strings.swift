internal import JSON

/// JSON strings as languages of their decoded text: the layer of escapes.
extension RegexArena {
    /// The JSON strings, with quotes, whose decoded text is in `content`.
    func string(_ content: RegexID, _ style: EscapeStyle) -> RegexID {
        concat(quoteByte, stringBody(content, style))
    }

    /// The rest of ``string(_:_:)`` after the opening quote.
    func stringBody(_ content: RegexID, _ style: EscapeStyle) -> RegexID {
        concat(escaped(content, style, .none), quoteByte)
    }

    func escaped(_ content: RegexID, _ style: EscapeStyle, _ state: EscapeState) -> RegexID {
        if content == Self.empty { return Self.empty }
        if content == Self.epsilon { return state == .none ? Self.epsilon : Self.empty }
        return add(.escaped(content: content, style, state))
    }

    /// The derivative of a string's body with respect to `byte`.
    func escapedDerivative(_ content: RegexID, _ style: EscapeStyle, _ state: EscapeState, _ byte: UInt8) -> RegexID {
        switch state {
        case .none:
            if byte == UInt8(ascii: "\\") { return escaped(content, style, .backslash) }
            if byte < 0x20 || byte == UInt8(ascii: "\"") { return Self.empty }
            return escaped(derivative(content, byte), style, .none)
        case .backslash:
            if byte == UInt8(ascii: "u") { return escaped(content, style, .hex(value: 0, count: 0, high: 0)) }
            guard let character = JSONText.character(ofEscape: byte) else { return Self.empty }
            if character == UInt8(ascii: "/"), style == .needed || style == .single { return Self.empty }
            return escaped(derivative(content, character), style, .none)
        case .hex(let value, let count, let high):
            guard let digit = JSONText.hexDigit(byte), style != .single || byte >= UInt8(ascii: "a") || digit < 10 else {
                return Self.empty
            }
            return hexDigit(content, style, value << 4 | digit, count + 1, high: high)
        case .low(let high, let count):
            if count == 0 { return byte == UInt8(ascii: "\\") ? escaped(content, style, .low(high: high, count: 1)) : Self.empty }
            return byte == UInt8(ascii: "u") ? escaped(content, style, .hex(value: 0, count: 0, high: high)) : Self.empty
        }
    }

    /// The state after one more hexadecimal digit; `empty` if no allowed character has an escape with these digits.
    func hexDigit(
        _ content: RegexID, _ style: EscapeStyle, _ value: UInt32, _ count: UInt8, high: UInt32
    ) -> RegexID {
        let shift = UInt32(4 - count) * 4
        let first = value << shift
        let last = first + (UInt32(1) << shift) - 1
        if high != 0 {
            guard first <= 0xDFFF, last >= 0xDC00 else { return Self.empty }
            let low = JSONText.scalar(high: high, low: max(first, 0xDC00))...JSONText.scalar(high: high, low: min(last, 0xDFFF))
            guard surelyHasScalar(content, in: low) else { return Self.empty }
            if count < 4 { return escaped(content, style, .hex(value: value, count: count, high: high)) }
            return afterScalar(content, style, low.lowerBound)
        }
        let isPair = style != .single && last >= 0xD800 && first <= 0xDBFF && surelyHasScalar(content, in: pairs(first, last))
        if count < 4 {
            guard isPair || hasEscapable(content, style, first...last) else { return Self.empty }
            return escaped(content, style, .hex(value: value, count: count, high: 0))
        }
        if JSONText.isHighSurrogate(value) {
            return isPair ? escaped(content, style, .low(high: value, count: 0)) : Self.empty
        }
        guard hasEscapable(content, style, first...last) else { return Self.empty }
        return afterScalar(content, style, value)
    }

    func pairs(_ first: UInt32, _ last: UInt32) -> ClosedRange<UInt32> {
        JSONText.scalar(high: max(first, 0xD800), low: 0xDC00)...JSONText.scalar(high: min(last, 0xDBFF), low: 0xDFFF)
    }

    /// Whether a character of `scalars` may follow, and may be written as `\uXXXX`.
    func hasEscapable(_ content: RegexID, _ style: EscapeStyle, _ scalars: ClosedRange<UInt32>) -> Bool {
        if style == .any { return surelyHasScalar(content, in: scalars) }
        // Control characters without a short escape, and all characters beyond ASCII.
        let beyond: ClosedRange<UInt32> = style == .single ? 0x1F...0x1F : 0x7F...0xFFFF
        for allowed: ClosedRange<UInt32> in [0x00...0x07, 0x0B...0x0B, 0x0E...0x1F, beyond] where allowed.overlaps(scalars) {
            if surelyHasScalar(content, in: allowed.clamped(to: scalars)) { return true }
        }
        return false
    }

    func afterScalar(_ content: RegexID, _ style: EscapeStyle, _ scalar: UInt32) -> RegexID {
        var rest = content
        for byte in JSONText.utf8(scalar) { rest = derivative(rest, byte) }
        return escaped(rest, style, .none)
    }

    /// Whether the next character can be one that may be written as an escape. Inside a character there is none: without
    /// this check, the characters of a class would each cost a search for one.
    func needsEscapes(_ row: UnsafeMutablePointer<RegexID>, _ style: EscapeStyle) -> Bool {
        func hasAny(_ bytes: Range<Int>) -> Bool { bytes.contains { row[$0] != Self.empty } }
        let begins = 0xC2..<0xF5
        if style == .any { return hasAny(0..<0x80) || hasAny(begins) }
        if row[0x22] != Self.empty || row[0x5C] != Self.empty || style == .usual && row[0x2F] != Self.empty { return true }
        return hasAny(0..<0x20) || style != .single && (row[0x7F] != Self.empty || hasAny(begins))
    }

    /// Like ``hasScalar(_:in:)``, but false if a limit prevents an answer: the character must then be written without
    /// an escape.
    func surelyHasScalar(_ id: RegexID, in scalars: ClosedRange<UInt32>) -> Bool { (try? hasScalar(id, in: scalars)) ?? false }

    /// Whether a language can continue with a character of `scalars`.
    func hasScalar(_ id: RegexID, in scalars: ClosedRange<UInt32>) throws(RegexLimit) -> Bool {
        for sequence in UTF8Ranges.sequences(of: scalars) {
            if try hasSequence(id, sequence[...]) { return true }
        }
        return false
    }

    func hasSequence(_ id: RegexID, _ sequence: ArraySlice<ClosedRange<UInt8>>) throws(RegexLimit) -> Bool {
        guard let range = sequence.first else { return true }
        let row = try row(id)
        var last: RegexID = Self.empty
        for byte in range where row[Int(byte)] != Self.empty && row[Int(byte)] != last {
            last = row[Int(byte)]
            if try hasSequence(last, sequence.dropFirst()) { return true }
        }
        return false
    }
    /// The language of the decoded text, if `id` is the rest of a JSON string after the opening quote; nil otherwise.
    func stringContent(_ id: RegexID) -> (content: RegexID, style: EscapeStyle)? {
        guard case .concat(let body, let quote) = nodes[Int(id)], case .escaped(let content, let style, .none) = nodes[Int(body)],
            quote == quoteByte
        else {
            if id == quoteByte { return (Self.epsilon, .any) }
            return nil
        }
        return (content, style)
    }

    /// The language of the decoded text, if `id` is a complete JSON string; nil otherwise.
    func stringContent(afterQuote id: RegexID) -> (content: RegexID, style: EscapeStyle)? {
        guard case .concat(let quote, let rest) = nodes[Int(id)], quote == quoteByte else { return nil }
        return stringContent(rest)
    }
}
