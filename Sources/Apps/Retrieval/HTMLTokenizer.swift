/// Divides a page into tags and texts as the HTML standard does (https://html.spec.whatwg.org/multipage/parsing.html#tokenization).
/// Every byte is read a fixed number of times, whatever the page contains.
struct HTMLTokenizer {
    struct Tag {
        /// In small letters.
        var name = ""
        var isEnd = false
        /// Whether it ends with `/>`.
        var isSelfClosing = false
        /// The attributes that say what is shown, or in which encoding.
        var attributes: [String: String] = [:]
    }

    enum Token {
        /// A text as it is in the page.
        case text(Range<Int>)
        /// The text of a character reference.
        case reference(String)
        case tag(Tag)
    }

    let bytes: [UInt8]
    /// The end of the last token.
    private(set) var position = 0
    /// Whether sections (`<![CDATA[`) are texts, as in XML. Elsewhere they are comments.
    var hasSections = false

    private static let attributes: Set<String> = [
        "alt", "aria-hidden", "charset", "content", "hidden", "http-equiv", "open", "role", "style", "type",
    ]

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// The next token; nil at the end. Comments and declarations are none.
    mutating func next() -> Token? {
        while position < bytes.count {
            let start = position
            if bytes[start] == UInt8(ascii: "<") {
                if let token = markup() { return token }
                if position > start { continue }
            } else if bytes[start] == UInt8(ascii: "&"),
                let (text, length) = HTMLEntities.reference(in: bytes, at: start + 1, isAttribute: false)
            {
                position += 1 + length
                return .reference(text)
            }
            position += 1
            while position < bytes.count, bytes[position] != UInt8(ascii: "<"), bytes[position] != UInt8(ascii: "&") {
                position += 1
            }
            return .text(start..<position)
        }
        return nil
    }

    /// Reads what begins with `<`. Does not move if that is text.
    private mutating func markup() -> Token? {
        guard position + 1 < bytes.count else { return nil }
        switch bytes[position + 1] {
        case let byte where isLetter(byte): return tag(at: position + 1, isEnd: false)
        case UInt8(ascii: "/"):
            guard position + 2 < bytes.count else { return nil }
            if isLetter(bytes[position + 2]) { return tag(at: position + 2, isEnd: true) }
            position = end(of: ">", from: position + 2)
        case UInt8(ascii: "!"):
            if matches("<!--", at: position) {
                skipComment()
            } else if hasSections, matches("<![CDATA[", at: position) {
                let first = position + 9
                position = end(of: "]]>", from: first)
                let last = first + 3 <= position && matches("]]>", at: position - 3) ? position - 3 : position
                if first < last { return .text(first..<last) }
            } else {
                position = end(of: ">", from: position + 2)
            }
        case UInt8(ascii: "?"): position = end(of: ">", from: position + 2)
        default: break
        }
        return nil
    }

    private mutating func skipComment() {
        position += 4
        if matches(">", at: position) || matches("->", at: position) {
            position = end(of: ">", from: position)
            return
        }
        while position < bytes.count {
            if bytes[position] == UInt8(ascii: "-"), matches("-->", at: position) || matches("--!>", at: position) {
                position = end(of: ">", from: position)
                return
            }
            position += 1
        }
    }

