internal import Dispatch
internal import Foundation

/// Lets decodings compute their masks on another thread while the model computes the logits. Allocates nothing for a batch, as
/// blocks on a queue would.
final class Preparation {
    /// Between ``Preparation/start()`` and ``Preparation/wait()`` only the thread uses the decodings.
    private final class Work: @unchecked Sendable {
        var decodings: [any Decoding] = []
        var isEnded = false
        let begin = DispatchSemaphore(value: 0)
        let end = DispatchSemaphore(value: 0)

        func run() {
            while true {
                begin.wait()
                if isEnded { return }
                for decoding in decodings { decoding.prepare() }
                end.signal()
            }
        }
    }

    private let work = Work()
    private var hasThread = false

    deinit {
        work.isEnded = true
        work.begin.signal()
    }

    /// Adds a decoding to the next batch, if it has anything to prepare.
    func add(_ decoding: any Decoding) { if decoding.canPrepare { work.decodings.append(decoding) } }

    func start() {
        if work.decodings.isEmpty { return }
        if !hasThread {
            // Masks of models that never use a grammar need no thread.
            Thread.detachNewThread { [work] in work.run() }
            hasThread = true
        }
        work.begin.signal()
    }

    func wait() {
        if work.decodings.isEmpty { return }
        work.end.wait()
        work.decodings.removeAll(keepingCapacity: true)
    }
}
