internal import Waiting
internal import CKernels
internal import Files
public import Foundation
internal import Inference
internal import InstalledModels

/// Trains a low-rank adapter (LoRA, arXiv:2106.09685) on the CPU. The weights of the model stay quantised and are never changed.
///
/// ```swift
/// let trainer = try AdapterTrainer(model: "small", data: TrainingData(contentsOf: file))
/// try await trainer.train(to: URL(filePath: "my.fmadapter")) { print($0.step, $0.loss) }
/// ```
public final class AdapterTrainer: Sendable {
    /// What a run takes.
    public struct Plan: Sendable, Codable {
        /// The file of the model.
        public var modelPath: String
        public var modelName: String
        /// The number of rows that are learned, and of those that the loss is measured with.
        public var rows: Int
        public var validationRows: Int
        /// The lines of rows that are longer than allowed, and that are left out.
        public var tooLong: [Int]
        /// The number of tokens of an epoch, and of those that are learned.
        public var tokens: Int
        public var learnedTokens: Int
        public var steps: Int
        public var epochs: Int
        /// Learned tokens of a step.
        public var stepTokens: Int
        public var rate: Double
        /// The number of trained parameters.
        public var parameters: Int
        /// Estimated memory in bytes beyond the model's file.
        public var memory: Int
        /// Estimated tokens per second and seconds of the whole run.
        public var tokensPerSecond: Double
        public var seconds: Double
    }

    /// What has been done.
    public struct Progress: Sendable, Codable {
        /// The number of steps that are done, and of all.
        public var step: Int
        public var steps: Int
        public var epoch: Double
        /// The mean loss of the step's learned tokens, in nats.
        public var loss: Double
        /// The mean loss of the validation rows, where it was measured after this step, and the share of their tokens that have the largest
        /// logit.
        public var validationLoss: Double?
        public var validationAccuracy: Double?
        public var rate: Double
        public var gradientNorm: Double
        /// How far the predictions for texts of other kinds, and for answers that are kept, were from those without the adapter, as
        /// Kullback-Leibler divergence in nats per token.
        public var divergence: Double?
        /// Tokens per second since the run began, and estimated seconds that are left.
        public var tokensPerSecond: Double
        public var secondsLeft: Double
    }

    /// The options, with the values that were chosen for nil.
    public let options: AdapterOptions
    public let plan: Plan

    let model: FrozenModel
    let encoder: SequenceEncoder
    let sequences: [TrainingSequence]
    let validation: [TrainingSequence]
    let dataHash: UInt64
    let fingerprint: String
    /// The adapter below the new one, and the hash of its file.
    let base: AdapterFile?
    let baseHash: String?
    /// The adapter whose values the new one begins with, and the hash of its file.
    let start: AdapterFile?
    let startHash: String?
    /// Conversations whose answers are to stay as they are, and the hash of their rows.
    let keptConversations: [TrainingSequence]
    let keptHash: UInt64?

