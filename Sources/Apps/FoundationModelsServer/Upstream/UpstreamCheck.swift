internal import Grammar
internal import Inference
internal import JSON

/// Checks what another server answers while it comes: by the automaton that constrains the models of this machine.
struct UpstreamCheck {
    /// The form of an answer, compiled for bytes instead of tokens.
    struct Form: Sendable {
        let grammar: Grammar
        let isJSON: Bool

        private static let bytes = TokenVocabulary(texts: (0...255).map { [UInt8($0)] }, endTokens: [])

        /// - Parameter fuel: the maximum amount of work for compilation.
        /// - Throws: ``SchemaError``
        init(_ source: GrammarSource, fuel: Int = Grammar.fuelToCompile) throws(SchemaError) {
            grammar = try Grammar(
                source, vocabulary: Self.bytes, options: GrammarOptions(allowsZeroFraction: true, membersInAnyOrder: true),
                fuel: fuel)
            if case .schema = source { isJSON = true } else { isJSON = false }
        }

        /// Whether a text as a whole has the form.
        func accepts(_ text: String) -> Bool {
            var check = UpstreamCheck(self)
            return check.append(text) && check.isComplete
        }
    }

    private var matcher: GrammarMatcher
    private var normalizer: JSONNormalizer?

    init(_ form: Form) {
        matcher = form.grammar.matcher()
        normalizer = form.isJSON ? JSONNormalizer() : nil
    }

    var isComplete: Bool { matcher.isComplete }

    /// Reads the next part of a text; false if it cannot follow.
    mutating func append(_ text: String) -> Bool {
        guard normalizer != nil else { return matcher.advance(text.utf8) }
        guard let bytes = normalizer?.normalize(text.utf8) else { return false }
        return matcher.advance(bytes)
    }
}
