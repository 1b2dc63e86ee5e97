internal import Foundation
internal import Inference
internal import JSON
internal import ModelPrompts

/// Rows of the data that teach a model to be an assistant: what a person wrote, without the wordings of this product. Here they become the
/// conversations that the product has with models: passages as `fm ask` sends them, earlier turns as ContextKit marks them, schemas as
/// they stand in prompts, calls as the chat template renders them.
///
/// The member `class` says what a row is (Documentation/Teaching.md lists the forms). One row may become several conversations.
struct AssistantRow {
    private let row: JSONValue
    /// Decides dates, which rows do not have.
    private let hash: UInt64

    /// - Returns: nil if the row has no class, and so is one of the usual forms.
    init?(_ row: JSONValue, hash: UInt64) {
        guard row["class"] != nil else { return nil }
        (self.row, self.hash) = (row, hash)
    }

    func contents() throws(TrainingData.RowError) -> [TrainingData.Content] {
        switch row["class"] {
        case .string("value")?: [try value()]
        case .string("documents")?: try documents()
        case .string("recall")?: [try recall()]
        case .string("notes")?: [try notes()]
        case .string("matters")?: try matters()
        case .string("tools")?: try tools()
        default: [try chat()]
        }
    }

    // MARK: - Conversations

    private func chat() throws(TrainingData.RowError) -> TrainingData.Content {
        var messages: [ChatMessage] = []
        if case .string(let text)? = row["instructions"] { messages.append(ChatMessage(role: .system, content: text)) }
        var isLearned = messages.map { _ in false }
        let turns = try list(row["turns"], "turns")
        let learned = try learnedTurns(of: turns.count)
        for (index, turn) in turns.enumerated() {
            guard case .array(let pair) = turn, pair.count == 2 else {
                throw TrainingData.RowError(reason: "a turn is not [user, assistant]")
            }
            messages.append(ChatMessage(role: .user, content: try text(pair[0], "a turn")))
            messages.append(ChatMessage(role: .assistant, content: try text(pair[1], "a turn")))
            isLearned += [false, learned.contains(index)]
        }
        return .chat(messages: messages, tools: [], isLearned: isLearned)
    }

    /// The turns whose answers are learned: those that the member `learn` counts from 0, or all.
    private func learnedTurns(of count: Int) throws(TrainingData.RowError) -> Set<Int> {
        guard let member = row["learn"] else { return Set(0..<count) }
        let members = try list(member, "learn")
        let turns = members.compactMap(\.integer)
        guard !turns.isEmpty, turns.count == members.count, turns.allSatisfy((0..<count).contains) else {
            throw TrainingData.RowError(reason: "“learn” does not name turns")
        }
        return Set(turns)
    }

    private func value() throws(TrainingData.RowError) -> TrainingData.Content {
        guard let schema = row["schema"], let value = row["value"] else {
            throw TrainingData.RowError(reason: "it has no schema or no value")
        }
        let prompt = try text(row["prompt"], "prompt") + "\n\n" + SchemaDescription.request(for: schema)
        return learned([
            ChatMessage(role: .user, content: prompt), ChatMessage(role: .assistant, content: value.spacedText),
        ])
    }

    private func recall() throws(TrainingData.RowError) -> TrainingData.Content {
        var lines = [ModelPrompts.recallHeading]
        var day = Self.firstDay.addingTimeInterval(Double(hash % 900) * 86_400)
        for (index, item) in try list(row["earlier"], "earlier").enumerated() {
            let quote = try text(item["text"], "a quote").split(whereSeparator: \.isNewline).joined(separator: "\n  ")
            // Some quotes are of the same day.
            if index == 0 || (hash >> index) % 3 > 0 {
                day += Double(1 + (hash >> (2 * index)) % 23) * 86_400
                lines.append("[\(Self.day(day))]")
            }
            lines.append((item["who"] == .string("assistant") ? "Assistant: " : "User: ") + quote)
        }
        let block = lines.joined(separator: "\n") + "\n\n\(ModelPrompts.recallFooting)\n"
        return learned([
            ChatMessage(role: .user, content: block + (try text(row["prompt"], "prompt"))),
            ChatMessage(role: .assistant, content: try text(row["answer"], "answer")),
        ])
    }

    private static let firstDay = Date(timeIntervalSince1970: 1_735_732_800)

    private static func day(_ date: Date) -> String {
        date.formatted(Date.FormatStyle(locale: Locale(identifier: "en_GB")).day().month(.wide).year())
    }

    private func notes() throws(TrainingData.RowError) -> TrainingData.Content {
        var said: [String] = []
        for turn in try list(row["turns"], "turns") {
            guard case .array(let pair) = turn, pair.count == 2 else {
                throw TrainingData.RowError(reason: "a turn is not [user, assistant]")
            }
            said.append("User: \(try text(pair[0], "a turn"))")
            said.append("Assistant: \(try text(pair[1], "a turn"))")
        }
        var notes: [String] = []
        for note in try list(row["notes"], "notes") { notes.append("- " + (try text(note, "a note"))) }
        let answer = notes.joined(separator: "\n")
        // Room for more than what there is to say, as requests have it.
        let words = (answer.split(whereSeparator: \.isWhitespace).count * 3 / 2 / 10 + 2) * 10
        return learned([
            ChatMessage(role: .system, content: ModelPrompts.notesInstructions),
            ChatMessage(role: .user, content: ModelPrompts.notes(on: said.joined(separator: "\n"), after: "", words: words)),
            ChatMessage(role: .assistant, content: answer),
        ])
    }

