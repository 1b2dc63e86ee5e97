internal import Files
public import Foundation
package import Inference
internal import JSON
internal import ModelPrompts

/// Rows to learn from, read from JSON Lines.
///
/// A row has one of these forms:
/// - `{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}], "tools": […]}`, with the roles system, user,
///   assistant and tool, and calls as `"tool_calls": [{"id": "…", "function": {"name": "…", "arguments": {…}}}]`. A message with
///   `"learn": false` is not learned;
/// - the array of messages alone, with the tools in the first message;
/// - `{"prompt": "…", "completion": "…"}`;
/// - `{"text": "…"}`, of which every token is learned.
///
/// Rows with the member `class` are those that teach a model to be an assistant (Documentation/Teaching.md).
///
/// A user's message may have a `response_format` with a JSON Schema, which then stands in the prompt as it does in a guided request.
public struct TrainingData: Sendable {
    package struct Row: Sendable {
        /// The line of the file, from 1.
        package var line: Int
        package var content: Content
        /// Identifies the text of the line.
        package var hash: UInt64
    }

    package enum Content: Sendable {
        case chat(messages: [ChatMessage], tools: [ChatTool], isLearned: [Bool])
        case text(String)
    }

    package var rows: [Row] = []
    /// Identifies all rows.
    package var hash: UInt64 { rows.reduce(0) { FNV.step($0, $1.hash) } }

    /// The number of rows.
    public var count: Int { rows.count }

    /// The largest file that is read.
    private static let maximumBytes = 1 << 30

