import ContextKit
import Decisions
import Foundation
import FoundationModels
internal import JSON
import MCP
import Retrieval

// The tools of `fm mcp`. Their arguments are JSON, because some are schemas.

/// The parts of arguments that several tools have.
extension GeneratedContent {
    fileprivate func json() throws -> JSONValue { try JSONParser.parse(jsonString) }
}

struct ArgumentError: LocalizedError {
    let errorDescription: String?
    init(_ reason: String) { errorDescription = reason }
}

extension JSONValue {
    fileprivate func text(_ name: String) throws -> String {
        guard let text = self[name]?.string, !text.isBlank else {
            throw ArgumentError("“\(name)” must be a text that is not empty.")
        }
        return text
    }

    fileprivate static func parsed(_ text: String) -> JSONValue { (try? JSONParser.parse(text)) ?? .object([]) }
}

struct GenerateTool: Tool {
    let model: SystemLanguageModel
    let name = "generate"
    let description =
        "Writes a text with a small language model on this machine. With “schema”, the answer is JSON that always conforms to it."
    var parameters: GenerationSchema {
        GenerationSchema(
            checked: .parsed(
                """
                {"type":"object","properties":{
                "prompt":{"type":"string","description":"what to write"},
                "instructions":{"type":"string","description":"who the model is, and how it answers"},
                "schema":{"type":"object","description":"a JSON Schema"},
                "max_tokens":{"type":"integer","minimum":1,"maximum":4096}},
                "required":["prompt"],"additionalProperties":false}
                """))
    }

    func call(arguments: GeneratedContent) async throws -> GeneratedContent {
        let json = try arguments.json()
        let prompt = try json.text("prompt")
        let session = LanguageModelSession(model: model, instructions: json["instructions"]?.string)
        let options = GenerationOptions(maximumResponseTokens: json["max_tokens"]?.integer ?? 1_500)
        guard let schema = json["schema"], schema != .null else {
            return GeneratedContent(try await session.respond(to: prompt, options: options).content)
        }
        guard case .object = schema else { throw ArgumentError("“schema” must be a JSON Schema.") }
        return try await session.respond(to: prompt, schema: GenerationSchema(checked: schema), options: options).content
    }
}

struct DecideTool: Tool {
    let model: SystemLanguageModel
    let name = "decide"
    let description =
        "Answers a question about a text with probabilities: yes or no, or with “options” one of them, or with “levels” a level of a scale."
    var parameters: GenerationSchema {
        GenerationSchema(
            checked: .parsed(
                """
                {"type":"object","properties":{
                "question":{"type":"string","description":"a question, or a statement that is true or false"},
                "text":{"type":"string","description":"what it is about"},
                "options":{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":255},
                "levels":{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":20,"description":"the lowest one first"}},
                "required":["question","text"],"additionalProperties":false}
                """))
    }

    func call(arguments: GeneratedContent) async throws -> GeneratedContent {
        let json = try arguments.json()
        func options(_ name: String) throws -> [DecisionQuestion.Option]? {
            guard let value = json[name], value != .null else { return nil }
            guard case .array(let items) = value else { throw ArgumentError("“\(name)” must be a list of texts.") }
            return try items.map { item in
                guard let text = item.string else { throw ArgumentError("“\(name)” must be a list of texts.") }
                return .init(text)
            }
        }
        let kind: DecisionQuestion.Kind =
            if let choices = try options("options") { .choice(choices) } else if let levels = try options("levels") {
                .score(levels)
            } else { .predicate() }
        let question = DecisionQuestion(try json.text("question"), kind)
        let run = try await LanguageModelSession(model: model).decisions(about: try json.text("text"), [question])
        let answer = run.answers[0]
        var properties: [(String, any ConvertibleToGeneratedContent)] = [("answer", answer.option.name)]
        if case .score = kind { properties.append(("score", answer.score)) }
        properties.append(("confidence", answer.confidence))
        let probabilities = zip(question.options, answer.distribution.probabilities).map { option, probability in
            GeneratedContent(properties: ["value": option.name, "probability": probability])
        }
        properties.append(("probabilities", probabilities))
        return GeneratedContent(properties: properties, uniquingKeysWith: { first, _ in first })
    }
}

struct SearchTool: Tool {
    let index: SearchIndex
    let name = "search"
    let description = "Finds passages of the user's documents, by words and by meaning."
    var parameters: GenerationSchema {
        GenerationSchema(
            checked: .parsed(
                """
                {"type":"object","properties":{
                "query":{"type":"string"},
                "count":{"type":"integer","minimum":1,"maximum":20,"description":"the number of passages (5)"}},
                "required":["query"],"additionalProperties":false}
                """))
    }

