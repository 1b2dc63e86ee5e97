public import Foundation
public import FoundationModels
internal import Grammar
internal import JSON
internal import Synchronization

/// The tools of a server that speaks the Model Context Protocol, for sessions.
///
/// ```swift
/// let files = try await MCPTools(command: ["mcp-server-files", "/home/me/notes"])
/// let session = LanguageModelSession(tools: files.tools)
/// ```
///
/// The server is a program, whose standard input and output carry the messages, or an address. Both revisions of the protocol are spoken,
/// 2026-07-28 and 2025-11-25. Arguments of calls are always valid, because a grammar of the tool's own schema constrains them.
///
/// A server is not trusted. Calls that are not known to only read are made after approval; a tool whose definition has changed since the
/// session was given it is not called; outputs are cut, with a mark, so that they do not fill the window; a server that does not answer,
/// floods its output or ends is an error of the call, and of nothing else. What a tool returns can still mislead the model.
public final class MCPTools: Sendable {
    /// A call that waits for approval.
    public struct Call: Sendable {
        /// The name of the server: that of the options, or of its program or host.
        public let server: String
        /// The name of the tool.
        public let tool: String
        /// What the server says that the tool does.
        public let description: String
        /// The arguments.
        public let arguments: GeneratedContent
        /// Whether the server says that the tool may destroy something.
        public let isDestructive: Bool
    }

    /// Which calls are made.
    public enum Approval: Sendable {
        /// Those of tools that the server says only read. Others fail.
        case readOnly
        /// All.
        case all
        /// Those of tools that only read, and others after the function has allowed them.
        case ask(@Sendable (Call) async -> Bool)
        /// All, after the function has allowed them.
        case askAlways(@Sendable (Call) async -> Bool)
    }

    /// How a server is used.
    public struct Options: Sendable {
        /// The name of the server, for people; nil for what it calls itself. Errors and questions for approval have the name of its program
        /// or host then, which it did not choose.
        public var name: String?
        /// Which calls are made.
        public var approval: Approval
        /// The most characters of an output that the model gets; a mark says how many were left out.
        public var maximumOutput: Int
        /// The names of the tools to use; nil for all. Each tool costs tokens in every prompt.
        public var tools: Set<String>?
        /// How long the server may be silent during a request.
        public var patience: Duration
        /// Whether a call that fails ends the request of its session. By default the model reads why it failed, and goes on.
        public var throwsErrors = false

        /// Creates options.
        public init(
            name: String? = nil, approval: Approval = .readOnly, maximumOutput: Int = 4_000, tools: Set<String>? = nil,
            patience: Duration = .seconds(60)
        ) {
            (self.name, self.approval, self.maximumOutput) = (name, approval, maximumOutput)
            (self.tools, self.patience) = (tools, patience)
        }
    }

    /// The tools, in the order of the server.
    public let tools: [any Tool]
    /// The same with what is known of them.
    public let definitions: [Definition]
    /// The tools that cannot be used, with the reasons.
    public let problems: [String]
    /// What the server says of its use; nil if it says nothing.
    public var instructions: String? { client.instructions }
    /// The name of the server: that of the options, or what it calls itself, or the name of its program or host.
    public var name: String { named ?? client.serverName ?? client.name }

    private let client: MCPClient
    private let named: String?

    /// What is known of a tool.
    public struct Definition: Sendable {
        /// The name of the tool.
        public let name: String
        /// What the server says that the tool does.
        public let description: String
        /// Whether the server says that the tool only reads.
        public let isReadOnly: Bool
        /// Whether the server says that the tool may destroy something.
        public let isDestructive: Bool
        /// What the server sent: a tool that has changed is not called.
        let json: JSONValue
    }

