package import Logging
package import Metrics

/// Messages and figures of a pool and its engines.
///
/// Nothing is printed unless a program installs a handler: all messages have the level debug, which the standard handler drops. Figures go to the factory with which the program has bootstrapped the metrics system before the pool was made, else nowhere. They are
/// made once, so that a pass only calls them.
package struct PoolTelemetry: Sendable {
    private let logger: Logger
    private let waitingRequests: Meter
    private let activeRequests: Meter
    private let passes: Counter
    private let passTokens: Recorder
    private let promptTokens: Counter
    private let generatedTokens: Counter
    private let pages: Gauge
    private let bytes: Gauge
    private let evictions: Counter
    private let loadTime: Timer
    private let queueTime: Timer

    package init(logger: Logger = Logger(label: "FoundationModels"), metrics: any MetricsFactory = MetricsSystem.factory) {
        self.logger = logger
        func name(_ name: String) -> String { "foundation_models_" + name }
        waitingRequests = Meter(label: name("waiting_requests"), factory: metrics)
        activeRequests = Meter(label: name("active_requests"), factory: metrics)
        passes = Counter(label: name("passes"), factory: metrics)
        passTokens = Recorder(label: name("pass_tokens"), factory: metrics)
        promptTokens = Counter(label: name("prompt_tokens"), factory: metrics)
        generatedTokens = Counter(label: name("generated_tokens"), factory: metrics)
        pages = Gauge(label: name("cache_pages"), factory: metrics)
        bytes = Gauge(label: name("memory_bytes"), factory: metrics)
        evictions = Counter(label: name("evictions"), factory: metrics)
        loadTime = Timer(label: name("load_time"), factory: metrics)
        queueTime = Timer(label: name("queue_time"), factory: metrics)
    }

    func memory(bytes: Int, pages: Int) {
        self.bytes.record(bytes)
        self.pages.record(pages)
    }

    func noteEviction(of kind: String, _ source: String = "") {
        evictions.increment()
        logger.debug("Memory is freed", metadata: ["kind": "\(kind)", "model": "\(source)"])
    }

    func noteLoad(_ source: String, _ duration: Duration) {
        loadTime.recordSeconds(duration.seconds)
        logger.debug("A model was loaded", metadata: ["model": "\(source)", "seconds": "\(duration.seconds)"])
    }

    func noteWait(for bytes: Int) {
        logger.debug("A model waits until others need less memory", metadata: ["bytes": "\(bytes)"])
    }

    // MARK: - Requests

    func noteArrival() { waitingRequests.increment() }

    func noteRefusal(waiting: Int) {
        logger.debug("A request is refused: too many others wait", metadata: ["waiting": "\(waiting)"])
    }

    /// - Parameter duration: the time that the request has waited for its turn.
    func noteBegin(after duration: Duration) {
        waitingRequests.decrement()
        activeRequests.increment()
        queueTime.recordSeconds(duration.seconds)
    }

    func noteEnd(wasActive: Bool) { (wasActive ? activeRequests : waitingRequests).decrement() }

    func noteLack(of bytes: Int) { logger.debug("A request ends: there is no memory", metadata: ["bytes": "\(bytes)"]) }

    func notePass(tokens: Int) {
        passes.increment()
        passTokens.record(tokens)
    }

    func notePrompt(tokens: Int) { promptTokens.increment(by: tokens) }
    func noteAnswer(tokens: Int) { generatedTokens.increment(by: tokens) }
}
