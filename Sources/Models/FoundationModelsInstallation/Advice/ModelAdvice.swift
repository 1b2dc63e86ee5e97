internal import Waiting
internal import Inference
internal import InstalledModels

/// Which model suits a machine, and why.
///
/// What counts is the machine, not what it does at the moment: a model may need half of the memory that there is, and the speed is estimated
/// from the rate at which the machine reads memory, because a token needs all weights. The small model is advised only where the memory is too
/// small for others.
public struct ModelAdvice: Hashable, Sendable {
    /// A model, and what to expect of it on this machine.
    public struct Candidate: Hashable, Sendable {
        /// The model.
        public let model: CatalogueModel
        /// How many tokens per second the machine writes with it, as an estimate.
        public let tokensPerSecond: Double
        /// Whether it fits into half of the memory, so that other programs have the rest.
        public let fits: Bool
    }

    /// The memory of the machine in bytes.
    public let memory: Int
    /// What of it is free now, if that is known.
    public let freeMemory: Int?
    /// How many bytes per second the machine reads from memory.
    public let bytesPerSecond: Double
    /// Whether the rate was measured. Without memory for the measurement, that of a usual machine is assumed.
    public let isMeasured: Bool
    /// The models that are recommended, the most capable first.
    public let candidates: [Candidate]
    /// The one that this machine should use.
    public let best: Candidate

    /// The models that are recommended, the best first.
    private static let ranked =
        ["qwen3-4b-2507", "gemma-4-e2b", "qwen3.5-2b", ModelCatalogue.standard.name, ModelCatalogue.small.name]
        .compactMap { ModelCatalogue.entry(named: $0) }

    /// Below this speed, reading is faster than writing.
    private static let minimumSpeed = 6.0

    package init(memory: Int, freeMemory: Int?, bytesPerSecond: Double, isMeasured: Bool) {
        (self.memory, self.freeMemory) = (memory, freeMemory)
        (self.bytesPerSecond, self.isMeasured) = (bytesPerSecond, isMeasured)
        func candidate(_ model: PublishedModel) -> Candidate {
            Candidate(
                model: CatalogueModel(model), tokensPerSecond: Self.tokensPerSecond(model, bytesPerSecond),
                fits: ModelCatalogue.memory(forBytes: model.size) * 2 < memory)
        }
        candidates = Self.ranked.map(candidate)
        let (standard, small) = (ModelCatalogue.standard, ModelCatalogue.small)
        let fitting = candidates.filter { $0.fits && $0.model.name != small.name }
        // The default model answers so much better than the small one that it is the better one at any speed, which is an estimate.
        best =
            fitting.first { $0.tokensPerSecond >= Self.minimumSpeed } ?? fitting.first { $0.model.name == standard.name }
            ?? candidate(small)
    }

    /// Measures this machine, which takes a part of a second. Blocks the calling thread.
    package static func measure() -> ModelAdvice {
        // Without threads there is no measurement.
        let pool = try? WorkerPool.shared()
        let rate = pool.flatMap { MemoryRate.highest(bytes: 256 << 20, pool: $0) }
        return ModelAdvice(
            memory: SystemMemory.total, freeMemory: SystemMemory.current.available(), bytesPerSecond: rate ?? 20e9,
            isMeasured: rate != nil)
    }

    private static func tokensPerSecond(_ model: PublishedModel, _ bytesPerSecond: Double) -> Double {
        // Gemma 4 E2B reads a part of its weights, the embeddings of its layers, only for the tokens that occur.
        let share = model.name == "gemma-4-e2b" ? 0.55 : 1
        return bytesPerSecond * MemoryRate.reachedShare / (Double(model.size) * share)
    }
}

extension ModelInstallation {
    /// Which model of the catalogue this machine should use. Measures the machine for a part of a second.
    public func recommendation() async -> ModelAdvice { await onAnotherThread { ModelAdvice.measure() } }
}