    /// Reads the model and renders all rows.
    ///
    /// - Parameters:
    ///   - name: The name of an installed model, or the path of a GGUF file.
    ///   - kept: Conversations in which the model's own predictions for what the assistant says are kept (``AdapterOptions/keep``), besides
    ///     those for texts of other kinds. The best are answers of the model itself, with the adapter `base` if there is one, to requests
    ///     that the new adapter is not for: their wording is not learned, only how probable the model finds each token. Each step has
    ///     some 500 tokens of them, in the order of the rows. Rows that are too long are left out.
    ///   - base: The file of an adapter that the new one is used together with, such as the one that was installed with the model; it is
    ///     not changed. The new file names it.
    ///   - start: The file of an adapter of the same matrices and rank, whose values the new one begins with: training goes on with other
    ///     data. Nil to begin with an adapter that changes nothing.
    /// - Throws: ``TrainingError``: for a model that cannot be trained, for rows that cannot be rendered or have nothing to learn.
    public init(
        model name: String, data: TrainingData, kept: TrainingData? = nil, options: AdapterOptions = AdapterOptions(),
        base: URL? = nil, start: URL? = nil
    ) throws(TrainingError) {
        try options.check()
        let model = try FrozenModel(path: ModelStore.path(of: name))
        self.model = model
        do { fingerprint = try model.file.fingerprint() } catch { throw .damagedModel("\(error)") }
        func adapter(_ url: URL?) throws(TrainingError) -> (file: AdapterFile, hash: String)? {
            guard let url else { return nil }
            do {
                let file = try AdapterFile(path: url.path)
                try file.check(model.file)
                return (file, String(FNV.hash(try Data(contentsOf: url)), radix: 16))
            } catch { throw .invalidAdapter("\(url.path): \(error)") }
        }
        let (below, first) = (try adapter(base), try adapter(start))
        (self.base, baseHash) = (below?.file, below?.hash)
        (self.start, startHash) = (first?.file, first?.hash)
        let length = min(options.length, model.shape.contextLength)
        encoder = try SequenceEncoder(model.file, maximumTokens: length)
        var sequences: [TrainingSequence] = []
        var validation: [TrainingSequence] = []
        var tooLong: [Int] = []
        var empty: [Int] = []
        let hasWindows = model.layers.contains { $0.attention.window != nil }
        var lines: [(line: Int, hash: UInt64, found: [TrainingSequence])] = []
        for row in data.rows {
            let found = try encoder.sequences(row)
            if let last = lines.last, last.hash == row.hash, last.line == row.line {
                lines[lines.count - 1].found += found
            } else {
                lines.append((row.line, row.hash, found))
            }
        }
        for (line, hash, conversations) in lines {
            // In a window, the rows of other branches would stand between a branch and what it has in common with them.
            let found =
                hasWindows
                ? conversations : TrainingSequence.merged(conversations, maximumTokens: min(length, Self.rowsOfBatch))
            if found.allSatisfy({ $0.learnedCount == 0 }) { empty.append(line) }
            for sequence in found where sequence.learnedCount > 0 {
                guard sequence.tokens.count <= length else {
                    if tooLong.last != line { tooLong.append(line) }
                    continue
                }
                // By the row's text, so that it stays the same when rows are added.
                let place = Double(hash >> 11) / Double(1 << 53)
                if place < options.validationShare, data.count >= Self.minimumRowsForValidation {
                    validation.append(sequence)
                } else {
                    sequences.append(sequence)
                }
            }
        }
        if let line = empty.first {
            let more =
                empty.count > 1
                ? " The same holds for the lines \(empty.dropFirst().prefix(10).map(String.init).joined(separator: ", "))." : ""
            throw .invalidData(
                line: line, reason: "nothing of it is learned: the assistant's texts are empty or marked as not learned.\(more)")
        }
        guard !sequences.isEmpty else {
            throw .noData(
                tooLong.isEmpty
                    ? "The data has no rows to learn from."
                    : "All rows are longer than \(length) tokens"
                        + (length < options.length
                            ? ", the length of the model's context: split them."
                            : ". Train with a larger --length, or split them."))
        }
        self.sequences = sequences
        self.validation = validation
        dataHash = data.hash
        var keptConversations: [TrainingSequence] = []
        for row in kept?.rows ?? [] {
            do throws(TrainingError) {
                keptConversations += try encoder.sequences(row).filter { $0.learnedCount > 0 && $0.tokens.count <= length }
            } catch { throw error.ofKeptAnswers }
        }
        if kept != nil, keptConversations.isEmpty || options.keep == 0 {
            throw .invalidOption(
                options.keep == 0
                    ? "Answers are kept only with a factor (--keep) above 0."
                    : "All rows whose answers are to be kept are longer than \(length) tokens, or have no answer.")
        }
        self.keptConversations = keptConversations
        keptHash = kept?.hash

        var chosen = options
        let width = model.shape.width
        let layerWeights = model.layers.reduce(0) { $0 + $1.projections.reduce(0) { $0 + $1.matrix.rows * $1.matrix.columns } }
        let headWeights = model.shape.vocabularySize * width
        let learned = sequences.reduce(0) { $0 + $1.learnedCount }
        let tokens = sequences.reduce(0) { $0 + $1.tokens.count }
        chosen.alpha = options.alpha ?? 2 * Double(options.rank)
        chosen.rate = options.rate ?? (layerWeights + headWeights < 500_000_000 ? 5e-4 : 2e-4)
        chosen.stepTokens = options.stepTokens ?? min(2_000, max(Self.usualRows * learned / sequences.count, learned / 16))
        let stepsPerEpoch = Schedule.stepsPerEpoch(sequences, stepTokens: chosen.stepTokens ?? 1)
        // A small data set is learned more often: fewer steps change little.
        let epochs = options.epochs ?? min(10, max(3, (Self.usualSteps + stepsPerEpoch - 1) / stepsPerEpoch))
        let steps = options.steps ?? epochs * stepsPerEpoch
        chosen.epochs = options.steps.map { ($0 + stepsPerEpoch - 1) / stepsPerEpoch } ?? epochs
        chosen.steps = steps
        chosen.length = length
        let places = Self.matrices(model, chosen.matrices, layers: chosen.layers)
        let parameters = places.reduce(0) { $0 + chosen.rank * ($1.rows + $1.columns) }
        let longest = (sequences + validation + keptConversations).reduce(0) { max($0, $1.tokens.count) }
        let budget = options.memory ?? Self.defaultMemory
        // Values, gradients, two moments, the best values; and the vocabulary and the program itself.
        let fixed = 4 * 5 * parameters + Self.programMemory
        let rows = Self.rows(longest: longest, tokens: tokens)
        func memory(_ kept: Int) -> Int { fixed + GradientPass.bytes(model, rows: rows, rank: chosen.rank, keptLayers: kept) }
        guard memory(0) <= budget else {
            throw .invalidOption(
                "Training with rows of \(longest) tokens takes \(memory(0) >> 20) MB, and \(budget >> 20) MB are allowed. Use a smaller --length, or allow more with --memory."
            )
        }
        // Integers make products several times as fast; kept layers save a third of them.
        let integers = GradientPass.integerBytes(model)
        let usesIntegers = chosen.integers && integers > 0 && memory(0) + integers <= budget
        let left = usesIntegers ? budget - integers : budget
        var keptLayers = 0
        while keptLayers < model.layers.count, memory(keptLayers + 1) <= left { keptLayers += 1 }
        let batch = Batching(rows: rows, keptLayers: keptLayers, usesIntegers: usesIntegers)
        batching = batch
        let keptTokens =
            // With conversations, the model's own predictions are computed in most steps too: forwards, a third of the work.
            options.keep == 0
            ? 0 : keptConversations.isEmpty ? KeptText.usualTokens : min(rows, KeptText.tokensWithConversations) * 4 / 3
        let share = Double(learned) / Double(tokens)
        // Forwards through all layers, and backwards, and a second time forwards if nothing is kept, through those that are trained.
        let layers = Double(model.layers.count)
        let trained = Double(min(model.layers.count, chosen.layers ?? model.layers.count))
        let passes = 2 + (2 * trained + 2 * max(0, trained - Double(keptLayers))) / layers
        let operations = passes * Double(layerWeights) + 4 * share * Double(headWeights)
        let pool: WorkerPool
        do { pool = try WorkerPool.shared() } catch { throw .outOfMemory(bytes: 4096) }
        let limit: Double
        if usesIntegers, let matrix = model.layers.last?.down.matrix {
            limit = try ProductSpeed.integers(pool, matrix)
        } else {
            limit = ProductSpeed.limit(pool, rounds: chosen.rounds)
        }
        let speed = (usesIntegers ? Self.usualShareOfIntegers : Self.usualShareOfLimit) * limit / operations
        self.options = chosen
        plan = Plan(
            modelPath: model.file.path, modelName: model.shape.name, rows: sequences.count, validationRows: validation.count,
            tooLong: tooLong, tokens: tokens, learnedTokens: learned, steps: steps, epochs: chosen.epochs ?? 1,
            stepTokens: chosen.stepTokens ?? 1, rate: chosen.rate ?? 0, parameters: parameters,
            memory: memory(keptLayers) + (usesIntegers ? integers : 0),
            tokensPerSecond: speed,
            seconds: Double(steps) * (Double(tokens) / Double(stepsPerEpoch) + Double(keptTokens)) / max(1, speed))
    }

