internal import Foundation
public import FoundationModels
internal import JSON

/// Offers tools, and texts, to programs that speak the Model Context Protocol.
///
/// ```swift
/// let server = MCPServer(name: "notes", tools: [.init(SearchNotes(), isReadOnly: true)])
/// try await server.run()
/// ```
///
/// Both revisions are spoken, 2026-07-28 and 2025-11-25: each request says which one it is of. Arguments are checked by the tool's type; a
/// wrong one is a result that says so, which models read.
public struct MCPServer: Sendable {
    /// A tool, and what clients are told of it.
    public struct Offer: Sendable {
        let tool: any Tool
        let title: String?
        let isReadOnly: Bool
        let isDestructive: Bool

        /// Offers a tool.
        ///
        /// - Parameters:
        ///   - title: A name for people.
        ///   - isReadOnly: Whether calls change nothing: clients make them without asking their user.
        ///   - isDestructive: Whether calls may destroy something.
        public init(_ tool: any Tool, title: String? = nil, isReadOnly: Bool = false, isDestructive: Bool = false) {
            (self.tool, self.title, self.isReadOnly, self.isDestructive) = (tool, title, isReadOnly, isDestructive)
        }
    }

    /// A text that clients can read.
    public struct Resource: Sendable {
        /// The address, such as `fm://conversations/holiday`.
        public let uri: String
        /// The name.
        public let name: String
        /// What it is.
        public let description: String
        /// The type of its text.
        public let mediaType: String

        /// Describes a text.
        public init(uri: String, name: String, description: String = "", mediaType: String = "text/plain") {
            (self.uri, self.name, self.description, self.mediaType) = (uri, name, description, mediaType)
        }
    }

    let name: String
    let version: String
    let instructions: String?
    let offers: [Offer]
    let resources: @Sendable () async throws -> [Resource]
    let readResource: @Sendable (String) async throws -> String?

    /// Creates a server.
    ///
    /// - Parameters:
    ///   - name: The name of the server.
    ///   - version: Its version.
    ///   - instructions: What clients should know of its use; they show it to their model.
    ///   - tools: The tools.
    ///   - resources: The texts that there are now.
    ///   - readResource: The text at an address; nil if there is none.
    public init(
        name: String, version: String = "1.0", instructions: String? = nil, tools: [Offer],
        resources: @escaping @Sendable () async throws -> [Resource] = { [] },
        readResource: @escaping @Sendable (String) async throws -> String? = { _ in nil }
    ) {
        (self.name, self.version, self.instructions, offers) = (name, version, instructions, tools)
        (self.resources, self.readResource) = (resources, readResource)
    }

    // MARK: - Requests

    /// The result of a request.
    ///
    /// - Parameter isModern: whether it is one of 2026.
    /// - Throws: ``MCPFailure``, or `CancellationError`.
    func result(of method: String, _ params: JSONValue, isModern: Bool) async throws -> JSONValue {
        switch method {
        case "server/discover" where isModern: return described(discovery)
        case "initialize" where !isModern: return greeting(params)
        case "ping" where !isModern: return .object([])
        case "tools/list": return listed("tools", offers.map(\.json), isModern)
        case "tools/call": return finished(try await call(params), isModern)
        case "resources/list":
            let all = try await resources()
            return listed("resources", all.map(\.json), isModern)
        case "resources/templates/list": return listed("resourceTemplates", [], isModern)
        case "resources/read": return cached(try await read(params), isModern)
        case "prompts/list": return listed("prompts", [], isModern)
        default: throw MCPFailure.unknownMethod(method)
        }
    }

    private var info: JSONValue { .object([.init("name", .string(name)), .init("version", .string(version))]) }

    private var capabilities: JSONValue {
        .object([.init("tools", .object([])), .init("resources", .object([]))])
    }

    private var discovery: JSONValue {
        .object(
            [
                .init("supportedVersions", .array([.string(MCPRevision.modern)])), .init("capabilities", capabilities),
            ] + (instructions.map { [.init("instructions", .string($0))] } ?? []))
    }

    private func greeting(_ params: JSONValue) -> JSONValue {
        let asked = params["protocolVersion"]?.string ?? ""
        let version = MCPRevision.legacyVersions.contains(asked) ? asked : MCPRevision.legacy
        return .object(
            [
                .init("protocolVersion", .string(version)), .init("capabilities", capabilities), .init("serverInfo", info),
            ] + (instructions.map { [.init("instructions", .string($0))] } ?? []))
    }

    // What results of 2026 have besides: their kind, the server, and how long they may be kept.

