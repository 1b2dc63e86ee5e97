internal import _StringProcessing

/// Regular expressions of Swift as those of JSON Schema.
enum SchemaPattern {
    /// The expression's text; nil if it has none.
    static func text<Output>(of regex: Regex<Output>) -> String? {
        // The only way to the text of a literal or a builder. Both may quote parts between \Q and \E, which ECMA-262 has not.
        guard let literal = regex._literalPattern, !literal.contains("\n") else { return nil }
        return withoutQuoting(literal)
    }

    private static func withoutQuoting(_ pattern: String) -> String {
        var result = ""
        var isQuoting = false
        var isInClass = false
        var rest = pattern[...]
        while let character = rest.popFirst() {
            if character == "\\", let next = rest.first, next == (isQuoting ? "E" : "Q") {
                rest.removeFirst()
                isQuoting.toggle()
            } else if isQuoting {
                if "\\^$.|?*+()[]{}".contains(character) { result += "\\" }
                result.append(character)
            } else {
                if character == "[" { isInClass = true }
                if character == "]" { isInClass = false }
                // Whatever follows a backslash belongs to it: \\Q is a backslash and a letter.
                if character == "\\", let next = rest.popFirst() {
                    // Swift escapes the hyphen of a literal, which means nothing outside of classes.
                    result += next == "-" && !isInClass ? "-" : "\\\(next)"
                } else {
                    result.append(character)
                }
            }
        }
        return result
    }
}
