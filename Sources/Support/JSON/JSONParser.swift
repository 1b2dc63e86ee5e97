/// Makes a ``JSONValue`` of a complete JSON text.
///
/// Open arrays and objects are a list, not recursion, so that deep documents need no large stack.
package struct JSONParser {
    private var open: [Container] = []
    private var root: JSONValue?

    /// An array or object that is open. Its contents are changed in place: copying them at each value would take
    /// quadratic time.
    private struct Container {
        let isObject: Bool
        var values: [JSONValue] = []
        var members: [JSONValue.Member] = []
        /// The name of the member whose value is next.
        var name = ""
    }

    /// Deeper documents are rejected, because other code processes values recursively.
    package static let maximumDepth = JSONReader.maximumDepth

    /// A byte order mark at the beginning is skipped: some editors write one.
    package static func parse(_ text: some Sequence<UInt8>) throws(JSONSyntaxError) -> JSONValue {
        var reader = JSONReader()
        var parser = JSONParser()
        let bytes = Array(text)
        try reader.append(bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes) { parser.take($0) }
        guard try reader.finish({ parser.take($0) }), let root = parser.root else { throw reader.truncation }
        return root
    }

    package static func parse(_ text: String) throws(JSONSyntaxError) -> JSONValue { try parse(text.utf8) }

    private mutating func take(_ event: JSONEvent) {
        switch event {
        case .open(let isObject): open.append(Container(isObject: isObject))
        case .name(let name): open[open.count - 1].name = name
        case .string(let text): add(.string(text))
        case .number(let number): add(.number(number))
        case .bool(let value): add(.bool(value))
        case .null: add(.null)
        case .close:
            let container = open.removeLast()
            add(container.isObject ? .object(container.members) : .array(container.values))
        }
    }

    private mutating func add(_ value: JSONValue) {
        guard !open.isEmpty else { return root = value }
        let last = open.count - 1
        if open[last].isObject {
            open[last].members.append(JSONValue.Member(open[last].name, value))
        } else {
            open[last].values.append(value)
        }
    }
}
