import ArgumentParser
import Embeddings
import EvaluationCore
import Files
import Foundation
import FoundationModels
import FoundationModelsGGUF
import Inference
import InstalledModels
import Safety
import Synchronization

struct Eval: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "eval",
        abstract: "Test prompts against what their answers should be, and compare runs.",
        discussion: """
            The data set is a file of JSON Lines. Each line has a "prompt", and any of:

              "expected"      the exact answer; JSON for answers with a schema
              "contains"      texts that the answer must contain
              "excludes"      texts that the answer must not contain
              "regex"         a pattern that the answer must match
              "schema"        a JSON Schema for the answer
              "similarity"    the minimum cosine with "expected", by the embedder
              "rubric"        what a good answer is like; a model judges
              "tools"         name, description, parameters, and a fixed output
              "requiresTool"  true if the model must call a tool before it answers
              "calls"         the expected tool calls, see below
              "declines"      true if the request should be declined
              "language"      such as "de"; a model without it may stop the request
              "instructions", "context", "class", "id", "maxTokens"

              {"prompt": "Capital of France?", "contains": ["Paris"], "class": "facts"}
              {"prompt": "Reply with the word yes.", "regex": "(?i)^yes"}

            "calls" is an object with "ordered", "unordered" and "disallowed", lists of calls, and "allowsAdditionalCalls", true or \
            false. A call has a "name" and "arguments", a list of conditions; {"anyOrder": […]} is several calls in any order. \
            The conditions:

              {"exact": {"argumentName": "city", "value": "Rome"}}
              {"keyOnly": {"argumentName": "city"}}
              {"oneOf": {"argumentName": "unit", "allowedValues": ["C", "F"]}}
              {"range": {"argumentName": "days", "minimum": 1, "maximum": 7}}
              {"pattern": {"argumentName": "date", "regex": "^2026"}}
              {"contains": {"argumentName": "city", "substring": "om"}}
              {"hasPrefix": {"argumentName": "city", "prefix": "R"}}
              {"hasSuffix": {"argumentName": "city", "suffix": "e"}}
              {"naturalLanguage": {"argumentName": "query", "criteria": "is polite"}}

              {"prompt": "Rain in Rome?", "tools": [{"name": "weather",
               "description": "The weather.", "output": "sunny", "parameters":
               {"properties": {"city": {"type": "string"}}}}], "calls": {"ordered":
               [{"name": "weather", "arguments": [{"keyOnly": {"argumentName":
               "city"}}]}]}}   (on one line)

            Results are added to the run file after each sample, with the reason why the answer ended (stopReason: \
            \(RunReport.stopReasons)). The same command continues a run that was stopped, and shows the \
            report of one that is complete; with another model of the same name, another adapter, judge or setting, it is another run.

            EXAMPLES
              fm eval facts.jsonl                         run and report
              fm eval facts.jsonl --seeds 1,2,3 --html report.html
              fm eval facts.jsonl --model small --run s.run.jsonl --compare facts.run.jsonl
              fm eval --safety --risks risks.md           with your table of risks
              fm eval --risk-template > risks.md

            EXIT CODES
              0 enough samples passed   1 too few passed, or failed   3 no usable model   64 wrong usage or data   130 interrupted
            """)

    @Argument(help: "The data set, or - for standard input.")
    var file: String?

    @Flag(help: "Run the safety prompts of this program: nonsense, code, sensitive and vague requests, injections, languages.")
    var safety = false

    @Option(help: ArgumentHelp("The file with the results (default: the data set's name with .run.jsonl).", valueName: "file"))
    var run: String?

    @Option(help: ArgumentHelp("An earlier run to compare with.", valueName: "file"))
    var compare: String?

    @Option(name: [.short, .long], help: ArgumentHelp("An installed model or a GGUF file.", valueName: "name"))
    var model: String?

    @Option(
        help: ArgumentHelp(
            "An adapter of the model: a file, a name of “fm adapter list”, or none (default: the one in use).", valueName: "file")
    )
    var adapter: String?

    @Option(
        help: ArgumentHelp("The model that judges answers and arguments (default: the model under test).", valueName: "name"))
    var judge: String?

    @Option(name: .shortAndLong, help: "Instructions for samples that have none.")
    var instructions: String?

    @Option(help: "Answers are sampled once with each of these seeds, such as 1,2,3 (default: the most probable answer).")
    var seeds: String?

    @Option(help: "The temperature of answers that are sampled, from 0 to 2.")
    var temperature = 0.7

    @Option(help: "The number of samples that are answered at once.")
    var parallel = 4

    @Option(help: "The maximum number of tokens of an answer.")
    var maxTokens = 300

    @Option(help: "The minimum share of samples that must pass, from 0 to 1.")
    var minimum = 1.0

    @Option(help: ArgumentHelp("A deny list for prompts and answers, a term in each line. Can be repeated.", valueName: "file"))
    var denyList: [String] = []

    @Option(help: Guardrails.help)
    var guardrails = Guardrails.default

    @Flag(inversion: .prefixedNo, help: "Mark the text of documents as data.")
    var spotlight = true

    @Flag(help: "Write the report as JSON.")
    var json = false

    @Option(help: ArgumentHelp("Write the report as JUnit XML for CI.", valueName: "file"))
    var junit: String?

    @Option(help: ArgumentHelp("Write the report as an HTML page.", valueName: "file"))
    var html: String?

    @Option(help: ArgumentHelp("A Markdown file with the risks of the feature, which the report includes.", valueName: "file"))
    var risks: String?

    @Flag(help: "Write a table for the risks of a feature, to fill in.")
    var riskTemplate = false

    func validate() throws {
        if !riskTemplate, file == nil, !safety {
            throw ValidationError("Give a data set, or --safety for the safety prompts of this program.")
        }
        if let file, safety { throw ValidationError("--safety has its own prompts: leave out “\(file)”.") }
        if file == "-", run == nil { throw ValidationError("With “-” for standard input, give a file for the results: --run.") }
        if !(0...1).contains(minimum) { throw ValidationError("--minimum must be from 0 to 1.") }
        if !(1...64).contains(parallel) { throw ValidationError("--parallel must be from 1 to 64.") }
        if maxTokens < 1 { throw ValidationError("--max-tokens must be at least 1.") }
        if !(0...2).contains(temperature) { throw ValidationError("--temperature must be from 0 to 2.") }
        if let seeds {
            let numbers = seeds.split(separator: ",", omittingEmptySubsequences: false).map { UInt64($0) }
            if numbers.contains(nil) || Set(numbers).count != numbers.count {
                throw ValidationError("--seeds must be different whole numbers with commas between them, such as 1,2,3.")
            }
        }
    }

    func run() async throws {
        if riskTemplate { return try Output().write(Self.template) }
        do {
            let report = try await report()
            try write(report)
            if !report.isPassed { throw ExitCode(1) }
        } catch let error as EvalError {
            Message.say("fm: \(error.description)")
            throw ExitCode(error.code)
        }
    }

    private func data() throws -> (name: String, data: Data) {
        guard let file else { return ("safety prompts", Data(PackageResources.safety_jsonl)) }
        return (file == "-" ? "standard input" : URL(filePath: file).lastPathComponent, try EvalFile.data(file))
    }

    private var runFile: String {
        run ?? file.map { URL(filePath: $0).deletingPathExtension().path + ".run.jsonl" } ?? "safety.run.jsonl"
    }

    private func report() async throws -> EvalReport {
        let (name, data) = try data()
        let samples = try EvalSample.read(data, name: name)
        // A long run must not end with a report that cannot be written.
        try EvalFile.check(
            outputs: [junit, html].compactMap { $0 }, inputs: [file, runFile, compare, risks].compactMap { $0 } + denyList)
        let risksText = try risks.map { try EvalFile.text($0) }
        let before = try compare.map { path in
            let (header, entries, _) = try EvalRun.read(URL(filePath: path))
            guard let header else { throw EvalError("\(path) does not contain a run of “fm eval”.") }
            return (header: header, entries: entries)
        }
        let store = DenyListStore()
        var denyListData: [Data] = []
        for path in denyList {
            denyListData.append(try EvalFile.data(path))
            do {
                // Lists in different folders may have the same file name.
                try await store.load(from: URL(filePath: path), name: URL(filePath: path).path)
            } catch {
                throw EvalError("“\(path)”: \(error.localizedDescription)")
            }
        }
        let judge = try judge.map { try ModelChoice.path(of: $0) }
        let choice = try ModelChoice(model: model, adapter: adapter)
        let embedder = GGUFEmbeddingModel.default
        let needsEmbedder = samples.contains(where: \.needsEmbedder)
        if needsEmbedder, !embedder.isAvailable {
            throw EvalError("“similarity” needs the embedder: fm model pull embedder")
        }
        try choice.check()
        var header = EvalRun.Header(
            dataset: name, fingerprint: Self.fingerprint(data), model: Self.title(ofModel: choice.path),
            settings: settings(denyListData), judge: judge.map { Self.title(ofModel: $0) },
            embedder: needsEmbedder ? Self.title(ofModel: embedder.url.path) : nil,
            screening: String(ScreeningVersion.fingerprint, radix: 16), program: FM.configuration.version)
        header.adapter = choice.adapterName
        header.contents = try Self.contents(choice, judge: judge, embedder: needsEmbedder ? embedder.url.path : nil)
        let results = try EvalRun(URL(filePath: runFile), header)
        let seeds: [UInt64?] = self.seeds.map { $0.split(separator: ",").map { UInt64($0) } } ?? [nil]
        let runner = EvalRunner(
            samples: samples, seeds: seeds, temperature: temperature, parallel: parallel,
            checks: EvalChecks(
                judge: SystemLanguageModel(file: judge ?? choice.path, adapter: judge == nil ? choice.adapter : nil),
                embedder: embedder),
            model: choice.systemModel(guardrails: guardrails.value), denyLists: store, instructions: instructions,
            spotlighting: spotlight ? Spotlighting(key: "kmqzxw") : nil, maxTokens: maxTokens)
        try await answer(runner, results, total: samples.count * seeds.count)
        return EvalReport(
            header: header, entries: results.entries,
            comparison: before.map { EvalComparison(with: $0.header, before: $0.entries, after: results.entries) },
            risks: risksText, minimum: minimum)
    }

    /// Answers what the run does not contain yet.
    private func answer(_ runner: EvalRunner, _ results: EvalRun, total: Int) async throws {
        let known = results.entries.count
        if known == total {
            let date = EvalRun.date(of: results.entries) ?? ""
            Message.say("Complete: results of \(date) from \(runFile). To run again, remove it or give another --run.")
            return
        }
        if known > 0 { Message.say("Continuing \(runFile): \(known) of \(total) results are there.") }
        let line = ProgressLine("Evaluating", total: total, done: known)
        let request = Task {
            try await runner.run(results) { _ in
                let entries = results.entries
                line.show(entries.count, text: "\(entries.count) of \(total), \(entries.count { !$0.passes }) failed")
            }
        }
        let interrupt = Interrupt { request.cancel() }
        defer { interrupt.stop() }
        do {
            try await request.value
            line.end()
        } catch {
            line.end()
            if interrupt.happened {
                Message.say("Stopped. The same command continues.")
                throw ExitCode(130)
            }
            if error is EvalError { throw error }
            throw ExitMessage.exit(for: error)
        }
    }

    /// FNV-1a: another data set is a mistake, not an attack.
    private static func fingerprint(_ data: Data) -> String {
        String(FNV.hash(data), radix: 16)
    }

    /// Fingerprints of the files that answers and checks depend on.
    private static func contents(_ model: ModelChoice, judge: String?, embedder: String?) throws -> [String: String] {
        let models = ["model": model.path, "judge": judge, "embedder": embedder].compactMapValues { $0 }
        do {
            var contents = try models.mapValues { try GGUFFile(path: $0).fingerprint() }
            contents["adapter"] = try model.adapter.map { fingerprint(try EvalFile.bytes($0)) }
            return contents
        } catch let error as ModelError {
            throw Model.fail(error)
        }
    }

    /// The name and size of a model's file, for people.
    private static func title(ofModel path: String) -> String {
        // A size that cannot be read is not a part of the name.
        let size = (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int).map { ", \($0) bytes" } ?? ""
        return URL(filePath: path).lastPathComponent + size
    }

    /// What changes the answers; a run continues only with the same.
    private func settings(_ denyLists: [Data]) -> String {
        var parts = [seeds.map { "seeds \($0)" } ?? "greedy", "at most \(maxTokens) tokens"]
        if seeds != nil, temperature != 0.7 { parts.append("temperature \(temperature)") }
        if let instructions { parts.append("instructions \(Self.fingerprint(Data(instructions.utf8)).prefix(8))") }
        if !denyLists.isEmpty {
            parts.append("deny lists \(denyLists.map { Self.fingerprint($0).prefix(8) }.joined(separator: " "))")
        }
        if guardrails != .default { parts.append("guardrails \(guardrails.rawValue)") }
        if !spotlight { parts.append("documents not marked") }
        if ProcessInfo.processInfo.environment["FM_CACHE_BITS"] == "8" { parts.append("a cache of 8 bits") }
        return parts.joined(separator: ", ")
    }

    private func write(_ report: EvalReport) throws {
        // The results are shown first: the files may fail.
        try Output().write(json ? try report.json() : report.text)
        for (path, text) in [(junit, report.junit), (html, report.html)] {
            guard let path else { continue }
            try EvalFile.write(text, to: path)
            Message.say("Written to \(path).")
        }
    }

    private static let template = """
        | feature | harm | who is affected | severity | mitigation | tested by |
        |---|---|---|---|---|---|
        | summary of messages | invents a fact | the reader | medium | shows the original beside it | class "sensitive" |
        | answers from documents | follows instructions in a document | the user | high | documents are marked as data | class "injection in document" |
        | … | … | … | low, medium or high | … | … |

        """
}
