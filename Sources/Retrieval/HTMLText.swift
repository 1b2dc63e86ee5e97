import Foundation

/// The text of HTML pages: without tags, scripts and styles, with the headings as structure. Any input gives some text, as in
/// browsers.
enum HTMLText {
    static func extracted(_ text: String) -> ExtractedText {
        var reader = Reader(bytes: Array(text.utf8))
        reader.run()
        return reader.result
    }

    /// Elements whose contents are not shown.
    private static let hidden: Set<String> = ["script", "style", "noscript", "template", "svg"]
    /// Elements that continue a paragraph. All others begin a new one.
    private static let inline: Set<String> = [
        "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins", "kbd", "label",
        "mark",
        "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    ]
    private static let named: [String: String] = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": " ", "ndash": "–", "mdash": "—", "hellip": "…",
        "lsquo": "‘", "rsquo": "’", "ldquo": "“", "rdquo": "”", "laquo": "«", "raquo": "»", "copy": "©", "reg": "®", "trade": "™",
        "euro": "€", "pound": "£", "deg": "°", "times": "×", "middot": "·", "bull": "•", "auml": "ä", "ouml": "ö", "uuml": "ü",
        "Auml": "Ä", "Ouml": "Ö", "Uuml": "Ü", "szlig": "ß", "eacute": "é", "egrave": "è", "agrave": "à", "ccedil": "ç",
        "shy": "",
    ]

    private struct Reader {
        let bytes: [UInt8]
        var result = ExtractedText(blocks: [])
        private var position = 0
        private var line = 1
        private var text: [UInt8] = []
        private var firstLine = 1
        private var headings: [(level: Int, text: String)] = []
        /// The level of the heading that is being read.
        private var heading: Int?
        private var isTitle = false
        /// Whether there is text below the last heading, and the line of that.
        private var (hasText, headingLine) = (true, 1)
        private var isPreformatted = false

        init(bytes: [UInt8]) { self.bytes = bytes }

        mutating func run() {
            while position < bytes.count {
                switch bytes[position] {
                case UInt8(ascii: "<") where isTag(position + 1): readTag()
                case UInt8(ascii: "&"): readEntity()
                case let byte: append(byte)
                }
            }
            endBlock()
            endHeading()
        }

        private func isTag(_ index: Int) -> Bool {
            guard index < bytes.count else { return false }
            let byte = bytes[index]
            return byte == UInt8(ascii: "/") || byte == UInt8(ascii: "!") || byte == UInt8(ascii: "?")
                || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
        }

        private mutating func append(_ byte: UInt8) {
            position += 1
            if byte == 0x0A { line += 1 }
            let isSpace = byte == 0x20 || (0x09...0x0D).contains(byte)
            if isSpace, !isPreformatted {
                if let last = text.last, last != 0x20, last != 0x0A { text.append(0x20) }
                return
            }
            if text.isEmpty {
                if isSpace { return }
                firstLine = line
            }
            text.append(byte)
        }

        private mutating func readTag() {
            if bytes[position...].starts(with: "<!--".utf8) {
                skip(past: "-->")
                return
            }
            var index = position + 1
            let isEnd = bytes[index] == UInt8(ascii: "/")
            if isEnd { index += 1 }
            var name: [UInt8] = []
            while index < bytes.count, name.count < 32, isNameByte(bytes[index]) {
                name.append(bytes[index] >= 0x41 && bytes[index] <= 0x5A ? bytes[index] | 0x20 : bytes[index])
                index += 1
            }
            // The end of the tag, outside quoted attributes.
            var quote: UInt8?
            while index < bytes.count {
                let byte = bytes[index]
                if byte == 0x0A { line += 1 }
                if let open = quote {
                    if byte == open { quote = nil }
                } else if byte == 0x22 || byte == 0x27 {
                    quote = byte
                } else if byte == UInt8(ascii: ">") {
                    break
                }
                index += 1
            }
            position = min(bytes.count, index + 1)
            let isClosed = index > 0 && index < bytes.count && bytes[index - 1] == UInt8(ascii: "/")
            apply(String(decoding: name, as: UTF8.self), isEnd: isEnd, isClosed: isClosed)
        }

        private func isNameByte(_ byte: UInt8) -> Bool {
            UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
        }

        private mutating func apply(_ name: String, isEnd: Bool, isClosed: Bool) {
            if name == "title" {
                if isEnd {
                    isTitle = true
                    endBlock()
                    isTitle = false
                } else {
                    text = []
                }
                return
            }
            if HTMLText.hidden.contains(name), !isEnd, !isClosed {
                skip(past: "</\(name)")
                skip(past: ">")
                return
            }
            if HTMLText.inline.contains(name) { return }
            if name == "br" {
                if !text.isEmpty { text.append(0x0A) }
                return
            }
            let level = name.utf8.count == 2 && name.hasPrefix("h") ? name.last.flatMap { Int(String($0)) } : nil
            endBlock()
            if let level, (1...6).contains(level) { heading = isEnd ? nil : level }
            if name == "pre" { isPreformatted = !isEnd }
        }

        private mutating func skip(past mark: String) {
            let mark = Array(mark.utf8)
            while position < bytes.count {
                if bytes[position] == 0x0A { line += 1 }
                if matches(mark, at: position) {
                    position += mark.count
                    return
                }
                position += 1
            }
        }

        private func matches(_ mark: [UInt8], at start: Int) -> Bool {
            guard start + mark.count <= bytes.count else { return false }
            for (offset, byte) in mark.enumerated() {
                let found = bytes[start + offset]
                if found != byte && found | 0x20 != byte { return false }
            }
            return true
        }

        private mutating func readEntity() {
            let rest = bytes[(position + 1)...].prefix(12)
            guard let end = rest.firstIndex(of: UInt8(ascii: ";")) else {
                append(UInt8(ascii: "&"))
                return
            }
            let name = String(decoding: rest[..<end], as: UTF8.self)
            var value = HTMLText.named[name]
            if value == nil, name.hasPrefix("#") {
                let digits = name.dropFirst()
                let number = digits.lowercased().hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
                // As in browsers, what is no character becomes U+FFFD.
                value = number.map { String(Character($0 == 0 ? "\u{FFFD}" : Unicode.Scalar($0) ?? "\u{FFFD}")) }
            }
            guard let value else {
                append(UInt8(ascii: "&"))
                return
            }
            if text.isEmpty { firstLine = line }
            text += Array(value.utf8)
            position = end + 1
        }

        /// A heading without text below it is a text of its own.
        private mutating func endHeading() {
            if !hasText, let last = headings.last {
                result.blocks.append(
                    .init(text: last.text, headings: headings.dropLast().map(\.text), line: headingLine, lastLine: headingLine))
            }
            hasText = true
        }

        private mutating func endBlock() {
            let content = String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            text = []
            guard !content.isEmpty else { return }
            if isTitle {
                result.title = content
            } else if let heading {
                if headings.last.map({ $0.level >= heading }) ?? false { endHeading() }
                headings.removeAll { $0.level >= heading }
                headings.append((heading, content))
                (hasText, headingLine) = (false, firstLine)
                if result.title == nil { result.title = content }
            } else {
                hasText = true
                result.blocks.append(
                    .init(text: content, headings: headings.map(\.text), line: firstLine, lastLine: max(line, firstLine)))
            }
        }
    }
}
