import ArgumentParser
import Foundation
import Inference

extension Model {
    struct Recommend: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "recommend",
            abstract: "Show which model is best for this machine.",
            discussion: """
                The speed is estimated: a token needs all weights, so the rate at which this machine reads memory divided by the \
                size of the file. The scores are those of the publishers (MMLU-Pro, without reasoning where there are two).
                """)

        func run() throws {
            let memory = SystemMemory.current.available() ?? SystemMemory.total
            let rate = ModelAdvice.rate
            let best = ModelAdvice.best(memory: memory, bytesPerSecond: rate)
            print("  \(TerminalText.padded("name", cells: 22))   size     memory   tokens/s   MMLU-Pro")
            for model in ModelAdvice.ranked {
                let needs = Model.memory(forBytes: model.size)
                let fits = needs < memory
                let speed = ModelAdvice.tokensPerSecond(model, rate)
                let text =
                    (model.name == best.name ? "* " : "  ") + TerminalText.padded(model.name, cells: 22)
                    + String(format: "%5d MB %7d MB %9.0f   ", model.size / 1_000_000, needs / 1_000_000, speed)
                print(text + (model.score.map { "\($0)" } ?? "–") + (fits ? "" : "   too large for the free memory"))
            }
            let isInstalled = ModelStore.installed.contains { $0.name == best.name }
            print("\n\(best.title) is the best for this machine: fm model \(isInstalled ? "use" : "pull") \(best.name)")
        }
    }
}

/// Which model of the catalogue suits a machine.
enum ModelAdvice {
    /// The models that are recommended, the best first.
    static let ranked = ["qwen3-4b-2507", "gemma-4-e2b", "qwen3.5-2b", ModelCatalogue.standard.name, ModelCatalogue.small.name]
        .compactMap { ModelCatalogue.entry(named: $0) }

    /// Bytes per second that the processor reads; measured.
    static var rate: Double {
        // Without memory for the measurement, a usual machine is assumed.
        guard let pool = try? WorkerPool.shared(), let rate = MemoryRate.measure(bytes: 256 << 20, pool: pool) else {
            return 20e9
        }
        return rate
    }

    /// Below this speed, reading is faster than writing.
    private static let minimumSpeed = 6.0

    static func tokensPerSecond(_ model: PublishedModel, _ bytesPerSecond: Double) -> Double {
        // Gemma 4 E2B reads a part of its weights, the embeddings of its layers, only for the tokens that occur.
        let share = model.name == "gemma-4-e2b" ? 0.55 : 1
        return bytesPerSecond * MemoryRate.reachedShare / (Double(model.size) * share)
    }

    static func best(memory: Int, bytesPerSecond: Double) -> PublishedModel {
        ranked.first { model in
            // Half of the free memory stays for other programs.
            Model.memory(forBytes: model.size) * 2 < memory && tokensPerSecond(model, bytesPerSecond) >= minimumSpeed
        } ?? ModelCatalogue.small
    }

    /// Says once that a better model than the default one would run here. Only people are told: not scripts, and nobody who has chosen
    /// a model.
    static func sayOnce() {
        let environment = ProcessInfo.processInfo.environment
        let standard = ModelCatalogue.standard
        guard isatty(STDERR_FILENO) == 1, environment["FM_MODEL"] ?? "" == "",
            ModelStore.selectedModel == nil, ModelStore.chosenModel == nil,
            ModelStore.systemModelPath.hasSuffix("/" + standard.fileName)
        else { return }
        let note = ModelStore.sourceDirectory.appendingPathComponent(".recommended")
        guard !FileManager.default.fileExists(atPath: note.path), let memory = SystemMemory.current.available() else { return }
        let best = best(memory: memory, bytesPerSecond: rate)
        guard best.name != standard.name, best.name != ModelCatalogue.small.name else { return }
        do { try Data().write(to: note) } catch { return }  // it would be said each time
        Message.say("(This machine can run a better model, \(best.title): “fm model recommend” says more.)")
    }
}
