internal import JSON
internal import Synchronization

/// A connection to one server, in whichever revision it speaks.
final class MCPClient: Sendable {
    let name: String
    private let transport: any MCPTransport
    private let state = ServerState()
    private let opening = AsyncOnce()

    /// What is known of the server.
    private final class ServerState: Sendable {
        struct Values {
            var isModern = false
            var instructions: String?
            /// Whether the server has said that its tools have changed.
            var hasChanged = false
        }

        let values = Mutex(Values())
    }

    /// The most pages of a list.
    private static let maximumPages = 100
    /// The most tools of a server.
    static let maximumTools = 1_000

    init(name: String, patience: Duration, makeTransport: (MCPPeer) -> any MCPTransport) {
        self.name = name
        transport = makeTransport(
            MCPPeer(name: name, patience: patience) { [state] method, _ in
                if method == "notifications/tools/list_changed" { state.values.withLock { $0.hasChanged = true } }
            })
    }

    /// Whether the server has said since the last call that its tools have changed.
    func takeChange() -> Bool {
        state.values.withLock { values in
            defer { values.hasChanged = false }
            return values.hasChanged
        }
    }

    var instructions: String? { state.values.withLock { $0.instructions } }

    /// What the client says of itself.
    private static let clientInfo = JSONValue.object([
        .init("name", .string("fm")), .init("title", .string("Foundation Models")), .init("version", .string("0.1.0")),
    ])

    /// Sends a request.
    ///
    /// - Throws: ``MCPError``, or `CancellationError`.
    func call(_ method: String, _ params: JSONValue = .object([]), headers: [String: String] = [:]) async throws -> JSONValue {
        do {
            try await opening.run { [self] in try await open() }
            let result = try await transport.request(method, enveloped(params), headers: headers, patience: nil)
            switch result["resultType"]?.string {
            case nil, "complete": return result
            case "input_required":
                let keys = if case .object(let members)? = result["inputRequests"] { members } else { [JSONValue.Member]() }
                throw MCPError.unsupportedRequest(
                    server: name, request: keys.compactMap { $0.value["method"]?.string }.joined(separator: ", "))
            case let other?: throw MCPError.invalidReply(server: name, reason: "a result of type “\(other)”")
            }
        } catch let failure as MCPFailure {
            throw MCPError.refused(server: name, code: failure.code, message: failure.message)
        }
    }

    private func enveloped(_ params: JSONValue) -> JSONValue {
        guard state.values.withLock({ $0.isModern }) else { return params }
        let envelope = JSONValue.object([
            .init(MCPRevision.versionKey, .string(MCPRevision.modern)), .init(MCPRevision.clientKey, Self.clientInfo),
            .init(MCPRevision.capabilitiesKey, .object([])),
        ])
        return params.setting("_meta", envelope)
    }

    /// How long a server has to say that it speaks the revision of 2026.
    private static let discoveryPatience = Duration.seconds(8)

    /// Finds out which revision the server speaks: one that does not know `server/discover` is greeted as those of 2025 are.
    private func open() async throws {
        do { if try await discover(patience: Self.discoveryPatience) { return } } catch is MCPFailure {} catch MCPError.silent {
        } catch MCPError.invalidReply {}
        do { try await greet() } catch let failure as MCPFailure {
            // A program that starts slowly has read the first question by now.
            if failure.code == MCPFailure.unsupportedVersion("").code, try await discover(patience: nil) { return }
            throw failure
        }
    }

    /// - Returns: whether the server speaks the revision of 2026.
    private func discover(patience: Duration?) async throws -> Bool {
        state.values.withLock { $0.isModern = true }
        let found = try await transport.request("server/discover", enveloped(.object([])), headers: [:], patience: patience)
        guard case .array(let versions)? = found["supportedVersions"], versions.contains(.string(MCPRevision.modern)) else {
            return false
        }
        await transport.use(MCPRevision.modern)
        state.values.withLock { $0.instructions = found["instructions"]?.string }
        return true
    }

    private func greet() async throws {
        state.values.withLock { $0.isModern = false }
        let result = try await transport.request(
            "initialize",
            .object([
                .init("protocolVersion", .string(MCPRevision.legacy)), .init("capabilities", .object([])),
                .init("clientInfo", Self.clientInfo),
            ]), headers: [:], patience: nil)
        guard let version = result["protocolVersion"]?.string, MCPRevision.legacyVersions.contains(version) else {
            throw MCPError.invalidReply(
                server: name, reason: "it speaks the version \(result["protocolVersion"]?.string ?? "–"), which is not known")
        }
        await transport.use(version)
        state.values.withLock { $0.instructions = result["instructions"]?.string }
        try await transport.notify("notifications/initialized", .object([]))
    }

    /// The entries of a list, from all of its pages.
    func list(_ method: String, _ key: String, maximum: Int) async throws -> [JSONValue] {
        var entries: [JSONValue] = []
        var cursors: Set<String> = []
        var cursor: String?
        for _ in 0..<Self.maximumPages {
            let page = try await call(method, .object(cursor.map { [.init("cursor", .string($0))] } ?? []))
            guard case .array(let items)? = page[key] else {
                throw MCPError.invalidReply(server: name, reason: "a list without “\(key)”")
            }
            entries += items
            guard entries.count < maximum, let next = page["nextCursor"]?.string, cursors.insert(next).inserted else { break }
            cursor = next
        }
        return Array(entries.prefix(maximum))
    }

    func close() async { await transport.close() }
}

/// Work that is done once, before others; after a failure the next one tries again.
private actor AsyncOnce {
    private var task: Task<Void, any Error>?

    func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let task = self.task ?? Task { try await body() }
        self.task = task
        do { try await task.value } catch {
            if self.task == task { self.task = nil }
            throw error
        }
    }
}
