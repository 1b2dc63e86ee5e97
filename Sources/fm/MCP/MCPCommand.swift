import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import MCP
import Reports
import Retrieval

/// `fm mcp`: the model, an index and conversations as tools for programs that speak the Model Context Protocol, and the tools of others.
struct MCPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mcp",
        abstract: "Offer the model, an index and conversations to programs that speak MCP, or look at the tools of a server.",
        discussion: """
            EXAMPLES
              fm mcp --in docs.index                      what a client runs
              fm mcp list "mcp-server-files ."            the tools of a server, and what they cost
              fm mcp call "mcp-server-files ." read '{"path": "a.txt"}'
              fm chat --mcp "mcp-server-files ."          a conversation with these tools
            """, subcommands: [Offer.self, List.self, Call.self], defaultSubcommand: Offer.self)

    struct Offer: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "offer",
            abstract: "Answer a client on standard input and output (default).",
            discussion: """
                The messages are lines of standard input and output, so the client starts the command itself. In the configuration of \
                most clients:

                  {"mcpServers": {"fm": {"command": "fm", "args": ["mcp", "--in", "/home/me/docs.index"]}}}

                The tools: generate (a text, or a value of a JSON Schema, to which it always conforms), decide (probabilities of \
                answers), with --in search and ask, with --conversations find_conversation and read_conversation, and each conversation \
                as a resource. All of them only read. “fm serve --mcp” offers the same over HTTP, at /mcp.

                Revisions 2026-07-28 and 2025-11-25 of the protocol.
                """)

        @OptionGroup var offer: MCPOffer

        func run() async throws {
            if isatty(STDIN_FILENO) == 1 {
                Message.say(
                    "Messages of MCP are expected on standard input. Programs start this command: see fm mcp offer --help.")
            }
            // The client ends the input when it wants no more; a signal ends the process.
            try await offer.server().run()
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the tools of a server, and the tokens that each one costs.")

        @Argument(help: "The command that starts the server, or its address.") var server: String
        @OptionGroup var modelFlags: ModelFlags
        @Option(help: ArgumentHelp("How long the server may be silent.", valueName: "seconds")) var patience = 60
        @Flag(help: "Write JSON.") var json = false

        private struct Line: Encodable {
            var name: String
            var description: String
            var readOnly: Bool
            var destructive: Bool
            var tokens: Int?
        }

        func run() async throws {
            var flags = try MCPFlags.parse([])
            (flags.mcp, flags.mcpPatience) = ([server], patience)
            let tools = try await flags.connect(ask: nil)
            let choice = try modelFlags.choice()
            let model = FileManager.default.fileExists(atPath: choice.path) ? choice.systemModel() : nil
            var lines: [Line] = []
            for (tool, definition) in zip(tools.flatMap(\.tools), tools.flatMap(\.definitions)) {
                lines.append(
                    Line(
                        name: definition.name, description: definition.description, readOnly: definition.isReadOnly,
                        destructive: definition.isDestructive, tokens: try await model?.tokenCount(of: [tool])))
            }
            for tools in tools { await tools.close() }
            if json { return try lines.forEach { try Output().writeJSON($0) } }
            let rows = lines.map { line in
                [
                    line.name, line.readOnly ? "reads" : line.destructive ? "may destroy" : "changes",
                    line.tokens.map { "\($0)" } ?? "–", line.description,
                ]
            }
            let table = TextTable([.left("tool"), .left("effect"), .right("tokens"), .left("what it does")], rows: rows)
            print(table.text(width: Terminal.columns(of: STDOUT_FILENO) ?? .max), terminator: "")
            if isatty(STDOUT_FILENO) == 1, let instructions = tools.first?.instructions { print("\n" + instructions) }
        }
    }

    struct Call: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Call a tool of a server, and print its output.",
            discussion: "The output is printed whole. A call that fails has exit code 1, with the server's reason.")

        @Argument(help: "The command that starts the server, or its address.") var server: String
        @Argument(help: "The tool.") var tool: String
        @Argument(help: "The arguments, a JSON object.") var arguments = "{}"
        @Option(help: ArgumentHelp("How long the server may be silent.", valueName: "seconds")) var patience = 60

        func run() async throws {
            var flags = try MCPFlags.parse([])
            flags.mcp = [server]
            var options = MCPTools.Options(approval: .all, maximumOutput: .max, patience: .seconds(patience))
            options.throwsErrors = true
            let content: GeneratedContent
            do { content = try GeneratedContent(json: arguments) } catch {
                throw CommandFailure("The arguments are not JSON: \(error.localizedDescription)", code: .wrongUsage)
            }
            let servers = try await flags.connect(options)
            let output: Result<String, any Error>
            do { output = .success(try await Self.output(of: tool, content, servers)) } catch { output = .failure(error) }
            // Programs that do not end by themselves are ended, also after an error.
            for server in servers { await server.close() }
            try Output().write(try output.get() + "\n")
        }

        private static func output(of tool: String, _ content: GeneratedContent, _ servers: [MCPTools]) async throws -> String {
            guard let found = servers.flatMap(\.tools).first(where: { $0.name == tool }) else {
                let names = servers.flatMap(\.tools).map(\.name).joined(separator: ", ")
                throw CommandFailure("The server has no tool “\(tool)”. It has: \(names).", code: .wrongUsage)
            }
            do { return try await call(found, content) } catch let error as MCPError {
                throw CommandFailure(error.localizedDescription)
            }
        }

        private static func call(_ tool: some Tool, _ content: GeneratedContent) async throws -> String {
            "\(try await tool.call(arguments: try .init(content)))"
        }
    }
}

