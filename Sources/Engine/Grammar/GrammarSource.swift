package import JSON

/// The form that a response must have.
package enum GrammarSource: Sendable, Hashable {
    /// A JSON document that a JSON Schema accepts.
    case schema(JSONValue)
    /// A text that contains a match of an ECMA-262 pattern; anchor the pattern to match the complete text.
    case pattern(String)
    /// One of these texts.
    case texts([String])
    /// Free text, or calls of tools.
    case tools(ToolGrammar)
    /// A JSON document that a JSON Schema accepts, between two texts.
    case framed(before: String, schema: JSONValue, after: String)
}

/// Free text, or calls of tools of the form `{"name": …, "arguments": …}`, enclosed in the model's markers if it has
/// any.
package struct ToolGrammar: Sendable, Hashable {
    package struct Tool: Sendable, Hashable {
        package var name: String
        /// JSON Schema of the arguments.
        package var parameters: JSONValue

        package init(name: String, parameters: JSONValue) {
            self.name = name
            self.parameters = parameters
        }
    }

    package var tools: [Tool]
    /// The text before and after a call, such as `<tool_call>` and `</tool_call>`.
    package var opening: String
    package var closing: String
    /// Whether the response may be text instead of a call.
    package var allowsText: Bool
    /// Maximum number of calls. If it is more than one, the calls are a JSON array of at least one call.
    package var maximumCount: Int

    package init(
        tools: [Tool], opening: String = "", closing: String = "", allowsText: Bool = true, maximumCount: Int = 1
    ) {
        self.maximumCount = maximumCount
        self.tools = tools
        self.opening = opening
        self.closing = closing
        self.allowsText = allowsText
    }
}

/// The white space, number formats and member order of documents.
package struct GrammarOptions: Sendable, Hashable {
    /// Line breaks and an indentation of two spaces per level, instead of no white space.
    package var isPretty: Bool
    /// A space after each comma and colon; ignored if `isPretty` is set.
    package var isSpaced: Bool
    /// Whether integers may also be written as 1.0, which JSON Schema considers an integer.
    package var allowsZeroFraction: Bool
    /// Whether the members of an object may come in any order, as JSON Schema defines it, instead of the order in which
    /// the schema lists them. The items of arrays with `uniqueItems` keep their order.
    package var membersInAnyOrder: Bool

    package init(
        isPretty: Bool = false, isSpaced: Bool = false, allowsZeroFraction: Bool = true, membersInAnyOrder: Bool = false
    ) {
        self.isPretty = isPretty
        self.isSpaced = isSpaced
        self.allowsZeroFraction = allowsZeroFraction
        self.membersInAnyOrder = membersInAnyOrder
    }
}

extension GrammarSource {
    /// A unique encoding of the source, as a cache key.
    var bytes: [UInt8] {
        switch self {
        case .schema(let schema): [0] + schema.bytes
        case .pattern(let pattern): [1] + Array(pattern.utf8)
        case .texts(let texts): [2] + JSONValue.array(texts.map { .string($0) }).bytes
        case .framed(let before, let schema, let after):
            [4] + JSONValue.array([.string(before), schema, .string(after)]).bytes
        case .tools(let tools):
            [3]
                + JSONValue.array(
                    tools.tools.map { .array([.string($0.name), $0.parameters]) }
                        + [
                            .string(tools.opening), .string(tools.closing), .bool(tools.allowsText),
                            .number(DecimalNumber(tools.maximumCount)),
                        ]
                ).bytes
        }
    }
}
