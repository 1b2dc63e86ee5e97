/// Splits a template into text and tokens of expressions and statements.
///
/// White space is treated as published chat templates expect (with `trim_blocks` and `lstrip_blocks`): the first line
/// break after a statement is removed, and so is white space between the beginning of a line and a statement.
struct TemplateLexer {
    enum Token: Equatable {
        case text(String)
        case openExpression, closeExpression
        case openStatement, closeStatement
        case name(String)
        case string(String)
        case int(Int)
        case float(Double)
        case symbol(String)
    }

    private let source: [Character]
    private var index = 0
    private var line = 1
    private(set) var tokens: [(token: Token, line: Int)] = []

    static func tokens(of template: String) throws(TemplateError) -> [(token: Token, line: Int)] {
        // "\r\n" is one Character in Swift; the template language uses only "\n".
        var text = ""
        text.unicodeScalars.append(contentsOf: template.unicodeScalars.filter { $0 != "\r" })
        var lexer = TemplateLexer(source: Array(text))
        try lexer.run()
        return lexer.tokens
    }

    private init(source: [Character]) { self.source = source }

    private func sees(_ text: String) -> Bool {
        var at = index
        for character in text {
            guard at < source.count, source[at] == character else { return false }
            at += 1
        }
        return true
    }

    private mutating func advance() {
        if source[index] == "\n" { line += 1 }
        index += 1
    }

    private mutating func skip(_ count: Int) {
        for _ in 0..<count where index < source.count { advance() }
    }

    private mutating func run() throws(TemplateError) {
        var text = ""
        var textStartsLine = true  // only white space since the last line break
        while index < source.count {
            guard sees("{{") || sees("{%") || sees("{#") else {
                text.append(source[index])
                textStartsLine = source[index] == "\n" || (textStartsLine && source[index].isWhitespace)
                advance()
                continue
            }
            let kind = source[index + 1]
            skip(2)
            if index < source.count, source[index] == "-" {
                while let last = text.last, last.isWhitespace { text.removeLast() }
                skip(1)
            } else if index < source.count, source[index] == "+" {
                skip(1)
            } else if kind != "{", textStartsLine {
                while let last = text.last, last == " " || last == "\t" { text.removeLast() }
            }
            if !text.isEmpty { tokens.append((.text(text), line)) }
            text = ""
            textStartsLine = false
            let trimsAll: Bool
            switch kind {
            case "#": trimsAll = try comment()
            case "{": trimsAll = try inside(open: .openExpression, close: .closeExpression, end: "}}")
            default: trimsAll = try statement()
            }
            if trimsAll {
                while index < source.count, source[index].isWhitespace { advance() }
            } else if kind != "{", index < source.count, source[index] == "\n" {
                advance()
                textStartsLine = true
            }
        }
        if !text.isEmpty { tokens.append((.text(text), line)) }
    }

    /// Skips a comment; returns true if it ends with `-#}`.
    private mutating func comment() throws(TemplateError) -> Bool {
        let start = line
        while index < source.count {
            if sees("-#}") { skip(3); return true }
            if sees("#}") { skip(2); return false }
            advance()
        }
        throw .syntax(line: start, reason: "a comment is not closed")
    }

    private mutating func statement() throws(TemplateError) -> Bool {
        let first = tokens.count
        let trims = try inside(open: .openStatement, close: .closeStatement, end: "%}")
        guard tokens.count == first + 3, tokens[first + 1].token == .name("raw") else { return trims }
        // {% raw %} … {% endraw %}: everything up to the closing tag is text.
        tokens.removeLast(3)
        var text = ""
        let start = line
        while index < source.count {
            if let tag = endOfRaw() {
                if tag.trimsBefore { while let last = text.last, last.isWhitespace { text.removeLast() } }
                tokens.append((.text(text), start))
                while index < tag.end { advance() }
                return tag.trimsAfter
            }
            text.append(source[index])
            advance()
        }
        throw .syntax(line: start, reason: "a raw block is not closed")
    }

