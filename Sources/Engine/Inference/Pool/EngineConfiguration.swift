/// The limits of a pool of models: what its engines process together, and the memory that models and sequences have in common.
///
/// All of them count work, never time: equal requests have equal results on machines of any speed.
package struct EngineConfiguration: Sendable {
    /// Tokens of a pass. The weights are read once for all of them.
    package var batchTokens = 256
    /// Tokens of prompts in a pass that generates tokens of other requests too: who reads an answer waits no longer for its next token
    /// than a pass of this size takes.
    package var mixedTokens = 64
    /// Requests of a model that are processed at the same time. The others wait, in the order of their arrival.
    package var activeRequests = 8
    /// Requests of a model that may wait.
    package var waitingRequests = 1_024
    /// Tokens of sequences that are gone whose keys and values are kept for others that begin in the same way. The last one is kept in any
    /// case. A server that has answered thousands of requests would otherwise fill the memory with what nobody asks for again.
    package var keptTokens = 1 << 16
    /// Bytes of packed weights, pages of keys and values, recurrent states, their checkpoints, and adapters. What is in use is never freed:
    /// a single model that is larger has the memory alone, and the last request that can go on may exceed it.
    package var memoryBytes = EngineConfiguration.defaultMemory

    package init() {}

    /// Three quarters of the memory, at least 2 GB; less where other programs need it: see ``SystemMemory/reserve``.
    package static let defaultMemory = max(2 << 30, SystemMemory.total / 4 * 3)
}

extension Scheduler.Limits {
    init(_ configuration: EngineConfiguration) {
        self.init(
            active: max(1, configuration.activeRequests), waiting: max(0, configuration.waitingRequests),
            batchTokens: max(1, configuration.batchTokens), mixedTokens: max(1, configuration.mixedTokens))
    }
}
