internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import Inference
internal import InstalledModels
internal import JSON
internal import Logging
internal import NIOCore
public import ServiceLifecycle
internal import Synchronization

/// The server as a program of its own.
extension ModelServer: Service {
    /// Listens until the surrounding service group ends, or the task is cancelled.
    ///
    /// - Throws: an error of the address.
    public func run() async throws { try await run { _ in } }

    /// - Parameter onStart: called with the address once the server listens.
    public func run(onStart: @escaping @Sendable (_ address: String) async -> Void) async throws {
        let router = Router(context: ServerRequestContext.self)
        addRoutes(to: router)
        var configuration = ApplicationConfiguration(
            address: self.configuration.socket.map { .unixDomainSocket(path: $0) }
                ?? .hostname(self.configuration.host, port: self.configuration.port),
            serverName: "fm")
        configuration.availableConnectionsDelegate = .maximum(
            self.configuration.maximumConnections, logger: ServerLog.framework)
        let application = Application(
            responder: ServerResponder(server: self, router: router.buildResponder()),
            server: .http1(
                configuration: .init(
                    additionalChannelHandlers: [ReplyFraming.Installer()],
                    idleTimeout: .seconds(Int64(self.configuration.idleConnectionSeconds)))),
            configuration: configuration,
            onServerRunning: { [self] channel in
                await onStart(address(of: channel))
            },
            logger: ServerLog.framework)
        try await withGracefulShutdownHandler {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await application.run() }
                if let seconds = self.configuration.idleSeconds { group.addTask { try await self.freeIdleModels(seconds) } }
                if let upstreams = self.upstreams { group.addTask { try await upstreams.watch() } }
                try await group.next()
                group.cancelAll()
            }
            // Nobody else would end the responses in the background.
            let tasks = running.withLock { Array($0.values) }
            for task in tasks { task.cancel() }
            for task in tasks { await task.value }
        } onGracefulShutdown: {
            self.isDraining.store(true, ordering: .relaxed)
        }
    }

    private func address(of channel: any Channel) -> String {
        if let socket = configuration.socket { return "unix:\(socket)" }
        let host = configuration.host.contains(":") ? "[\(configuration.host)]" : configuration.host
        return "http://\(host):\(channel.localAddress?.port ?? configuration.port)"
    }

    /// Frees models that nobody uses, once no request has come for a while.
    private func freeIdleModels(_ seconds: Int) async throws {
        while true {
            try await Task.sleep(for: .seconds(max(1, min(seconds, 30))))
            if gate.idleTime >= .seconds(seconds) { ModelPool.shared.releaseIdle() }
        }
    }
}

/// The context of requests to the server as a program of its own.
struct ServerRequestContext: ConnectionContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        channel = source.channel
    }
}

/// Answers what no route does, in the form of all other errors.
struct ServerResponder<Base: HTTPResponder>: HTTPResponder where Base.Context == ServerRequestContext {
    let server: ModelServer
    let router: Base

    func respond(to request: Request, context: ServerRequestContext) async throws -> Response {
        let response = try await router.respond(to: request, context: context)
        // Every reply of a route names its request.
        if response.headers[.requestID] != nil { return response }
        return await server.respond(to: request, by: nil, parameters: [:], channel: context.channel)
    }
}