    /// The tag `{% endraw %}` if it begins here. White space in it is limited, so that each position takes a constant time.
    private func endOfRaw() -> (end: Int, trimsBefore: Bool, trimsAfter: Bool)? {
        guard sees("{%") else { return nil }
        var at = index + 2
        func skipSpace() {
            let limit = at + 100
            while at < min(source.count, limit), source[at].isWhitespace { at += 1 }
        }
        func takeSign() -> Bool {
            guard at < source.count, source[at] == "-" || source[at] == "+" else { return false }
            at += 1
            return source[at - 1] == "-"
        }
        let trimsBefore = takeSign()
        skipSpace()
        for character in "endraw" {
            guard at < source.count, source[at] == character else { return nil }
            at += 1
        }
        skipSpace()
        let trimsAfter = takeSign()
        guard at + 1 < source.count, source[at] == "%", source[at + 1] == "}" else { return nil }
        return (at + 2, trimsBefore, trimsAfter)
    }

    /// Reads the tokens up to `end`; returns true if `end` is preceded by `-`.
    private mutating func inside(open: Token, close: Token, end: String) throws(TemplateError) -> Bool {
        tokens.append((open, line))
        let start = line
        var depth = 0
        while index < source.count {
            let character = source[index]
            if depth == 0 {
                if sees("-" + end) || sees("+" + end) {
                    let trims = character == "-"
                    skip(3)
                    tokens.append((close, line))
                    return trims
                }
                if sees(end) {
                    skip(2)
                    tokens.append((close, line))
                    return false
                }
            }
            if character.isWhitespace {
                advance()
            } else if character == "\"" || character == "'" {
                try string(quote: character)
            } else if character.isASCII, character.isNumber {
                try number()
            } else if character.isLetter || character == "_" {
                var name = ""
                while index < source.count, source[index].isLetter || source[index].isNumber || source[index] == "_" {
                    name.append(source[index])
                    advance()
                }
                tokens.append((.name(name), line))
            } else {
                guard
                    let symbol = [
                        "==", "!=", "<=", ">=", "//", "**", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{",
                        "}", ",", ".", ":", "|",
                    ]
                    .first(where: sees)
                else { throw .syntax(line: line, reason: "the character “\(character)” is not allowed here") }
                if "([{".contains(symbol) { depth += 1 }
                if ")]}".contains(symbol) { depth -= 1 }
                tokens.append((.symbol(symbol), line))
                skip(symbol.count)
            }
        }
        throw .syntax(line: start, reason: "“\(end)” is missing")
    }

    private mutating func string(quote: Character) throws(TemplateError) {
        let start = line
        var value = ""
        advance()
        while index < source.count, source[index] != quote {
            if source[index] == "\\", index + 1 < source.count {
                advance()
                switch source[index] {
                case "n": value.append("\n")
                case "t": value.append("\t")
                case "r": value.append("\r")
                case "\n": break
                case "\\", "'", "\"": value.append(source[index])
                default:
                    value.append("\\")
                    value.append(source[index])
                }
            } else {
                value.append(source[index])
            }
            advance()
        }
        guard index < source.count else { throw .syntax(line: start, reason: "a string is not closed") }
        advance()
        tokens.append((.string(value), start))
    }

    private mutating func number() throws(TemplateError) {
        var digits = ""
        while index < source.count, source[index].isASCII,
            source[index].isNumber
                || (source[index] == "." && index + 1 < source.count && source[index + 1].isNumber && !digits.contains("."))
        {
            digits.append(source[index])
            advance()
        }
        if let value = Int(digits) {
            tokens.append((.int(value), line))
        } else if let value = Double(digits) {
            tokens.append((.float(value), line))
        } else {
            throw .syntax(line: line, reason: "“\(digits)” is not a number")
        }
    }
}