extension SystemLanguageModel {
    /// The tokens that tools add to each prompt.
    func tokenCount(of tools: [any Tool]) async throws -> Int {
        let text: [Transcript.Segment] = [.text(.init(content: "x"))]
        func count(_ tools: [any Tool]) async throws -> Int {
            let definitions = tools.map { Transcript.ToolDefinition(tool: $0) }
            return try await localModel.tokenCount([.instructions(.init(segments: text, toolDefinitions: definitions))])
        }
        return try await count(tools) - count([])
    }
}

/// What a server of tools offers.
struct MCPOffer: ParsableArguments {
    @OptionGroup var modelFlags: ModelFlags

    @Option(name: .customLong("in"), help: ArgumentHelp("Offer search and ask in this index.", valueName: "index"))
    var index: String?

    @Flag(help: "Offer the saved conversations of “fm chat”.")
    var conversations = false

    @Option(help: ArgumentHelp("An embedding model for the index, by name or file.", valueName: "name"))
    var embedder: String?

    /// - Throws: ``CommandFailure`` if there is no model or no index.
    func server() async throws -> MCPServer {
        try await Self.server(modelFlags.choice(), index: index, embedder: embedder, hasConversations: conversations)
    }

    static func server(
        _ choice: ModelChoice, index: String?, embedder: String? = nil, hasConversations: Bool = false
    ) async throws -> MCPServer {
        try choice.check()
        let model = choice.systemModel()
        var tools = [
            MCPServer.Offer(GenerateTool(model: model), title: "Generate text or a value", isReadOnly: true),
            MCPServer.Offer(
                DecideTool(model: choice.systemModel(guardrails: .permissiveContentTransformations)),
                title: "Decide with probabilities", isReadOnly: true),
        ]
        if let index {
            let index = try await SearchIndex(readingFrom: URL(filePath: index), model: Embedder.installedModel(embedder))
            tools.append(.init(SearchTool(index: index), title: "Search documents", isReadOnly: true))
            tools.append(.init(AskTool(index: index, model: model), title: "Ask documents", isReadOnly: true))
        }
        let instructions =
            "A language model on this machine. “generate” conforms to a schema always; “decide” gives probabilities instead of text."
        guard hasConversations else {
            return MCPServer(name: "fm", version: FM.configuration.version, instructions: instructions, tools: tools)
        }
        let archive = try ConversationArchive(url: Chat.archiveFile)
        tools.append(.init(FindConversationTool(archive: archive), title: "Find conversations", isReadOnly: true))
        tools.append(.init(ReadConversationTool(archive: archive), title: "Read a conversation", isReadOnly: true))
        return MCPServer(
            name: "fm", version: FM.configuration.version, instructions: instructions, tools: tools,
            resources: { try archive.conversations().map { ConversationResource.resource($0) } },
            readResource: { try ConversationResource.text(at: $0, in: archive) })
    }
}
