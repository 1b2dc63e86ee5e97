/// Splits a text in any language into sentences by the rules of Unicode's sentence boundaries (UAX #29, SB3 to SB11),
/// but without its tables of letters, because Foundation does not split sentences on Linux.
enum TextUnits {
    /// The sentences in order. Joined they are the whole text: each includes the spaces that follow it.
    static func sentences(of text: some StringProtocol) -> [Substring] {
        let text = Substring(text)
        var sentences: [Substring] = []
        var start = text.startIndex
        var index = text.startIndex
        func end(at place: Substring.Index) {
            if text[start..<place].contains(where: { !$0.isWhitespace }) || sentences.isEmpty {
                if start < place { sentences.append(text[start..<place]) }
            } else if let last = sentences.last {
                sentences[sentences.count - 1] = text[last.startIndex..<place]
            }
            start = place
        }
        while index < text.endIndex {
            let character = text[index]
            let next = text.index(after: index)
            if character.isNewline {
                index = next
                end(at: index)
                continue
            }
            guard isTerminator(character) else {
                index = next
                continue
            }
            // Further terminators, closing marks and the spaces that follow belong to the sentence.
            var after = next
            while after < text.endIndex, isTerminator(text[after]) || isClosing(text[after]) { after = text.index(after: after) }
            let hasSpace = after < text.endIndex && text[after].isWhitespace
            while after < text.endIndex, text[after].isWhitespace, !text[after].isNewline { after = text.index(after: after) }
            index = after
            if character == "." || character == "…" {
                // The dots in “3.14”, “e.g. this”, “J. Smith” and “www.example.com” do not end a sentence.
                guard after == text.endIndex || hasSpace, !isInitial(before: text[start..<next]) else { continue }
                if after < text.endIndex, text[after].isLowercase || text[after] == "," { continue }
            }
            if after < text.endIndex, text[after].isNewline { continue }  // the newline ends the sentence
            end(at: after)
        }
        if start < text.endIndex { end(at: text.endIndex) }
        return sentences
    }

    private static func isTerminator(_ character: Character) -> Bool {
        ".!?…。！？｡．؟۔।॥։።፧၊။។៕᠃᠉‼⁇⁈⁉".contains(character)
    }

    private static func isClosing(_ character: Character) -> Bool { "\"'”’»)]}」』）】〉》".contains(character) }

    /// Whether a full stop follows a single letter, as in a name.
    private static func isInitial(before stop: Substring) -> Bool {
        let word = stop.dropLast().reversed().prefix { !$0.isWhitespace }
        return word.count == 1 && word.first?.isUppercase == true
    }
}
