internal import Dispatch
internal import Foundation
internal import Synchronization

/// Runs a function on one of a few threads that leave the cores to other threads that can use them, in the order of the calls.
public func runInBackground(_ body: @escaping @Sendable () -> Void) { BackgroundThreads.shared.run(body) }

private final class BackgroundThreads: Sendable {
    static let shared = BackgroundThreads()

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var threads = 0
        var idle = 0
    }

    private let state = Mutex(State())
    private let hasWork = DispatchSemaphore(value: 0)
    /// As many can run at the same time.
    private static let maximum = 6

    func run(_ body: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.waiting.append(body)
            let needsThread = state.idle < state.waiting.count && state.threads < Self.maximum
            if needsThread { state.threads += 1 }
            return needsThread
        }
        if needsThread, !start() {
            // Without any thread of its own, the work has the priority of other work.
            let remains = state.withLock { state in
                state.threads -= 1
                return state.threads > 0
            }
            if !remains { DispatchQueue.global().async { self.runNext() } }
        }
        hasWork.signal()
    }

    private func runNext() {
        let body = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
        body?()
    }

    private func start() -> Bool {
        #if os(Linux)
        var thread = pthread_t()
        let context = Unmanaged.passUnretained(self).toOpaque()
        let status = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                // On Linux this is the priority of the thread alone. An error leaves it as it is.
                _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
                Unmanaged<BackgroundThreads>.fromOpaque(context).takeUnretainedValue().serve()
            }, context)
        if status == 0 { pthread_detach(thread) }
        return status == 0
        #else
        let thread = Thread { self.serve() }
        thread.qualityOfService = .utility
        thread.start()
        return true
        #endif
    }

    private func serve() -> Never {
        while true {
            state.withLock { $0.idle += 1 }
            hasWork.wait()
            state.withLock { $0.idle -= 1 }
            runNext()
        }
    }
}
