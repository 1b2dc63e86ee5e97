internal import _StringProcessing

/// Converts Swift regular expressions to patterns of JSON Schema.
enum SchemaPattern {
    /// The pattern of the expression; nil if it has none.
    static func text<Output>(of regex: Regex<Output>) -> String? {
        // The only access to the pattern of a literal or a builder. Both may quote parts between \Q and \E, which
        // ECMA-262 does not support.
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
                // A backslash and the next character form an escape: \\Q is a backslash followed by a letter.
                if character == "\\", let next = rest.popFirst() {
                    // Swift escapes the hyphen of a literal; the escape has no meaning outside of classes.
                    result += next == "-" && !isInClass ? "-" : "\\\(next)"
                } else {
                    result.append(character)
                }
            }
        }
        return result
    }
}