    /// A tag that is cut off at the end of the page is left out.
    private mutating func tag(at start: Int, isEnd: Bool) -> Token? {
        var tag = Tag(isEnd: isEnd)
        var index = start
        while index < bytes.count, !endsName(bytes[index]) { index += 1 }
        tag.name = lowercased(start..<index)
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: ">") {
                position = index + 1
                return .tag(tag)
            }
            if isSpace(byte) || byte == UInt8(ascii: "/") {
                index += 1
                tag.isSelfClosing = byte == UInt8(ascii: "/")
                continue
            }
            tag.isSelfClosing = false
            // A name may begin with “=”.
            let first = index
            index += 1
            while index < bytes.count, !endsName(bytes[index]), bytes[index] != UInt8(ascii: "=") { index += 1 }
            let name = first..<index
            while index < bytes.count, isSpace(bytes[index]) { index += 1 }
            guard index < bytes.count, bytes[index] == UInt8(ascii: "=") else {
                add(name, value: index..<index, to: &tag)
                continue
            }
            index += 1
            while index < bytes.count, isSpace(bytes[index]) { index += 1 }
            guard index < bytes.count else { break }
            if bytes[index] == UInt8(ascii: "\"") || bytes[index] == UInt8(ascii: "'") {
                let quote = bytes[index]
                let first = index + 1
                index = first
                while index < bytes.count, bytes[index] != quote { index += 1 }
                guard index < bytes.count else { break }
                add(name, value: first..<index, to: &tag)
                index += 1
            } else {
                let first = index
                while index < bytes.count, !isSpace(bytes[index]), bytes[index] != UInt8(ascii: ">") { index += 1 }
                add(name, value: first..<index, to: &tag)
            }
        }
        position = bytes.count
        return nil
    }

    private func add(_ name: Range<Int>, value: Range<Int>, to tag: inout Tag) {
        guard name.count <= 11 else { return }
        let name = lowercased(name)
        // The first of several attributes with the same name counts.
        guard Self.attributes.contains(name), tag.attributes[name] == nil else { return }
        tag.attributes[name] = decoded(value, isAttribute: true)
    }

    // MARK: - Elements without markup

    /// Reads the contents of an element such as `script`, up to its end tag.
    mutating func rawText(of name: String) -> Range<Int> {
        let start = position
        // Between “<!--” and “-->”, an end tag after “<script” does not end a script.
        var (isComment, isInner) = (false, false)
        while position < bytes.count {
            if bytes[position] == UInt8(ascii: "<") {
                if matchesTag("</" + name, at: position) {
                    if !isInner { break }
                    isInner = false
                } else if name == "script" {
                    if !isComment, matches("<!--", at: position) {
                        isComment = true
                        // The hyphens may also be those of “-->”.
                        position += 1
                    } else if isComment, matchesTag("<script", at: position) {
                        isInner = true
                    }
                }
            } else if isComment, bytes[position] == UInt8(ascii: "-"), matches("-->", at: position) {
                (isComment, isInner) = (false, false)
            }
            position += 1
        }
        return start..<position
    }

    /// Reads everything that is left.
    mutating func rest() -> Range<Int> {
        defer { position = bytes.count }
        return position..<bytes.count
    }

    /// A text with the characters for its references.
    func decoded(_ range: Range<Int>, isAttribute: Bool) -> String {
        guard bytes[range].contains(UInt8(ascii: "&")) else { return String(decoding: bytes[range], as: UTF8.self) }
        var text: [UInt8] = []
        var index = range.lowerBound
        while index < range.upperBound {
            if bytes[index] == UInt8(ascii: "&"),
                let (value, length) = HTMLEntities.reference(in: bytes, at: index + 1, isAttribute: isAttribute),
                index + 1 + length <= range.upperBound
            {
                text += value.utf8
                index += 1 + length
            } else {
                text.append(bytes[index])
                index += 1
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    // MARK: - Bytes

    /// The place after the next mark; the end of the page if there is none.
    private func end(of mark: StaticString, from start: Int) -> Int {
        var index = start
        while index < bytes.count {
            if matches(mark, at: index) { return index + mark.utf8CodeUnitCount }
            index += 1
        }
        return bytes.count
    }

    /// Whether a mark is at a place.
    private func matches(_ mark: StaticString, at start: Int) -> Bool {
        guard start + mark.utf8CodeUnitCount <= bytes.count else { return false }
        return (0..<mark.utf8CodeUnitCount).allSatisfy { bytes[start + $0] == mark.utf8Start[$0] }
    }

    /// Whether a tag is at a place, in small or capital letters.
    private func matchesTag(_ mark: String, at start: Int) -> Bool {
        let mark = mark.utf8
        guard start + mark.count < bytes.count, endsName(bytes[start + mark.count]) else { return false }
        return zip(mark, bytes[start...]).allSatisfy { $0 == $1 || isLetter($1) && $0 == $1 | 0x20 }
    }

    private func lowercased(_ range: Range<Int>) -> String {
        String(decoding: bytes[range].map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    private func isLetter(_ byte: UInt8) -> Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 }
    private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0C || byte == 0x0D }
    private func endsName(_ byte: UInt8) -> Bool { isSpace(byte) || byte == UInt8(ascii: "/") || byte == UInt8(ascii: ">") }
}
