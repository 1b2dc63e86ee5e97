internal import Dispatch

/// Lets decodings compute their masks on another thread while the model computes the logits. Unlike blocks on a queue, a batch
/// needs no allocation.
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
                prepare()
                end.signal()
            }
        }

        func prepare() { for decoding in decodings { decoding.prepare() } }
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
        // Models that never use a grammar need no thread.
        if !hasThread { hasThread = DetachedThread.start { [work] in work.run() } }
        if hasThread { work.begin.signal() } else { work.prepare() }
    }

    func wait() {
        if work.decodings.isEmpty { return }
        if hasThread { work.end.wait() }
        work.decodings.removeAll(keepingCapacity: true)
    }
}
