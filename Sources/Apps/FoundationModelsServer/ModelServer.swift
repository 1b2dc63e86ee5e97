internal import Foundation
internal import HTTPTypes
public import Hummingbird
internal import Inference
internal import InstalledModels
internal import JSON
internal import Logging
internal import Metrics
public import NIOCore
internal import Synchronization
internal import Tracing

/// Serves models of this machine by HTTP, for clients of OpenAI's, Anthropic's and Ollama's servers.
///
/// ```swift
/// let server = try ModelServer(ModelServer.Configuration())
/// try await server.run()
/// ```
///
/// A program that has a server mounts the routes instead:
///
/// ```swift
/// let router = Router()
/// server.addRoutes(to: router.group("ai"))
/// ```
///
/// Requests run together on the engine of their model, each as if it were alone. Answers have the form that the request asks for, or their
/// end says that they are not complete. Every field of a request is honoured, or known to change nothing, or refused by name.
public final class ModelServer: Sendable {
    let configuration: Configuration
    let directory: ModelDirectory
    let gate: RequestGate
    /// Lets requests be prepared, and texts be counted.
    let preparing: RequestGate
    let checks = SchemaChecks()
    let windows = ConversationWindows()
    let reader: RequestBodyReader
    let rules: OriginRules
    let figures = ServerFigures()
    let store: any StateStore
    /// Responses that have been stored.
    let savedResponses = Atomic(0)
    /// The servers that run the models; nil if this one does.
    let upstreams: UpstreamPool?
    /// The responses that are being generated in the background.
    let running = Mutex<[String: Task<Void, Never>]>([:])
    let started = Date()
    /// Changes while the server runs: see ``reload(keys:)``.
    private let keys: Mutex<[String: APIKey]>
    private let limits = Mutex(KeyLimits())
    /// Whether the server ends as soon as the running requests have.
    let isDraining = Atomic(false)

    /// Creates a server. Models are loaded by the first requests that name them.
    ///
    /// - Throws: an error of the file of responses and conversations.
    public init(_ configuration: Configuration) throws {
        self.configuration = configuration
        // The engine processes as many requests together as the server lets through, and keeps the beginnings of as many conversations twice.
        ModelPool.configureShared { limits in
            limits.activeRequests = max(limits.activeRequests, configuration.parallelRequests)
            limits.keptTokens = max(
                limits.keptTokens, min(1 << 20, 2 * configuration.parallelRequests * configuration.contextSize))
        }
        store = try Self.makeStore(configuration)
        upstreams =
            configuration.upstreams.isEmpty
            ? nil
            : UpstreamPool(
                configuration.upstreams, key: configuration.upstreamKey, silence: configuration.upstreamSilenceSeconds)
        directory = ModelDirectory(
            folder: .standard, served: configuration.models, aliases: configuration.aliases,
            contextSize: configuration.contextSize)
        gate = RequestGate(
            slots: configuration.parallelRequests, limit: configuration.waitingRequests,
            maximumWait: .seconds(configuration.maximumWaitSeconds))
        preparing = RequestGate(
            slots: max(1, ProcessInfo.processInfo.activeProcessorCount - 1), limit: 4 * configuration.waitingRequests + 64,
            maximumWait: .seconds(configuration.maximumWaitSeconds))
        reader = RequestBodyReader(
            maximumBytes: configuration.maximumBodyBytes, maximumTime: .seconds(configuration.maximumBodySeconds))
        rules = OriginRules(
            hosts: Set((configuration.hosts + [configuration.host]).map { OriginRules.name(of: $0) }),
            origins: configuration.origins,
            isLoopback: configuration.socket != nil || OriginRules.isLoopback(configuration.host))
        keys = Mutex(Self.table(configuration.keys))
    }

    private static func makeStore(_ configuration: Configuration) throws -> any StateStore {
        guard let server = configuration.postgreSQL else {
            #if SQLite
            return try SQLiteStateStore(configuration.store)
            #else
            throw UnavailableStore(name: "SQLite", headers: "SQLite")
            #endif
        }
        #if PostgreSQL
        return try PostgreSQLStateStore(server)
        #else
        throw UnavailableStore(name: "PostgreSQL", headers: "libpq")
        #endif
    }

    /// The package was built without the trait of a database.
    struct UnavailableStore: LocalizedError {
        let name: String
        let headers: String
        var errorDescription: String? {
            "This program was built without \(name). Build it with the trait \(name), which needs the headers of \(headers)."
        }
    }

    private static func table(_ keys: [APIKey]) -> [String: APIKey] {
        Dictionary(keys.map { ($0.hash, $0) }) { first, _ in first }
    }

