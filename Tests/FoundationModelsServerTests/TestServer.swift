import AsyncHTTPClient
import FoundationModels
import Foundation
import JSON
import NIOCore
import NIOHTTP1

@testable import FoundationModelsServer

/// A server with the small model on a port of its own, for as long as a test needs it.
struct TestServer: Sendable {
    let server: ModelServer
    let address: String

    static func run<Value: Sendable>(
        _ configuration: ModelServer.Configuration = .init(), _ body: @escaping @Sendable (TestServer) async throws -> Value
    ) async throws -> Value {
        var configuration = configuration
        configuration.port = 0
        let server = try ModelServer(configuration)
        let (addresses, continuation) = AsyncStream<String>.makeStream()
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask {
                try await server.run { continuation.yield($0) }
                return nil
            }
            group.addTask {
                for await address in addresses { return try await body(TestServer(server: server, address: address)) }
                throw CancellationError()
            }
            defer { group.cancelAll() }
            while let value = try await group.next() { if let value { return value } }
            throw CancellationError()
        }
    }

    struct Reply: Sendable {
        var status: Int
        var headers: [String: String]
        var text: String

        var json: JSONValue { (try? JSONParser.parse(text)) ?? .null }

        /// The data of the events, without the last one.
        var events: [JSONValue] {
            text.split(separator: "\n\n").compactMap { event in
                guard let line = event.split(separator: "\n").first(where: { $0.hasPrefix("data: ") }) else { return nil }
                return try? JSONParser.parse(String(line.dropFirst(6)))
            }
        }
    }

    func send(_ path: String, _ body: String? = nil, headers: [String: String] = [:]) async throws -> Reply {
        var request = HTTPClientRequest(url: address + path)
        if let body {
            request.method = .POST
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(string: body))
        }
        for (name, value) in headers { request.headers.replaceOrAdd(name: name, value: value) }
        let response = try await HTTPClient.shared.execute(request, timeout: .minutes(5))
        var buffer = try await response.body.collect(upTo: 64 << 20)
        var fields: [String: String] = [:]
        for header in response.headers { fields[header.name.lowercased()] = header.value }
        return Reply(
            status: Int(response.status.code), headers: fields, text: buffer.readString(length: buffer.readableBytes) ?? "")
    }

    func chat(_ fields: String, prompt: String = "Name a colour.") async throws -> Reply {
        let content = JSONValue.string(prompt).text
        return try await send(
            "/v1/chat/completions",
            "{\"model\": \"default\", \"messages\": [{\"role\": \"user\", \"content\": \(content)}]\(fields)}")
    }
}
