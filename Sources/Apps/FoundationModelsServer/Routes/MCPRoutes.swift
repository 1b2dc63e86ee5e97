internal import HTTPTypes
internal import Hummingbird
internal import JSON
internal import MCP

/// Tools for clients of the Model Context Protocol, in both revisions: each message is a request, and has its answer in the reply.
extension ModelServer {
    var mcpRoutes: [Route] {
        guard let tools = configuration.tools else { return [] }
        return [
            Route(method: .post, paths: ["/mcp"], name: "/mcp") { [self] exchange in
                let accepted = exchange.request.headers[.accept] ?? ""
                guard accepted.contains("*/*") || accepted.contains("application/json") else {
                    throw RequestError(406, "The client must accept application/json.")
                }
                // What is no JSON is an error of the protocol, not of HTTP.
                let body: JSONValue?
                do { body = try await exchange.body() } catch let error as RequestError where error.status == 400 { body = nil }
                let place = try await gate.enter(exchange.client)
                defer { place.leave(tokens: 0) }
                let headers = exchange.request.headers
                let reply = try await exchange.whileConnected {
                    try await tools.reply(to: body) { name in HTTPField.Name(name).flatMap { headers[$0] } }
                }
                guard let json = reply.body else { return Response(status: .init(code: reply.status)) }
                return .json(json, status: .init(code: reply.status))
            }
        ]
    }
}
