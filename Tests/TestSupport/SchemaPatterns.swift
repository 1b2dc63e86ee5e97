internal import Foundation

/// Translates an ECMA-262 pattern to the syntax of ICU, the engine of NSRegularExpression.
struct PatternTranslation {
    private enum Member {
        case scalar(UInt32)
        /// A class in brackets.
        case set(String)
    }

    private static let digit = "0-9"
    private static let word = "A-Za-z0-9_"
    private static let space =
        "\\x{9}-\\x{D}\\x{20}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}\\x{FEFF}"
    private static let lineEnd = "\\x{A}\\x{D}\\x{2028}\\x{2029}"

    private let scalars: [Unicode.Scalar]
    private var index = 0

    init(_ pattern: String) { scalars = Array(pattern.unicodeScalars) }

    private var next: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

    mutating func icuPattern() -> String {
        // NSRegularExpression rejects an empty pattern.
        var result = "(?:)"
        while let scalar = next {
            index += 1
            switch scalar {
            case "\\": result += escape()
            case "[": result += bracket()
            case ".": result += "[^\(Self.lineEnd)]"
            // ICU's `$` also matches before a last line break.
            case "$": result += "\\z"
            case "{": result += quantifier() ?? "\\{"
            case "}", "]": result += "\\\(scalar)"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private mutating func take(_ text: String) -> Bool {
        guard scalars[index...].starts(with: text.unicodeScalars) else { return false }
        index += text.unicodeScalars.count
        return true
    }

    /// Parses the rest of `{1}`, `{1,}` or `{1,2}`; nil for other braces, which are literals.
    private mutating func quantifier() -> String? {
        guard let end = scalars[index...].firstIndex(of: "}") else { return nil }
        let bounds = scalars[index..<end].split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
        let isDigits = bounds.map { $0.allSatisfy { ("0"..."9").contains($0) } }
        guard isDigits.allSatisfy(\.self), bounds.first?.isEmpty == false else { return nil }
        defer { index = end + 1 }
        return "{" + scalars[index...end].map(String.init).joined()
    }

    private mutating func escape() -> String {
        let wordEdge = "(?<=[\(Self.word)])(?![\(Self.word)])|(?<![\(Self.word)])(?=[\(Self.word)])"
        if take("b") { return "(?:\(wordEdge))" }
        if take("B") { return "(?!\(wordEdge))" }
        if let scalar = next, ("1"..."9").contains(scalar) || scalar == "k" {
            index += 1
            return "\\\(scalar)"
        }
        return switch escapedMember() {
        case .scalar(let value): Self.hex(value)
        case .set(let text): text
        }
    }

    /// Parses an escape sequence that is valid inside and outside brackets.
    private mutating func escapedMember() -> Member {
        guard let letter = next else { return .scalar(0x5C) }
        index += 1
        switch letter {
        case "d": return .set("[\(Self.digit)]")
        case "D": return .set("[^\(Self.digit)]")
        case "w": return .set("[\(Self.word)]")
        case "W": return .set("[^\(Self.word)]")
        case "s": return .set("[\(Self.space)]")
        case "S": return .set("[^\(Self.space)]")
        case "p", "P":
            guard take("{"), let end = scalars[index...].firstIndex(of: "}") else { break }
            defer { index = end + 1 }
            return .set("[\\\(letter){" + scalars[index..<end].map(String.init).joined() + "}]")
        case "t": return .scalar(0x09)
        case "n": return .scalar(0x0A)
        case "v": return .scalar(0x0B)
        case "f": return .scalar(0x0C)
        case "r": return .scalar(0x0D)
        case "0": return .scalar(0)
        case "c":
            guard let control = next, control.isASCII else { break }
            index += 1
            return .scalar(control.value & 31)
        case "x": return .scalar(hexDigits(2) ?? letter.value)
        case "u":
            if take("{") {
                let digits = scalars[index...].prefix { $0 != "}" }
                index += digits.count + 1
                return .scalar(UInt32(digits.map(String.init).joined(), radix: 16) ?? letter.value)
            }
            guard let unit = hexDigits(4) else { break }
            let start = index
            if (0xD800...0xDBFF).contains(unit), take("\\u"), let low = hexDigits(4), (0xDC00...0xDFFF).contains(low) {
                return .scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
            }
            index = start
            return .scalar(unit)
        default: break
        }
        return .scalar(letter.value)
    }

    private mutating func hexDigits(_ count: Int) -> UInt32? {
        let digits = scalars[index...].prefix(count)
        guard digits.count == count, digits.allSatisfy({ $0.properties.isASCIIHexDigit }) else { return nil }
        index += count
        return UInt32(digits.map(String.init).joined(), radix: 16)
    }

    /// Parses the rest of a character class. All characters are escaped, so that ICU treats none of them as special.
    private mutating func bracket() -> String {
        let isNegated = take("^")
        var content = ""
        while let member = bracketMember() {
            let start = index
            if case .scalar(let low) = member, take("-"), case .scalar(let high)? = bracketMember() {
                content += Self.hex(low) + "-" + Self.hex(high)
                continue
            }
            index = start
            switch member {
            case .scalar(let value): content += Self.hex(value)
            case .set(let text): content += text
            }
        }
        index += 1
        if content.isEmpty { return isNegated ? "[\\x{0}-\\x{10FFFF}]" : "(?!)" }
        return "[" + (isNegated ? "^" : "") + content + "]"
    }

    /// Nil at the closing bracket.
    private mutating func bracketMember() -> Member? {
        guard let scalar = next, scalar != "]" else { return nil }
        index += 1
        guard scalar == "\\" else { return .scalar(scalar.value) }
        return take("b") ? .scalar(0x08) : escapedMember()
    }

    private static func hex(_ value: UInt32) -> String { "\\x{" + String(value, radix: 16) + "}" }
}

/// Checks strings against formats. Unknown formats accept every string.
enum SchemaFormat {
    static func accepts(_ text: String, _ format: String) -> Bool {
        switch format {
        case "date": isDate(text)
        case "time": isTime(text)
        case "date-time": isDateTime(text)
        case "uuid": groups(text, "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}") != nil
        case "email": isEmail(text)
        case "ipv4": isIPv4(text)
        case "ipv6": isIPv6(text)
        case "uri": isURI(text)
        case "uri-reference": isURI(text, isReference: true)
        case "iri": isURI(text, beyondASCII: beyondASCII)
        case "iri-reference": isURI(text, beyondASCII: beyondASCII, isReference: true)
        case "hostname": text.utf8.count <= 253 && groups(text, "\(label)(?:\\.\(label))*") != nil
        case "duration": isDuration(text)
        case "json-pointer": groups(text, pointer) != nil
        case "relative-json-pointer": groups(text, "(?:0|[1-9][0-9]*)(?:#|\(pointer))") != nil
        default: true
        }
    }

    /// A label of a host name; at most 63 characters.
    private static let label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    /// RFC 6901.
    private static let pointer = "(?:/(?:[^~/]|~[01])*)*"
    /// RFC 3987, ucschar.
    private static let beyondASCII = "\\x{A0}-\\x{D7FF}\\x{F900}-\\x{FDCF}\\x{FDF0}-\\x{FFEF}\\x{10000}-\\x{EFFFD}"

    /// RFC 3987, iprivate.
    private static let privateUse = "\\x{E000}-\\x{F8FF}\\x{F0000}-\\x{FFFFD}\\x{100000}-\\x{10FFFD}"

    /// The groups of a pattern if it matches the whole text, otherwise nil. Groups that do not participate are empty.
    private static func groups(_ text: String, _ pattern: String) -> [String]? {
        guard let expression = try? NSRegularExpression(pattern: "\\A(?:" + pattern + ")\\z"),
            let match = expression.firstMatch(in: text, range: NSRange(location: 0, length: text.utf16.count))
        else { return nil }
        return (1..<max(1, match.numberOfRanges)).map { Range(match.range(at: $0), in: text).map { String(text[$0]) } ?? "" }
    }

    /// RFC 3339, full-date.
    private static func isDate(_ text: String) -> Bool {
        guard let parts = groups(text, "([0-9]{4})-([0-9]{2})-([0-9]{2})")?.compactMap({ Int($0) }), parts.count == 3 else {
            return false
        }
        let (year, month, day) = (parts[0], parts[1], parts[2])
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return (1...12).contains(month) && (1...days[month - 1]).contains(day)
    }

    /// RFC 3339, full-time. Second 60 is valid only as the last second of a day in UTC.
    private static func isTime(_ text: String) -> Bool {
        let pattern = "([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
        guard let parts = groups(text, pattern), parts.count == 6 else { return false }
        let (hour, minute, second) = (Int(parts[0]) ?? 99, Int(parts[1]) ?? 99, Int(parts[2]) ?? 99)
        let (offsetHour, offsetMinute) = (Int(parts[4]) ?? 0, Int(parts[5]) ?? 0)
        guard hour < 24, minute < 60, second <= 60, offsetHour < 24, offsetMinute < 60 else { return false }
        let offset = (offsetHour * 60 + offsetMinute) * (parts[3] == "-" ? -1 : 1)
        return second < 60 || (hour * 60 + minute - offset + 1440) % 1440 == 1439
    }

    private static func isDateTime(_ text: String) -> Bool {
        guard let parts = groups(text, "([^Tt]*)[Tt](.*)"), parts.count == 2 else { return false }
        return isDate(parts[0]) && isTime(parts[1])
    }

    /// RFC 5321, Mailbox.
    private static func isEmail(_ text: String) -> Bool {
        let atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
        let quoted = "\"(?:[\\x{20}\\x{21}\\x{23}-\\x{5B}\\x{5D}-\\x{7E}]|\\\\[\\x{20}-\\x{7E}])*\""
        let local = "(?:\(atom)(?:\\.\(atom))*|\(quoted))"
        if groups(text, "\(local)@\(label)(?:\\.\(label))*") != nil { return true }
        guard let address = groups(text, "\(local)@\\[(.*)\\]")?.first else { return false }
        return address.hasPrefix("IPv6:") ? isIPv6(String(address.dropFirst(5))) : isIPv4(address)
    }

    private static func isIPv4(_ text: String) -> Bool {
        let parts = groups(text, "(0|[1-9][0-9]{0,2})\\.(0|[1-9][0-9]{0,2})\\.(0|[1-9][0-9]{0,2})\\.(0|[1-9][0-9]{0,2})")
        return parts?.allSatisfy { (Int($0) ?? 256) < 256 } ?? false
    }

    /// RFC 4291: eight groups, the last two optionally as IPv4; `::` at most once, for one or more groups of zeros.
    private static func isIPv6(_ text: String) -> Bool {
        func count(_ text: String, endsInIPv4: Bool) -> Int? {
            if text.isEmpty { return 0 }
            var parts = text.components(separatedBy: ":")
            var count = 0
            if endsInIPv4, let last = parts.last, isIPv4(last) {
                parts.removeLast()
                count = 2
            }
            return parts.allSatisfy { groups($0, "[0-9A-Fa-f]{1,4}") != nil } ? count + parts.count : nil
        }
        let halves = text.components(separatedBy: "::")
        if halves.count == 1 { return count(text, endsInIPv4: true) == 8 }
        guard halves.count == 2, let before = count(halves[0], endsInIPv4: false), let after = count(halves[1], endsInIPv4: true)
        else { return false }
        return before + after < 8
    }

    /// RFC 3339, appendix A: consecutive units, without gaps.
    private static func isDuration(_ text: String) -> Bool {
        guard let parts = groups(text, "P([0-9]+W)|P((?:[0-9]+[YMD])*)(T(?:[0-9]+[HMS])+)?"), parts.count == 3 else {
            return false
        }
        let date = parts[1].filter(\.isLetter)
        let time = parts[2].dropFirst().filter(\.isLetter)
        return !parts[0].isEmpty
            || !(date + time).isEmpty && ["", "Y", "M", "D", "YM", "MD", "YMD"].contains(date)
                && ["", "H", "M", "S", "HM", "MS", "HMS"].contains(time)
    }

    /// RFC 3986, section 3 and appendix B; RFC 3987 with non-ASCII characters.
    private static func isURI(_ text: String, beyondASCII: String = "", isReference: Bool = false) -> Bool {
        let pattern = "(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\\?([^#]*))?(?:#(.*))?"
        guard let parts = groups(text, pattern), parts.count == 5 else { return false }
        let (scheme, authority, path, query, fragment) = (parts[0], parts[1], parts[2], parts[3], parts[4])
        let character = "[A-Za-z0-9._~!$&'()*+,;=:\(beyondASCII)-]|%[0-9A-Fa-f]{2}"
        let host = "(?:(?:\(character))*@)?(?:\\[(.*)\\]|(?:(?!:)(?:\(character)))*)(?::[0-9]*)?"
        guard isReference || !scheme.isEmpty, !scheme.isEmpty || !path.prefix(while: { $0 != "/" }).contains(":"),
            let literal = groups(authority, host)?.first, groups(path, "(?:\(character)|[@/])*") != nil,
            groups(query, "(?:\(character)|[@/?\(beyondASCII.isEmpty ? "" : privateUse)])*") != nil,
            groups(fragment, "(?:\(character)|[@/?])*") != nil
        else { return false }
        return !authority.contains("[") || isIPv6(literal)
            || groups(literal, "[vV][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+") != nil
    }
}
