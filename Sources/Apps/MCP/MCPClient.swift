internal import JSON
internal import Synchronization
internal import Waiting

/// A connection to one server, in whichever revision it speaks.
final class MCPClient: Sendable {
    let name: String
    private let patience: Duration
    /// Nil when a server has ended, until the next request starts it again.
    private let connection: Mutex<(any MCPTransport)?>
    private let makeTransport: @Sendable () -> any MCPTransport
    private let state = ServerState()
    private let opening = AsyncOnce()

    /// What is known of the server.
    private final class ServerState: Sendable {
        struct Values {
            var isModern = false
            var name: String?
            var instructions: String?
            /// How often the server has said that its tools have changed, and how often it had when they were compared last.
            var changes = 0
            var comparedChanges = 0
            var isClosed = false
        }

        let values = Mutex(Values())
    }

    /// The most pages of a list.
    private static let maximumPages = 100
    /// The most tools of a server.
    static let maximumTools = 1_000

    init(name: String, patience: Duration, makeTransport: @escaping @Sendable (MCPPeer) -> any MCPTransport) {
        (self.name, self.patience) = (name, patience)
        let peer = MCPPeer(name: name, patience: patience) { [state] method, _ in
            if method == "notifications/tools/list_changed" { state.values.withLock { $0.changes += 1 } }
        }
        self.makeTransport = { makeTransport(peer) }
        connection = Mutex(makeTransport(peer))
    }

    private var transport: any MCPTransport {
        connection.withLock { connection in
            let transport = connection ?? makeTransport()
            connection = transport
            return transport
        }
    }

    /// The number of changes that have not been looked at; nil if there are none.
    var unseenChanges: Int? { state.values.withLock { $0.changes == $0.comparedChanges ? nil : $0.changes } }

    /// The tools were compared after so many changes.
    func noteComparison(of changes: Int) { state.values.withLock { $0.comparedChanges = max($0.comparedChanges, changes) } }

    /// What the server calls itself.
    var serverName: String? { state.values.withLock { $0.name } }
    var instructions: String? { state.values.withLock { $0.instructions } }

    /// What the client says of itself.
    private static let clientInfo = JSONValue.object([
        .init("name", .string("fm")), .init("title", .string("Foundation Models")), .init("version", .string("0.1.0")),
    ])

    /// Sends a request.
    ///
    /// - Throws: ``MCPError``, or `CancellationError`.
    func call(
        _ method: String, _ params: JSONValue = .object([]), headers: [String: String] = [:], isFirst: Bool = true
    ) async throws -> JSONValue {
        do {
            try await opening.run { [self] in try await open() }
            let result = try await transport.request(method, enveloped(params), headers: headers, patience: nil)
            switch result["resultType"]?.string {
            case nil, "complete": return result
            case "input_required":
                let keys = if case .object(let members)? = result["inputRequests"] { members } else { [JSONValue.Member]() }
                throw MCPError.unsupportedRequest(
                    server: name, request: keys.compactMap { $0.value["method"]?.string }.joined(separator: ", ").quotable)
            case let other?: throw MCPError.invalidReply(server: name, reason: "a result of type “\(other.quotable)”")
            }
        } catch let error as MCPError {
            // The next request starts the server again. Its tools may be others then.
            if case .ended = error, !state.values.withLock({ $0.isClosed }) {
                let ended = connection.withLock { connection in
                    defer { connection = nil }
                    return connection
                }
                state.values.withLock { $0.changes += 1 }
                await opening.reset()
                await ended?.close()
            }
            throw error
        } catch is MCPSessionGone {
            // The server has forgotten the session: the request begins another one.
            guard isFirst else { throw MCPError.ended(server: name, reason: "it forgets its sessions") }
            await opening.reset()
            return try await call(method, params, headers: headers, isFirst: false)
        } catch let failure as MCPFailure {
            throw MCPError.refused(server: name, code: failure.code, message: failure.message.quotable)
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
        let patience = min(Self.discoveryPatience, patience)
        do { if try await discover(patience: patience) { return } } catch is MCPFailure {} catch MCPError.silent {
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
        note(found, info: found["_meta"]?[MCPRevision.serverKey])
        // Without being asked, a server of 2026 does not say that its tools have changed.
        if found["capabilities"]?["tools"]?["listChanged"] == .bool(true) {
            let wanted = JSONValue.object([.init("notifications", .object([.init("toolsListChanged", .bool(true))]))])
            await transport.listen(enveloped(wanted))
        }
        return true
    }

    /// Keeps what the server says of itself.
    private func note(_ greeting: JSONValue, info: JSONValue?) {
        let name = info?["name"]?.string?.quotable
        let instructions = greeting["instructions"]?.string.map {
            String(String.UnicodeScalarView($0.unicodeScalars.prefix(4_000))).withoutControls
        }
        state.values.withLock {
            $0.name = name.flatMap { (1...Self.longestName).contains($0.count) ? $0 : nil }
            $0.instructions = instructions
        }
    }

    /// A longer name of a server is not used.
    private static let longestName = 60

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
                server: name,
                reason: "it speaks the version \((result["protocolVersion"]?.string ?? "–").quotable), which is not known")
        }
        await transport.use(version)
        note(result, info: result["serverInfo"])
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

    func close() async {
        state.values.withLock { $0.isClosed = true }
        await connection.withLock { $0 }?.close()
    }
}

/// Work that is done once, before others; after a failure the next one tries again. Whoever is cancelled waits no longer.
private actor AsyncOnce {
    private var task: Task<Void, any Error>?

    func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let task = self.task ?? Task { try await body() }
        self.task = task
        do { try await task.valueUnlessCancelled } catch {
            if !Task.isCancelled, self.task == task { self.task = nil }
            throw error
        }
    }

    func reset() { task = nil }
}