    func call(arguments: GeneratedContent) async throws -> String {
        let json = try arguments.json()
        var options = SearchOptions()
        options.limit = min(20, max(1, json["count"]?.integer ?? 5))
        let results = try await index.search(try json.text("query"), options: options)
        if results.isEmpty { return "Nothing was found." }
        return results.enumerated().map { number, result in
            "[\(number + 1)] \(result.passage.place)\n\(result.passage.text)"
        }.joined(separator: "\n\n")
    }
}

struct AskTool: Tool {
    let index: SearchIndex
    let model: SystemLanguageModel
    let name = "ask"
    let description = "Answers a question from the user's documents, with citations that have been checked."
    var parameters: GenerationSchema {
        GenerationSchema(
            checked: .parsed(
                """
                {"type":"object","properties":{"question":{"type":"string"}},"required":["question"],"additionalProperties":false}
                """))
    }

    func call(arguments: GeneratedContent) async throws -> String {
        let question = try arguments.json().text("question")
        let tokens = CitedAnswer.passageTokens(
            contextSize: model.contextSize, responseTokens: CitedAnswer.defaultResponseTokens)
        let context = try await RetrievedContext(for: question, from: index, tokens: tokens, model: model)
        return try await CitedAnswer(question: question, from: context, model: model).textWithSources
    }
}

// MARK: - Conversations

struct FindConversationTool: Tool {
    let archive: ConversationArchive
    let name = "find_conversation"
    let description = "Lists the user's saved conversations, the newest first; with “text” those in which it occurs."
    var parameters: GenerationSchema {
        GenerationSchema(
            checked: .parsed(
                #"{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}"#))
    }

    func call(arguments: GeneratedContent) async throws -> String {
        let text = try arguments.json()["text"]?.string ?? ""
        let found = try archive.conversations().filter { summary in
            guard !text.isBlank else { return true }
            return try archive.turns(of: summary.id).contains { turn in
                ConversationResource.text(of: turn).localizedCaseInsensitiveContains(text)
            }
        }
        if found.isEmpty { return "There is none." }
        return found.prefix(50).map { "\($0.id): \($0.title) (\($0.turnCount) turns)" }.joined(separator: "\n")
    }
}

struct ReadConversationTool: Tool {
    let archive: ConversationArchive
    let name = "read_conversation"
    let description = "Returns the turns of a saved conversation, word for word."
    var parameters: GenerationSchema {
        GenerationSchema(
            checked: .parsed(
                """
                {"type":"object","properties":{
                "name":{"type":"string"},
                "from":{"type":"integer","minimum":1,"description":"the first turn (1)"},
                "count":{"type":"integer","minimum":1,"maximum":50,"description":"the number of turns (10)"}},
                "required":["name"],"additionalProperties":false}
                """))
    }

    func call(arguments: GeneratedContent) async throws -> String {
        let json = try arguments.json()
        let name = try json.text("name")
        guard try archive.conversations().contains(where: { $0.id == name }) else {
            throw ArgumentError("There is no conversation “\(name)”.")
        }
        let turns = try archive.turns(of: name)
        let first = min(turns.count, max(1, json["from"]?.integer ?? 1) - 1)
        let part = turns[first..<min(turns.count, first + min(50, max(1, json["count"]?.integer ?? 10)))]
        let text = part.map { ConversationResource.text(of: $0) }.joined(separator: "\n\n")
        return part.endIndex < turns.count ? text + "\n\n[\(turns.count - part.endIndex) more turns]" : text
    }
}

/// Conversations as texts with addresses.
enum ConversationResource {
    private static let prefix = "fm://conversations/"

    static func resource(_ summary: ConversationArchive.Summary) -> MCPServer.Resource {
        let name = summary.id.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? summary.id
        return .init(uri: prefix + name, name: summary.id, description: "\(summary.title) (\(summary.turnCount) turns)")
    }

    static func text(at uri: String, in archive: ConversationArchive) throws -> String? {
        guard uri.hasPrefix(prefix), let name = String(uri.dropFirst(prefix.count)).removingPercentEncoding,
            try archive.conversations().contains(where: { $0.id == name })
        else { return nil }
        return try archive.turns(of: name).map { text(of: $0) }.joined(separator: "\n\n")
    }

    static func text(of turn: Turn) -> String {
        turn.entries.compactMap { entry in
            switch entry {
            case .prompt(let prompt): "User: " + prompt.segments.modelText
            case .response(let response): "Assistant: " + response.segments.modelText
            default: nil
            }
        }.joined(separator: "\n")
    }
}
