internal import Dispatch

/// Lets decodings compute their masks on another thread while the model computes the logits. Allocates nothing for a batch.
final class Preparation {
    /// Between ``Preparation/start()`` and ``Preparation/wait()`` only the other thread uses the decodings.
    private final class Work: @unchecked Sendable {
        var decodings: [any Decoding] = []
        let done = DispatchSemaphore(value: 0)
    }

    private let work = Work()
    /// Unlike a block that is submitted to a queue, an event of a source needs no memory.
    private let source: any DispatchSourceUserDataAdd

    init() {
        let queue = DispatchQueue(label: "FoundationModels.masks", qos: .userInitiated)
        source = DispatchSource.makeUserDataAddSource(queue: queue)
        source.setEventHandler { [work] in
            for decoding in work.decodings { decoding.prepare() }
            work.done.signal()
        }
        source.activate()
    }

    deinit { source.cancel() }

    /// Adds a decoding to the next batch.
    func add(_ decoding: any Decoding) { if decoding.canPrepare { work.decodings.append(decoding) } }

    func start() { if !work.decodings.isEmpty { source.add(data: 1) } }

    func wait() {
        if work.decodings.isEmpty { return }
        work.done.wait()
        work.decodings.removeAll(keepingCapacity: true)
    }
}
