internal import AsyncHTTPClient
internal import Foundation
public import Instrumentation
internal import JSON
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import ServiceContextModule
public import ServiceLifecycle
internal import Synchronization
public import Tracing

/// Sends spans to a collector of OpenTelemetry, as OTLP over HTTP in JSON (https://opentelemetry.io/docs/specs/otlp/).
///
/// A program bootstraps the tracing system with it and runs it as a service: `InstrumentationSystem.bootstrap(tracer)`. Spans that come
/// faster than the collector takes them are left out; requests never wait for it.
public final class OTLPTracer: Tracer, Service, Sendable {
    private let address: String
    private let serviceName: String
    private let ended = Mutex<[JSONValue]>([])
    private let client: HTTPClient
    /// Spans that are kept until they are sent.
    private static let capacity = 4_096
    private static let interval = Duration.seconds(2)

    /// - Parameters:
    ///   - endpoint: the base address of the collector, such as `http://127.0.0.1:4318`.
    ///   - serviceName: how the collector names this program.
    public init(endpoint: String, serviceName: String = "fm") {
        address = (endpoint.hasSuffix("/") ? String(endpoint.dropLast()) : endpoint) + "/v1/traces"
        self.serviceName = serviceName
        var configuration = HTTPClient.Configuration()
        // What sends spans must make none.
        configuration.tracing.tracer = nil
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    deinit { client.shutdown { _ in } }

    /// Sends spans until the surrounding service group ends.
    public func run() async throws {
        await cancelWhenGracefulShutdown {
            while true {
                do { try await Task.sleep(for: Self.interval) } catch { break }
                await self.flush()
            }
        }
        await flush()
    }

    private func flush() async {
        let spans = ended.withLock { spans in
            defer { spans = [] }
            return spans
        }
        if spans.isEmpty { return }
        let resource = JSONValue.object([.init("attributes", .array([Self.attribute("service.name", .string(serviceName))]))])
        let scope = JSONValue.object([
            .init("scope", .object([.init("name", .string("FoundationModels"))])), .init("spans", .array(spans)),
        ])
        let body = JSONValue.object([
            .init("resourceSpans", .array([.object([.init("resource", resource), .init("scopeSpans", .array([scope]))])]))
        ])
        var request = HTTPClientRequest(url: address)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(bytes: body.bytes))
        do {
            let response = try await client.execute(request, timeout: .seconds(10))
            _ = try await response.body.collect(upTo: 1 << 20)
        } catch {
            // Spans are for those who look at them: without a collector, the server goes on.
            ServerLog.logger.debug("Spans cannot be sent", metadata: ["reason": "\(error)"])
        }
    }

    private func record(_ span: JSONValue) {
        ended.withLock { if $0.count < Self.capacity { $0.append(span) } }
    }

    // MARK: - Spans

    public func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> Span {
        let parent = context()
        let known = parent[TraceKey.self]
        let trace = TraceContext(
            trace: known?.trace ?? Self.identifier(bytes: 16), span: Self.identifier(bytes: 8), parent: known?.span)
        var own = parent
        own[TraceKey.self] = trace
        return Span(self, operationName, own, trace, kind, instant().nanosecondsSinceEpoch)
    }

    public func forceFlush() { Task { await flush() } }

