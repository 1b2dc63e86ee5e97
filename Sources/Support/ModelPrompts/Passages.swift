package import JSON

// Answers from passages as values: the schema of a request and its description in the prompt are the same for requests and for training.
extension ModelPrompts {
    /// The heading of a passage in a prompt.
    package static func passageHeading(_ number: Int, place: String, headings: [String]) -> String {
        "[\(number)] \(place)" + (headings.isEmpty ? "" : " (\(headings.joined(separator: " › ")))")
    }

    /// The choice of no passage.
    package static let noPassage = "none"
    /// The largest number of statements of an answer.
    package static let maximumStatements = 3

    /// The schema of an answer: up to three statements, each after the number of its passage. A model that chooses no passage
    /// cannot write a statement.
    ///
    /// There is no quotation before the statement. It would double the length of an answer, small models repeat it as the
    /// statement, and the check needs only the passage.
    package static func citedAnswerSchema(passages: [Int]) -> JSONValue {
        func object(_ properties: [(String, JSONValue)]) -> JSONValue {
            .object([
                .init("type", .string("object")), .init("properties", .object(properties.map { .init($0.0, $0.1) })),
                .init("required", .array(properties.map { .string($0.0) })), .init("additionalProperties", .bool(false)),
            ])
        }
        func choice(_ values: [String], _ description: String) -> JSONValue {
            .object([
                .init("type", .string("string")), .init("enum", .array(values.map { .string($0) })),
                .init("description", .string(description)),
            ])
        }
        let text = JSONValue.object([
            .init("type", .string("string")), .init("description", .string("the answer in one or two sentences")),
        ])
        let statement = object([
            ("passage", choice(passages.map { "\($0)" }, "the passage that contains the answer")), ("statement", text),
        ])
        let nothing = object([("passage", choice([noPassage], "if no passage contains the answer"))])
        let statements = JSONValue.object([
            .init("type", .string("array")), .init("items", .object([.init("anyOf", .array([statement, nothing]))])),
            .init("minItems", .number(DecimalNumber(1))), .init("maxItems", .number(DecimalNumber(maximumStatements))),
        ])
        return object([("statements", statements)])
    }
}
