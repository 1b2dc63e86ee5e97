import Foundation
import JSON
import Synchronization
import Testing

@testable import Inference
@testable import InstalledModels

/// Compares real models with results of llama.cpp (`Tests/Tools/record_models.py`): the next tokens after 25 prompts,
/// and the perplexity of 4,000 tokens of text. Models that are not installed are skipped: `fm model pull` installs the
/// default model; Gemma 3 270M is used by tests only and must be copied to the model directory manually.
struct RealModelTests {
    struct Recorded: Decodable {
        struct Prompt: Decodable {
            var tokens: [TokenID]
            var exactTop: [Int]
            var exactLogProbabilities: [Double]
        }
        struct Window: Decodable {
            var tokens: [TokenID]
            var skipped: Int
            var exactNegativeLogLikelihood: Double
        }
        var model: String
        var beginsWith: [TokenID]
        var logits: [Prompt]
        var perplexity: [Window]
    }

    static let names = ["qwen2.5-coder-1.5b", "gemma-3-270m"]

    @Test(arguments: names)
    func equalsLlamaCpp(name: String) throws {
        let recorded = try GoldenFile.load("Models/\(name)", as: Recorded.self)
        let path = ModelStore.directory.appendingPathComponent(recorded.model).path
        guard FileManager.default.fileExists(atPath: path) else {
            print("\(recorded.model) is not installed; its test is skipped")
            return
        }
        let model = try NeuralModel(
            file: GGUFFile(path: path), pool: WorkerPool(), cache: PackedCache.standard)
        let cache = try KVCache(shape: model.shape, capacity: 4096)
        var differences: [Double] = []
        for prompt in recorded.logits {
            cache.rewind(to: 0)
            let begins = prompt.tokens.starts(with: recorded.beginsWith)
            try model.forward(((begins ? [] : recorded.beginsWith) + prompt.tokens)[...], cache: cache)
            let logits = model.logits.map(Double.init)
            let largest = logits.max() ?? 0
            let total = log(logits.reduce(0) { $0 + exp($1 - largest) }) + largest
            // Skip prompts of a single token: quantisation to 8 bits cannot represent its huge activations, in
            // llama.cpp as here.
            guard prompt.tokens.count > 1 else { continue }
            for (token, expected) in zip(prompt.exactTop, prompt.exactLogProbabilities) {
                differences.append(abs(logits[token] - total - expected))
            }
            if prompt.exactLogProbabilities[0] - prompt.exactLogProbabilities[1] > 0.7 {
                #expect(logits.firstIndex(of: largest) == prompt.exactTop[0])
            }
        }
        let mean = differences.reduce(0, +) / Double(max(1, differences.count))
        print("\(name): log-probabilities differ by \(mean) on average, \(differences.max() ?? 0) at most")
        // Quantising activations to 8 bits causes differences of 0.09 on average and 0.7 at most.
        #expect(mean < 0.15)
        #expect((differences.max() ?? 0) < 1)

        let reference = try perplexity(recorded, model, .binary16)
        print("\(name): perplexity \(reference.found), of the reference \(reference.expected)")
        #expect(abs(reference.found / reference.expected - 1) < 0.005)
        let rounded = try perplexity(recorded, model, .int8)
        print("\(name): perplexity \(rounded.found) with keys and values of 8 bits")
        // The default model has keys with a few large elements, which cost precision: 1.2 %.
        #expect(abs(rounded.found / reference.found - 1) < 0.02)
    }

    private func perplexity(
        _ recorded: Recorded, _ model: NeuralModel, _ format: CacheFormat
    ) throws -> (found: Double, expected: Double) {
        let cache = try KVCache(shape: model.shape, capacity: 4096, format: format)
        let engine = Engine(model: model, memory: PoolMemory())
        var (found, expected, tokens) = (0.0, 0.0, 0)
        for window in recorded.perplexity {
            let begins = window.tokens.starts(with: recorded.beginsWith)
            let all = (begins ? [] : recorded.beginsWith) + window.tokens
            let skipped = window.skipped + all.count - window.tokens.count
            let scoring = ScoringWork(of: Array(all[skipped...]), after: Array(all[..<skipped]))
            var result: Result<Void, any Error>?
            try engine.submit(scoring, in: cache, priority: .interactive, signals: RequestSignals()) { result = $0 }
            while result == nil, engine.step() {}
            try #require(result).get()
            found -= scoring.logProbability
            tokens += all.count - skipped
            expected += window.exactNegativeLogLikelihood * Double(all.count - skipped)
        }
        return (exp(found / Double(tokens)), exp(expected / Double(tokens)))
    }

    private static let standard = ModelStore.path(of: ModelCatalogue.standard.name)

    /// With its adapter, the default model makes two calls if the user asks for two, and leaves out what the user did not mention.
    @Test(.enabled(if: FileManager.default.fileExists(atPath: AdapterUse.assistant.path(beside: standard))))
    func callsOfTheDefaultModel() async throws {
        let model = try await LoadedModel.load(path: Self.standard, defaults: ModelCatalogue.defaults)
        let adapter = try await model.adapter(paths: [AdapterUse.assistant.path(beside: Self.standard)])
        let weather = ChatTool(
            name: "get_weather", description: "Get the weather at a place.",
            parameters: try JSONParser.parse(
                """
                {"type": "object", "required": ["location"], "additionalProperties": false, "properties": {
                "location": {"type": "string", "description": "City"},
                "day": {"type": "string", "description": "Day, for example tomorrow"},
                "units": {"type": "string", "enum": ["celsius", "fahrenheit"]}}}
                """))
        let instructions = ChatMessage(role: .system, content: try #require(model.defaults.instructions))
        func calls(_ message: String) async throws -> [String] {
            let prompt = ChatPrompt([instructions, ChatMessage(role: .user, content: message)], tools: [weather])
            let calls = Mutex<[String]>([])
            var tools = TurnTools()
            (tools.callable, tools.areInPrompt) = ([weather], true)
            _ = try await model.generateTurn(
                GenerationRequest(
                    tokens: try model.tokens(for: prompt), sampling: SamplingSettings(temperature: 0), maximumTokens: 60),
                tools: tools, in: try model.makeSequence(contextSize: 2048, adapter: adapter)
            ) { event in
                if case .call(let call) = event { calls.withLock { $0.append(call.arguments.text) } }
                return true
            }
            return calls.withLock { $0 }
        }
        #expect(
            try await calls("What's the weather in Rome and in Vienna?") == [#"{"location":"Rome"}"#, #"{"location":"Vienna"}"#])
        // A turn is one piece of work, however many calls it makes.
        let before = await model.submissions
        #expect(try await calls("What's the weather in Rome?") == [#"{"location":"Rome"}"#])
        #expect(try await calls("Tell me the weather in Oslo and in Porto, please.").count == 2)
        #expect(await model.submissions == before + 2)
    }
}
