/// Instructions and tools that may change between requests: the body is evaluated before each request.
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
    /// The type of the body; the compiler infers it.
    associatedtype Body: DynamicInstructions
    /// The current instructions and tools. Evaluated at least once before each model request.
    @DynamicInstructionsBuilder var body: Self.Body { get }
}

extension DynamicInstructions {
    /// Makes `ForEach` available in bodies.
    public typealias ForEach = DynamicInstructionsForEach
    /// Makes `@SessionProperty` available in conforming types.
    public typealias SessionProperty = LanguageModelSession.SessionProperty
}

/// The text and tools that dynamic instructions evaluate to.
struct ResolvedInstructions {
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

/// Instructions without a body, which add their text or tools directly.
protocol PrimitiveInstructions {
    func gather(into instructions: inout ResolvedInstructions)
}

/// Combines instructions and tools.
@resultBuilder
public struct DynamicInstructionsBuilder {
    /// A tool that the model may call.
    public static func buildExpression<T>(_ expression: T) -> some DynamicInstructions where T: Tool {
        ToolInstructions(tools: [expression])
    }

    /// Instructions of any type, unchanged.
    public static func buildExpression<T>(_ expression: T) -> T where T: DynamicInstructions { expression }

    /// Tools that the model may call.
    public static func buildExpression(_ tools: [any Tool]) -> some DynamicInstructions { ToolInstructions(tools: tools) }

    /// Several components in their order.
    @_disfavoredOverload
    public static func buildBlock<each Content>(
        _ contents: repeat each Content
    ) -> TupleDynamicInstructions<repeat each Content> where repeat each Content: DynamicInstructions {
        TupleDynamicInstructions(repeat each contents)
    }

    /// A single component, unchanged.
    public static func buildBlock<T>(_ content: T) -> T where T: DynamicInstructions { content }

    /// No components.
    public static func buildBlock() -> EmptyDynamicInstructions { EmptyDynamicInstructions() }

    /// The first branch of an `if` with `else`, or of a `switch`.
    public static func buildEither<TrueContent, FalseContent>(
        first content: TrueContent
    ) -> ConditionalDynamicInstructions<TrueContent, FalseContent>
    where TrueContent: DynamicInstructions, FalseContent: DynamicInstructions {
        ConditionalDynamicInstructions(.trueContent(content))
    }

    /// The second branch of an `if` with `else`, or of a `switch`.
    public static func buildEither<TrueContent, FalseContent>(
        second content: FalseContent
    ) -> ConditionalDynamicInstructions<TrueContent, FalseContent>
    where TrueContent: DynamicInstructions, FalseContent: DynamicInstructions {
        ConditionalDynamicInstructions(.falseContent(content))
    }

    /// An `if` without `else`; a false condition adds nothing.
    public static func buildOptional<Content>(_ content: Content?) -> Content? where Content: DynamicInstructions { content }

    /// An `if #available`: erases the type, so that it need not exist on older systems.
    public static func buildLimitedAvailability(_ content: some DynamicInstructions) -> AnyDynamicInstructions {
        AnyDynamicInstructions(content)
    }
}

/// Tools as a component of instructions.
private struct ToolInstructions: DynamicInstructions, PrimitiveInstructions {
    let tools: [any Tool]
    var body: Never { unreachableBody() }
    func gather(into instructions: inout ResolvedInstructions) { instructions.tools += tools }
}

/// Text as a component of instructions.
private struct TextInstructions: DynamicInstructions, PrimitiveInstructions {
    let parts: [PromptPart]
    var body: Never { unreachableBody() }
    func gather(into instructions: inout ResolvedInstructions) { instructions.parts += parts }
}

/// The body of a primitive type; reached only if a program accesses it directly.
func unreachableBody() -> Never {
    // `Never` has no value to return. Requests evaluate primitives without accessing their bodies.
    preconditionFailure("This type is a primitive and has no body.")
}

extension Instructions: DynamicInstructions {
    /// The text of the instructions.
    public var body: some DynamicInstructions { TextInstructions(parts: parts) }
}

extension Optional: DynamicInstructions where Wrapped: DynamicInstructions {
    /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
    public var body: Never { unreachableBody() }
}

extension Optional: PrimitiveInstructions where Wrapped: DynamicInstructions {
    func gather(into instructions: inout ResolvedInstructions) {
        if let self { instructions.gather(self) }
    }
}

extension Never: DynamicInstructions {
    /// Not reachable, because `Never` has no values.
    public var body: Never { unreachableBody() }
}

/// Type-erased instructions.
public struct AnyDynamicInstructions: DynamicInstructions, PrimitiveInstructions {
    private let instructions: any DynamicInstructions

