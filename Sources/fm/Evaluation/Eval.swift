import ArgumentParser
import Decisions
import Embeddings
import EvaluationCore
import Files
import Foundation
import FoundationModels
import Inference
import InstalledModels
import ProcessSettings
import Safety

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
              "instructions", "turns", "context", "class", "id", "maxTokens"

            With a "decision", a question of the form of “fm decide --questions”, the prompt is the text that is asked about, and \
            "expected" is true or false, a choice, or a level; the report then has the calibration error of the probabilities:

              {"prompt": "Where is my parcel?", "decision": {"type": "choice", "instructions": "What is it about?",
               "choices": ["delivery", "payment"]}, "expected": "delivery"}   (on one line)

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

    @OptionGroup var modelFlags: ModelFlags

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

    @Option(
        help: ArgumentHelp(
            "Write the temperatures with which the probabilities of decisions mean what they say, for “fm decide --calibration”.",
            valueName: "file"))
    var fit: String?

    @Option(help: ArgumentHelp("Use the temperatures of such a file.", valueName: "file"))
    var calibration: String?

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
        let report = try await report()
        try write(report)
        try writeCalibration(report)
        if !report.isPassed { throw CommandFailure() }
    }

    private func dataSet() throws -> EvaluationDataSet {
        guard let file else { return try EvaluationDataSet(Data(PackageResources.safety_jsonl), name: "safety prompts") }
        return try EvaluationDataSet(
            try EvalFile.data(file), name: file == "-" ? "standard input" : URL(filePath: file).lastPathComponent)
    }

    private var runFile: String {
        run ?? file.map { URL(filePath: $0).deletingPathExtension().path + ".run.jsonl" } ?? "safety.run.jsonl"
    }

    private func report() async throws -> EvaluationReport {
        let dataSet = try dataSet()
        // A long run must not end with a report that cannot be written.
        try EvalFile.check(
            outputs: [junit, html, fit].compactMap { $0 },
            inputs: [file, runFile, compare, risks, calibration].compactMap { $0 } + denyList)
        let risksText = try risks.map { try EvalFile.text($0) }
        let before = try compare.map { try EvaluationResult(contentsOfRun: URL(filePath: $0)) }
        let store = DenyListStore()
        var denyListData: [Data] = []
        for path in denyList {
            denyListData.append(try EvalFile.data(path))
            do {
                // Lists in different folders may have the same file name.
                try await store.load(from: URL(filePath: path), name: URL(filePath: path).path)
            } catch {
                throw CommandFailure("“\(path)”: \(error.localizedDescription)", code: .wrongUsage)
            }
        }
        var options = EvaluationDataSet.Options()
        options.instructions = instructions
        options.seeds = seeds?.split(separator: ",").compactMap { UInt64($0) } ?? []
        options.temperature = temperature
        options.maximumResponseTokens = maxTokens
        if let calibration { options.decisions.calibration = try CalibrationFile.read(calibration) }
        let embedder = GGUFEmbeddingModel.default
        if dataSet.needsEmbedder {
            if !embedder.isAvailable {
                throw CommandFailure("“similarity” needs the embedder: fm model pull embedder", code: .wrongUsage)
            }
            options.embedder = embedder
        }
        let judgePath = try judge.map { try ModelChoice.path(of: $0) }
        let choice = try modelFlags.choice()
        try choice.check()
        let model = choice.systemModel(guardrails: guardrails.value)
        let judgeModel = judgePath.map { SystemLanguageModel(file: $0) }
        options.judge = judgeModel ?? choice.systemModel()
        options.supportsLocale = { model.supportsLocale($0) }
        let embedderPath = dataSet.needsEmbedder ? embedder.url.path : nil
        var info = [
            "model": Self.title(ofModel: choice.path), "settings": settings(options, denyListData),
            "screening": String(ScreeningVersion.fingerprint, radix: 16), "program": FM.configuration.version,
        ]
        info["judge"] = judgePath.map { Self.title(ofModel: $0) }
        info["embedder"] = embedderPath.map { Self.title(ofModel: $0) }
        let names = (try choice.usesAssistant() ? ["assistant"] : []) + [choice.adapterName].compactMap(\.self)
        info["adapter"] = names.isEmpty ? nil : names.joined(separator: " and ")
        let contents = try Self.contents(
            ["model": choice.path, "judge": judgePath, "embedder": embedderPath].compactMapValues { $0 },
            adapters: ["adapter": choice.adapterPaths(), "judge's adapter": judgeModel?.localModel.adapterPaths ?? []])
        let feature = Feature(
            model: GuardedLanguageModel(model, denyLists: store), instructions: instructions,
            spotlighting: spotlight ? Spotlighting(key: "kmqzxw") : nil)
        let result = try await LongWork.untilInterrupted("Stopped. The same command continues.") {
            [options, info, parallel, runFile] in
            var line: ProgressLine?
            defer { line?.end() }
            let result = try await dataSet.run(
                options: options, info: info, parallel: parallel, file: URL(filePath: runFile), fingerprints: contents,
                progress: { Self.show($0, of: runFile, &line) }, prompt: feature.prompt, session: feature.session)
            if line == nil {
                let date = result.lastStart ?? ""
                Message.say("Complete: results of \(date) from \(runFile). To run again, remove it or give another --run.")
            }
            return result
        }
        return EvaluationReport(result, comparedWith: before, risks: risksText, minimum: minimum)
    }

    private static func show(_ progress: EvaluationProgress, of file: String, _ line: inout ProgressLine?) {
        if progress.latest != nil {
            line?.show(progress.completed, text: "\(progress.completed) of \(progress.total), \(progress.failed) failed")
        } else if progress.continued < progress.total {
            if progress.continued > 0 {
                Message.say("Continuing \(file): \(progress.continued) of \(progress.total) results are there.")
            }
            line = ProgressLine("Evaluating", total: progress.total, done: progress.continued)
        }
    }

    /// Fingerprints of the files that answers and checks depend on.
    private static func contents(_ models: [String: String], adapters: [String: [String]]) throws -> [String: String] {
        var contents = try models.mapValues { try GGUFFile(path: $0).fingerprint() }
        for (name, paths) in adapters where !paths.isEmpty {
            contents[name] = try paths.map { String(FNV.hash(try EvalFile.bytes($0)), radix: 16) }.joined(separator: " ")
        }
        return contents
    }

    /// The name and size of a model's file, for people.
    private static func title(ofModel path: String) -> String {
        // A size that cannot be read is not a part of the name.
        let size = (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int).map { ", \($0) bytes" } ?? ""
        return URL(filePath: path).lastPathComponent + size
    }

    /// What changes the answers; a run continues only with the same.
    private func settings(_ options: EvaluationDataSet.Options, _ denyLists: [Data]) -> String {
        var parts = options.summary
        if !denyLists.isEmpty {
            parts.append("deny lists \(denyLists.map { String(FNV.hash($0), radix: 16).prefix(8) }.joined(separator: " "))")
        }
        if guardrails != .default { parts.append("guardrails \(guardrails.rawValue)") }
        if !spotlight { parts.append("documents not marked") }
        if let calibration = options.decisions.calibration {
            parts.append(
                "temperatures \(calibration.entries.map { String(format: "%.3f", $0.temperature) }.joined(separator: " "))")
        }
        if Setting.cacheBits.value == "8" { parts.append("a cache of 8 bits") }
        return parts.joined(separator: ", ")
    }

    private func write(_ report: EvaluationReport) throws {
        // The results are shown first: the files may fail.
        try Output().write(json ? String(decoding: try report.json(), as: UTF8.self) : report.text)
        for (path, text) in [(junit, report.junitXML), (html, report.html)] {
            guard let path else { continue }
            try OutputFile.write(Data(text.utf8), to: path)
            Message.say("Written to \(path).")
        }
    }

    /// Fits temperatures to the decisions of the run.
    private func writeCalibration(_ report: EvaluationReport) throws {
        guard let fit else { return }
        let decisions = report.samples.compactMap(\.decision)
        guard let model = decisions.first?.model, decisions.allSatisfy({ $0.model == model }) else {
            throw CommandFailure("There is nothing to fit: the data set has no decisions of one model.", code: .wrongUsage)
        }
        let calibration = Calibration.fitted(to: decisions.map(\.labelled), model: model)
        try OutputFile.write(try JSONEncoder.stable(isPretty: true).encode(calibration) + [0x0A], to: fit)
        Message.say("Written to \(fit): temperatures from \(decisions.count) decisions.")
    }

    private static let template = """
        | feature | harm | who is affected | severity | mitigation | tested by |
        |---|---|---|---|---|---|
        | summary of messages | invents a fact | the reader | medium | shows the original beside it | class "sensitive" |
        | answers from documents | follows instructions in a document | the user | high | documents are marked as data | class "injection in document" |
        | … | … | … | low, medium or high | … | … |

        """
}

/// What is tested: a model with its guardrails and deny lists, and documents that may be marked as data.
private struct Feature: Sendable {
    var model: GuardedLanguageModel<SystemLanguageModel>
    var instructions: String?
    var spotlighting: Spotlighting?

    @Sendable func prompt(of sample: EvaluationDataSet.Sample) -> String {
        guard let context = sample.context, let spotlighting else { return sample.fullPrompt }
        return spotlighting.prompt(sample.prompt, about: context)
    }

    @Sendable func session(for sample: EvaluationDataSet.Sample) throws -> LanguageModelSession {
        var instructions = sample.instructions ?? instructions
        if sample.context != nil, let spotlighting {
            instructions = [instructions, spotlighting.instructions].compactMap { $0 }.joined(separator: "\n")
        }
        return try sample.session(on: model, instructions: instructions) { [spotlighting] in spotlighting?.marked($0) ?? $0 }
    }
}