    struct Batching {
        var rows: Int
        var keptLayers: Int
        var usesIntegers: Bool
    }
    let batching: Batching

    /// Fewer rows are all needed to learn from.
    private static let minimumRowsForValidation = 30
    private static let usualSteps = 80
    private static let programMemory = 64 << 20
    /// The smallest number of rows of a step, on average.
    private static let usualRows = 8
    /// The share of the limit of matrix products that a run usually reaches (BENCHMARKS.md, “Training”).
    private static let usualShareOfLimit = 0.4
    private static let usualShareOfIntegers = 0.6
    private static var defaultMemory: Int {
        let most = 6 << 30
        guard let free = SystemMemory.current.available() else { return most }
        return max(256 << 20, min(most, free / 4 * 3))
    }

    private static let rowsOfBatch = 1024
    /// The number of tokens of a batch: enough that decoding weights takes little of the time.
    private static func rows(longest: Int, tokens: Int) -> Int { max(longest, min(rowsOfBatch, max(64, tokens))) }

    /// The matrices that are trained.
    ///
    /// - Parameter layers: the number of last layers; nil for all.
    package static func matrices(_ model: FrozenModel, _ kind: AdapterOptions.Matrices, layers: Int? = nil) -> [(
        name: String, rows: Int, columns: Int
    )] {
        model.layers.suffix(layers ?? model.layers.count).flatMap { layer in
            let chosen =
                switch kind {
                case .all: layer.projections
                case .attention: layer.inputs + [layer.output]
                case .feedForward: layer.gates + [layer.down]
                }
            return chosen.map { ($0.matrix.name, $0.matrix.rows, $0.matrix.columns) }
        }
    }

