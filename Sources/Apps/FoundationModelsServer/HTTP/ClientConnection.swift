internal import NIOCore
internal import Synchronization

/// The connection of a client: tells when the client has gone away.
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny

    private struct State {
        var isGone = false
        var lastID = 0
        var actions: [Int: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    /// The connection of a channel. It is added to the pipeline at the first call.
    static func of(_ channel: any Channel) async -> ClientConnection? {
        // An error says only that the handler is not there yet.
        if let known = try? await channel.pipeline.handler(type: ClientConnection.self).get() { return known }
        let connection = ClientConnection()
        // A channel that is closed takes no handlers: the client has gone.
        do { try await channel.pipeline.addHandler(connection, position: .first).get() } catch { connection.leave() }
        return connection
    }

    /// Calls `action` once when the client goes away, or now if it has.
    ///
    /// - Returns: what ``removeAction(_:)`` takes.
    func whenGone(_ action: @escaping @Sendable () -> Void) -> Int {
        let (id, isGone) = state.withLock { state in
            state.lastID += 1
            if !state.isGone { state.actions[state.lastID] = action }
            return (state.lastID, state.isGone)
        }
        if isGone { action() }
        return id
    }

    func removeAction(_ id: Int) { state.withLock { $0.actions[id] = nil } }

    private func leave() {
        let actions = state.withLock { state in
            state.isGone = true
            defer { state.actions = [:] }
            return state.actions
        }
        for action in actions.values { action() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    /// A client that has closed its half of the connection reads no more either: HTTP has no other use for this.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent { leave() }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        leave()
        context.fireErrorCaught(error)
    }
}