    private func finished(_ result: JSONValue, _ isModern: Bool) -> JSONValue {
        guard isModern else { return result }
        return result.setting("resultType", .string("complete")).setting("_meta", .object([.init(MCPRevision.serverKey, info)]))
    }

    private func cached(_ result: JSONValue, _ isModern: Bool) -> JSONValue {
        guard isModern else { return result }
        return finished(result, true).setting("ttlMs", .int(0)).setting("cacheScope", .string("private"))
    }

    private func described(_ result: JSONValue) -> JSONValue { cached(result, true) }

    private func listed(_ key: String, _ entries: [JSONValue], _ isModern: Bool) -> JSONValue {
        cached(.object([.init(key, .array(entries))]), isModern)
    }

    // MARK: - Tools

    private func call(_ params: JSONValue) async throws -> JSONValue {
        guard let name = params["name"]?.string else { throw MCPFailure.invalidParams("“name” is missing.") }
        guard let offer = offers.first(where: { $0.tool.name == name }) else {
            throw MCPFailure.invalidParams("There is no tool “\(name)”.")
        }
        let arguments = params["arguments"] ?? .object([])
        guard case .object = arguments else { throw MCPFailure.invalidParams("“arguments” must be an object.") }
        do {
            return try await offer.tool.result(for: arguments)
        } catch let error as CancellationError where Task.isCancelled {
            throw error
        } catch {
            let text = (error as? any LocalizedError)?.errorDescription ?? "\(error)"
            return Self.content("The call of “\(name)” failed: \(text)", isError: true)
        }
    }

    fileprivate static func content(_ text: String, structured: JSONValue? = nil, isError: Bool = false) -> JSONValue {
        .object(
            [
                .init(
                    "content", .array([.object([.init("type", .string("text")), .init("text", .string(text))])])),
                .init("isError", .bool(isError)),
            ] + (structured.map { [.init("structuredContent", $0)] } ?? []))
    }

    // MARK: - Resources

    private func read(_ params: JSONValue) async throws -> JSONValue {
        guard let uri = params["uri"]?.string else { throw MCPFailure.invalidParams("“uri” is missing.") }
        let known = try await resources().first { $0.uri == uri }
        guard let text = try await readResource(uri) else {
            var failure = MCPFailure.invalidParams("There is no resource “\(uri)”.")
            failure.data = .object([.init("uri", .string(uri))])
            throw failure
        }
        return .object([
            .init(
                "contents",
                .array([
                    .object([
                        .init("uri", .string(uri)), .init("mimeType", .string(known?.mediaType ?? "text/plain")),
                        .init("text", .string(text)),
                    ])
                ]))
        ])
    }
}

extension MCPServer.Offer {
    fileprivate var json: JSONValue {
        var annotations: [JSONValue.Member] = title.map { [.init("title", .string($0))] } ?? []
        annotations.append(.init("readOnlyHint", .bool(isReadOnly)))
        if !isReadOnly { annotations.append(.init("destructiveHint", .bool(isDestructive))) }
        var members: [JSONValue.Member] = [.init("name", .string(tool.name))]
        if let title { members.append(.init("title", .string(title))) }
        members += [.init("description", .string(tool.description)), .init("inputSchema", tool.parameters.objectSchema)]
        if let schema = tool.outputSchema { members.append(.init("outputSchema", schema)) }
        members.append(.init("annotations", .object(annotations)))
        return .object(members)
    }
}

extension MCPServer.Resource {
    fileprivate var json: JSONValue {
        .object([
            .init("uri", .string(uri)), .init("name", .string(name)), .init("description", .string(description)),
            .init("mimeType", .string(mediaType)),
        ])
    }
}

extension GenerationSchema {
    /// The schema, which is that of an object: clients ask for the type.
    fileprivate var objectSchema: JSONValue { json["type"] == nil ? json.setting("type", .string("object")) : json }
}

extension Tool {
    /// The schema of values that are objects; nil for texts.
    fileprivate var outputSchema: JSONValue? {
        guard let type = Output.self as? any Generable.Type, Output.self != String.self else { return nil }
        let schema = type.generationSchema.json
        return schema["type"]?.string == "object" ? schema : nil
    }

    /// Calls the tool: the result as a client gets it.
    fileprivate func result(for arguments: JSONValue) async throws -> JSONValue {
        let output = try await call(arguments: try Arguments(GeneratedContent(arguments)))
        if !(output is String), let value = output as? any ConvertibleToGeneratedContent {
            let content = value.generatedContent
            let json = try JSONParser.parse(content.jsonString)
            return MCPServer.content(json.spacedText, structured: outputSchema == nil ? nil : json)
        }
        return MCPServer.content(output.promptRepresentation.modelText)
    }
}
