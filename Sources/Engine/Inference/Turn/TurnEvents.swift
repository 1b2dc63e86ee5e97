internal import Synchronization

/// The events of a turn on their way from the engine to the task of the request.
///
/// The engine never waits for the task: text that the task has not taken yet is joined, so that the events take no more memory
/// than the text of one response.
final class TurnEvents: Sendable {
    private struct State: ~Copyable {
        var waiting: [TurnEvent] = []
        var result: Result<Void, any Error>?
        var reader: UnsafeContinuation<Void, Never>?
        var isUnwanted = false
    }

    private let state = Mutex(State())

    /// The number of events from which on text is joined.
    private static let maximumParts = 64

    /// Whether the task wants no more events.
    var isUnwanted: Bool { state.withLock { $0.isUnwanted } }
    func refuse() { state.withLock { $0.isUnwanted = true } }

    func send(_ event: TurnEvent) {
        let reader = state.withLock { state in
            if state.waiting.count < Self.maximumParts || !state.waiting[state.waiting.count - 1].join(event) {
                state.waiting.append(event)
            }
            return state.reader.take()
        }
        reader?.resume()
    }

    /// No event follows.
    func finish(_ result: Result<Void, any Error>) {
        let reader = state.withLock { state in
            state.result = result
            return state.reader.take()
        }
        reader?.resume()
    }

    /// The events since the last call, at least one, or none after the last one. Only one task may call this.
    ///
    /// - Throws: the error with which the turn ended.
    func next() async throws -> [TurnEvent] {
        while true {
            let (events, result) = state.withLock { state in
                defer { state.waiting.removeAll() }
                return (state.waiting, state.result)
            }
            if !events.isEmpty { return events }
            if let result {
                try result.get()
                return []
            }
            await withUnsafeContinuation { continuation in
                let isReady = state.withLock { state in
                    if !state.waiting.isEmpty || state.result != nil { return true }
                    state.reader = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        }
    }
}

extension TurnEvent {
    /// Appends a text of the same kind; false if the other event is of another kind.
    fileprivate mutating func join(_ other: TurnEvent) -> Bool {
        switch (self, other) {
        case (.text(var own), .text(let other)):
            self = .state([], layer: 0)  // the text must not be copied
            own.append(other)
            self = .text(own)
        case (.thought(var own), .thought(let other)):
            self = .state([], layer: 0)
            own.append(other)
            self = .thought(own)
        default: return false
        }
        return true
    }
}
