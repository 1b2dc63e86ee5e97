/// Text as terminals show it.
public enum TerminalText {
    /// A text of a model or a file with spaces in place of the characters that control terminals, which could hide text or type commands,
    /// and without those that change the direction of text, which could make it read as something else.
    public static func safe(_ text: some StringProtocol) -> String {
        var result = String.UnicodeScalarView()
        var hasReturn = false
        for scalar in text.unicodeScalars {
            // A line end of two characters is one line end.
            if hasReturn, scalar != "\n" { result.append(" ") }
            hasReturn = scalar == "\r"
            if hasReturn || changesDirection(scalar) { continue }
            let isControl = scalar.properties.generalCategory == .control && scalar != "\n" && scalar != "\t"
            result.append(isControl ? " " : scalar)
        }
        if hasReturn { result.append(" ") }
        return String(result)
    }

    /// Joiners and variation selectors, which scripts and emoji need, do not.
    private static func changesDirection(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isBidiControl || (0x206A...0x206F).contains(scalar.value)
    }

    /// The result of ``safe(_:)`` on one line.
    public static func line(_ text: some StringProtocol) -> String {
        safe(text.split(whereSeparator: \.isNewline).joined(separator: " ")).replacing("\t", with: " ")
    }

    /// The number of cells of a text.
    public static func width(_ text: some StringProtocol) -> Int { text.reduce(0) { $0 + width($1) } }

    /// The number of cells of a character: two for East Asian wide characters and emoji, none for marks alone.
    public static func width(_ character: Character) -> Int {
        let scalars = character.unicodeScalars
        // A sequence of emoji is shown as one, and U+FE0F requests the colourful form of a character.
        if scalars.first?.properties.isEmojiPresentation == true || scalars.contains("\u{FE0F}") { return 2 }
        return scalars.reduce(0) { $0 + width($1) }
    }

    private static func width(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0x20..<0x7F: return 1
        case 0x1160...0x11FF: return 0  // vowels and final consonants, which join the first consonant
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x1B2FF, 0x1F200...0x1F2FF, 0x20000...0x3FFFD:
            // Some marks, such as U+3099, are in these ranges.
            return scalar.properties.generalCategory == .nonspacingMark ? 0 : 2
        default:
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark, .format, .control: return 0
            default: return 1
            }
        }
    }

    /// The longest beginning of a text that has at most `cells` cells.
    public static func prefix<Text: StringProtocol>(_ text: Text, cells: Int) -> Text.SubSequence {
        var used = 0
        return text.prefix { character in
            used += width(character)
            return used <= cells
        }
    }

    /// A text with spaces after it, so that it has `cells` cells.
    public static func padded(_ text: String, cells: Int) -> String {
        text + String(repeating: " ", count: max(0, cells - width(text)))
    }

    /// A line with spaces in place of tabs, which end at every eighth cell.
    public static func expandingTabs(_ line: some StringProtocol) -> String {
        var result = ""
        var used = 0
        for character in line {
            let text = character == "\t" ? String(repeating: " ", count: 8 - used % 8) : String(character)
            result += text
            used += width(text)
        }
        return result
    }
}