    /// Starts a program that is a server, and asks for its tools. It ends when nothing refers to this object and its tools any more.
    ///
    /// - Parameters:
    ///   - command: The program, a name or a path, and its arguments.
    ///   - environment: Variables in addition to those of this process.
    ///   - folder: The folder that the program runs in; nil for that of this process.
    /// - Throws: ``MCPError``, or `CancellationError`.
    public convenience init(
        command: [String], environment: [String: String] = [:], folder: URL? = nil, options: Options = Options()
    ) async throws {
        let program = command.first.map { URL(filePath: $0).deletingPathExtension().lastPathComponent } ?? "server"
        let client = MCPClient(name: options.name ?? program, patience: options.patience) {
            MCPProcess(command, environment: environment, folder: folder, $0)
        }
        try await self.init(client, options)
    }

    /// Asks a server behind HTTP for its tools.
    ///
    /// - Parameters:
    ///   - url: The address of the server's endpoint.
    ///   - headers: Such as `Authorization`.
    /// - Throws: ``MCPError``, or `CancellationError`.
    public convenience init(url: URL, headers: [String: String] = [:], options: Options = Options()) async throws {
        let client = MCPClient(name: options.name ?? url.host() ?? "server", patience: options.patience) {
            MCPHTTP(url, headers: headers, $0)
        }
        try await self.init(client, options)
    }

    init(_ client: MCPClient, _ options: Options) async throws {
        (self.client, named) = (client, options.name)
        var definitions: [Definition] = []
        var problems: [String] = []
        var names: Set<String> = []
        let listed: [JSONValue]
        do { listed = try await client.list("tools/list", "tools", maximum: MCPClient.maximumTools) } catch {
            await client.close()
            throw error
        }
        for json in listed {
            do {
                let definition = try await Definition(json)
                guard options.tools?.contains(definition.name) ?? true else { continue }
                guard names.insert(definition.name).inserted else { continue }
                definitions.append(definition)
            } catch let problem as Problem {
                let name = json["name"]?.string ?? "a tool without a name"
                if options.tools?.contains(name) ?? true { problems.append("\(name.quotable): \(problem.reason.quotable)") }
            }
        }
        self.definitions = definitions
        self.problems = problems
        let changes = ToolChanges(client, definitions)
        tools = definitions.map { MCPTool(definition: $0, client: client, options: options, changes: changes) }
    }

    /// Calls a tool, without asking for approval.
    ///
    /// - Returns: its output, cut as outputs are, and whether the call failed; nil if there is no tool of this name.
    package func call(_ name: String, _ arguments: GeneratedContent) async throws -> (text: String, isError: Bool)? {
        guard let tool = tools.first(where: { $0.name == name }) as? MCPTool else { return nil }
        do { return (try await tool.output(of: arguments, isApproved: true), false) } catch let error as MCPError {
            return (error.localizedDescription, true)
        }
    }

    /// Ends the connection, and the server's program if there is one. Calls that follow fail.
    public func close() async { await client.close() }

    struct Problem: Error {
        let reason: String
    }
}

extension MCPTools.Definition {
    /// The most characters of a description. It is in every prompt.
    private static let maximumDescription = 1_000

    /// - Throws: ``MCPTools/Problem`` if the tool cannot be used, or `CancellationError`.
    init(_ json: JSONValue) async throws {
        guard let name = json["name"]?.string else { throw MCPTools.Problem(reason: "it has no name") }
        let isName =
            (1...128).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                JSONText.isAlphanumeric(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
                    || byte == UInt8(ascii: ".")
            }
        guard isName else { throw MCPTools.Problem(reason: "its name has characters that names cannot have") }
        guard let schema = json["inputSchema"], case .object = schema else {
            throw MCPTools.Problem(reason: "it has no schema of its arguments")
        }
        do {
            try await SchemaCompiler.run { (fuel) throws(SchemaError) in try Grammar.check(.schema(schema), fuel: fuel) }
        } catch let error as SchemaError {
            throw MCPTools.Problem(reason: "the schema of its arguments cannot be enforced: \(error.sentence)")
        }
        self.name = name
        let text = (json["description"]?.string ?? json["title"]?.string ?? "").withoutControls
        let scalars = text.unicodeScalars
        description =
            scalars.count > Self.maximumDescription
            ? String(String.UnicodeScalarView(scalars.prefix(Self.maximumDescription))) + " …" : text
        let annotations = json["annotations"]
        isReadOnly = annotations?["readOnlyHint"] == .bool(true)
        // What a server does not say is the worst.
        isDestructive = !isReadOnly && annotations?["destructiveHint"] != .bool(false)
        self.json = json
    }
}

