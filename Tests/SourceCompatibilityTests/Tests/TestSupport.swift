import Foundation
import FoundationModels
import Testing

/// A JSON value, parsed without the parser of the module.
enum JSON: Equatable, Decodable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSON].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }

    init(data: Data) throws {
        self = try JSONDecoder().decode(JSON.self, from: data)
    }

    init(text: String) throws {
        try self.init(data: Data(text.utf8))
    }

    init(encoding value: some Encodable) throws {
        try self.init(data: JSONEncoder().encode(value))
    }

    subscript(key: String) -> JSON? {
        get {
            guard case .object(let members) = self else { return nil }
            return members[key]
        }
        set {
            guard case .object(var members) = self else { return }
            members[key] = newValue
            self = .object(members)
        }
    }

    subscript(index: Int) -> JSON? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    var elements: [JSON]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    var keys: [String]? {
        if case .object(let members) = self { members.keys.sorted() } else { nil }
    }

    var text: String? {
        if case .string(let text) = self { text } else { nil }
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(stringLiteral value: String) { self = .string(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(integerLiteral value: Int) { self = .number(Double(value)) }
    init(floatLiteral value: Double) { self = .number(value) }
    init(arrayLiteral elements: JSON...) { self = .array(elements) }
    init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(Dictionary(uniqueKeysWithValues: elements))
    }
}

/// Waits for at most five seconds until the condition is true.
nonisolated(nonsending) func eventually(_ condition: () async -> Bool) async throws -> Bool {
    for _ in 0..<1_000 {
        if await condition() { return true }
        try await Task.sleep(for: .milliseconds(5))
    }
    return false
}

/// The error of a request, or nil if it succeeded.
nonisolated(nonsending) func failure<Value>(of request: () async throws -> Value) async -> (any Error)? {
    do {
        _ = try await request()
        return nil
    } catch {
        return error
    }
}

/// The kinds of the entries of a transcript, in order.
func kinds(of entries: some Sequence<Transcript.Entry>) -> [String] {
    entries.map { entry in
        switch entry {
        case .instructions: "instructions"
        case .prompt: "prompt"
        case .toolCalls: "toolCalls"
        case .toolOutput: "toolOutput"
        case .response: "response"
        case .reasoning: "reasoning"
        case .data: "data"
        @unknown default: "unknown"
        }
    }
}

/// The lines of the segments; structured segments as JSON.
func lines(of segments: [Transcript.Segment]) -> [String] {
    segments.flatMap { segment -> [String] in
        switch segment {
        case .text(let text): text.content.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        case .structure(let structure): [structure.content.jsonString]
        default: ["[attachment]"]
        }
    }
}

func lines(of prompt: Prompt) async throws -> [String] {
    let session = LanguageModelSession(model: EchoModel())
    try await session.respond(to: prompt)
    guard case .prompt(let entry)? = session.transcript.first else { return [] }
    return lines(of: entry.segments)
}

func lines(of instructions: Instructions) async throws -> [String] {
    let session = LanguageModelSession(model: EchoModel(), instructions: instructions)
    try await session.respond(to: "go")
    return instructionLines(in: session.transcript) ?? []
}

func instructionLines(in transcript: Transcript) -> [String]? {
    guard case .instructions(let entry)? = transcript.first else { return nil }
    return lines(of: entry.segments)
}

extension Transcript {
    var prompts: [Transcript.Prompt] {
        compactMap { if case .prompt(let prompt) = $0 { prompt } else { nil } }
    }

    var responses: [Transcript.Response] {
        compactMap { if case .response(let response) = $0 { response } else { nil } }
    }

    var toolCalls: [Transcript.ToolCall] {
        flatMap { entry -> [Transcript.ToolCall] in
            if case .toolCalls(let calls) = entry { Array(calls) } else { [] }
        }
    }

    var toolOutputs: [Transcript.ToolOutput] {
        compactMap { if case .toolOutput(let output) = $0 { output } else { nil } }
    }
}
