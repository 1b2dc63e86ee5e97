internal import CKernels
internal import Foundation
internal import Inference

/// One run: the steps, validation, and checkpoints.
final class TrainingRun {
    private let trainer: AdapterTrainer
    private let url: URL
    private let information: AdapterInformation
    private let factors: LowRankFactors
    private let pass: GradientPass
    private var state = TrainingState()
    private var best: [Float]?
    private var kept: KeptText?
    private let started = ContinuousClock.now
    /// Tokens since this process began.
    private var tokens = 0
    private var stepsOfThisProcess = 0

    init(_ trainer: AdapterTrainer, _ url: URL, _ information: AdapterInformation) throws(TrainingError) {
        self.trainer = trainer
        self.url = url
        self.information = information
        let options = trainer.options
        factors = try LowRankFactors(
            AdapterTrainer.matrices(trainer.model, options.matrices, layers: options.layers), rank: options.rank,
            scale: Float((options.alpha ?? 1) / Double(options.rank)), base: trainer.base,
            others: AdapterTrainer.matrices(trainer.model, .all))
        let pool: WorkerPool
        do { pool = try WorkerPool.shared() } catch { throw .outOfMemory(bytes: 4096) }
        pass = try GradientPass(
            trainer.model, factors, pool: pool, maximumRows: trainer.batching.rows, keptLayers: trainer.batching.keptLayers,
            rounds: options.rounds, usesIntegers: trainer.batching.usesIntegers, contextSize: options.length)
    }

    func run(resumes: Bool, isCancelled: () -> Bool, report: (AdapterTrainer.Progress) -> Void) throws -> AdapterTrainer.Summary {
        let checkpoint = Checkpoint(beside: url)
        let lock = try checkpoint.lock()
        defer { lock.release() }
        let options = trainer.options
        let steps = options.steps ?? 1
        let identity = Checkpoint.Identity(
            options: options, data: trainer.dataHash, model: trainer.fingerprint, base: trainer.baseHash,
            start: trainer.startHash, kept: trainer.keptHash, rows: trainer.sequences.count)
        if options.keep > 0 {
            kept = KeptText(trainer.encoder, conversations: trainer.keptConversations, maximumRows: pass.maximumRows)
        }
        if resumes, let saved = try checkpoint.read(identity, factors) {
            state = saved.state
            best = saved.best
        } else {
            factors.initialize(seed: options.seed)
            if let start = trainer.start { try factors.initialize(from: start) }
            if !trainer.validation.isEmpty {
                guard let before = try validate(isCancelled) else { throw TrainingError.cancelled }
                guard before.loss.isFinite else {
                    throw TrainingError.diverged(step: 0, lines: [], reason: "the loss of the validation rows is not a number")
                }
                state.validationBefore = before.loss
                state.history.append(
                    TrainingState.Point(step: 0, validationLoss: before.loss, validationAccuracy: before.accuracy))
            }
        }
        let schedule = Schedule(trainer.sequences, stepTokens: options.stepTokens ?? 1, seed: options.seed)
        var lastSave = ContinuousClock.now
        func save() throws { try checkpoint.write(identity, state, best, factors) }
        while state.isValidationDue || state.step < steps && !state.isFinished {
            if isCancelled() {
                try save()
                throw TrainingError.cancelled
            }
            if state.isValidationDue {
                guard let found = try validate(isCancelled) else {
                    try save()
                    throw TrainingError.cancelled
                }
                try finishValidation(found, endsEpoch: schedule.endsEpoch(state.step))
                if let point = state.history.last { report(progress(point, steps, schedule)) }
                try save()
                lastSave = .now
                continue
            }
            // After a cancelled step, the factors and moments are still those after the last one.
            guard let point = try step(schedule, steps, isCancelled) else {
                try save()
                throw TrainingError.cancelled
            }
            state.step += 1
            state.history.append(point)
            // Nothing is left to learn.
            if point.loss == 0 { state.isFinished = true }
            let endsEpoch = schedule.endsEpoch(state.step)
            let isDue = endsEpoch || state.step == steps || state.isFinished || state.step % Self.stepsBetweenValidations == 0
            state.isValidationDue = !trainer.validation.isEmpty && isDue
            if !state.isValidationDue { report(progress(point, steps, schedule)) }
            if ContinuousClock.now - lastSave > .seconds(Self.secondsBetweenCheckpoints) || endsEpoch {
                try save()
                lastSave = .now
            }
        }
        if let best { factors.values.values = best }
        let summary = self.summary
        try AdapterWriter.write(factors, trainer, information, summary, to: url)
        checkpoint.remove()
        return summary
    }

