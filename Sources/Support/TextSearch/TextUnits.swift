/// Splits a text in any language into sentences by the rules of Unicode's sentence boundaries (UAX #29, SB3 to SB11),
/// but without its tables of letters, because Foundation does not split sentences on Linux.
public enum TextUnits {
    /// The sentences in order. Joined they are the whole text: each includes the spaces that follow it.
    ///
    /// Works on Unicode scalars, which are many times faster to iterate than characters, but never ends a sentence within
    /// a character.
    public static func sentences(of text: some StringProtocol) -> [Substring] {
        let text = Substring(text)
        let scalars = text.unicodeScalars
        var sentences: [Substring] = []
        var start = text.startIndex
        var index = text.startIndex
        // Whether there is anything but spaces since `start`.
        var hasText = false
        func end(at place: Substring.Index) {
            if hasText || sentences.isEmpty {
                if start < place { sentences.append(text[start..<place]) }
            } else if let last = sentences.last {
                sentences[sentences.count - 1] = text[last.startIndex..<place]
            }
            start = place
            hasText = false
        }
        while index < text.endIndex {
            let scalar = scalars[index]
            let next = scalars.index(after: index)
            if scalar.isNewline {
                index = next
                if scalar == "\r", index < text.endIndex, scalars[index] == "\n" { index = scalars.index(after: index) }
                end(at: index)
                continue
            }
            if !scalar.isSpace { hasText = true }
            guard scalar.endsSentence else {
                index = next
                continue
            }
            // Further terminators, closing marks and the spaces that follow belong to the sentence.
            var after = next
            while after < text.endIndex, scalars[after].endsSentence || scalars[after].isClosingMark || scalars[after].isExtending
            {
                after = scalars.index(after: after)
            }
            let hasSpace = after < text.endIndex && scalars[after].isSpace
            while after < text.endIndex, scalars[after].isSpace && !scalars[after].isNewline || scalars[after].isExtending {
                after = scalars.index(after: after)
            }
            let dot = index
            index = after
            if scalar == "." || scalar == "…" {
                // The dots in “3.14”, “e.g. this”, “J. Smith” and “www.example.com” do not end a sentence.
                guard after == text.endIndex || hasSpace, !isInitial(scalars, from: start, dot: dot) else { continue }
                if after < text.endIndex, scalars[after].isLowercaseLetter || scalars[after] == "," { continue }
            }
            if after < text.endIndex, scalars[after].isNewline { continue }  // the newline ends the sentence
            end(at: after)
        }
        if start < text.endIndex { end(at: text.endIndex) }
        return sentences
    }

    /// Whether a dot follows a single capital letter, as in a name.
    private static func isInitial(
        _ scalars: Substring.UnicodeScalarView, from start: Substring.Index, dot: Substring.Index
    ) -> Bool {
        guard start < dot else { return false }
        let letter = scalars.index(before: dot)
        guard scalars[letter].properties.isUppercase else { return false }
        return letter == start || scalars[scalars.index(before: letter)].isSpace
    }
}

extension Unicode.Scalar {
    fileprivate var isNewline: Bool {
        switch self {
        case "\n", "\r", "\u{B}", "\u{C}", "\u{85}", "\u{2028}", "\u{2029}": true
        default: false
        }
    }

    // Looking up properties takes far longer than comparing, so ASCII does without.

    fileprivate var isSpace: Bool {
        value < 0x80 ? value == 0x20 || (0x09...0x0D).contains(value) : properties.isWhitespace
    }

    fileprivate var isLowercaseLetter: Bool {
        value < 0x80 ? (0x61...0x7A).contains(value) : properties.isLowercase
    }

    /// Whether it belongs to the character before it.
    fileprivate var isExtending: Bool { value >= 0x300 && properties.isGraphemeExtend }

    fileprivate var endsSentence: Bool {
        switch self {
        case ".", "!", "?": true
        case _ where value < 0x80: false
        case "…", "。", "！", "？", "｡", "．", "؟", "۔", "।", "॥", "։", "።", "፧", "၊", "။", "៕", "᠃", "᠉", "‼", "⁇", "⁈", "⁉": true
        default: false
        }
    }

    fileprivate var isClosingMark: Bool {
        switch self {
        case "\"", "'", ")", "]", "}", "”", "’", "»", "」", "』", "】", "〉", "》": true
        default: false
        }
    }
}
