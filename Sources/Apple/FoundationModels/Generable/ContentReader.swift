internal import JSON

/// Makes ``GeneratedContent`` of a JSON text that grows; the partial result can be read at any time. Parsing is linear
/// in the text, regardless of how often the result is read; reading it is linear in the number of members of the open
/// containers.
struct ContentReader: Sendable {
    private struct Container {
        let isObject: Bool
        var elements: [GeneratedContent] = []
        var properties: [String: GeneratedContent] = [:]
        var keys: [String] = []
        /// The name whose value has not been parsed yet.
        var key: String?
        let id: GenerationID?

        mutating func add(_ value: GeneratedContent) {
            guard isObject else { return elements.append(value) }
            guard let name = key else { return }
            if properties.updateValue(value, forKey: name) == nil { keys.append(name) }
            key = nil
        }

        func content(isComplete: Bool) -> GeneratedContent {
            GeneratedContent(
                storage: isObject ? .structure(properties: properties, orderedKeys: keys) : .array(elements), id: id,
                isComplete: isComplete)
        }
    }

    /// The containers that are open, and the value of the complete document.
    private struct Tree {
        var open: [Container] = []
        var root: GeneratedContent?
        let assignsIDs: Bool

        mutating func take(_ event: JSONEvent) {
            switch event {
            case .open(let isObject):
                open.append(Container(isObject: isObject, id: assignsIDs ? GenerationID() : nil))
            case .name(let name): open[open.count - 1].key = name
            case .string(let text): add(GeneratedContent(storage: .string(text)))
            case .number(let number):
                add(GeneratedContent(storage: .number(GeneratedNumber(value: number.nearestDouble, text: number.text))))
            case .bool(let value): add(GeneratedContent(storage: .bool(value)))
            case .null: add(GeneratedContent(storage: .null))
            case .close: add(open.removeLast().content(isComplete: true))
            }
        }

        private mutating func add(_ value: GeneratedContent) {
            if open.isEmpty { root = value } else { open[open.count - 1].add(value) }
        }
    }

    private var reader = JSONReader()
    private var tree: Tree

    /// - Parameter assignsIDs: Whether lists and objects get an id, which stays the same while they grow.
    init(assignsIDs: Bool = false) { tree = Tree(assignsIDs: assignsIDs) }

    /// Parses more text.
    ///
    /// - Throws: `JSONSyntaxError` if the text can no longer be JSON.
    mutating func append(_ more: String) throws(JSONSyntaxError) {
        try reader.append(Array(more.utf8)) { tree.take($0) }
    }

    /// The value parsed so far; nil before the first value has begun.
    var content: GeneratedContent? {
        if let root = tree.root { return root }
        var value = reader.openString.map { GeneratedContent(storage: .string($0), isComplete: false) }
        for container in tree.open.reversed() {
            var open = container
            if let value { open.add(value) }
            value = open.content(isComplete: false)
        }
        return value
    }

    /// The complete value, if the text is a complete document; a number may end here.
    mutating func finished() throws(JSONSyntaxError) -> GeneratedContent? {
        try reader.finish { tree.take($0) } ? tree.root : nil
    }

    /// The error of a document that ends here.
    var truncation: JSONSyntaxError { reader.truncation }
}
