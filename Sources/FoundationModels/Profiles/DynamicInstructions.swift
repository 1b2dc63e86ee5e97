/// Instructions and tools that may change between requests: the body is asked for anew before each of them.
///
/// ```swift
/// struct Support: DynamicInstructions {
///     @SessionProperty(\.isExpert) var isExpert
///     var body: some DynamicInstructions {
///         Instructions("You help with orders.")
///         if isExpert { RefundTool() }
///     }
/// }
/// ```
@_typeEraser(AnyDynamicInstructions)
public protocol DynamicInstructions {
    associatedtype Body: DynamicInstructions
    @DynamicInstructionsBuilder var body: Self.Body { get }
}

extension DynamicInstructions {
    public typealias ForEach = DynamicInstructionsForEach
    public typealias SessionProperty = LanguageModelSession.SessionProperty
}

/// What dynamic instructions come down to.
struct GatheredInstructions {
    var parts: [PromptPart] = []
    var tools: [any Tool] = []

    mutating func gather(_ instructions: some DynamicInstructions) {
        if let primitive = instructions as? any PrimitiveInstructions {
            primitive.gather(into: &self)
        } else {
            gather(instructions.body)
        }
    }
}

/// Instructions without a body: they say themselves what they are.
protocol PrimitiveInstructions {
    func gather(into instructions: inout GatheredInstructions)
}

/// Collects instructions and tools.
@resultBuilder
public struct DynamicInstructionsBuilder {
    public static func buildExpression<T>(_ expression: T) -> some DynamicInstructions where T: Tool {
        ToolInstructions(tools: [expression])
    }

    public static func buildExpression<T>(_ expression: T) -> T where T: DynamicInstructions { expression }

    public static func buildExpression(_ tools: [any Tool]) -> some DynamicInstructions { ToolInstructions(tools: tools) }

    @_disfavoredOverload
    public static func buildBlock<each Content>(
        _ contents: repeat each Content
    ) -> TupleDynamicInstructions<repeat each Content> where repeat each Content: DynamicInstructions {
        TupleDynamicInstructions(repeat each contents)
    }

    public static func buildBlock<T>(_ content: T) -> T where T: DynamicInstructions { content }

    public static func buildBlock() -> EmptyDynamicInstructions { EmptyDynamicInstructions() }

    public static func buildEither<TrueContent, FalseContent>(
        first content: TrueContent
    ) -> ConditionalDynamicInstructions<TrueContent, FalseContent>
    where TrueContent: DynamicInstructions, FalseContent: DynamicInstructions {
        ConditionalDynamicInstructions(.trueContent(content))
    }

    public static func buildEither<TrueContent, FalseContent>(
        second content: FalseContent
    ) -> ConditionalDynamicInstructions<TrueContent, FalseContent>
    where TrueContent: DynamicInstructions, FalseContent: DynamicInstructions {
        ConditionalDynamicInstructions(.falseContent(content))
    }

    public static func buildOptional<Content>(_ content: Content?) -> Content? where Content: DynamicInstructions { content }

    public static func buildLimitedAvailability(_ content: some DynamicInstructions) -> AnyDynamicInstructions {
        AnyDynamicInstructions(content)
    }
}

/// Tools among instructions.
private struct ToolInstructions: DynamicInstructions, PrimitiveInstructions {
    let tools: [any Tool]
    var body: Never { unreachableBody() }
    func gather(into instructions: inout GatheredInstructions) { instructions.tools += tools }
}

/// Text among instructions.
private struct TextInstructions: DynamicInstructions, PrimitiveInstructions {
    let parts: [PromptPart]
    var body: Never { unreachableBody() }
    func gather(into instructions: inout GatheredInstructions) { instructions.parts += parts }
}

/// The body of what has none; only a program that asks for it itself gets here.
func unreachableBody() -> Never {
    preconditionFailure("This type has no body; it is used as it is.")
}

extension Instructions: DynamicInstructions {
    /// The text.
    public var body: some DynamicInstructions { TextInstructions(parts: parts) }
}

extension Optional: DynamicInstructions where Wrapped: DynamicInstructions {
    public var body: Never { unreachableBody() }
}

extension Optional: PrimitiveInstructions where Wrapped: DynamicInstructions {
    func gather(into instructions: inout GatheredInstructions) {
        if let self { instructions.gather(self) }
    }
}

extension Never: DynamicInstructions {
    public var body: Never { unreachableBody() }
}

/// Instructions of any type.
public struct AnyDynamicInstructions: DynamicInstructions, PrimitiveInstructions {
    private let instructions: any DynamicInstructions

    public init(_ dynamicInstructions: any DynamicInstructions) { instructions = dynamicInstructions }
    public init(erasing dynamicInstructions: some DynamicInstructions) { instructions = dynamicInstructions }

    public var body: Never { unreachableBody() }
    func gather(into gathered: inout GatheredInstructions) { gathered.gather(instructions) }
}

/// Several instructions, one after the other.
public struct TupleDynamicInstructions<each Content>: DynamicInstructions, PrimitiveInstructions
where repeat each Content: DynamicInstructions {
    private let contents: (repeat each Content)

    public init(_ contents: repeat each Content) { self.contents = (repeat each contents) }

    public var body: Never { unreachableBody() }
    func gather(into instructions: inout GatheredInstructions) {
        for content in repeat each contents { instructions.gather(content) }
    }
}

/// One of two instructions.
public struct ConditionalDynamicInstructions<TrueContent, FalseContent>: DynamicInstructions, PrimitiveInstructions
where TrueContent: DynamicInstructions, FalseContent: DynamicInstructions {
    public enum Branch {
        case trueContent(TrueContent)
        case falseContent(FalseContent)
    }

    private let branch: ConditionalDynamicInstructions<TrueContent, FalseContent>.Branch

    public init(_ branch: ConditionalDynamicInstructions<TrueContent, FalseContent>.Branch) { self.branch = branch }

    public var body: Never { unreachableBody() }
    func gather(into instructions: inout GatheredInstructions) {
        switch branch {
        case .trueContent(let content): instructions.gather(content)
        case .falseContent(let content): instructions.gather(content)
        }
    }
}

/// No instructions.
public struct EmptyDynamicInstructions: DynamicInstructions, PrimitiveInstructions, Sendable {
    public init() {}

    public var body: Never { unreachableBody() }
    func gather(into instructions: inout GatheredInstructions) {}
}

/// Instructions for each element of a collection.
public struct DynamicInstructionsForEach<Data, ID, Content>: DynamicInstructions, PrimitiveInstructions
where Data: RandomAccessCollection, ID: Hashable, Content: DynamicInstructions {
    private let data: Data
    private let content: (Data.Element) -> Content

    public init(
        _ data: Data, id: KeyPath<Data.Element, ID>,
        @DynamicInstructionsBuilder content: @escaping (Data.Element) -> Content
    ) {
        self.data = data
        self.content = content
    }

    public var body: Never { unreachableBody() }
    func gather(into instructions: inout GatheredInstructions) {
        for element in data { instructions.gather(content(element)) }
    }
}

extension DynamicInstructionsForEach where ID == Data.Element.ID, Data.Element: Identifiable {
    public init(_ data: Data, @DynamicInstructionsBuilder content: @escaping (Data.Element) -> Content) {
        self.init(data, id: \.id, content: content)
    }
}
