import ArgumentParser
import Foundation
import FoundationModelsTraining

extension Adapter {
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "import", abstract: "Make a .fmadapter file of a PEFT folder or a GGUF adapter.",
            discussion: "The adapter's model must be installed, or be given with --model: it says which matrices there are.")

        @Argument(help: "A PEFT folder, or a GGUF adapter.") var source: String
        @Option(name: [.short, .long], help: "The model of the adapter (default: the one in use).") var model: String?
        @Option(help: "The file to write.") var out: String

        func run() throws {
            let path = try Model.file(named: model)
            try AdapterData(importing: URL(filePath: source), for: path).write(to: URL(filePath: out))
            print(out)
        }
    }
}
