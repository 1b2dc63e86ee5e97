import Files
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FoundationModelsTraining
@testable import Inference

struct AdapterTrainerTests {
    /// A folder that is removed with this object.
    private final class Folder {
        let url: URL
        init() throws {
            url = FileManager.default.temporaryDirectory.appendingPathComponent("training-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }
        deinit { try? FileManager.default.removeItem(at: url) }
    }

    private static func rows(_ count: Int = 40) throws -> TrainingData {
        let words = ["the", "thing", "an", "on", "in", "her"]
        let lines = (0..<count).map { index in
            "{\"prompt\": \"\(words[index % 6]) \(index)\", \"completion\": \"\(words[(index + 1) % 6])\"}"
        }
        return try TrainingData(Data(lines.joined(separator: "\n").utf8))
    }

    private static func options(steps: Int = 12) -> AdapterOptions {
        var options = AdapterOptions()
        (options.rank, options.steps, options.stepTokens, options.rate, options.length) = (4, steps, 24, 1e-2, 64)
        options.patience = 0
        return options
    }

    private static func model(_ type: TensorType = .f32) throws -> TemporaryFile {
        var tiny = TinyModel()
        tiny.type = type
        return try tiny.file()
    }

    @Test("[A10] predictions for other texts are kept the better, the more they count") func keeps() async throws {
        let (model, folder) = (try Self.model(), try Folder())
        var divergences: [Double] = []
        for keep in [0.01, 100] {
            var options = Self.options(steps: 40)
            options.keep = keep
            let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), options: options)
            let summary = try await trainer.train(to: folder.url.appendingPathComponent("a.fmadapter"))
            divergences.append(try #require(summary.divergence))
        }
        #expect(divergences[0] > 3 * divergences[1], "\(divergences)")
        var options = Self.options(steps: 2)
        options.keep = 0
        let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), options: options)
        #expect(try await trainer.train(to: folder.url.appendingPathComponent("b.fmadapter")).divergence == nil)
    }

    @Test("[A10] answers that are kept resist, even where rows teach them")
    func keepsAnswers() async throws {
        let (model, folder) = (try Self.model(), try Folder())
        var options = Self.options(steps: 40)
        var divergences: [Double] = []
        var falls: [Double] = []
        for keep in [0.01, 100] {
            options.keep = keep
            // What is kept are the very answers that are learned.
            let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), kept: Self.rows(), options: options)
            let summary = try await trainer.train(to: folder.url.appendingPathComponent("a.fmadapter"))
            divergences.append(try #require(summary.divergence))
            falls.append(try #require(summary.validationLossBefore) - #require(summary.validationLoss))
        }
        #expect(divergences[0] > 3 * divergences[1], "\(divergences)")
        // They may still become more probable: this small model spreads much of its probability over tokens that are not among the most
        // likely ones, which are kept.
        #expect(falls[0] > 1.3 * falls[1], "\(falls)")
        func isRefused(_ kept: TrainingData, keep: Double, _ reason: String) -> Bool {
            options.keep = keep
            let error = #expect(throws: TrainingError.self) {
                try AdapterTrainer(model: model.path, data: Self.rows(), kept: kept, options: options)
            }
            return error.map { "\($0)".contains(reason) } == true
        }
        #expect(isRefused(try Self.rows(), keep: 0, "factor"))
        let long = try TrainingData(Data(#"{"text": "\#(String(repeating: "the thing ", count: 99))"}"#.utf8))
        #expect(isRefused(long, keep: 1, "longer than 64 tokens"))
    }

    @Test("[A10] what is kept are the predictions with the adapter below, whenever a step needs them") func keepsTheAdapterBelow()
        async throws
    {
        let (model, folder) = (try Self.model(), try Folder())
        let below = folder.url.appendingPathComponent("below.fmadapter")
        try await AdapterTrainer(model: model.path, data: Self.rows(), options: Self.options(steps: 60)).train(to: below)
        var options = Self.options(steps: 12)
        // Nothing is learned: then nothing diverges, in any step, from what is kept.
        options.rate = 1e-12
        let still = try AdapterTrainer(model: model.path, data: Self.rows(), kept: Self.rows(), options: options, base: below)
        let divergence = try await still.train(to: folder.url.appendingPathComponent("a.fmadapter")).divergence
        #expect(try #require(divergence) < 1e-4)
        // Much is learned, with other answers: each step has other rows that are kept, and sees how far they are from the adapter below.
        options.rate = 3e-2
        let others = try TrainingData(
            Data((0..<40).map { "{\"prompt\": \"the \($0)\", \"completion\": \"her on her on\"}" }.joined(separator: "\n").utf8))
        let moving = try AdapterTrainer(model: model.path, data: others, kept: Self.rows(400), options: options, base: below)
        let found = Mutex<[Double]>([])
        try await moving.train(to: folder.url.appendingPathComponent("b.fmadapter")) { progress in
            found.withLock { $0.append(progress.divergence ?? 0) }
        }
        #expect(found.withLock { $0.first ?? 1 } < 1e-4 && found.withLock { $0.last ?? 0 } > 1e-2, "\(found.withLock { $0 })")
    }

    @Test("[A10] the loss falls, and the adapter changes what the engine computes", arguments: [TensorType.f32, .q8_0])
    func learns(type: TensorType) async throws {
        let (model, folder) = (try Self.model(type), try Folder())
        let url = folder.url.appendingPathComponent("a.fmadapter")
        let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), options: Self.options(steps: 60))
        let losses = Mutex<[Double]>([])
        let information = AdapterInformation(author: "Ada", license: "MIT", creatorDefined: ["purpose": "test"])
        let summary = try await trainer.train(to: url, information: information) { progress in
            losses.withLock { $0.append(progress.loss) }
        }
        let all = losses.withLock { $0 }
        #expect(all.count == 60 && summary.steps == 60)
        #expect((all.last ?? 9) < 0.5 * all[0])
        #expect((summary.validationLoss ?? 9) < summary.validationLossBefore ?? 0)
        // The inference engine finds the loss that training measured.
        let file = try AdapterFile(path: url.path)
        #expect(file.texts["author"] == "Ada" && file.texts["license"] == "MIT" && file.texts["creator.purpose"] == "test")
        #expect(file.baseFingerprint == trainer.fingerprint)
        let sequence = trainer.validation[0]
        let first = try #require(sequence.isLearned.firstIndex(of: true))
        let loaded = try await LoadedModel.load(path: model.path)
        let adapter = try #require(try await loaded.adapter(paths: [url.path]))
        func loss(_ adapter: LowRankAdapter?) async throws -> Double {
            let state = try loaded.makeSequence(contextSize: 128, adapter: adapter)
            let (before, after) = (Array(sequence.tokens[..<first]), Array(sequence.tokens[first...]))
            return -(try await loaded.logProbability(of: after, after: before, in: state)) / Double(after.count)
        }
        #expect(try await loss(adapter) < 0.6 * loss(nil))
        #expect(!FileManager.default.fileExists(atPath: url.path + ".checkpoint"))
    }

    @Test("[A10] a run that is interrupted at any step continues with the same numbers, bit for bit") func resumes() async throws
    {
        let (model, folder) = (try Self.model(), try Folder())
        let options = Self.options()
        let whole = folder.url.appendingPathComponent("whole.fmadapter")
        let losses = Mutex<[Int: Double]>([:])
        try await AdapterTrainer(model: model.path, data: Self.rows(), options: options).train(to: whole) { progress in
            losses.withLock { $0[progress.step] = progress.loss }
        }
        let expected = try AdapterData(contentsOf: whole)
        for stop in [1, 5, 11] {
            let url = folder.url.appendingPathComponent("part\(stop).fmadapter")
            let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), options: options)
            let cancel = Mutex<(@Sendable () -> Void)?>(nil)
            let task = Task {
                try await trainer.train(to: url) { progress in
                    if progress.step == stop { cancel.withLock { $0?() } }
                }
            }
            cancel.withLock { $0 = { task.cancel() } }
            let result = await task.result
            // The task may have passed the step before there was a way to cancel it.
            if case .failure(let error) = result {
                #expect(error is CancellationError)
                #expect(FileManager.default.fileExists(atPath: url.path + ".checkpoint"))
                #expect(!FileManager.default.fileExists(atPath: url.path))
                try await AdapterTrainer(model: model.path, data: Self.rows(), options: options).train(to: url, resumes: true) {
                    progress in
                    let before = losses.withLock { $0[progress.step] }
                    #expect(before == progress.loss)
                }
            }
            let found = try AdapterData(contentsOf: url)
            #expect(found.pairs.keys.sorted() == expected.pairs.keys.sorted())
            for (name, pair) in expected.pairs {
                #expect(found.pairs[name]?.a == pair.a && found.pairs[name]?.b == pair.b)
            }
        }
    }

    @Test("[A11] training goes on with the values of an adapter, and only of one of the same matrices and rank")
    func goesOn() async throws {
        let (model, folder) = (try Self.model(), try Folder())
        let (first, second) = (folder.url.appendingPathComponent("a.fmadapter"), folder.url.appendingPathComponent("b.fmadapter"))
        let before = try await AdapterTrainer(model: model.path, data: Self.rows(), options: Self.options(steps: 60)).train(
            to: first)
        let after = try await AdapterTrainer(
            model: model.path, data: Self.rows(), options: Self.options(steps: 4), start: first
        ).train(to: second)
        #expect(abs((after.validationLossBefore ?? 9) - (before.validationLoss ?? 0)) < 1e-2)
        #expect(try AdapterFile(path: second.path).targets == AdapterFile(path: first.path).targets)
        var (matrices, rank) = (Self.options(steps: 4), Self.options(steps: 4))
        matrices.matrices = .attention
        rank.rank += 1
        for (options, reason) in [(matrices, "other matrices"), (rank, "rank")] {
            let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), options: options, start: first)
            let error = await #expect(throws: TrainingError.self) { try await trainer.train(to: second) }
            #expect(error.map { "\($0)".contains(reason) } == true)
        }
    }

    @Test("[A10] an adapter is trained on top of another one, which stays as it is") func onTop() async throws {
        let (model, folder) = (try Self.model(), try Folder())
        let (first, second) = (folder.url.appendingPathComponent("a.fmadapter"), folder.url.appendingPathComponent("b.fmadapter"))
        let below = try await AdapterTrainer(model: model.path, data: Self.rows(), options: Self.options(steps: 60)).train(
            to: first)
        var options = Self.options(steps: 4)
        (options.rank, options.matrices, options.weightDecay) = (2, .attention, 0.1)
        let before = try Data(contentsOf: first)
        let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), options: options, base: first)
        let summary = try await trainer.train(to: second)
        // The first loss is that of the adapter below, which was kept at its smallest.
        #expect(abs((summary.validationLossBefore ?? 9) - (below.validationLoss ?? 0)) < 1e-2)
        #expect(try Data(contentsOf: first) == before)
        let file = try AdapterFile(path: second.path)
        #expect(file.texts["base_adapter"] == trainer.baseHash && file.targets.allSatisfy { $0.contains("attn") })
        #expect(file.targets.allSatisfy { file.sizes(of: $0)?.rank == 2 })
        // Both together are what was trained.
        let loaded = try await LoadedModel.load(path: model.path)
        let both = try #require(try await loaded.adapter(paths: [first.path, second.path]))
        let sequence = trainer.validation[0]
        let count = try #require(sequence.isLearned.firstIndex(of: true))
        func logProbability(_ adapter: LowRankAdapter?) async throws -> Double {
            let state = try loaded.makeSequence(contextSize: 64, adapter: adapter, sharesCache: false)
            return try await loaded.logProbability(
                of: Array(sequence.tokens[count...]), after: Array(sequence.tokens[..<count]), in: state)
        }
        #expect(try await logProbability(both) > logProbability(nil))
    }

    @Test("[A10] checkpoints of other runs and damaged ones are refused") func checkpoints() async throws {
        let (model, folder) = (try Self.model(), try Folder())
        let url = folder.url.appendingPathComponent("a.fmadapter")
        let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), options: Self.options())
        let factors = try LowRankFactors(
            AdapterTrainer.matrices(trainer.model, .all), rank: 4, scale: 2)
        let checkpoint = Checkpoint(beside: url)
        let identity = Checkpoint.Identity(
            options: trainer.options, data: trainer.dataHash, model: trainer.fingerprint, rows: trainer.sequences.count)
        try checkpoint.write(identity, TrainingState(), nil, factors)
        let bytes = try Data(contentsOf: checkpoint.url)
        func isRefused(_ trainer: AdapterTrainer) async -> Bool {
            do {
                try await trainer.train(to: url, resumes: true)
                return false
            } catch TrainingError.invalidCheckpoint { return true } catch { return false }
        }
        #expect(await isRefused(try AdapterTrainer(model: model.path, data: Self.rows(39), options: Self.options())))
        #expect(await isRefused(try AdapterTrainer(model: model.path, data: Self.rows(), options: Self.options(steps: 13))))
        for damaged in [
            bytes.dropLast(), bytes.prefix(20), Data("nothing".utf8), bytes.prefix(200) + Data([1]) + bytes.dropFirst(201),
        ] {
            try Data(damaged).write(to: checkpoint.url)
            #expect(await isRefused(trainer))
        }
        // Without --resume, the run begins anew.
        try await trainer.train(to: url)
    }

    @Test("[A10] two runs into one file, and files that cannot be written") func files() async throws {
        let (model, folder) = (try Self.model(), try Folder())
        let url = folder.url.appendingPathComponent("a.fmadapter")
        let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), options: Self.options())
        let lock = try Checkpoint(beside: url).lock()
        await #expect(throws: TrainingError.busy(path: url.path)) { try await trainer.train(to: url) }
        lock.release()
        let nowhere = folder.url.appendingPathComponent("missing/a.fmadapter")
        await #expect(throws: TrainingError.self) { try await trainer.train(to: nowhere) }
        #expect(throws: TrainingError.cannotWrite(path: "/dev/null/a", reason: "Not a directory")) {
            try FileWriter.write(Data(count: 100), to: URL(filePath: "/dev/null/a"))
        }
    }

    @Test("[A10] a loss that is not a number ends the run, and nothing is written") func divergence() async throws {
        let folder = try Folder()
        let url = folder.url.appendingPathComponent("a.fmadapter")
        // A weight that is not a number.
        var builder = TinyModel().builder()
        let place = try #require(builder.tensors.firstIndex { $0.name == "output_norm.weight" })
        builder.tensors[place].data.replaceSubrange(0..<4, with: [0, 0, 0xC0, 0x7F])
        let model = try TemporaryFile(builder.bytes())
        var options = Self.options()
        options.validationShare = 0
        let trainer = try AdapterTrainer(model: model.path, data: Self.rows(), options: options)
        await #expect {
            try await trainer.train(to: url)
        } throws: { error in
            guard case TrainingError.diverged(_, let lines, _) = error else { return false }
            return !lines.isEmpty && !(error.localizedDescription.isEmpty)
        }
        #expect(!FileManager.default.fileExists(atPath: url.path))
    }

    @Test("[A10] options that make no sense") func options() throws {
        let model = try Self.model()
        for change: (inout AdapterOptions) -> Void in [
            { $0.rank = 0 }, { $0.rank = 257 }, { $0.rate = -1 }, { $0.rate = .nan }, { $0.epochs = 0 }, { $0.length = 1 },
            { $0.memory = 1 },
            { $0.warmup = 1 }, { $0.validationShare = 0.9 }, { $0.alpha = 0 },
        ] {
            var options = AdapterOptions()
            change(&options)
            #expect(throws: TrainingError.self) { try AdapterTrainer(model: model.path, data: Self.rows(), options: options) }
        }
    }

    @Test(
        "[A10] models that cannot be trained are named",
        arguments: ["llama-moe", "gemma4", "qwen35", "gpt-oss", "lfm2", "deepseek2-lite"])
    func unsupported(name: String) throws {
        let file = try TemporaryFile(ModelRecipe.load(name).builder().bytes())
        #expect {
            try FrozenModel(path: file.path)
        } throws: { error in
            if case TrainingError.unsupportedModel = error { true } else { false }
        }
    }

    @Test("[A10] an activation function without a gradient is refused, not replaced") func activations() {
        for activation in [ModelShape.Activation.silu, .gelu, .reluSquared] { #expect(activation.trainingValue != nil) }
        for activation in [ModelShape.Activation.exactGelu, .swigluOAI] { #expect(activation.trainingValue == nil) }
    }

    /// A mapped file would end the process here.
    @Test("[A10] a file that shrinks after it was opened changes nothing") func shrinkingFile() throws {
        let file = try Self.model()
        let model = try FrozenModel(path: file.path)
        func row() -> [Float] {
            var row = [Float](repeating: 0, count: model.embedding.columns)
            row.withUnsafeMutableBufferPointer { buffer in
                if let base = buffer.baseAddress { model.embedding.decode(row: model.embedding.rows - 1, to: base) }
            }
            return row
        }
        let before = row()
        try #require(truncate(file.path, 16) == 0)
        #expect(row() == before && before.contains { $0 != 0 })
    }

    @Test("[A10] fewer embeddings than tokens, and large batches of exact products") func shapes() async throws {
        let folder = try Folder()
        // A token would be read outside of the matrix.
        var builder = TinyModel().builder()
        for name in ["token_embd.weight", "output.weight"] {
            let place = try #require(builder.tensors.firstIndex { $0.name == name })
            builder.tensors[place].shape[1] -= 1
            builder.tensors[place].data.removeLast(4 * TinyModel().width)
        }
        let small = try TemporaryFile(builder.bytes())
        #expect(throws: TrainingError.self) { try AdapterTrainer(model: small.path, data: Self.rows(), options: Self.options()) }
        // More targets than one part of the head has, without rounding.
        let model = try Self.model()
        var options = Self.options(steps: 2)
        (options.rounds, options.stepTokens, options.length, options.validationShare) = (false, 3_000, 512, 0)
        let lines = (0..<60).map { "{\"text\": \"\(String(repeating: "word \($0) ", count: 12))\"}" }
        let data = try TrainingData(Data(lines.joined(separator: "\n").utf8))
        try await AdapterTrainer(model: model.path, data: data, options: options).train(
            to: folder.url.appendingPathComponent("a.fmadapter"))
    }

    @Test("[A10] every row is learned once in an epoch") func schedule() {
        let sequences = (0..<50).map { index in
            TrainingSequence(line: index, tokens: [1, 2], isLearned: [false, true])
        }
        let schedule = Schedule(sequences, stepTokens: 7, seed: 3)
        for epoch in 0..<3 {
            let rows = (0..<schedule.stepsPerEpoch).flatMap { schedule.rows(of: epoch * schedule.stepsPerEpoch + $0) }
            #expect(rows.sorted() == Array(0..<50))
        }
        #expect(schedule.rows(of: 0) != schedule.rows(of: schedule.stepsPerEpoch))
    }
}