    /// Reads a file of JSON Lines, or all files NAME.jsonl of a folder in the order of their names. Empty lines are ignored.
    ///
    /// - Throws: ``TrainingError/invalidData(line:reason:)`` for a row that has no known form, ``TrainingError/noData(_:)`` if a file cannot
    ///   be read or there are no rows.
    public init(contentsOf url: URL) throws(TrainingError) {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder), isFolder.boolValue else {
            self = try Self.file(url)
            return
        }
        let files: [URL]
        do { files = try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil) } catch {
            throw .noData("\(url.path) cannot be read: \(error.localizedDescription)")
        }
        for file in files.sorted(by: { $0.path < $1.path }) where file.pathExtension == "jsonl" {
            do { rows += try Self.file(file).rows } catch TrainingError.invalidData(let line, let reason) {
                throw .invalidData(line: line, reason: "\(file.lastPathComponent): \(reason)")
            }
        }
        guard !rows.isEmpty else { throw .noData("The folder \(url.path) has no files NAME.jsonl.") }
    }

    private static func file(_ url: URL) throws(TrainingError) -> TrainingData {
        let data: Data
        do {
            let size = try url.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
            guard size <= maximumBytes else {
                throw TrainingError.noData("\(url.path) is larger than 1 GB. Train with a part of it.")
            }
            data = try Data(contentsOf: url)
        } catch let error as TrainingError {
            throw error
        } catch {
            throw .noData("\(url.path) cannot be read: \(error.localizedDescription)")
        }
        return try TrainingData(data)
    }

    /// Reads JSON Lines.
    public init(_ data: Data) throws(TrainingError) {
        // Some editors write a mark at the beginning.
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let data = data.starts(with: mark) ? data.dropFirst(mark.count) : data
        for (index, line) in data.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            guard line.contains(where: { $0 != 0x20 && $0 != 0x0D && $0 != 0x09 }) else { continue }
            guard String(validating: line, as: UTF8.self) != nil else {
                throw .invalidData(line: index + 1, reason: "it is not valid UTF-8")
            }
            let value: JSONValue
            do {
                value = try JSONParser.parse(line)
            } catch {
                // The parser read one line, and the error names it already.
                throw .invalidData(line: index + 1, reason: "it is not JSON at column \(error.column): \(error.reason)")
            }
            let hash = FNV.hash(line)
            do throws(RowError) {
                let contents =
                    if let row = AssistantRow(value, hash: hash) { try row.contents() } else { [try Self.content(value)] }
                for content in contents { rows.append(Row(line: index + 1, content: content, hash: hash)) }
            } catch {
                throw .invalidData(line: index + 1, reason: error.reason)
            }
        }
        guard !rows.isEmpty else { throw .noData("The data has no rows.") }
    }

    // MARK: - Reading rows

    struct RowError: Error { var reason: String }

    private static func content(_ value: JSONValue) throws(RowError) -> Content {
        if case .array(let messages) = value { return try chat(messages, tools: nil) }
        guard case .object = value else { throw RowError(reason: "it is neither an object nor an array of messages") }
        if let messages = value["messages"] {
            guard case .array(let list) = messages else { throw RowError(reason: "“messages” is not an array") }
            return try chat(list, tools: value["tools"])
        }
        if let prompt = value["prompt"] {
            guard case .string(let prompt) = prompt else { throw RowError(reason: "“prompt” is not text") }
            guard case .string(let completion)? = value["completion"] ?? value["response"] else {
                throw RowError(reason: "it has a prompt, but no “completion”")
            }
            return .chat(
                messages: [ChatMessage(role: .user, content: prompt), ChatMessage(role: .assistant, content: completion)],
                tools: [],
                isLearned: [false, true])
        }
        if case .string(let text)? = value["text"] { return .text(text) }
        throw RowError(reason: "it has none of “messages”, “prompt” and “text”")
    }

    private static func chat(_ list: [JSONValue], tools: JSONValue?) throws(RowError) -> Content {
        var messages: [ChatMessage] = []
        var isLearned: [Bool] = []
        var names: [String: String] = [:]
        for (index, item) in list.enumerated() {
            guard case .string(let name)? = item["role"],
                let role = ChatMessage.Role(rawValue: name == "developer" ? "system" : name)
            else { throw RowError(reason: "message \(index + 1) has no role system, user, assistant or tool") }
            if role == .system, index > 0 {
                throw RowError(reason: "message \(index + 1) is a system message, but not the first message")
            }
            var message = ChatMessage(role: role, content: try text(item["content"], index))
            if role == .user, let format = item["response_format"] {
                guard let schema = format["json_schema"]?["schema"] ?? format["json_schema"] ?? format["schema"] else {
                    throw RowError(reason: "the response_format of message \(index + 1) has no schema")
                }
                message.content += "\n\n" + SchemaDescription.request(for: schema)
            }
            if case .string(let reasoning)? = item["reasoning_content"] ?? item["reasoning"] { message.reasoning = reasoning }
            if let calls = item["tool_calls"], calls != .null {
                guard role == .assistant, case .array(let list) = calls else {
                    throw RowError(reason: "the tool_calls of message \(index + 1) are no array of an assistant's message")
                }
                for (number, call) in list.enumerated() {
                    let function = call["function"] ?? call
                    guard case .string(let name)? = function["name"] else {
                        throw RowError(reason: "a call of message \(index + 1) has no name")
                    }
                    let id = if case .string(let id)? = call["id"] { id } else { "call_\(messages.count)_\(number)" }
                    names[id] = name
                    message.toolCalls.append(
                        ChatToolCall(id: id, name: name, arguments: try arguments(function["arguments"], index)))
                }
            }
            if role == .tool {
                if case .string(let id)? = item["tool_call_id"] { message.toolCallID = id }
                if case .string(let name)? = item["name"] { message.toolName = name }
                if message.toolName == nil { message.toolName = message.toolCallID.flatMap { names[$0] } }
            }
            messages.append(message)
            if case .bool(false)? = item["learn"] { isLearned.append(false) } else { isLearned.append(role == .assistant) }
        }
        guard messages.contains(where: { $0.role == .assistant }) else {
            throw RowError(reason: "it has no message of the assistant")
        }
        guard messages.contains(where: { $0.role == .user }) else { throw RowError(reason: "it has no message of the user") }
        return .chat(messages: messages, tools: try self.tools(tools ?? list.first?["tools"]), isLearned: isLearned)
    }

    private static func text(_ value: JSONValue?, _ index: Int) throws(RowError) -> String {
        switch value {
        case .string(let text)?: return text
        case nil, .null?: return ""
        case .array(let parts)?:
            // Parts, as in the requests of servers.
            var text = ""
            for part in parts {
                guard case .string(let piece)? = part["text"] else {
                    throw RowError(reason: "message \(index + 1) has a part that is not text")
                }
                text += piece
            }
            return text
        default: throw RowError(reason: "the content of message \(index + 1) is not text")
        }
    }

    private static func arguments(_ value: JSONValue?, _ index: Int) throws(RowError) -> JSONValue {
        switch value {
        case .object?: return value ?? .object([])
        case nil, .null?: return .object([])
        case .string(let text)?:
            // Text that is no JSON and JSON that is no object have the same message.
            guard let parsed = try? JSONParser.parse(text), case .object = parsed else {
                throw RowError(reason: "the arguments of a call of message \(index + 1) are no JSON object")
            }
            return parsed
        default: throw RowError(reason: "the arguments of a call of message \(index + 1) are no JSON object")
        }
    }

    private static func tools(_ value: JSONValue?) throws(RowError) -> [ChatTool] {
        guard let value, value != .null else { return [] }
        guard case .array(let list) = value else { throw RowError(reason: "“tools” is not an array") }
        var tools: [ChatTool] = []
        for item in list {
            let function = item["function"] ?? item
            guard case .string(let name)? = function["name"] else { throw RowError(reason: "a tool has no name") }
            let description = if case .string(let text)? = function["description"] { text } else { "" }
            let parameters = function["parameters"] ?? .object([])
            tools.append(ChatTool(name: name, description: description, parameters: parameters, promptParameters: parameters))
        }
        return tools
    }
}