    // MARK: - Training

    /// Whether a run that was to write this file was interrupted and can continue.
    public static func hasCheckpoint(for url: URL) -> Bool { Checkpoint(beside: url).exists }

    /// What a finished run has done.
    public struct Summary: Sendable, Codable {
        public var steps: Int
        /// The mean loss of the validation rows before and after, and of the adapter that was kept.
        public var validationLossBefore: Double?
        public var validationLoss: Double?
        public var validationAccuracy: Double?
        /// The mean of ``Progress/divergence`` in the last steps.
        public var divergence: Double?
        public var loss: Double
        public var tokens: Int
        public var seconds: Double
        /// Whether the loss of the validation rows stopped falling before all steps were done.
        public var stoppedEarly: Bool
    }

    /// Trains, and writes the adapter. During the run, a checkpoint lies beside the file; it is removed at the end.
    ///
    /// The work is done on threads of its own. Cancelling the task writes a checkpoint and throws `CancellationError`.
    ///
    /// - Parameters:
    ///   - resumes: Whether to continue a run from its checkpoint, if there is one. The result is the same as without an interruption.
    ///   - information: What the file says about itself.
    ///   - report: Called after each step.
    /// - Throws: ``TrainingError``, or `CancellationError`.
    @concurrent @discardableResult
    public func train(
        to url: URL, resumes: Bool = false, information: AdapterInformation = AdapterInformation(),
        report: @escaping @Sendable (Progress) -> Void = { _ in }
    ) async throws -> Summary {
        try await onAnotherThread(cancellable: { [self] check in
            do {
                // The check throws only to say that the task was cancelled.
                return try TrainingRun(self, url, information).run(
                    resumes: resumes, isCancelled: { (try? check()) == nil }, report: report)
            } catch TrainingError.cancelled {
                throw CancellationError()
            }
        })
    }
}