    /// Replaces the keys of clients. Requests that run go on.
    public func reload(keys: [APIKey]) { self.keys.withLock { $0 = Self.table(keys) } }

    /// Adds the routes of all APIs to a router.
    public func addRoutes<Context: RequestContext>(to router: some RouterMethods<Context>) {
        for route in routes {
            for path in route.paths {
                router.on(RouterPath(path), method: route.method) { request, context in
                    await self.respond(
                        to: request, by: route,
                        parameters: context.parameters.reduce(into: [:]) { $0[String($1.key)] = String($1.value) },
                        channel: (context as? any ConnectionContext)?.channel)
                }
            }
        }
    }

    // MARK: - Requests

    /// Responds to a request: checks who sent it, lets the route answer, and writes errors in the form of the route's API.
    func respond(
        to request: Request, by route: Route?, parameters: [String: String], channel: (any Channel)?
    ) async -> Response {
        let start = ContinuousClock.now
        let id = RequestIdentifier.make()
        let style = route?.style ?? .openAI
        var key: APIKey?
        var response: Response
        var problem: RequestError?
        do {
            try checkOrigin(of: request)
            if request.method == .options, route?.method != .options { return preflight(request) }
            guard let route else { throw unknownRoute(request) }
            if !route.isPublic {
                key = try self.key(of: request)
                if isDraining.load(ordering: .relaxed) {
                    throw RequestError(
                        503, type: "server_error", code: "shutting_down", "The server is being shut down.", retryAfter: 10)
                }
                try takeRequest(key)
            }
            let exchange = Exchange(
                request: request, parameters: parameters, id: id,
                client: key?.name ?? channel?.remoteAddress?.ipAddress ?? "local", owner: key?.name ?? "",
                channel: channel, style: route.style, reader: reader)
            // Probes come every few seconds, and say nothing about requests.
            response = route.isPublic ? try await route.handle(exchange) : try await traced(route, exchange)
        } catch let error as RequestError {
            problem = error
            response = .error(error, style)
        } catch is CancellationError {
            problem = RequestError(499, "The client has gone away.")
            response = Response(status: .init(code: 499))
        } catch {
            ServerLog.logger.error("A request has failed", metadata: ["reason": "\(error)", "request": "\(id)"])
            problem = .fault
            response = .error(.fault, style)
        }
        response.headers[.requestID] = id
        addCORS(to: &response, request)
        figures.note(route: route?.name ?? "unknown", status: problem?.status ?? Int(response.status.code), .now - start)
        var metadata: Logger.Metadata = [
            "request": "\(id)", "route": "\(route?.name ?? "unknown")",
            "status": "\(problem?.status ?? Int(response.status.code))",
            "seconds": "\((ContinuousClock.now - start).seconds)",
        ]
        if let key { metadata["key"] = "\(key.name)" }
        if let problem { metadata["code"] = "\(problem.code ?? problem.type)" }
        if let param = problem?.param { metadata["param"] = "\(param)" }
        ServerLog.logger.info("request", metadata: metadata)
        return response
    }

    private func traced(_ route: Route, _ exchange: Exchange) async throws -> Response {
        try await withSpan(route.name, context: Self.context(of: exchange.request), ofKind: .server) { span in
            span.attributes["http.request.method"] = exchange.request.method.rawValue
            span.attributes["http.route"] = route.name
            span.attributes["fm.request"] = exchange.id
            let response = try await route.handle(exchange)
            span.attributes["http.response.status_code"] = response.status.code
            return response
        }
    }

    /// The trace that the request is a part of, if its client has begun one.
    private static func context(of request: Request) -> ServiceContext {
        struct Headers: Extractor {
            func extract(key: String, from carrier: HTTPFields) -> String? { HTTPField.Name(key).flatMap { carrier[$0] } }
        }
        var context = ServiceContext.topLevel
        InstrumentationSystem.instrument.extract(request.headers, into: &context, using: Headers())
        return context
    }

    private func unknownRoute(_ request: Request) -> RequestError {
        let path = request.uri.path
        let methods = routes.filter { $0.paths.contains { Route.matches($0, path) } }.map(\.method.rawValue)
        if methods.isEmpty { return RequestError(404, code: "not_found", "There is nothing at this address.") }
        return RequestError(
            405, code: "method_not_allowed", "This address takes \(Set(methods).sorted().joined(separator: ", ")) only.")
    }

    // MARK: - Who asks