/// Which tools of a server are not any more what the session was given: a server may not change what has been approved.
private final class ToolChanges: Sendable {
    private let client: MCPClient
    private let definitions: [String: JSONValue]
    private let changed = Mutex<Set<String>>([])

    init(_ client: MCPClient, _ definitions: [MCPTools.Definition]) {
        self.client = client
        self.definitions = Dictionary(definitions.map { ($0.name, $0.json) }) { first, _ in first }
    }

    /// - Throws: ``MCPError/toolChanged(tool:)``, or why nobody knows.
    func check(_ name: String) async throws {
        if let changes = client.unseenChanges {
            let now = try await client.list("tools/list", "tools", maximum: MCPClient.maximumTools)
            let listed = Dictionary(now.compactMap { json in json["name"]?.string.map { ($0, json) } }) { first, _ in first }
            let others = definitions.filter { name, json in listed[name].map { !$0.isEqual(to: json) } ?? true }
            changed.withLock { $0.formUnion(others.keys) }
            client.noteComparison(of: changes)
        }
        if changed.withLock({ $0.contains(name) }) { throw MCPError.toolChanged(tool: name) }
    }
}

/// A tool of a server.
private struct MCPTool: Tool {
    let definition: MCPTools.Definition
    let client: MCPClient
    let options: MCPTools.Options
    let changes: ToolChanges

    var name: String { definition.name }
    var description: String { definition.description }
    var parameters: GenerationSchema { GenerationSchema(checked: definition.json["inputSchema"] ?? .object([])) }

    func call(arguments: GeneratedContent) async throws -> String {
        do { return try await output(of: arguments) } catch let error as MCPError where !options.throwsErrors {
            return error.localizedDescription
        }
    }

    fileprivate func output(of arguments: GeneratedContent, isApproved: Bool = false) async throws -> String {
        if !isApproved { try await approve(arguments) }
        try await changes.check(name)
        let json = try JSONParser.parse(arguments.jsonString)
        let params = JSONValue.object([.init("name", .string(name)), .init("arguments", json)])
        let result = try await client.call("tools/call", params, headers: headers(json))
        let text = try MCPOutput(result, server: client.name).text(maximum: options.maximumOutput)
        if result["isError"] == .bool(true) { throw MCPError.failed(tool: name, reason: text) }
        return text
    }

    private func approve(_ arguments: GeneratedContent) async throws {
        let call = MCPTools.Call(
            server: client.name, tool: name, description: description, arguments: arguments,
            isDestructive: definition.isDestructive)
        let isAllowed =
            switch options.approval {
            case .all: true
            case .readOnly: definition.isReadOnly
            case .ask(let ask): definition.isReadOnly ? true : await ask(call)
            case .askAlways(let ask): await ask(call)
            }
        if !isAllowed { throw MCPError.denied(tool: name) }
    }

    /// The arguments that the server wants to see in headers, too.
    private func headers(_ arguments: JSONValue) -> [String: String] {
        guard case .object(let properties)? = definition.json["inputSchema"]?["properties"] else { return [:] }
        var headers: [String: String] = [:]
        for property in properties {
            guard let header = property.value["x-mcp-header"]?.string, let value = arguments[property.name], value != .null,
                header.utf8.allSatisfy({ JSONText.isAlphanumeric($0) || $0 == UInt8(ascii: "-") })
            else { continue }
            headers["Mcp-Param-\(header)"] = MCPHTTP.headerValue(value.string ?? value.text)
        }
        return headers
    }
}
