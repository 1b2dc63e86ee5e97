import ArgumentParser
import Foundation
import Inference
import InstalledModels
import Reports

extension Model {
    struct Recommend: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "recommend",
            abstract: "Show which model is best for this machine.",
            discussion: """
                What counts is the machine, not what it does at the moment: a model may need half of the memory that there is, and \
                the speed is estimated from the highest of some short measurements: a token needs all weights, so the rate at which \
                this machine reads memory divided by the size of the file. The small model is advised only where the memory is too \
                small for others. The scores are those of the publishers (MMLU-Pro, without reasoning where there are two).
                """)

        func run() throws {
            let (memory, free) = (SystemMemory.total, SystemMemory.current.available())
            let rate = ModelAdvice.rate
            let best = ModelAdvice.best(memory: memory, bytesPerSecond: rate.bytesPerSecond)
            let freeText = free.map { String(format: ", of which %.1f GB are free now", Double($0) / 1e9) } ?? ""
            print(
                String(
                    format: "This machine has %.1f GB of memory%@, and reads %.1f GB/s (%@).\n", Double(memory) / 1e9, freeText,
                    rate.bytesPerSecond / 1e9,
                    rate.isMeasured ? "the highest of some short measurements" : "assumed: there is no memory to measure it with")
            )
            print("  \(TerminalText.padded("name", cells: 22))   size     memory   tokens/s   MMLU-Pro")
            for model in ModelAdvice.ranked {
                let needs = Model.memory(forBytes: model.size)
                let note =
                    needs >= memory
                    ? "   too large for this machine" : needs >= free ?? .max ? "   not enough memory is free now" : ""
                let speed = ModelAdvice.tokensPerSecond(model, rate.bytesPerSecond)
                let text =
                    (model.name == best.name ? "* " : "  ") + TerminalText.padded(model.name, cells: 22)
                    + String(format: "%5d MB %7d MB %9.0f   ", model.size / 1_000_000, needs / 1_000_000, speed)
                print(text + (model.score.map { "\($0)" } ?? "–") + note)
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

    /// Bytes per second that the processor reads. Without memory for the measurement, a usual machine is assumed.
    static var rate: (bytesPerSecond: Double, isMeasured: Bool) {
        guard let pool = try? WorkerPool.shared(), let rate = MemoryRate.highest(bytes: 256 << 20, pool: pool) else {
            return (20e9, false)
        }
        return (rate, true)
    }

    /// Below this speed, reading is faster than writing.
    private static let minimumSpeed = 6.0

    static func tokensPerSecond(_ model: PublishedModel, _ bytesPerSecond: Double) -> Double {
        // Gemma 4 E2B reads a part of its weights, the embeddings of its layers, only for the tokens that occur.
        let share = model.name == "gemma-4-e2b" ? 0.55 : 1
        return bytesPerSecond * MemoryRate.reachedShare / (Double(model.size) * share)
    }

    /// - Parameter memory: The bytes of memory of the machine, of which half stays for other programs.
    static func best(memory: Int, bytesPerSecond: Double) -> PublishedModel {
        let (standard, small) = (ModelCatalogue.standard, ModelCatalogue.small)
        let fitting = ranked.filter { $0.name != small.name && Model.memory(forBytes: $0.size) * 2 < memory }
        // The default model answers so much better than the small one that it is the better one at any speed, which is an estimate.
        return fitting.first { tokensPerSecond($0, bytesPerSecond) >= minimumSpeed }
            ?? fitting.first { $0.name == standard.name } ?? small
    }

    /// Says once that a better model than the default one would run here. Only people are told: not scripts, and nobody who has chosen
    /// a model.
    static func sayOnce() {
        let environment = ProcessInfo.processInfo.environment
        let standard = ModelCatalogue.standard
        guard isatty(STDERR_FILENO) == 1, environment["FM_MODEL"] ?? "" == "",
            ModelStore.chosenModel == nil,
            ModelStore.defaultModelPath.hasSuffix("/" + standard.fileName)
        else { return }
        let note = ModelStore.sourceDirectory.appendingPathComponent(".recommended")
        guard !FileManager.default.fileExists(atPath: note.path) else { return }
        let best = best(memory: SystemMemory.total, bytesPerSecond: rate.bytesPerSecond)
        // The machine stays the same: it is not measured again.
        do { try Data().write(to: note) } catch { return }  // it would be said each time
        guard best.name != standard.name, best.name != ModelCatalogue.small.name else { return }
        Message.say("(This machine can run a better model, \(best.title): “fm model recommend” says more.)")
    }
}
