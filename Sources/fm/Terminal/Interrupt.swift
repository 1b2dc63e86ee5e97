@preconcurrency import Dispatch  // its signal sources are thread-safe but not marked as Sendable
import Foundation
import Synchronization

/// Calls a handler on Ctrl-C. A second Ctrl-C ends the process.
final class Interrupt: Sendable {
    private let source: any DispatchSourceSignal
    private let count = Mutex(0)
    private static let active = Mutex(0)

    /// Whether a handler is in effect.
    static var isActive: Bool { active.withLock { $0 > 0 } }

    var happened: Bool { count.withLock { $0 > 0 } }

    init(_ handler: @escaping @Sendable () -> Void) {
        Self.active.withLock {
            $0 += 1
            signal(SIGINT, SIG_IGN)
        }
        source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
        source.setEventHandler { [weak self] in
            let times = self?.count.withLock { count in
                count += 1
                return count
            }
            if times == 2 {
                TerminalEcho.show()
                _exit(130)
            }
            handler()
        }
        source.resume()
    }

    /// Restores the default behaviour of Ctrl-C, unless another handler is in effect.
    func stop() {
        source.cancel()
        Self.active.withLock {
            $0 -= 1
            if $0 == 0, !TerminalEcho.isHidden { signal(SIGINT, SIG_DFL) }
        }
    }
}