    private func checkOrigin(of request: Request) throws {
        let host = request.head.authority
        // The first one is not among the headers any more.
        guard request.headers[values: .furtherHost].isEmpty else {
            throw RequestError(400, "The request names several hosts.")
        }
        let refusal = rules.refusal(host: host, origin: request.headers[.origin], fetchSite: request.headers[.fetchSite])
        switch refusal {
        case nil: return
        case .host:
            throw RequestError(
                403, type: "permission_error", code: "foreign_host",
                "The request names a host that is not this server's. Its owner lists further names with --allow-host.")
        case .origin:
            throw RequestError(
                403, type: "permission_error", code: "foreign_origin",
                "Pages of this origin may not use the server. Its owner lists origins with --allow-origin.")
        }
    }

    private func preflight(_ request: Request) -> Response {
        var response = Response(status: .noContent)
        addCORS(to: &response, request)
        guard response.headers[.accessControlAllowOrigin] != nil else { return response }
        response.headers[.accessControlAllowMethods] = "GET, POST, DELETE, OPTIONS"
        response.headers[.accessControlAllowHeaders] =
            request.headers[.accessControlRequestHeaders] ?? "Authorization, Content-Type, x-api-key"
        response.headers[.accessControlMaxAge] = "600"
        if request.headers[.privateNetworkRequest] == "true" { response.headers[.privateNetworkAllowed] = "true" }
        return response
    }

    private func addCORS(to response: inout Response, _ request: Request) {
        guard let origin = request.headers[.origin], rules.origins.contains("*") || rules.origins.contains(origin) else { return }
        response.headers[.accessControlAllowOrigin] = origin
        response.headers[.vary] = "Origin"
        response.headers[.accessControlExposeHeaders] = "x-request-id"
    }

    /// - Throws: ``RequestError`` if keys are needed, and the request has none that is known.
    private func key(of request: Request) throws -> APIKey? {
        let known = keys.withLock { $0 }
        if known.isEmpty { return nil }
        let bearer = request.headers[.authorization].flatMap { text in
            text.lowercased().hasPrefix("bearer ") ? String(text.dropFirst(7)).trimmingSpaces : nil
        }
        // Equal hashes are found in the same time whatever the key is.
        if let text = bearer ?? request.headers[.apiKey], let key = known[APIKey.hash(of: text)] { return key }
        throw RequestError(
            401, code: "invalid_api_key", "The API key is missing or not known. Send it as “Authorization: Bearer KEY”.")
    }

    private static var now: Double { (ContinuousClock.now - startOfTime).seconds }
    private static let startOfTime = ContinuousClock.now

    private func takeRequest(_ key: APIKey?) throws {
        guard let key, let wait = limits.withLock({ $0.take(key, now: Self.now) }) else { return }
        throw RequestError(
            429, type: "rate_limit_error", code: "rate_limit_exceeded",
            "The limit of this key is reached. Try again in \(Int(wait.rounded(.up))) seconds.",
            retryAfter: Int(wait.rounded(.up)))
    }

    /// Counts the tokens of a request against the limits of its client.
    func take(tokens: Int, of client: String) {
        guard let key = keys.withLock({ $0.values.first { $0.name == client } }) else { return }
        limits.withLock { $0.take(tokens: tokens, key, now: Self.now) }
    }
}

/// A context of requests that knows the connection. With it, the server notices that a client has gone away while its answer is computed.
public protocol ConnectionContext: RequestContext {
    /// The connection of the request.
    var channel: any Channel { get }
}

enum RequestIdentifier {
    private static let letters = Array("abcdefghijklmnopqrstuvwxyz0123456789")

    static func make(_ prefix: String = "req_") -> String {
        prefix + String((0..<24).map { _ in letters[Int.random(in: 0..<letters.count)] })
    }
}

/// The figures of the server itself; those of the engine come from the pool of models.
struct ServerFigures: Sendable {
    func note(route: String, status: Int, _ duration: Duration) {
        Counter(label: "http_requests", dimensions: [("route", route), ("status", "\(status)")]).increment()
        Timer(label: "http_request_seconds", dimensions: [("route", route)]).recordNanoseconds(duration.nanoseconds)
    }

    func note(_ finish: TurnFinish, first: Duration?, model: String) {
        let labels = [("model_name", model)]
        Counter(label: "fm_prompt_tokens_total", dimensions: labels).increment(by: finish.usage.promptTokens)
        Counter(label: "fm_cached_tokens_total", dimensions: labels).increment(by: finish.usage.cachedTokens)
        Counter(label: "fm_generation_tokens_total", dimensions: labels).increment(by: finish.usage.completionTokens)
        Counter(label: "fm_request_success_total", dimensions: labels + [("finished_reason", "\(finish.reason)")]).increment()
        if let first {
            Timer(label: "fm_time_to_first_token_seconds", dimensions: labels).recordNanoseconds(first.nanoseconds)
        }
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
    var nanoseconds: Int64 { Int64(clamping: Int(seconds * 1e9)) }
}
