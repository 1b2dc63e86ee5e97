import ArgumentParser
import Foundation
import FoundationModelsServer
import Logging
import Metrics
import ProcessSettings
import ServiceLifecycle
import Tracing
import UnixSignals

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve the models of this machine by HTTP.",
        discussion: """
            Clients of OpenAI's, Anthropic's and Ollama's servers work unchanged: give them the address that is printed.

            EXAMPLES
              fm serve                                  for programs on this machine, on port 8080
              fm serve --model small --port 9000        one model only
              fm serve --host 0.0.0.0 --keys keys.txt   for others, who need a key
              fm serve --check --keys keys.txt          check the settings and end

            A FILE OF KEYS has a name, a key and limits in each line, which SIGHUP reads again:
              alice  sk-alice-1234    requests=60 tokens=100000     in a minute
              bob    sha256:9f86d0…                                 the hash of a key
            """)

    // MARK: The address

    @Option(help: "The interface to listen on. Others than this machine's need --keys or --no-keys.")
    var host = "127.0.0.1"

    @Option(help: "The port; 0 for a free one.")
    var port = 8080

    @Option(help: ArgumentHelp("A Unix socket to listen on instead.", valueName: "path"))
    var socket: String?

    // MARK: Models

    @Option(
        name: [.short, .long],
        help: ArgumentHelp(
            "An installed model or a GGUF file; may be repeated (default: all that are installed).", valueName: "name"))
    var model: [String] = []

    @Option(help: ArgumentHelp("Another name of a model, such as gpt-4o=default; may be repeated.", valueName: "name=model"))
    var alias: [String] = []

    @Option(help: ArgumentHelp("The maximum number of tokens of a prompt and its answer.", valueName: "tokens"))
    var contextSize = 4_096

    @Option(help: ArgumentHelp("Free models that nobody has used for so long.", valueName: "seconds"))
    var unloadAfter: Int?

    @Flag(help: "Check prompts and answers for safety, as “fm” does.")
    var guardrails = false

    @Flag(help: "Offer tools at /mcp to clients of the Model Context Protocol, as “fm mcp” does.")
    var offerTools = false

    @Option(
        name: .customLong("in"),
        help: ArgumentHelp("An index of documents, for questions in the console and with --offer-tools.", valueName: "index"))
    var index: String?

    @Flag(inversion: .prefixedNo, help: "Show a console for people at the address of the server.")
    var console = true

    @OptionGroup(title: "Tools for models in the console") var mcpFlags: MCPFlags

    // MARK: Other servers

    @Option(
        help: ArgumentHelp(
            "A server with OpenAI's API that runs the models, such as http://10.0.0.1:8000/v1; may be repeated.", valueName: "url"
        ))
    var upstream: [String] = []

    @Option(help: ArgumentHelp("Pass a server over that sends nothing for so long.", valueName: "seconds"))
    var upstreamSilence = 60

    // MARK: Clients

    @Option(help: ArgumentHelp("A file of keys; without one, everybody who reaches the server is served.", valueName: "file"))
    var keys: String?

    @Flag(help: "Serve others than this machine without keys.")
    var noKeys = false

    @Option(help: ArgumentHelp("Another name of this server; may be repeated.", valueName: "name"))
    var allowHost: [String] = []

    @Option(
        help: ArgumentHelp(
            "A site whose pages may use the server, such as https://app.example.com; may be repeated.", valueName: "origin"))
    var allowOrigin: [String] = []

    @Flag(help: "Clients with different keys share no computed prompts.")
    var isolateKeys = false

    // MARK: Limits

    @Option(help: ArgumentHelp("Requests that are processed together.", valueName: "number"))
    var parallel = 8

    @Option(help: ArgumentHelp("Requests that may wait; more are told to come again.", valueName: "number"))
    var queue = 64

    @Option(help: ArgumentHelp("The time that a request may wait.", valueName: "seconds"))
    var maxWait = 120

    @Option(help: ArgumentHelp("The time that a request may take.", valueName: "seconds"))
    var maxTime = 900

    @Option(help: ArgumentHelp("The size of a request.", valueName: "bytes"))
    var maxBody = 8 << 20

    // MARK: Records

    @Option(
        help: ArgumentHelp(
            "Where responses and conversations are kept: a file (default: with the models), “none” for memory, or postgresql://…, which several servers share.",
            valueName: "place"))
    var store: String?

    @Option(help: ArgumentHelp("Days for which responses are kept.", valueName: "days"))
    var keepDays = 30

    @Option(help: ArgumentHelp("Responses that are kept for each client.", valueName: "count"))
    var keepResponses = 10_000

    @Option(help: ArgumentHelp("Send traces to a collector of OpenTelemetry, such as http://127.0.0.1:4318.", valueName: "url"))
    var otlp: String?

    @Flag(help: "Write prompts to the log.")
    var logContent = false

    @Flag(name: .shortAndLong, help: "Log what is wrong only.")
    var quiet = false

    @Flag(help: "Check the settings and end.")
    var check = false

    func validate() throws {
        if !(0...65_535).contains(port) { throw ValidationError("--port must be from 0 to 65535.") }
        for (name, value) in [
            ("--context-size", contextSize), ("--parallel", parallel), ("--max-wait", maxWait), ("--max-time", maxTime),
            ("--max-body", maxBody), ("--keep-days", keepDays), ("--keep-responses", keepResponses),
        ] where value < 1 { throw ValidationError("\(name) must be at least 1.") }
        for url in upstream where URL(string: url)?.host == nil || !url.hasPrefix("http") {
            throw ValidationError("--upstream \(url): an address such as http://10.0.0.1:8000/v1 is expected.")
        }
        if keepDays > 36_500 { throw ValidationError("--keep-days must be at most 36500.") }
        if queue < 0 { throw ValidationError("--queue must be at least 0.") }
        if let unloadAfter, unloadAfter < 1 { throw ValidationError("--unload-after must be at least 1.") }
        for alias in alias where alias.split(separator: "=").count != 2 {
            throw ValidationError("--alias \(alias): a name, “=” and a model are expected.")
        }
        let isOpen = socket == nil && !ModelServer.isLoopback(host) && keys == nil && Setting.serverKey.value == nil && !noKeys
        if isOpen {
            throw ValidationError(
                "--host \(host) lets other machines use this server. Name a file of --keys, or say --no-keys if everybody may.")
        }
    }

    func run() async throws {
        var configuration = try self.configuration()
        configuration.hasConsole = console
        if offerTools { configuration.tools = try await MCPOffer.server(ModelChoice(model: model.first), index: index) }
        // People approve calls in the page.
        configuration.consoleTools = try await mcpFlags.connect(ask: nil, isOneList: false)
        if let index { configuration.documents = try await DocumentAnswers.answer(from: index, ModelChoice(model: model.first)) }
        if check {
            try Self.checkAddress(configuration)
            print("The settings are fine.")
            return
        }
        LoggingSystem.bootstrap { JSONLogHandler(label: $0) }
        if quiet { JSONLogHandler.level.store(.warning) }
        MetricsSystem.bootstrap(PrometheusMetrics.shared)
        let tracer = otlp.map { OTLPTracer(endpoint: $0) }
        if let tracer { InstrumentationSystem.bootstrap(tracer) }
        let server: ModelServer
        do { server = try ModelServer(configuration) } catch {
            throw CommandFailure("The file of responses cannot be used: \(error.localizedDescription)", code: .failed)
        }
        let keyFile = keys
        let reloader = SignalReloader { [keyFile] in
            server.reload(keys: try Self.keys(keyFile))
        }
        var services: [any Service] = [reloader, StartedServer(server: server)]
        if let tracer { services.insert(tracer, at: 0) }
        var settings = ServiceGroupConfiguration(
            services: services, gracefulShutdownSignals: [.sigterm, .sigint],
            logger: JSONLogHandler.serviceLogger)
        settings.maximumGracefulShutdownDuration = .seconds(configuration.shutdownSeconds)
        let group = ServiceGroup(configuration: settings)
        do { try await group.run() } catch {
            throw CommandFailure("The server cannot run: \(Self.reason(error))", code: .failed)
        }
    }

    private static func reason(_ error: any Error) -> String {
        let text = "\(error)"
        return text.contains("EADDRINUSE") || text.contains("errno: 98")
            ? "the address is in use. Choose another --port." : text
    }

    /// The server, which says its address to the person in front of it.
    private struct StartedServer: Service {
        let server: ModelServer

        func run() async throws {
            try await server.run { address in
                Message.say(
                    "fm: Serving at \(address) (Ctrl-C ends it): open it in a browser, or give clients of OpenAI's API \(address)/v1"
                )
            }
        }
    }

    // MARK: - Settings

    private func configuration() throws -> ModelServer.Configuration {
        var configuration = ModelServer.Configuration()
        (configuration.host, configuration.port, configuration.socket) = (host, port, socket)
        for name in model { _ = try ModelChoice(model: name, adapter: "none") }
        configuration.models = model
        for alias in alias {
            let parts = alias.split(separator: "=").map(String.init)
            configuration.aliases[parts[0]] = parts[1]
        }
        configuration.contextSize = contextSize
        configuration.idleSeconds = unloadAfter
        configuration.hasGuardrails = guardrails
        configuration.keys = try Self.keys(keys)
        configuration.hosts = Set(allowHost)
        configuration.origins = Set(allowOrigin)
        configuration.isolatesKeys = isolateKeys
        (configuration.parallelRequests, configuration.waitingRequests) = (parallel, queue)
        (configuration.maximumWaitSeconds, configuration.maximumRequestSeconds) = (maxWait, maxTime)
        configuration.maximumBodyBytes = maxBody
        configuration.logsContent = logContent
        (configuration.responseDays, configuration.maximumResponses) = (keepDays, keepResponses)
        configuration.upstreams = upstream
        configuration.upstreamKey = Setting.upstreamKey.value
        configuration.upstreamSilenceSeconds = upstreamSilence
        if let store, store.hasPrefix("postgresql://") || store.hasPrefix("postgres://") || store.contains("=") {
            configuration.postgreSQL = store
        } else {
            configuration.store = store == "none" ? nil : store.map { URL(filePath: $0) } ?? ModelServer.standardStore
        }
        return configuration
    }

    /// The keys of the file, and that of the environment.
    private static func keys(_ file: String?) throws -> [APIKey] {
        var keys: [APIKey] = []
        if let file {
            do { keys = try APIKey.read(URL(filePath: file)) } catch {
                throw CommandFailure("The keys cannot be read: \(error.localizedDescription)", code: .wrongUsage)
            }
            if keys.isEmpty { throw CommandFailure("\(file) has no key.", code: .wrongUsage) }
        }
        if let key = Setting.serverKey.value { keys.append(APIKey(name: "environment", key: key)) }
        return keys
    }

    private static func checkAddress(_ configuration: ModelServer.Configuration) throws {
        if let socket = configuration.socket {
            let folder = URL(filePath: socket).deletingLastPathComponent().path
            guard FileManager.default.isWritableFile(atPath: folder) else {
                throw CommandFailure("No socket can be made in \(folder).", code: .wrongUsage)
            }
        }
    }
}

/// Reads settings again when the process receives SIGHUP.
private struct SignalReloader: Service {
    let reload: @Sendable () throws -> Void

    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            // What is wrong with a new file must not end the server.
            do {
                try reload()
                Message.say("fm: The keys were read again.")
            } catch {
                Message.say("fm: The keys stay as they are: \(CommandFailure(error).description)")
            }
        }
    }
}