    /// Wraps instructions whose type is known only at run time.
    public init(_ dynamicInstructions: any DynamicInstructions) { instructions = dynamicInstructions }
    /// Wraps instructions; called by the compiler for type erasure.
    public init(erasing dynamicInstructions: some DynamicInstructions) { instructions = dynamicInstructions }

    /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
    public var body: Never { unreachableBody() }
    func gather(into gathered: inout ResolvedInstructions) { gathered.gather(instructions) }
}

/// A sequence of instructions.
public struct TupleDynamicInstructions<each Content>: DynamicInstructions, PrimitiveInstructions
where repeat each Content: DynamicInstructions {
    private let contents: (repeat each Content)

    /// Created by the builder for bodies with several components.
    public init(_ contents: repeat each Content) { self.contents = (repeat each contents) }

    /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
    public var body: Never { unreachableBody() }
    func gather(into instructions: inout ResolvedInstructions) {
        for content in repeat each contents { instructions.gather(content) }
    }
}

/// One of two alternative instructions.
public struct ConditionalDynamicInstructions<TrueContent, FalseContent>: DynamicInstructions, PrimitiveInstructions
where TrueContent: DynamicInstructions, FalseContent: DynamicInstructions {
    /// The alternatives.
    public enum Branch {
        /// The condition is true.
        case trueContent(TrueContent)
        /// The condition is false.
        case falseContent(FalseContent)
    }

    private let branch: ConditionalDynamicInstructions<TrueContent, FalseContent>.Branch

    /// Created by the builder for `if` with `else` and for `switch`.
    public init(_ branch: ConditionalDynamicInstructions<TrueContent, FalseContent>.Branch) { self.branch = branch }

    /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
    public var body: Never { unreachableBody() }
    func gather(into instructions: inout ResolvedInstructions) {
        switch branch {
        case .trueContent(let content): instructions.gather(content)
        case .falseContent(let content): instructions.gather(content)
        }
    }
}

/// Empty instructions.
public struct EmptyDynamicInstructions: DynamicInstructions, PrimitiveInstructions, Sendable {
    /// Created by the builder for empty bodies.
    public init() {}

    /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
    public var body: Never { unreachableBody() }
    func gather(into instructions: inout ResolvedInstructions) {}
}

/// Instructions for each element of a collection.
public struct DynamicInstructionsForEach<Data, ID, Content>: DynamicInstructions, PrimitiveInstructions
where Data: RandomAccessCollection, ID: Hashable, Content: DynamicInstructions {
    private let data: Data
    private let content: (Data.Element) -> Content

    /// Creates instructions from the results of the closure for each element, in order.
    ///
    /// - Parameter id: Identifies an element. It has no effect here: all elements are evaluated each time.
    public init(
        _ data: Data, id: KeyPath<Data.Element, ID>,
        @DynamicInstructionsBuilder content: @escaping (Data.Element) -> Content
    ) {
        self.data = data
        self.content = content
    }

    /// Not called: sessions evaluate this type without a body. Accessing it is a programming error and stops the program.
    public var body: Never { unreachableBody() }
    func gather(into instructions: inout ResolvedInstructions) {
        for element in data { instructions.gather(content(element)) }
    }
}

extension DynamicInstructionsForEach where ID == Data.Element.ID, Data.Element: Identifiable {
    /// Creates instructions from the results of the closure for each element, in order.
    public init(_ data: Data, @DynamicInstructionsBuilder content: @escaping (Data.Element) -> Content) {
        self.init(data, id: \.id, content: content)
    }
}
