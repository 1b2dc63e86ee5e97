import ArgumentParser
import Foundation
import FoundationModelsInstallation
import InstalledModels
import ProcessSettings
import Reports

extension Model {
    struct Recommend: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "recommend",
            abstract: "Show which model is best for this machine.",
            discussion: """
                What counts is the machine, not what it does at the moment: a model may need half of the memory that there is, and \
                the speed is estimated from the highest of some short measurements: a token needs all weights, so the rate at which \
                this machine reads memory divided by the size of the file. The small model is advised only where the memory is too \
                small for others. The scores are those of the publishers (MMLU-Pro, without reasoning where there are two).
                """)

        func run() async throws {
            let installation = ModelInstallation.default
            let advice = await installation.recommendation()
            let freeText = advice.freeMemory.map { String(format: ", of which %.1f GB are free now", Double($0) / 1e9) } ?? ""
            print(
                String(
                    format: "This machine has %.1f GB of memory%@, and reads %.1f GB/s (%@).\n", Double(advice.memory) / 1e9,
                    freeText, advice.bytesPerSecond / 1e9,
                    advice.isMeasured
                        ? "the highest of some short measurements" : "assumed: there is no memory to measure it with"))
            var table = TextTable([
                .left(), .left("name"), .right("size"), .right("memory"), .right("tokens/s"), .right("MMLU-Pro"), .left(),
            ])
            for candidate in advice.candidates {
                let model = candidate.model
                let note =
                    model.memory >= advice.memory
                    ? "too large for this machine"
                    : model.memory >= advice.freeMemory ?? .max ? "not enough memory is free now" : ""
                table.add([
                    model.name == advice.best.model.name ? "*" : "", model.name, "\(model.bytes / 1_000_000) MB",
                    "\(model.memory / 1_000_000) MB", "\(Int(candidate.tokensPerSecond.rounded()))",
                    model.score.map { "\($0)" } ?? "–", note,
                ])
            }
            print(table.text(), terminator: "")
            let best = advice.best.model
            let isInstalled = installation.model(named: best.name) != nil
            print("\n\(best.title) is the best for this machine: fm model \(isInstalled ? "use" : "pull") \(best.name)")
        }
    }
}

extension ModelAdvice {
    /// Says once that a better model than the default one would run here. Only people are told: not scripts, and nobody who has chosen
    /// a model.
    static func sayOnce() {
        let standard = ModelCatalogue.standard
        guard isatty(STDERR_FILENO) == 1, Setting.model.value == nil, ModelStore.chosenModel == nil,
            ModelStore.defaultModelPath.hasSuffix("/" + standard.fileName)
        else { return }
        let note = ModelStore.sourceDirectory.appendingPathComponent(".recommended")
        guard !FileManager.default.fileExists(atPath: note.path) else { return }
        let best = measure().best.model
        // The machine stays the same: it is not measured again.
        do { try Data().write(to: note) } catch { return }  // it would be said each time
        guard best.name != standard.name, best.name != ModelCatalogue.small.name else { return }
        Message.say("(This machine can run a better model, \(best.title): “fm model recommend” says more.)")
    }
}
