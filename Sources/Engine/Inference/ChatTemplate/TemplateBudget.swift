/// The work of one rendering, which is limited because templates come from files. An operation is charged before it is done.
struct TemplateBudget {
    /// The maximum number of steps: far more than a template needs for the longest conversation, but few enough that
    /// rendering does not appear to hang.
    static let maximumSteps = 2_000_000
    /// The maximum size of a string or of the whole output, in bytes.
    static let maximumText = 16 << 20
    /// The maximum number of values inside one value, and their maximum nesting depth.
    static let maximumNodes = 200_000
    private static let maximumDepth = 100
    /// The maximum nesting of blocks, expressions and filters, which are evaluated recursively: it bounds the use of the stack.
    private static let maximumNesting = 500
    /// The bytes of a string that are read in one step: character by character, or copied and compared.
    private static let bytesPerStep = 64
    private static let copiedBytesPerStep = 256

    private let maximumSteps: Int
    private var steps = 0
    private var nesting = 0

    init(maximumSteps: Int) { self.maximumSteps = maximumSteps }

    mutating func spend(_ count: Int = 1) throws(TemplateError) {
        steps += count
        guard steps < maximumSteps else { throw .limit(reason: "it takes too many steps") }
    }

    mutating func enter() throws(TemplateError) {
        nesting += 1
        guard nesting < Self.maximumNesting else { throw .rendering(reason: "it is nested too deeply") }
    }

    mutating func leave() { nesting -= 1 }

    /// Charges an operation that reads a whole value.
    mutating func charge(_ value: TemplateValue) throws(TemplateError) {
        switch value {
        case .string(let text): try spend(text.utf8Count / Self.bytesPerStep)
        case .list, .dictionary: try spend(Self.size(of: value))
        default: break
        }
    }

    /// Charges an operation that reads a string, copies the elements of a list without reading them, or makes a value of each key of
    /// a dictionary.
    mutating func chargeElements(of value: TemplateValue) throws(TemplateError) {
        switch value {
        case .list(let values): try spend(values.count / Self.bytesPerStep)
        case .dictionary(let dictionary): try spend(dictionary.pairs.count)
        default: try charge(value)
        }
    }

    /// Charges an operator or a test that reads both of its operands.
    mutating func charge(_ symbol: String, _ a: TemplateValue, _ b: TemplateValue) throws(TemplateError) {
        switch (symbol, a, b) {
        case ("in", _, _), ("~", _, _), ("+", _, _): break
        // Values of different kinds are not compared.
        case (_, .list, .list), (_, .dictionary, .dictionary), (_, .string, .string): break
        default: return
        }
        try charge(copyOf: a)
        try charge(copyOf: b)
    }

    /// Charges an operation that copies or compares a whole value.
    private mutating func charge(copyOf value: TemplateValue) throws(TemplateError) {
        if case .string(let text) = value { try spend(text.utf8Count / Self.copiedBytesPerStep) } else { try charge(value) }
    }

    /// Charges a new value, and checks its limits.
    mutating func checked(_ value: TemplateValue) throws(TemplateError) -> TemplateValue {
        if case .string(let text) = value, text.utf8Count > Self.maximumText { throw .limit(reason: "a string is too long") }
        try charge(copyOf: value)
        try spend()
        return value
    }

    /// Checks that a list may have another element.
    static func check(count: Int) throws(TemplateError) {
        guard count < maximumNodes else { throw .limit(reason: "a value is too large") }
    }

    /// The number of values inside a value; a string counts as several. A value that is referenced several times is counted each
    /// time, because each traversal visits it as often.
    static func size(of value: TemplateValue) throws(TemplateError) -> Int {
        var nodes = 0
        try measure(value, depth: 0, &nodes)
        return nodes
    }

    private static func measure(_ value: TemplateValue, depth: Int, _ nodes: inout Int) throws(TemplateError) {
        nodes += 1
        guard nodes < maximumNodes, depth < maximumDepth else { throw .limit(reason: "a value is too large") }
        switch value {
        case .string(let text): nodes += text.utf8Count / copiedBytesPerStep
        case .list(let values): for value in values { try measure(value, depth: depth + 1, &nodes) }
        case .dictionary(let dictionary):
            for pair in dictionary.pairs {
                nodes += pair.key.utf8.count / copiedBytesPerStep
                try measure(pair.value, depth: depth + 1, &nodes)
            }
        default: break
        }
    }
}
