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
    /// What the body is; the compiler infers it.
    associatedtype Body: DynamicInstructions
    /// The instructions and tools that hold now. Asked for before each request to the model, and perhaps more often.
    @DynamicInstructionsBuilder var body: Self.Body { get }
}

extension DynamicInstructions {
    /// Lets bodies say `ForEach`.
    public typealias ForEach = DynamicInstructionsForEach
    /// Lets conforming types say `@SessionProperty`.
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
    /// A tool: the model may call it.
    public static func buildExpression<T>(_ expression: T) -> some DynamicInstructions where T: Tool {
        ToolInstructions(tools: [expression])
    }

    /// Instructions of any type: kept as they are.
    public static func buildExpression<T>(_ expression: T) -> T where T: DynamicInstructions { expression }

    /// A list of tools: the model may call each of them.
    public static func buildExpression(_ tools: [any Tool]) -> some DynamicInstructions { ToolInstructions(tools: tools) }

    /// Several components: kept in their order.
    @_disfavoredOverload
    public static func buildBlock<each Content>(
        _ contents: repeat each Content
    ) -> TupleDynamicInstructions<repeat each Content> where repeat each Content: DynamicInstructions {
        TupleDynamicInstructions(repeat each contents)
    }

    /// A single component: kept as it is.
    public static func buildBlock<T>(_ content: T) -> T where T: DynamicInstructions { content }

    /// No component: neither instructions nor tools.
    public static func buildBlock() -> EmptyDynamicInstructions { EmptyDynamicInstructions() }

    /// An `if` with `else`, or a `switch`: the first branch was taken.
    public static func buildEither<TrueContent, FalseContent>(
        first content: TrueContent
    ) -> ConditionalDynamicInstructions<TrueContent, FalseContent>
    where TrueContent: DynamicInstructions, FalseContent: DynamicInstructions {
        ConditionalDynamicInstructions(.trueContent(content))
    }

    /// An `if` with `else`, or a `switch`: the other branch was taken.
    public static func buildEither<TrueContent, FalseContent>(
        second content: FalseContent
    ) -> ConditionalDynamicInstructions<TrueContent, FalseContent>
    where TrueContent: DynamicInstructions, FalseContent: DynamicInstructions {
        ConditionalDynamicInstructions(.falseContent(content))
    }

    /// An `if` without `else`: adds nothing if the condition does not hold.
    public static func buildOptional<Content>(_ content: Content?) -> Content? where Content: DynamicInstructions { content }

    /// An `if #available`: the type is forgotten, so that older systems need not know it.
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
    // `Never` has no value to return. Requests gather primitives before they ask for a body, so none of them ends here.
    preconditionFailure("This type has no body; it is used as it is.")
}

extension Instructions: DynamicInstructions {
    /// The text.
    public var body: some DynamicInstructions { TextInstructions(parts: parts) }
}

extension Optional: DynamicInstructions where Wrapped: DynamicInstructions {
    /// There is none: asking for it stops the program.
    public var body: Never { unreachableBody() }
}

extension Optional: PrimitiveInstructions where Wrapped: DynamicInstructions {
    func gather(into instructions: inout GatheredInstructions) {
        if let self { instructions.gather(self) }
    }
}

extension Never: DynamicInstructions {
    /// There is none, as there is no such value.
    public var body: Never { unreachableBody() }
}

/// Instructions of any type.
public struct AnyDynamicInstructions: DynamicInstructions, PrimitiveInstructions {
    private let instructions: any DynamicInstructions

    /// Wraps instructions whose type is known at run time only.
    public init(_ dynamicInstructions: any DynamicInstructions) { instructions = dynamicInstructions }
    /// Wraps instructions; the compiler calls it where a type has to be forgotten.
    public init(erasing dynamicInstructions: some DynamicInstructions) { instructions = dynamicInstructions }

    /// There is none: asking for it stops the program.
    public var body: Never { unreachableBody() }
    func gather(into gathered: inout GatheredInstructions) { gathered.gather(instructions) }
}

/// Several instructions, one after the other.
public struct TupleDynamicInstructions<each Content>: DynamicInstructions, PrimitiveInstructions
where repeat each Content: DynamicInstructions {
    private let contents: (repeat each Content)

    /// Made by the builder, for bodies of several components.
    public init(_ contents: repeat each Content) { self.contents = (repeat each contents) }

    /// There is none: asking for it stops the program.
    public var body: Never { unreachableBody() }
    func gather(into instructions: inout GatheredInstructions) {
        for content in repeat each contents { instructions.gather(content) }
    }
}

/// One of two instructions.
public struct ConditionalDynamicInstructions<TrueContent, FalseContent>: DynamicInstructions, PrimitiveInstructions
where TrueContent: DynamicInstructions, FalseContent: DynamicInstructions {
    /// Which of the two it is.
    public enum Branch {
        /// The first: the condition holds.
        case trueContent(TrueContent)
        /// The second: the condition does not hold.
        case falseContent(FalseContent)
    }

    private let branch: ConditionalDynamicInstructions<TrueContent, FalseContent>.Branch

    /// Made by the builder, for `if` with `else` and for `switch`.
    public init(_ branch: ConditionalDynamicInstructions<TrueContent, FalseContent>.Branch) { self.branch = branch }

    /// There is none: asking for it stops the program.
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
    /// Made by the builder, for empty bodies.
    public init() {}

    /// There is none: asking for it stops the program.
    public var body: Never { unreachableBody() }
    func gather(into instructions: inout GatheredInstructions) {}
}

/// Instructions for each element of a collection.
public struct DynamicInstructionsForEach<Data, ID, Content>: DynamicInstructions, PrimitiveInstructions
where Data: RandomAccessCollection, ID: Hashable, Content: DynamicInstructions {
    private let data: Data
    private let content: (Data.Element) -> Content

    /// What the closure gives for each element, in order.
    ///
    /// - Parameter id: What tells elements apart. It does not matter here: all of them are asked anew each time.
    public init(
        _ data: Data, id: KeyPath<Data.Element, ID>,
        @DynamicInstructionsBuilder content: @escaping (Data.Element) -> Content
    ) {
        self.data = data
        self.content = content
    }

    /// There is none: asking for it stops the program.
    public var body: Never { unreachableBody() }
    func gather(into instructions: inout GatheredInstructions) {
        for element in data { instructions.gather(content(element)) }
    }
}

extension DynamicInstructionsForEach where ID == Data.Element.ID, Data.Element: Identifiable {
    /// What the closure gives for each element, in order.
    public init(_ data: Data, @DynamicInstructionsBuilder content: @escaping (Data.Element) -> Content) {
        self.init(data, id: \.id, content: content)
    }
}
