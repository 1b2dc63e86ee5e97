internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import JSON
internal import Synchronization

extension ModelServer {
    /// All addresses.
    var routes: [Route] {
        statusRoutes + modelRoutes + chatRoutes + completionRoutes + messagesRoutes + responsesRoutes + conversationRoutes
            + embeddingRoutes + decisionRoutes + mcpRoutes + consoleRoutes + ollamaRoutes
    }

    /// Addresses that say how the server is.
    private var statusRoutes: [Route] {
        [
            Route(method: .get, paths: ["/health", "/v1/health", "/healthz", "/livez"], name: "/health", isPublic: true) {
                [self] _ in
                if isDraining.load(ordering: .relaxed) {
                    return .json(.object([.init("status", .string("draining"))]), status: .serviceUnavailable)
                }
                let load = gate.load
                return .json(
                    .object([
                        .init("status", .string("ok")), .init("active", .int(load.active)), .init("waiting", .int(load.waiting)),
                        .init("slots", .int(load.slots)),
                    ]))
            },
            Route(method: .get, paths: ["/readyz"], name: "/readyz", isPublic: true) { [self] _ in
                let load = gate.load
                let isReady = !isDraining.load(ordering: .relaxed) && load.waiting < max(1, configuration.waitingRequests)
                return .json(
                    .object([.init("status", .string(isReady ? "ok" : "busy"))]), status: isReady ? .ok : .serviceUnavailable)
            },
            Route(method: .get, paths: ["/metrics"], name: "/metrics") { [self] _ in
                var headers = HTTPFields()
                headers[.contentType] = "text/plain; version=0.0.4; charset=utf-8"
                let load = gate.load
                // Under the names that routers of other servers read.
                let text =
                    PrometheusMetrics.shared.text + """
                        # TYPE fm_num_requests_running gauge
                        fm_num_requests_running \(load.active)
                        # TYPE fm_num_requests_waiting gauge
                        fm_num_requests_waiting \(load.waiting)
                        # TYPE vllm:num_requests_running gauge
                        vllm:num_requests_running \(load.active)
                        # TYPE vllm:num_requests_waiting gauge
                        vllm:num_requests_waiting \(load.waiting)
                        # TYPE llamacpp:requests_processing gauge
                        llamacpp:requests_processing \(load.active)
                        # TYPE llamacpp:requests_deferred gauge
                        llamacpp:requests_deferred \(load.waiting)

                        """
                return Response(status: .ok, headers: headers, body: .init(byteBuffer: .init(string: text)))
            },
            Route(method: .get, paths: ["/version", "/v1/version"], name: "/version", isPublic: true) { _ in
                .json(.object([.init("version", .string(ServerVersion.number))]))
            },
        ]
    }
}
