import ArgumentParser
import Foundation
import FoundationModelsTraining
import Inference

@main
struct TrainingBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "training-bench", abstract: "Measures the speed and memory of training.")

    @Option(help: "A GGUF file.") var model: String?
    @Option(help: "A folder of Tests/Tools/peft_run.py: repeat the run of PEFT, and compare the losses of all steps.") var peft:
        String?
    @Option(help: "Tokens of a sequence.") var length = 256
    @Option(help: "Tokens of a batch.") var rows = 1024
    @Option(help: "The rank of the adapter.") var rank = 16
    @Option(help: "The number of layers whose intermediate results are kept.") var kept = 0
    @Option(help: "Batches.") var count = 3
    @Option(help: "The share of the tokens that are learned.") var share = 0.5
    @Flag(help: "Products of binary32.") var exact = false
    @Flag(help: "Products of bfloat16 instead of integers.") var rounded = false
    @Option(help: "The number of last layers that are trained.") var layers: Int?

    @Option(help: "A folder of recorded logits (FAMILY/CASE.json, FAMILY/model.gguf) and of imported adapters: compare them.")
    var recorded: String?
    @Option(help: "The folder of adapters, FAMILY-CASE.fmadapter.") var adapters = ""

    /// The largest difference of logits from those of PEFT, with adapters beside the weights or, where they cannot be, merged.
    private func compareLogits(_ folder: URL) async throws {
        struct Case: Decodable { var tokens: [TokenID], logits: [Double] }
        for name in try FileManager.default.contentsOfDirectory(atPath: adapters).sorted() where name.hasSuffix(".fmadapter") {
            let parts = name.dropLast(10).split(separator: "-", maxSplits: 1).map(String.init)
            let expected = try JSONDecoder().decode(
                Case.self, from: Data(contentsOf: folder.appendingPathComponent("\(parts[0])/\(parts[1]).json")))
            let path = folder.appendingPathComponent("\(parts[0])/model.gguf").path
            let adapter = try AdapterFile(path: adapters + "/" + name)
            let model = try NeuralModel(file: GGUFFile(path: path), pool: WorkerPool(threads: 1), adapter: adapter)
            let cache = try KVCache(shape: model.shape, capacity: 512)
            try model.forward(expected.tokens[...], cache: cache)
            let difference = zip(model.logits, expected.logits).map { abs(Double($0) - $1) }.max() ?? 0
            print(String(format: "%-32s %.1e", (name as NSString).utf8String ?? "", difference))
        }
    }

    @Option(help: "Two adapters of the model: swap them a thousand times, with a request after each.") var swap: [String] = []

    /// The time of a swap, and how memory grows.
    private func swapAdapters(_ path: String) async throws {
        let model = try await LoadedModel.load(path: path)
        let tokens = model.tokenizer.encode("The harbour was quiet")
        var seconds: [Double] = []
        for index in 0..<1_000 {
            let clock = ContinuousClock()
            let start = clock.now
            let adapter = try await model.adapter(paths: [swap[index % swap.count]])
            seconds.append((clock.now - start).seconds)
            let sequence = try model.makeSequence(contextSize: 256, adapter: adapter, sharesCache: false)
            _ = try await model.logProbability(of: Array(tokens.dropFirst()), after: [tokens[0]], in: sequence)
            if index == 99 || index == 999 {
                let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
                let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS") } ?? ""
                print("after \(index + 1) swaps: \(line.split(separator: "\t").last ?? "") resident")
            }
        }
        seconds.sort()
        print(String(format: "a swap takes %.1f ms (median), %.1f ms (99th percentile)", 1e3 * seconds[500], 1e3 * seconds[990]))
    }

    @Option(help: "A text: the perplexity of the model alone and with each adapter of --swap.") var text: String?

    private func comparePerplexity(_ path: String, _ text: String) async throws {
        let model = try await LoadedModel.load(path: path)
        let tokens = model.tokenizer.encode(try String(contentsOfFile: text, encoding: .utf8))
        func perplexity(_ adapter: LowRankAdapter?) async throws -> Double {
            var (sum, count) = (0.0, 0)
            let length = 200
            for start in stride(from: 0, to: min(tokens.count, 8_000) - length, by: length) {
                let sequence = try model.makeSequence(contextSize: 512, adapter: adapter, sharesCache: false)
                let part = Array(tokens[(start + 1)..<(start + length)])
                sum -= try await model.logProbability(of: part, after: [tokens[start]], in: sequence)
                count += part.count
            }
            return exp(sum / Double(max(1, count)))
        }
        let alone = try await perplexity(nil)
        print(String(format: "alone: %.2f", alone))
        for path in swap {
            let own = try await perplexity(try await model.adapter(paths: [path]))
            print(String(format: "%@: %.2f (%+.1f %%)", path, own, 100 * (own / alone - 1)))
        }
    }

    func run() async throws {
        if let text, let model { return try await comparePerplexity(model, text) }
        if !swap.isEmpty, let model { return try await swapAdapters(model) }
        if let recorded { return try await compareLogits(URL(filePath: recorded)) }
        if let peft {
            let (losses, largest) = try ReferenceRun.compare(URL(filePath: peft), rounds: !exact)
            for (index, loss) in losses.enumerated() where index % 20 == 0 || index == losses.count - 1 {
                print(String(format: "step %3d   %.5f   PEFT %.5f", index + 1, loss.own, loss.peft))
            }
            return print(String(format: "largest difference: %.4f %%", 100 * largest))
        }
        guard let model else { throw ValidationError("Give --model or --peft.") }
        let report = try TrainingSpeed.measure(
            model: model, rank: rank, rows: rows, length: length, keptLayers: kept, batches: count, learned: share,
            rounds: !exact, integers: !exact && !rounded, layers: layers)
        print(report.description)
    }
}
