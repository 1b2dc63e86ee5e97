public import Foundation
internal import JSON

/// Types whose schema is written in place, without a name.
protocol InlineGenerable {
    static var schemaNode: SchemaNode { get }
}

extension GeneratedContent {
    /// The error for content of another type than expected.
    func mismatch(_ expected: String) -> ParsingError {
        ParsingError(rawContent: jsonString, debugDescription: "The content is not \(expected): \(jsonString.prefix(200))")
    }

    /// The content as a number, converted from its decimal digits.
    fileprivate func number<Value>(_ expected: String, _ read: (GeneratedNumber) -> Value?) throws -> Value {
        guard case .number(let number) = storage, let value = read(number) else { throw mismatch(expected) }
        return value
    }
}

extension Bool: Generable, InlineGenerable {
    static var schemaNode: SchemaNode { .boolean }
    /// True or false.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: schemaNode) }

    /// - Throws: ``GeneratedContent/ParsingError`` if the content is not true or false.
    public init(_ content: GeneratedContent) throws {
        guard case .bool(let value) = content.kind else { throw content.mismatch("true or false") }
        self = value
    }

    public var generatedContent: GeneratedContent { GeneratedContent(kind: .bool(self)) }
}

extension String: Generable, InlineGenerable {
    static var schemaNode: SchemaNode { .string(.init()) }
    /// Any string.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: schemaNode) }

    /// - Throws: ``GeneratedContent/ParsingError`` if the content is not a string.
    public init(_ content: GeneratedContent) throws {
        guard case .string(let text) = content.kind else { throw content.mismatch("a string") }
        self = text
    }

    public var generatedContent: GeneratedContent { GeneratedContent(kind: .string(self)) }
}

extension Int: Generable, InlineGenerable {
    static var schemaNode: SchemaNode { .number(.integer) }
    /// Any integer within the range of `Int`.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: schemaNode) }

    /// - Throws: ``GeneratedContent/ParsingError`` if the content is not an integer, or is out of range.
    public init(_ content: GeneratedContent) throws {
        self = try content.number("an integer in the range of Int") { DecimalNumber($0.text)?.integer }
    }

    public var generatedContent: GeneratedContent {
        GeneratedContent(storage: .number(GeneratedNumber(value: Double(self), text: String(self))))
    }
}

extension Float: Generable, InlineGenerable {
    static var schemaNode: SchemaNode { .number(.float) }
    /// Any number.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: schemaNode) }

    /// - Throws: ``GeneratedContent/ParsingError`` if the content is not a number.
    public init(_ content: GeneratedContent) throws {
        self = try content.number("a number") { Float($0.text) ?? Float($0.value) }
    }

    public var generatedContent: GeneratedContent {
        GeneratedContent(storage: .number(GeneratedNumber(value: Double(self), text: "\(self)")))
    }
}

extension Double: Generable, InlineGenerable {
    static var schemaNode: SchemaNode { .number(.double) }
    /// Any number.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: schemaNode) }

    /// - Throws: ``GeneratedContent/ParsingError`` if the content is not a number.
    public init(_ content: GeneratedContent) throws {
        self = try content.number("a number") { $0.value }
    }

    public var generatedContent: GeneratedContent { GeneratedContent(kind: .number(self)) }
}

extension Decimal: Generable, InlineGenerable {
    static var schemaNode: SchemaNode { .number(.decimal) }
    /// Any number.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: schemaNode) }

    /// Parses the digits exactly: 0.1 is exactly one tenth.
    ///
    /// - Throws: ``GeneratedContent/ParsingError`` if the content is not a number.
    public init(_ content: GeneratedContent) throws {
        // A number too small for `Decimal` becomes zero.
        self = try content.number("a decimal number") { Decimal(string: $0.text) ?? (abs($0.value) < 1e-100 ? 0 : nil) }
    }

    public var generatedContent: GeneratedContent {
        let text = "\(self)"
        return GeneratedContent(storage: .number(GeneratedNumber(value: Double(text) ?? .nan, text: text)))
    }
}

extension Never: Generable {
    /// A schema that no value satisfies.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: .string(.init(choices: []))) }

    /// - Throws: Always.
    public init(_ content: GeneratedContent) throws { throw content.mismatch("possible") }

    public var generatedContent: GeneratedContent { switch self {} }
}

extension Array: Generable where Element: Generable {
    /// An array whose last element may be unfinished.
    public typealias PartiallyGenerated = [Element.PartiallyGenerated]

    /// An array with any number of elements.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: schemaNode) }
}

extension Array: InlineGenerable where Element: Generable {
    static var schemaNode: SchemaNode { .array(.init(item: SchemaNode(type: Element.self))) }
}

extension Array: ConvertibleToGeneratedContent where Element: ConvertibleToGeneratedContent {
    public var generatedContent: GeneratedContent { GeneratedContent(kind: .array(map(\.generatedContent))) }
}

extension Array: ConvertibleFromGeneratedContent where Element: ConvertibleFromGeneratedContent {
    /// - Throws: ``GeneratedContent/ParsingError`` if the content is not an array, or an element has the wrong type.
    public init(_ content: GeneratedContent) throws {
        guard case .array(let elements) = content.kind else { throw content.mismatch("an array") }
        self = []
        reserveCapacity(elements.count)
        for element in elements {
            do {
                append(try Element(element))
            } catch {
                // An element that is still being generated may not be convertible yet.
                if element.isComplete { throw error }
            }
        }
    }
}

extension Optional where Wrapped: Generable {
    /// The partially generated wrapped value.
    public typealias PartiallyGenerated = Wrapped.PartiallyGenerated
}

extension Optional: PromptRepresentable where Wrapped: ConvertibleToGeneratedContent {}
extension Optional: InstructionsRepresentable where Wrapped: ConvertibleToGeneratedContent {}

extension Optional: ConvertibleToGeneratedContent where Wrapped: ConvertibleToGeneratedContent {
    /// The value's content, or null.
    public var generatedContent: GeneratedContent { self?.generatedContent ?? GeneratedContent(kind: .null) }
}
