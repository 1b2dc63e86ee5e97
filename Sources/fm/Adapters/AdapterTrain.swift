public import ArgumentParser
import Foundation
import FoundationModels
public import FoundationModelsTraining
import Inference
import InstalledModels

extension Adapter {
    struct Train: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "train",
            abstract: "Train an adapter from examples.",
            discussion: """
                The examples are JSON Lines, one conversation a line:

                  {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}
                  {"prompt": "…", "completion": "…"}
                  {"text": "…"}

                System messages, tools, calls and their results are learned as requests have them. What the assistant says is \
                learned, with the end of its turn. 60 good rows teach a format; a few hundred teach a task. With --keep-answers, \
                a file of such rows with the model's own answers (“fm adapter distill”), requests that are not the task are answered \
                as before.

                A tenth of the rows is not learned: the loss of these rows tells when to stop. A run that was interrupted goes on \
                with --resume; Ctrl-C stops after writing a checkpoint.
                """)

        @Argument(help: "A file of JSON Lines.") var data: String
        @Option(name: [.short, .long], help: "The model: a name of “fm model list”, or a GGUF file (default: the one in use).")
        var model: String?
        @Option(help: "The adapter's file (default: NAME.fmadapter in the directory of adapters).") var out: String?
        @Option(help: "The rank of the change of each matrix, 1 to 256.") var rank = AdapterOptions().rank
        @Option(help: "The factor of the change, times the rank (default: twice the rank).") var alpha: Double?
        @Option(help: "The learning rate (default: depends on the model).") var rate: Double?
        @Option(help: "How often each row is learned (default: 3, more for small data).") var epochs: Int?
        @Option(help: "The number of steps, instead of epochs.") var steps: Int?
        @Option(help: "Learned tokens of a step (default: a sixteenth of the data, at least eight rows, at most 2,000).")
        var stepTokens: Int?
        @Option(help: "The longest row in tokens; longer ones are left out.") var length = AdapterOptions().length
        @Option(help: "The matrices that are trained: all, attention or feed-forward.") var matrices = AdapterOptions.Matrices.all
        @Option(help: "The number of last layers whose matrices are trained (default: all).") var layers: Int?
        @Option(help: "The share of the rows that are not learned.") var validation = AdapterOptions().validationShare
        @Option(help: "Epochs without a smaller validation loss after which training ends; 0 for never.")
        var patience = AdapterOptions().patience
        @Option(help: "Decay of the weights.") var weightDecay = 0.0
        @Option(help: "The maximum norm of a step's gradient; 0 for none.") var clip = 1.0
        @Option(help: "How much the model's predictions for texts of other kinds are kept; 0 for not.")
        var keep = AdapterOptions().keep
        @Option(
            help: ArgumentHelp(
                "Conversations in which the model's predictions are kept too: its own answers to requests that are not the task.",
                valueName: "file"))
        var keepAnswers: String?
        @Option(help: "The seed of the order of rows and of the first values.") var seed: UInt64 = 1
        @Option(help: "Memory in MB beyond the model's file (default: 6144, or less if less is free).") var memory: Int?
        @Option(
            help: ArgumentHelp(
                "The adapter on top of which the new one is trained, and with which it is used, or none (default: the one that was installed with the model).",
                valueName: "file"))
        var base: String?
        @Option(
            help: ArgumentHelp(
                "An adapter of the same matrices and rank, with whose values training begins (default: none).", valueName: "file")
        )
        var start: String?
        @Flag(help: "Compute products with 32 bits.") var exact = false
        @Flag(help: "Continue a run from its checkpoint.") var resume = false
        @Flag(help: "Show what is learned of the first rows, and train nothing.") var preview = false
        @Flag(help: "Write a line of JSON for each step.") var json = false
        @Option(help: ArgumentHelp("Write the loss curve as an HTML page.", valueName: "file")) var html: String?
        @Option(help: "Author, for the file.") var author: String?
        @Option(help: "Description, for the file.") var description: String?
        @Option(help: "Licence, for the file.") var license: String?
        @Option(help: "The number of prompts of the data that are answered before and after; 0 for none.") var samples = 3

        private var options: AdapterOptions {
            var options = AdapterOptions()
            (options.rank, options.alpha, options.rate, options.epochs, options.steps) = (rank, alpha, rate, epochs, steps)
            (options.stepTokens, options.length, options.matrices, options.seed) = (stepTokens, length, matrices, seed)
            (options.validationShare, options.patience, options.weightDecay) = (validation, patience, weightDecay)
            (options.keep, options.layers, options.integers) = (keep, layers, !exact)
            (options.clip, options.rounds, options.memory) = (clip, !exact, memory.map { min(max(0, $0), 1 << 30) << 20 })
            return options
        }

        private var outputURL: URL {
            if let out { return URL(filePath: out) }
            let name = URL(filePath: data).deletingPathExtension().lastPathComponent
            return ModelStore.adapterDirectory.appendingPathComponent(name + ".fmadapter")
        }

        /// What would fail only after the training.
        private func checkFiles(_ path: String) throws {
            if preview { return }
            let url = outputURL
            let inputs =
                [(data, "the data"), (path, "the model")] + (keepAnswers.map { [($0, "the file of answers to keep")] } ?? [])
            for (input, name) in inputs
            where FileIdentity(input) != nil && FileIdentity(input) == FileIdentity(url.path) {
                throw ValidationError("\(url.path) is \(name): write to another file.")
            }
            var isDirectory: ObjCBool = false
            if FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory), isDirectory.boolValue {
                throw ValidationError("\(url.path) is a folder: --out is a file.")
            }
            if let html, !FileManager.default.fileExists(atPath: URL(filePath: html).deletingLastPathComponent().path) {
                throw ValidationError("There is no folder for \(html).")
            }
            let hasCheckpoint = AdapterTrainer.hasCheckpoint(for: url)
            if hasCheckpoint, !resume {
                throw ValidationError(
                    "A run that was to write \(url.path) was interrupted. Continue it with --resume, or remove \(url.path).checkpoint."
                )
            }
            if resume, !hasCheckpoint {
                guard !FileManager.default.fileExists(atPath: url.path) else {
                    throw ValidationError(
                        "There is no checkpoint of \(url.path), which is finished. Without --resume, it is trained anew.")
                }
                Message.say("There is no checkpoint: the run begins anew.")
            }
        }

        private func readKeptAnswers() throws(TrainingError) -> TrainingData? {
            guard let keepAnswers else { return nil }
            do throws(TrainingError) { return try TrainingData(contentsOf: URL(filePath: keepAnswers)) } catch {
                throw error.ofKeptAnswers
            }
        }

        /// The adapter below the new one; nil for none.
        private func basePath(_ model: String) throws -> String? {
            if let base { return base == "none" ? nil : try Adapter.file(named: base) }
            return ModelChoice.assistant(of: model)
        }

        func run() async throws {
            let path = try Model.file(named: model)
            try checkFiles(path)
            let rows = try TrainingData(contentsOf: URL(filePath: data))
            if preview { return try TrainingPreview(model: path, rows).show() }
            let base = try basePath(path)
            let trainer = try AdapterTrainer(
                model: path, data: rows, kept: try readKeptAnswers(), options: options, base: base.map { URL(filePath: $0) },
                start: start.map { URL(filePath: try Adapter.file(named: $0)) })
            if out == nil {
                try FileManager.default.createDirectory(at: ModelStore.adapterDirectory, withIntermediateDirectories: true)
            }
            say(trainer.plan)
            try await train(trainer, rows, path, base)
        }

        private func say(_ plan: AdapterTrainer.Plan) {
            if !plan.tooLong.isEmpty {
                let lines = plan.tooLong.prefix(20).map(String.init).joined(separator: ", ")
                Message.say(
                    "Left out because they are longer than \(length) tokens: line\(plan.tooLong.count == 1 ? "" : "s") \(lines)\(plan.tooLong.count > 20 ? " …" : ""). --length allows more."
                )
            }
            Message.say(
                """
                \(plan.modelName): \(plan.rows) rows to learn (\(plan.tokens) tokens, \(plan.learnedTokens) learned), \
                \(plan.validationRows) to validate
                \(plan.parameters) parameters, \(plan.steps) steps of about \(plan.stepTokens) learned tokens, rate \(String(format: "%g", plan.rate))
                about \(plan.memory >> 20) MB beyond the model's file, \(Int(plan.tokensPerSecond)) tokens/s, \
                \(Self.time(plan.seconds))
                """)
        }

        private static func time(_ seconds: Double) -> String {
            seconds < 90 ? "\(Int(seconds.rounded())) seconds" : "\(Int((seconds / 60).rounded())) minutes"
        }

        private func train(_ trainer: AdapterTrainer, _ rows: TrainingData, _ path: String, _ base: String?) async throws {
            let url = outputURL
            let curve = LossCurve()
            let line = ProgressLine("Training", total: trainer.plan.steps)
            let information = AdapterInformation(author: author, description: description, license: license)
            let json = json
            let resumes = resume
            let summary = try await LongWork.untilInterrupted("Stopped. The same command with --resume continues.") {
                defer { line.end() }
                return try await trainer.train(to: url, resumes: resumes, information: information) { progress in
                    curve.add(progress)
                    if json { Output.attempt { try $0.writeJSON(progress) } }
                    line.show(progress.step, text: Self.text(progress))
                }
            }
            if !json, let text = curve.text { Message.say(text, terminator: "") }
            func loss(_ value: Double?) -> String { value.map { String(format: "%.3f", $0) } ?? "–" }
            Message.say(
                "Loss of the validation rows: \(loss(summary.validationLossBefore)) before, \(loss(summary.validationLoss)) after\(summary.stoppedEarly ? "; it stopped falling, so training ended early" : ""). \(Self.time(summary.seconds))."
            )
            if let divergence = summary.divergence {
                Message.say(
                    String(format: "Divergence from the model for texts of other kinds: %.3f nats per token.", divergence))
            }
            if samples > 0, !json {
                // The adapter is written: answers to look at must not make the run fail.
                do { try await SampleAnswers(model: path, base: base, adapter: url.path, rows, count: samples).show() } catch {
                    Message.say("Sample answers failed: \(error)")
                }
            }
            print(url.path)
            Message.say(
                "Use it: fm\(model.map { " --model \($0)" } ?? "") --adapter \(out ?? url.deletingPathExtension().lastPathComponent) \"…\""
            )
            // The adapter is written: what fails now is only the page.
            if let html { try OutputFile.write(Data(curve.page(trainer.plan, summary).utf8), to: html) }
        }

        private static func text(_ progress: AdapterTrainer.Progress) -> String {
            var text = String(format: "loss %.3f", progress.loss)
            if let loss = progress.validationLoss { text += String(format: ", validation %.3f", loss) }
            return text + String(format: ", %.0f tokens/s", progress.tokensPerSecond)
        }
    }
}

extension AdapterOptions.Matrices: ExpressibleByArgument {}
