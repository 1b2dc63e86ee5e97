import ArgumentParser
import Foundation
import FoundationModels
import MCP
internal import JSON
import Reports

/// The servers of tools that a command uses.
struct MCPFlags: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Use the tools of an MCP server: the command that starts it, or its address. Can be repeated.", valueName: "server"))
    var mcp: [String] = []

    @Option(
        help: ArgumentHelp(
            "Use the servers of a configuration: {\"mcpServers\": {NAME: {\"command\", \"args\", \"env\"} or {\"url\", \"headers\"}}}.",
            valueName: "file"))
    var mcpConfig: String?

    @Option(help: ArgumentHelp("Use only these tools, with commas between them: each costs tokens.", valueName: "names"))
    var mcpTools: String?

    @Option(help: ArgumentHelp("How long a server may be silent during a call.", valueName: "seconds"))
    var mcpPatience = 60

    @Flag(help: "Call tools without asking, also those that change something.")
    var allowTools = false

    func validate() throws {
        if mcpPatience < 1 { throw ValidationError("--mcp-patience must be at least 1.") }
    }

    /// A server as the flags name it.
    private enum Server {
        case command(name: String?, [String], environment: [String: String])
        case address(name: String?, URL, headers: [String: String])
    }

    /// Starts the servers.
    ///
    /// - Parameters:
    ///   - ask: whether a call is allowed that may change something; nil to refuse it.
    ///   - isOneList: whether the tools are used together, so that each name must be there once.
    /// - Throws: ``CommandFailure`` if one of them cannot be used.
    func connect(ask: (@Sendable (MCPTools.Call) async -> Bool)?, isOneList: Bool = true) async throws -> [MCPTools] {
        var options = MCPTools.Options(patience: .seconds(mcpPatience))
        options.approval = allowTools ? .all : ask.map { .ask($0) } ?? .readOnly
        return try await connect(options, isOneList: isOneList)
    }

    func connect(_ options: MCPTools.Options, isOneList: Bool = true) async throws -> [MCPTools] {
        var options = options
        options.tools = mcpTools.map { Set($0.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }) }
        var connected: [MCPTools] = []
        for server in try servers() {
            do {
                let tools: MCPTools
                switch server {
                case .command(let name, let command, let environment):
                    options.name = name
                    tools = try await MCPTools(command: command, environment: environment, options: options)
                case .address(let name, let url, let headers):
                    options.name = name
                    tools = try await MCPTools(url: url, headers: headers, options: options)
                }
                for problem in tools.problems { Message.say("A tool of “\(tools.name)” cannot be used: \(problem)") }
                connected.append(tools)
            } catch let error as MCPError {
                throw CommandFailure("\(error.localizedDescription) \(error.recoverySuggestion ?? "")")
            }
        }
        let names = connected.flatMap(\.tools).map(\.name)
        if isOneList, let twice = Dictionary(names.map { ($0, 1) }, uniquingKeysWith: +).first(where: { $0.value > 1 })?.key {
            throw CommandFailure("Two servers have a tool “\(twice)”. Choose with --mcp-tools.", code: .wrongUsage)
        }
        return connected
    }

    private func servers() throws -> [Server] {
        var servers: [Server] = []
        for text in mcp {
            if text.hasPrefix("http://") || text.hasPrefix("https://") {
                guard let url = URL(string: text), url.host() != nil else { throw ValidationError("“\(text)” is no address.") }
                servers.append(.address(name: nil, url, headers: [:]))
            } else {
                let words = try Self.words(of: text)
                if words.isEmpty { throw ValidationError("--mcp needs a command or an address.") }
                servers.append(.command(name: nil, words, environment: [:]))
            }
        }
        guard let mcpConfig else { return servers }
        let json: JSONValue
        do { json = try JSONParser.parse(try TextFile.data(mcpConfig)) } catch let error as JSONSyntaxError {
            throw CommandFailure("“\(mcpConfig)”: \(error)", code: .wrongUsage)
        }
        guard case .object(let members)? = json["mcpServers"] ?? json["servers"] else {
            throw CommandFailure("“\(mcpConfig)” has no “mcpServers”.", code: .wrongUsage)
        }
        for member in members {
            func texts(_ key: String) -> [String: String] {
                guard case .object(let members)? = member.value[key] else { return [:] }
                return Dictionary(members.compactMap { item in item.value.string.map { (item.name, $0) } }) { $1 }
            }
            if let command = member.value["command"]?.string {
                var words = [command]
                if case .array(let arguments)? = member.value["args"] { words += arguments.compactMap(\.string) }
                servers.append(.command(name: member.name, words, environment: texts("env")))
            } else if let text = member.value["url"]?.string, let url = URL(string: text), url.host() != nil {
                servers.append(.address(name: member.name, url, headers: texts("headers")))
            } else {
                throw CommandFailure("“\(mcpConfig)”: “\(member.name)” has no “command” and no “url”.", code: .wrongUsage)
            }
        }
        return servers
    }

    /// The words of a command, as a shell divides them: by spaces, but not within quotes.
    static func words(of text: String) throws -> [String] {
        var words: [String] = []
        var word: String?
        var quote: Character?
        var isEscaped = false
        for character in text {
            if isEscaped {
                word = (word ?? "") + String(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
            } else if let open = quote {
                if character == open { quote = nil } else { word = (word ?? "") + String(character) }
            } else if character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if character.isWhitespace {
                if let whole = word { words.append(whole) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        if quote != nil { throw ValidationError("A quotation mark is missing in “\(text)”.") }
        return words + (word.map { [$0] } ?? [])
    }
}
