/// Finds the first stop string in a text, and holds back text that could be the beginning of one. Also recognises a text that
/// begins with a call of a tool instead of an answer.
struct StopMatcher {
    private let stops: [[UInt8]]
    /// The stop string that was found.
    private(set) var match: String?
    private var held: [UInt8] = []
    /// Texts that end the text only if it begins with them, after white space, and tools whose calls are recognised there; empty
    /// once the text has begun in another way.
    private var openings: [[UInt8]]
    private var callableTools: [String]
    /// The tool of the call that the text began with.
    private(set) var calledTool: String?

    init(_ stops: [String], openings: [String] = [], callableTools: [String] = []) {
        self.stops = stops.filter { !$0.isEmpty }.map { Array($0.utf8) }
        self.openings = openings.map { Array($0.drop(while: \.isWhitespace).utf8) }.filter { !$0.isEmpty }
        self.callableTools = callableTools
    }

    private var isAtBeginning: Bool { !openings.isEmpty || !callableTools.isEmpty }

    /// Appends text. Returns the text that is certainly part of the response, and whether a stop string follows it.
    mutating func append(_ text: String) -> (text: String, stopped: Bool) {
        if stops.isEmpty, !isAtBeginning { return (text, false) }
        held.append(contentsOf: text.utf8)
        if isAtBeginning, let result = readBeginning() { return result }
        for start in held.indices {
            if let stop = stops.first(where: { held[start...].starts(with: $0) }) {
                return stopped(at: start, stop)
            }
            if stops.contains(where: { $0.starts(with: held[start...]) }) {
                defer { held.removeFirst(start) }
                return (String(decoding: held[..<start], as: UTF8.self), false)
            }
        }
        defer { held.removeAll() }
        return (String(decoding: held, as: UTF8.self), false)
    }

    private mutating func stopped(at start: Int, _ stop: [UInt8]) -> (text: String, stopped: Bool) {
        match = String(decoding: stop, as: UTF8.self)
        defer { held.removeAll() }
        return (String(decoding: held[..<start], as: UTF8.self), true)
    }

    /// Decides whether the text begins with a call; nil if it does not.
    private mutating func readBeginning() -> (text: String, stopped: Bool)? {
        let start = held.firstIndex { !CallBeginning.isSpace($0) } ?? held.endIndex
        if let opening = openings.first(where: { held[start...].starts(with: $0) }) { return stopped(at: start, opening) }
        var isOpen = openings.contains { $0.starts(with: held[start...]) }
        if !callableTools.isEmpty {
            switch CallBeginning(of: held, tools: callableTools) {
            case .open: isOpen = true
            case .call(let tool):
                calledTool = tool
                held.removeAll()
                return ("", true)
            case .text: break
            }
        }
        // A stop string ends the text also where it may become a call.
        if isOpen, !stops.contains(where: { held.firstRange(of: $0) != nil }) { return ("", false) }
        (openings, callableTools) = ([], [])
        return nil
    }

    /// Returns the text held back, at the end of the response, up to a stop string in it.
    mutating func finish() -> String {
        if isAtBeginning {
            (openings, callableTools) = ([], [])
            return append("").text + finish()
        }
        defer { held.removeAll() }
        return String(decoding: held, as: UTF8.self)
    }
}

/// What the beginning of a text may become: models write calls as `{"name": "…"`, in a list, in a block of code or directly,
/// with any white space, also if they were trained for another format.
enum CallBeginning: Equatable {
    /// The text may still become a call.
    case open
    case call(tool: String)
    case text

    /// The members whose value is the name of a tool.
    private static let nameKeys = ["name", "function", "tool", "tool_name"]
    private static let fences = ["```json", "```"]

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

    init(of text: [UInt8], tools: [String]) {
        var rest = text[...]
        func skipSpace() { rest = rest.drop(while: Self.isSpace) }
        /// Whether the rest begins with a text; nil if it ends before that is certain.
        func reads(_ word: String) -> Bool? {
            let common = zip(rest, word.utf8).prefix { $0 == $1 }.count
            if common == word.utf8.count {
                rest = rest.dropFirst(common)
                return true
            }
            return common == rest.count ? nil : false
        }
        /// The first of the texts that the rest begins with, and whether the rest may still become an earlier one of them.
        func readsOne(_ words: [String]) -> (word: String?, isOpen: Bool) {
            var isOpen = false
            for word in words {
                switch reads(word) {
                case true?: return (word, isOpen)
                case nil: isOpen = true
                case false?: break
                }
            }
            return (nil, isOpen)
        }
        skipSpace()
        if rest.first == UInt8(ascii: "`") {
            let (fence, isOpen) = readsOne(Self.fences)
            if isOpen || fence == nil {
                self = isOpen ? .open : .text
                return
            }
        }
        skipSpace()
        if rest.first == UInt8(ascii: "[") { rest = rest.dropFirst() }
        skipSpace()
        // Some templates show calls with two braces.
        if rest.starts(with: "{{".utf8) { rest = rest.dropFirst() }
        for part in [["{"], ["\""], Self.nameKeys.map { $0 + "\"" }, [":"], ["\""]] {
            skipSpace()
            let (word, isOpen) = readsOne(part)
            if word == nil {
                self = isOpen ? .open : .text
                return
            }
        }
        let (name, isOpen) = readsOne(tools.map { $0 + "\"" })
        self = name.map { .call(tool: String($0.dropLast())) } ?? (isOpen ? .open : .text)
    }
}
