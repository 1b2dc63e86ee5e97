internal import ContextKit
internal import FoundationModels
internal import Inference
internal import Synchronization

/// The windows of the conversations that have been made to fit last: what they know of old turns is not read again.
final class ConversationWindows: Sendable {
    private struct Entry {
        let window: ConversationWindow
        var lastUse: Int
    }

    private struct State {
        var windows: [String: Entry] = [:]
        var clock = 0
    }

    private let state = Mutex(State())
    private let capacity: Int

    init(capacity: Int = 64) { self.capacity = capacity }

    /// Makes a conversation fit.
    ///
    /// - Throws: ``RequestError``, or `CancellationError`.
    func fit(
        _ entries: [Transcript.Entry], _ request: TurnRequest, contextSize: Int, reserve: Int,
        count: @escaping @Sendable ([Transcript.Entry]) async throws -> Int
    ) async throws -> ConversationWindow.Fitted {
        let window: ConversationWindow
        do { window = try self.window(of: key(request)) } catch { throw RequestError.fault }
        do {
            return try await window.fit(entries, contextSize: contextSize, reserve: reserve, count: count)
        } catch let error as ConversationWindow.TooLong {
            throw RequestError.tooLong(tokens: error.tokens, contextSize: contextSize, param: request.inputName)
        }
    }

    /// A conversation is known by its identifier, or by what it begins with.
    private func key(_ request: TurnRequest) -> String {
        if let id = request.conversation { return id }
        guard case .chat(let chat) = request.input else { return "" }
        return chat.messages.prefix(3).map { "\($0.role) \($0.content)" }.joined(separator: "\u{0}") + (request.cacheSalt ?? "")
    }

    private func window(of key: String) throws -> ConversationWindow {
        try state.withLock { state in
            state.clock += 1
            if let known = state.windows[key] {
                state.windows[key]?.lastUse = state.clock
                return known.window
            }
            let window = try ConversationWindow()
            state.windows[key] = Entry(window: window, lastUse: state.clock)
            if state.windows.count > capacity, let oldest = state.windows.min(by: { $0.value.lastUse < $1.value.lastUse }) {
                state.windows[oldest.key] = nil
            }
            return window
        }
    }
}