    private func matters() throws(TrainingData.RowError) -> [TrainingData.Content] {
        var result: [TrainingData.Content] = []
        for item in try list(row["sentences"], "sentences") {
            guard case .array(let pair) = item, pair.count == 2, case .bool(let matters) = pair[1] else {
                throw TrainingData.RowError(reason: "a sentence is not [text, true or false]")
            }
            result.append(
                learned([
                    ChatMessage(role: .system, content: ModelPrompts.sentenceInstructions),
                    ChatMessage(role: .user, content: ModelPrompts.willMatter(try text(pair[0], "a sentence"))),
                    // As the value that the request asks for.
                    ChatMessage(role: .assistant, content: matters ? "\"yes\"" : "\"no\""),
                ]))
        }
        return result
    }

    // MARK: - Documents

    private func documents() throws(TrainingData.RowError) -> [TrainingData.Content] {
        let list = try list(row["passages"], "passages")
        var passages: [String] = []
        for (index, passage) in list.enumerated() {
            var headings: [String] = []
            if case .array(let names)? = passage["headings"] { headings = names.compactMap(\.string) }
            let line = 1 + Int((hash >> index) % 90)
            let place = try text(passage["document"], "a passage") + ":\(line)-\(line + 3 + index)"
            passages.append(
                ModelPrompts.passageHeading(index + 1, place: place, headings: headings) + "\n"
                    + (try text(passage["text"], "a passage")))
        }
        let schema = ModelPrompts.citedAnswerSchema(passages: Array(1...max(1, list.count)))
        let request = "\n\n" + SchemaDescription.request(for: schema)
        var result: [TrainingData.Content] = []
        for item in try self.list(row["questions"], "questions") {
            let question = try text(item["question"], "a question")
            var statements: [JSONValue] = []
            for statement in try self.list(item["statements"], "statements") {
                statements.append(
                    .object([
                        .init("passage", .string(statement["passage"]?.text ?? "")),
                        .init("statement", .string(try text(statement["statement"], "a statement"))),
                    ]))
            }
            if statements.isEmpty { statements = [.object([.init("passage", .string(ModelPrompts.noPassage))])] }
            let answer = JSONValue.object([.init("statements", .array(statements))])
            let prompt = ModelPrompts.citedAnswer(question, from: passages.joined(separator: "\n\n")) + request
            result.append(
                learned([
                    ChatMessage(role: .system, content: ModelPrompts.documentsInstructions),
                    ChatMessage(role: .user, content: prompt), ChatMessage(role: .assistant, content: answer.spacedText),
                ]))
        }
        return result
    }

    // MARK: - Tools

    private func tools() throws(TrainingData.RowError) -> [TrainingData.Content] {
        var tools: [ChatTool] = []
        for item in try list(row["tools"], "tools") {
            let parameters = item["parameters"] ?? .object([])
            tools.append(
                ChatTool(
                    name: try text(item["name"], "a tool"), description: try text(item["description"], "a tool"),
                    parameters: parameters, promptParameters: parameters))
        }
        var result: [TrainingData.Content] = []
        for dialog in try list(row["dialogs"], "dialogs") {
            var messages: [ChatMessage] = []
            if case .string(let text)? = row["instructions"] { messages.append(ChatMessage(role: .system, content: text)) }
            for part in try list(dialog, "a dialog") {
                if let said = part["user"] {
                    messages.append(ChatMessage(role: .user, content: try text(said, "user")))
                } else if let answer = part["assistant"] {
                    messages.append(ChatMessage(role: .assistant, content: try text(answer, "assistant")))
                } else if let calls = part["calls"] {
                    var message = ChatMessage(role: .assistant, content: "")
                    for (index, call) in try list(calls, "calls").enumerated() {
                        message.toolCalls.append(
                            ChatToolCall(
                                id: "call_\(messages.count)_\(index)", name: try text(call["name"], "a call"),
                                arguments: call["arguments"] ?? .object([])))
                    }
                    messages.append(message)
                } else if let results = part["results"] {
                    let calls = messages.last?.toolCalls ?? []
                    for (call, output) in zip(calls, try list(results, "results")) {
                        var message = ChatMessage(role: .tool, content: try text(output, "a result"))
                        (message.toolName, message.toolCallID) = (call.name, call.id)
                        messages.append(message)
                    }
                } else {
                    throw TrainingData.RowError(reason: "a part of a dialog is none of user, assistant, calls and results")
                }
            }
            result.append(learned(messages, tools))
        }
        return result
    }

    // MARK: - Reading

    private func learned(_ messages: [ChatMessage], _ tools: [ChatTool] = []) -> TrainingData.Content {
        .chat(messages: messages, tools: tools, isLearned: messages.map { $0.role == .assistant })
    }

    private func list(_ value: JSONValue?, _ name: String) throws(TrainingData.RowError) -> [JSONValue] {
        guard case .array(let list)? = value else { throw TrainingData.RowError(reason: "“\(name)” is not an array") }
        return list
    }

    private func text(_ value: JSONValue?, _ name: String) throws(TrainingData.RowError) -> String {
        guard case .string(let text)? = value else { throw TrainingData.RowError(reason: "the text of \(name) is missing") }
        return text
    }
}
