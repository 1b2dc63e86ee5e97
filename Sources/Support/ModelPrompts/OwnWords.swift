extension ModelPrompts {
    /// What a user says in a prompt, without what it only quotes: earlier turns, passages of documents and data that this product puts
    /// in front of a request, and in the request itself text between quotation marks, blocks of code, and lines that begin with ">".
    /// A few words between quotation marks are a part of the request.
    ///
    /// Takes time in proportion to the prompt.
    public static func ownWords(in prompt: String) -> String {
        var text = prompt[...]
        if text.hasPrefix(recallHeading), let end = last("\n\(recallFooting)\n", in: text) { text = text[end...] }
        if text.hasPrefix(passagesOpening) || text.hasPrefix(excerptsOpening), let end = last("\nQuestion: ", in: text) {
            text = text[end...]
        }
        return withoutQuotations(withoutData(text))
    }

    /// The index after the last occurrence of a line.
    private static func last(_ mark: String, in text: Substring) -> Substring.Index? {
        let (bytes, wanted) = (text.utf8, Array(mark.utf8))
        var end = bytes.endIndex
        while let place = bytes[..<end].lastIndex(of: wanted[0]) {
            if bytes[place...].starts(with: wanted) { return bytes.index(place, offsetBy: wanted.count) }
            end = place
        }
        return nil
    }

    /// Without what stands between the marks of ``spotlighting(_:)``.
    private static func withoutData(_ text: Substring) -> Substring {
        guard let start = text.utf8.firstRange(of: "[data ".utf8)?.lowerBound,
            let end = last("[end ", in: text), end > start
        else { return text }
        return text[..<start] + text[end...]
    }

    /// The quotation mark that closes each opening one.
    private static let quotations: [Character: Set<Character>] = [
        "\"": ["\""], "“": ["”", "\""], "„": ["“", "”"], "«": ["»"], "»": ["«"], "「": ["」"], "『": ["』"],
    ]

    /// The number of words up to which text between quotation marks is a part of the request: a term, a title.
    private static let maximumTerm = 4

    private static func withoutQuotations(_ text: Substring) -> String {
        var kept = ""
        var isInCode = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let isFence = line.drop(while: \.isWhitespace).hasPrefix("```")
            if isFence { isInCode.toggle() }
            if isInCode || isFence || line.hasPrefix(">") { continue }
            var rest = line
            while let open = rest.firstIndex(where: { quotations[$0] != nil }) {
                kept += rest[..<open]
                let after = rest[rest.index(after: open)...]
                // A mark that is not closed in its line quotes nothing: inches, a forgotten one.
                guard let closing = quotations[rest[open]], let close = after.firstIndex(where: closing.contains) else {
                    kept.append(rest[open])
                    rest = after
                    break
                }
                let isTerm = after[..<close].split(maxSplits: maximumTerm, whereSeparator: \.isWhitespace).count <= maximumTerm
                kept += isTerm ? " \(after[..<close]) " : " "
                rest = after[after.index(after: close)...]
            }
            kept += rest
            kept += "\n"
        }
        return kept
    }
}