    private static let secondsBetweenCheckpoints = 30
    /// An epoch of many rows takes hours: its adapter so far can be looked at.
    private static let stepsBetweenValidations = 50

    /// One step of the optimiser; nil if cancelled.
    private func step(_ schedule: Schedule, _ steps: Int, _ isCancelled: () -> Bool) throws -> TrainingState.Point? {
        let options = trainer.options
        let rows = schedule.rows(of: state.step)
        let divisor = rows.reduce(0) { $0 + trainer.sequences[$1].learnedCount }
        factors.gradients.clear()
        var loss = 0.0
        for batch in batches(rows.map { trainer.sequences[$0] }) {
            if isCancelled() { return nil }
            let result: GradientPass.Result
            do { result = try pass.run(batch, divisor: Double(divisor), isCancelled: isCancelled) } catch {
                if error == .cancelled { return nil }
                throw error
            }
            loss += result.loss
            tokens += batch.tokens.count
        }
        loss /= Double(divisor)
        var divergence: Double?
        do {
            if let part = try kept?.batch(of: state.step, pass, isCancelled: isCancelled) {
                let count = Double(part.batch.targets.count)
                let result = try pass.run(
                    part.batch, divisor: count / options.keep, expected: part.predictions, isCancelled: isCancelled)
                divergence = result.loss / count
                tokens += part.batch.tokens.count
            }
        } catch {
            if error == .cancelled { return nil }
            throw error
        }
        let norm = factors.gradientNorm
        let factor = options.clip > 0 && norm > options.clip ? Float(options.clip / norm) : 1
        // The square of a larger gradient is infinite, and then nothing would be learned.
        // A loss of zero at the first step means that nothing is learned; later, that everything is.
        guard loss.isFinite, loss > 0 || state.step > 0, norm * Double(factor) < 1e18 else {
            throw TrainingError.diverged(
                step: state.step + 1, lines: Array(Set(rows.map { trainer.sequences[$0].line })).sorted(),
                reason: loss == 0 ? "the loss is zero" : "the loss or its gradient is not a number")
        }
        let rate = Schedule.rate(state.step, steps, options)
        factors.step(
            state.step + 1, pool: pass.pool, rate: Float(rate), factor: factor, weightDecay: Float(options.weightDecay))
        stepsOfThisProcess += 1
        return TrainingState.Point(step: state.step + 1, loss: loss, rate: rate, gradientNorm: norm, divergence: divergence)
    }

    private func finishValidation(_ found: (loss: Double, accuracy: Double), endsEpoch: Bool) throws {
        state.isValidationDue = false
        guard found.loss.isFinite else {
            throw TrainingError.diverged(
                step: state.step, lines: [], reason: "the loss of the validation rows is not a number")
        }
        if let last = state.history.indices.last {
            state.history[last].validationLoss = found.loss
            state.history[last].validationAccuracy = found.accuracy
        }
        if found.loss < state.bestLoss ?? .infinity {
            state.bestLoss = found.loss
            state.bestAccuracy = found.accuracy
            state.bestStep = state.step
            state.epochsWithoutGain = 0
            best = factors.values.values
            if !endsEpoch { try AdapterWriter.write(factors, trainer, information, summary, to: url) }
        } else if endsEpoch {
            state.epochsWithoutGain += 1
            let patience = trainer.options.patience
            if patience > 0, state.epochsWithoutGain >= patience { state.isFinished = true }
        }
    }