    private static func identifier(bytes: Int) -> String {
        (0..<bytes).map { _ in
            let byte = UInt8.random(in: 0...255)
            return (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }

    // MARK: - W3C trace context (https://www.w3.org/TR/trace-context/)

    public func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let header = extractor.extract(key: "traceparent", from: carrier) else { return }
        let parts = header.split(separator: "-").map(String.init)
        guard parts.count >= 4, parts[1].count == 32, parts[2].count == 16,
            (parts[1] + parts[2]).utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }),
            parts[1].contains(where: { $0 != "0" }), parts[2].contains(where: { $0 != "0" })
        else { return }
        context[TraceKey.self] = TraceContext(trace: parts[1], span: parts[2], parent: nil)
    }

    public func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let trace = context[TraceKey.self] else { return }
        injector.inject("00-\(trace.trace)-\(trace.span)-01", forKey: "traceparent", into: &carrier)
    }

    fileprivate struct TraceContext: Sendable {
        var trace: String
        var span: String
        var parent: String?
    }

    private enum TraceKey: ServiceContextKey { typealias Value = TraceContext }

    fileprivate static func attribute(_ name: String, _ value: JSONValue) -> JSONValue {
        let typed: JSONValue.Member =
            switch value {
            case .bool: .init("boolValue", value)
            // 64-bit numbers are texts in this form.
            case .number(let number):
                number.text.allSatisfy { $0.isNumber || $0 == "-" }
                    ? .init("intValue", .string(number.text)) : .init("doubleValue", value)
            default: .init("stringValue", value)
            }
        return .object([.init("key", .string(name)), .init("value", .object([typed]))])
    }

    /// A span that is sent when it has ended.
    public final class Span: Tracing.Span, Sendable {
        public let context: ServiceContext
        private let tracer: OTLPTracer
        private let trace: TraceContext
        private let kind: SpanKind
        private let start: UInt64

        private struct State: Sendable {
            var name: String
            var attributes = SpanAttributes()
            var status: SpanStatus?
            var errors: [String] = []
            var hasEnded = false
        }
        private let state: Mutex<State>

        fileprivate init(
            _ tracer: OTLPTracer, _ name: String, _ context: ServiceContext, _ trace: TraceContext, _ kind: SpanKind,
            _ start: UInt64
        ) {
            (self.tracer, self.context, self.trace, self.kind, self.start) = (tracer, context, trace, kind, start)
            state = Mutex(State(name: name))
        }

        public var operationName: String {
            get { state.withLock { $0.name } }
            set { state.withLock { $0.name = newValue } }
        }

        public var attributes: SpanAttributes {
            get { state.withLock { $0.attributes } }
            set { state.withLock { $0.attributes = newValue } }
        }

        public var isRecording: Bool { state.withLock { !$0.hasEnded } }
        public func setStatus(_ status: SpanStatus) { state.withLock { $0.status = status } }
        public func addEvent(_ event: SpanEvent) {}
        public func addLink(_ link: SpanLink) {}

        public func recordError<Instant: TracerInstant>(
            _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
        ) {
            state.withLock { $0.errors.append("\(type(of: error))") }
        }

        public func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
            let end = instant().nanosecondsSinceEpoch
            let state = state.withLock { state in
                defer { state.hasEnded = true }
                return state
            }
            if state.hasEnded { return }
            var attributes: [JSONValue] = []
            state.attributes.forEach { name, value in
                let json: JSONValue
                switch value {
                case .int32(let number): json = .int(Int(number))
                case .int64(let number): json = .int(Int(number))
                case .double(let number): json = .double(number)
                case .bool(let isTrue): json = .bool(isTrue)
                case .string(let text): json = .string(text)
                default: json = .string("\(value)")
                }
                attributes.append(OTLPTracer.attribute(name, json))
            }
            for error in state.errors { attributes.append(OTLPTracer.attribute("error.type", .string(error))) }
            let kinds: [SpanKind: Int] = [.internal: 1, .server: 2, .client: 3, .producer: 4, .consumer: 5]
            let isError = state.status?.code == .error || !state.errors.isEmpty
            var members: [JSONValue.Member] = [
                .init("traceId", .string(trace.trace)), .init("spanId", .string(trace.span)), .init("name", .string(state.name)),
                .init("kind", .int(kinds[kind] ?? 1)), .init("startTimeUnixNano", .string("\(start)")),
                .init("endTimeUnixNano", .string("\(end)")), .init("attributes", .array(attributes)),
                .init("status", .object([.init("code", .int(isError ? 2 : 0))])),
            ]
            if let parent = trace.parent { members.append(.init("parentSpanId", .string(parent))) }
            tracer.record(.object(members))
        }
    }
}
