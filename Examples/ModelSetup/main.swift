/// ModelSetup: what an app does when it is started for the first time. It installs a model and shows how far it is, lets it answer, and
/// evaluates it with a few prompts.
///
///     swift run ModelSetup                              the model that suits this machine best
///     swift run ModelSetup small FOLDER                 a model of the catalogue, in a folder of the app
///     swift run ModelSetup OWNER/REPO FOLDER http://…   a repository of another hub
///
/// Ctrl-C ends a download; the next start continues it.

import Evaluations
import Foundation
import FoundationModels
import FoundationModelsInstallation

/// Does the model know a few capitals?
struct Capitals: Evaluation {
    static let right = Metric("Right")
    let model: InstalledModel

    var dataset: ArrayLoader<ModelSample<String>> {
        ArrayLoader(samples: [
            ModelSample(prompt: "What is the capital of France? One word.", expected: "Paris"),
            ModelSample(prompt: "What is the capital of Italy? One word.", expected: "Rome"),
            ModelSample(prompt: "What is the capital of Japan? One word.", expected: "Tokyo"),
        ])
    }

    func subject(from sample: ModelSample<String>) async throws -> ModelSubject<String> {
        let session = LanguageModelSession(model: model.languageModel)
        let answer = try await session.respond(to: sample.prompt, options: GenerationOptions(maximumResponseTokens: 20)).content
        return ModelSubject(value: answer, transcript: session.transcript.structuredTranscript)
    }

    var evaluators: Evaluators {
        Evaluator { sample, subject in
            subject.value.contains(sample.expected ?? "") ? Self.right.passing() : Self.right.failing(rationale: subject.value)
        }
    }

    func aggregateMetrics(using aggregator: inout MetricsAggregator) { aggregator.computeMean(of: Self.right) }
}

func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }

func show(_ progress: InstallationProgress) {
    switch progress.phase {
    case .waiting: write("\rAnother program is installing a model …")
    case .verifying: write("\rVerifying … ")
    case .importing: write("\rImporting … ")
    case .downloading:
        let done = Int((progress.fraction ?? 0) * 30)
        let bar = String(repeating: "#", count: done) + String(repeating: ".", count: 30 - done)
        write("\r\(progress.model) [\(bar)] \(progress.completedBytes / 1_000_000) MB")
    }
}

let arguments = CommandLine.arguments.dropFirst()
var installation = ModelInstallation.default
if let folder = arguments.dropFirst().first {
    var configuration = ModelInstallation.Configuration()
    if let hub = arguments.dropFirst(2).first.flatMap({ URL(string: $0) }) { configuration.hub = hub }
    installation = ModelInstallation(directory: URL(filePath: folder), configuration: configuration)
}

do {
    let request = try arguments.first.map { try ModelRequest($0) } ?? .recommended
    let model = try await installation.install(request) { show($0) }
    write("\n")
    print("\(model.title): \(model.bytes / 1_000_000) MB, needs \(model.memory / 1_000_000) MB of memory")

    let session = LanguageModelSession(model: model.languageModel, instructions: "Answer in one sentence.")
    print(try await session.respond(to: "Why is the sky blue?", options: GenerationOptions(maximumResponseTokens: 60)).content)

    let result = try await Capitals(model: model).run()
    print("Capitals: \(Int(result.aggregateValue(.mean(of: Capitals.right)) * 100)) % right")
} catch {
    let suggestion = (error as? any LocalizedError)?.recoverySuggestion ?? ""
    write("\nModelSetup: \(error.localizedDescription) \(suggestion)\n")
    exit(1)
}