    /// Packs sequences into batches, in order.
    private func batches(_ sequences: [TrainingSequence]) -> [TrainingBatch] {
        var batches: [TrainingBatch] = []
        for sequence in sequences {
            if let last = batches.last, last.tokens.count + sequence.tokens.count <= pass.maximumRows {
                batches[batches.count - 1].add(sequence)
            } else {
                var batch = TrainingBatch()
                batch.add(sequence)
                batches.append(batch)
            }
        }
        return batches
    }

    /// The mean loss of the validation rows; nil if cancelled.
    private func validate(_ isCancelled: () -> Bool) throws(TrainingError) -> (loss: Double, accuracy: Double)? {
        var total = GradientPass.Result()
        for batch in batches(trainer.validation) {
            if isCancelled() { return nil }
            let result: GradientPass.Result
            do { result = try pass.run(batch, divisor: nil, isCancelled: isCancelled) } catch {
                if error == .cancelled { return nil }
                throw error
            }
            total.loss += result.loss
            total.right += result.right
            total.targets += result.targets
        }
        let count = Double(max(1, total.targets))
        return (total.loss / count, Double(total.right) / count)
    }

    private func progress(_ point: TrainingState.Point, _ steps: Int, _ schedule: Schedule) -> AdapterTrainer.Progress {
        let seconds = (ContinuousClock.now - started).seconds
        return AdapterTrainer.Progress(
            step: point.step, steps: steps, epoch: Double(point.step) / Double(schedule.stepsPerEpoch), loss: point.loss ?? 0,
            validationLoss: point.validationLoss, validationAccuracy: point.validationAccuracy, rate: point.rate ?? 0,
            gradientNorm: point.gradientNorm ?? 0, divergence: point.divergence,
            tokensPerSecond: Double(tokens) / max(1e-3, seconds),
            secondsLeft: seconds / Double(max(1, stepsOfThisProcess)) * Double(steps - point.step))
    }

    private var summary: AdapterTrainer.Summary {
        let losses = state.history.suffix(10).compactMap(\.loss)
        let divergences = state.history.suffix(20).compactMap(\.divergence)
        return AdapterTrainer.Summary(
            steps: state.step, validationLossBefore: state.validationBefore, validationLoss: state.bestLoss,
            validationAccuracy: state.bestAccuracy,
            divergence: divergences.isEmpty ? nil : divergences.reduce(0, +) / Double(divergences.count),
            loss: losses.isEmpty ? 0 : losses.reduce(0, +) / Double(losses.count),
            tokens: tokens, seconds: (ContinuousClock.now - started).seconds,
            stoppedEarly: state.step < trainer.options.steps ?? 1)
    }
}

/// What a checkpoint remembers besides the numbers of the optimiser.
struct TrainingState: Codable {
    struct Point: Codable {
        var step: Int
        var loss: Double?
        var validationLoss: Double?
        var validationAccuracy: Double?
        var rate: Double?
        var gradientNorm: Double?
        var divergence: Double?
    }

    var step = 0
    var history: [Point] = []
    var validationBefore: Double?
    var bestLoss: Double?
    var bestAccuracy: Double?
    var bestStep: Int?
    var epochsWithoutGain = 0
    var isFinished = false
    /// Whether the last step ended an epoch whose loss has not been measured.
    var isValidationDue = false

    /// Whether the numbers of a file make sense for a run of this many steps.
    func isValid(steps: Int) -> Bool {
        (0...steps).contains(step) && (0...steps).contains(epochsWithoutGain) && history.count <= steps + 1
            && history.allSatisfy { (0...steps).contains($0.step) } && (0...steps).contains(bestStep ?? 0)
            && (bestLoss ?? 0).isFinite && (validationBefore ?? 0).isFinite
    }
}
