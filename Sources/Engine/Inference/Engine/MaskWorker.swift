internal import Dispatch

/// Lets turns compute their masks on another thread while the model computes the logits. Unlike blocks on a queue, a batch
/// needs no allocation.
final class MaskWorker {
    /// Between ``MaskWorker/start()`` and ``MaskWorker/wait()`` only the thread uses the queued work.
    private final class Work: @unchecked Sendable {
        var queued: [any SequenceWork] = []
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

        func prepare() { for item in queued { item.prepare() } }
    }

    private let work = Work()
    private var hasThread = false

    deinit {
        work.isEnded = true
        work.begin.signal()
    }

    /// Adds work to the next batch, if it has anything to prepare.
    func add(_ item: any SequenceWork) { if item.canPrepare { work.queued.append(item) } }

    func start() {
        if work.queued.isEmpty { return }
        // Models that never use a grammar need no thread.
        if !hasThread { hasThread = DetachedThread.start { [work] in work.run() } }
        if hasThread { work.begin.signal() } else { work.prepare() }
    }

    func wait() {
        if work.queued.isEmpty { return }
        if hasThread { work.end.wait() }
        work.queued.removeAll(keepingCapacity: true)
    }
}
