import ArgumentParser
import Foundation
import Inference
import InstalledModels
import Reports

struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure how fast a model runs on this machine.",
        discussion: """
            Prompt processing and generation in tokens per second, medians of several runs. The tokens are arbitrary, \
            because they do not affect the speed. Close other programs first.
            """)

    @OptionGroup var modelFlags: ModelFlags

    @Option(parsing: .upToNextOption, help: "Thread counts to measure (default: number of physical cores).")
    var threads: [Int] = []

    @Option(help: "Number of runs per figure.")
    var `repeat` = 5

    @Option(
        help: ArgumentHelp(
            "Kernels to use: \(InstructionSet.available.map(\.rawValue).joined(separator: ", ")).", valueName: "set"))
    var instructionSet: InstructionSet?

    @Option(help: "Bits of each element of keys and values in the KV cache: 16 or 8.")
    var cacheBits = 16

    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp(
            "Measure several conversations at once, for each of these numbers of conversations.", valueName: "count"))
    var concurrency: [Int] = []

    @Flag(help: "Also measure a prompt of 4,096 tokens and generation after it.")
    var long = false

    @Flag(help: "Measure the gain from proposing tokens that occurred before in the prompt or the response.")
    var lookup = false

    @Flag(help: "Also show where the time goes: the operations of a prompt and of generated tokens.")
    var profile = false

    @Flag(help: "Measure only the tokenizer. A file with a vocabulary and no weights is sufficient.")
    var tokenizer = false

    @Flag(help: "Write one JSON object per line: per thread count, or per number of conversations.")
    var json = false

    func validate() throws {
        if threads.contains(where: { !(1...256).contains($0) }) {
            throw ValidationError("--threads must be from 1 to 256.")
        }
        if concurrency.contains(where: { !(1...1024).contains($0) }) {
            throw ValidationError("--concurrency must be from 1 to 1024.")
        }
        if !concurrency.isEmpty || lookup, tokenizer || threads.count > 1 || instructionSet != nil {
            throw ValidationError(
                "--concurrency and --lookup work with at most one number of threads and with the best kernels only.")
        }
        if profile, json || tokenizer || lookup || !concurrency.isEmpty {
            throw ValidationError("--profile shows a table, with the speed of one conversation only.")
        }
        if cacheBits != 8, cacheBits != 16 { throw ValidationError("--cache-bits must be 8 or 16.") }
        if cacheBits == 8, tokenizer || lookup { throw ValidationError("--cache-bits has no effect on this measurement.") }
        if !(1...1000).contains(`repeat`) { throw ValidationError("--repeat must be from 1 to 1000.") }
    }

    func run() async throws {
        let choice = try modelFlags.choice()
        if !concurrency.isEmpty || lookup {
            let (model, adapter) = try await choice.loaded(threads: threads.first)
            if !concurrency.isEmpty { try await measureConcurrency(model, adapter) }
            if lookup { try await measureLookup(model, adapter) }
            return
        }
        // Tokenizers use one thread.
        for count in tokenizer ? [1] : threads.isEmpty ? [WorkerPool.defaultThreads] : threads {
            let figures = tokenizer ? try measureTokenizer(path: choice.path) : try measure(choice, threads: count)
            if json {
                try printJSON(figures)
            } else {
                let rows = figures.filter { $0.key != "threads" }.sorted { $0.key < $1.key }
                    .map { [$0.key, String(format: "%.1f", $0.value)] }
                print("\(count) thread\(count == 1 ? "" : "s")")
                print(TextTable([.left(), .right()], indentation: "  ", rows: rows).text(), terminator: "")
            }
            fflush(nil)
        }
    }

    private func printJSON(_ figures: some Encodable) throws {
        let encoder = JSONEncoder.stable()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        print(String(decoding: try encoder.encode(figures), as: UTF8.self))
    }

    private func measureConcurrency(_ model: LoadedModel, _ adapter: LowRankAdapter?) async throws {
        let bench = ConcurrencyBench(model: model, adapter: adapter, format: cacheFormat)
        _ = try await bench.measure(1)  // reads the weights into memory
        let table = TextTable([
            .right("conversations"), .right("generated/s"), .right("processed/s"), .right("first token: median"),
            .right("maximum", minimum: 9),
        ])
        if !json {
            print("\(bench.promptTokens) prompt tokens and \(bench.responseTokens) generated tokens for each conversation")
            print(table.titles)
        }
        for count in concurrency {
            let figures = try await bench.measure(count)
            if json {
                try printJSON(figures)
            } else {
                print(
                    table.row([
                        "\(count)", String(format: "%.1f", figures.tokensPerSecond),
                        String(format: "%.1f", figures.processedTokensPerSecond),
                        String(format: "%.2f s", figures.firstTokenSeconds),
                        String(format: "%.2f s", figures.worstFirstTokenSeconds),
                    ]))
            }
            fflush(nil)
        }
    }

    private func measureLookup(_ model: LoadedModel, _ adapter: LowRankAdapter?) async throws {
        let bench = LookupBench(model: model, adapter: adapter)
        let table = TextTable([
            .left("task", minimum: 26), .right("tokens"), .right("proposed"), .right("accepted"), .right("tokens/s"),
            .right("without"), .right("gain"),
        ])
        if !json { print(table.titles) }
        for task in LookupBench.tasks {
            let figures = try await bench.measure(task)
            if json {
                try printJSON(figures)
            } else {
                print(
                    table.row([
                        figures.task, "\(figures.tokens)", "\(figures.proposedTokens)", "\(figures.acceptedTokens)",
                        String(format: "%.1f", figures.tokensPerSecond),
                        String(format: "%.1f", figures.tokensPerSecondWithoutLookup),
                        String(format: "%.2f×", figures.tokensPerSecond / figures.tokensPerSecondWithoutLookup),
                    ]))
            }
            fflush(nil)
        }
    }

    private func printProfile(_ title: String, _ times: [OperationTime]) {
        let total = times.reduce(0) { $0 + $1.seconds }
        print("\(title): \(String(format: "%.1f ms", total * 1000)) in operations")
        let rows = times.sorted { $0.seconds > $1.seconds }.map { time in
            [
                time.name, "\(time.calls)", String(format: "%.2f", time.seconds * 1000),
                String(format: "%.1f%%", 100 * time.seconds / total),
                time.weightBytes > 0 ? String(format: "%.1f GB/s", Double(time.weightBytes) / time.seconds / 1e9) : "",
            ]
        }
        let columns: [TextTable.Column] = [.left("operation"), .right("calls"), .right("ms"), .right("share"), .right("weights")]
        print(TextTable(columns, indentation: "  ", rows: rows).text(), terminator: "")
    }

    /// A byte of a text that consists of pseudo-random words of six letters.
    private static func letter(_ index: Int) -> UInt8 {
        var mixed = UInt64(index) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        return index % 7 == 6 ? 32 : UInt8(97 + (mixed >> 33) % 26)
    }

    private func seconds(_ body: () throws -> Void) rethrows -> Double {
        let start = ContinuousClock.now
        try body()
        return (ContinuousClock.now - start).seconds
    }

    private func median(_ body: () throws -> Double) rethrows -> Double {
        try (0..<`repeat`).map { _ in try body() }.sorted()[`repeat` / 2]
    }

    /// Megabytes per second, for a text of repeated words and for one without repetitions.
    private func tokenizerRates(_ tokenizer: Tokenizer) -> [String: Double] {
        let text = String(repeating: "The quick brown fox jumps over the lazy dog; 12 cats didn't care. ", count: 4000)
        let varied = String(decoding: (0..<200_000).map(Self.letter), as: UTF8.self)
        var rates: [String: Double] = [:]
        for (name, sample) in [("tokenizer_prose_mb_s", text), ("tokenizer_random_mb_s", varied)] {
            rates[name] = median { Double(sample.utf8.count) / 1e6 / (seconds { _ = tokenizer.encode(sample) }) }
        }
        return rates
    }

    private func measureTokenizer(path: String) throws -> [String: Double] {
        tokenizerRates(try Tokenizer(file: GGUFFile(path: path)))
    }

    var cacheFormat: CacheFormat { cacheBits == 8 ? .int8 : .binary16 }

    /// Rates in tokens per second, times in milliseconds, sizes in MB.
    private func measure(_ choice: ModelChoice, threads: Int) throws -> [String: Double] {
        var figures: [String: Double] = ["threads": Double(threads)]
        let loadStart = ContinuousClock.now
        let file = try GGUFFile(path: choice.path)
        try ModelShape(file: file).checkGeneratesText()
        let pool = try WorkerPool(threads: threads, instructionSet: instructionSet)
        var model = try NeuralModel(file: file, pool: pool, cache: PackedCache.standard)
        var adapter: LowRankAdapter?
        // Of two that are used together, the selected one.
        if let path = try choice.adapterPaths().last {
            let adapterFile = try AdapterFile(path: path)
            adapter = try model.adapter(adapterFile, file: file)
            if adapter == nil {
                model = try NeuralModel(file: file, pool: pool, adapter: adapterFile, cache: PackedCache.standard)
            }
        }
        let tokenizer = try Tokenizer(file: file)
        figures["load_ms"] = (ContinuousClock.now - loadStart).seconds * 1000
        let context = min(long ? 4352 : 4096, model.shape.contextLength)
        let cache = try KVCache(shape: model.shape, capacity: context, format: cacheFormat, adapter: adapter)
        let vocabulary = model.shape.vocabularySize
        func prompt(_ length: Int) -> [TokenID] { (0..<length).map { TokenID(($0 * 7919 + 113) % vocabulary) } }

        try model.forward(prompt(16)[...], cache: cache)
        for length in [128, 512, 2048, 4096] where length < context {
            figures["prompt_\(length)"] = try median {
                cache.rewind(to: 0)
                return Double(length) / (try seconds { try model.forward(prompt(length)[...], cache: cache) })
            }
        }
        for depth in [0, 2048, 4096] where depth + 128 < context {
            cache.rewind(to: 0)
            if depth > 0 { try model.forward(prompt(depth)[...], cache: cache) }
            figures["generate_at_\(depth)"] = try median {
                cache.rewind(to: depth)
                return 128 / (try seconds { for token in prompt(128) { try model.forward([token], cache: cache) } })
            }
        }
        // A conversation: each turn adds 40 prompt tokens and 60 generated ones; only new tokens are computed.
        cache.rewind(to: 0)
        for turn in 1...10 where turn * 100 < context {
            let start = try seconds { try model.forward(prompt(40)[...], cache: cache) }
            if turn == 2 || turn == 10 { figures["turn_\(turn)_start_ms"] = start * 1000 }
            for token in prompt(60) { try model.forward([token], cache: cache) }
        }
        if profile, context > 64 {
            let depth = min(long ? 4096 : 512, context - 64)
            cache.rewind(to: 0)
            try printProfile(
                "\(threads) threads, prompt of \(depth) tokens",
                model.profile { try model.forward(prompt(depth)[...], cache: cache) })
            try printProfile(
                "\(threads) threads, 32 generated tokens after it",
                model.profile { for token in prompt(32) { try model.forward([token], cache: cache) } })
        }
        figures.merge(tokenizerRates(tokenizer)) { first, _ in first }
        let hasWindows = model.shape.layers.contains {
            if case .attention(let attention) = $0.mixer { attention.window != nil } else { false }
        }
        for (name, depth) in [("gigabytes_per_second", 0), ("gigabytes_per_second_at_4096", 4096)] {
            // Layers with a window do not read all keys and values.
            guard let rate = figures["generate_at_\(depth)"], depth == 0 || !hasWindows else { continue }
            // The cache grows by 128 positions while it is measured.
            let cached = depth == 0 ? 0 : (depth + 64) * cache.bytesPerPosition
            figures[name] = Double(model.bytesPerToken + cached) * rate / 1e9
        }
        figures["peak_mb"] = RunReport.peakMegabytes
        return figures
    }
}

extension InstructionSet: ExpressibleByArgument {}
