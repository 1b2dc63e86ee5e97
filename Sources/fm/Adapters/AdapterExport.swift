import ArgumentParser
import Foundation
import FoundationModelsTraining
import Inference

extension Adapter {
    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export", abstract: "Write an adapter as GGUF, for llama.cpp, or as a PEFT folder.")

        @Argument(help: "A file, or the name of an adapter.") var adapter: String
        @Option(help: ArgumentHelp("Write a GGUF adapter.", valueName: "file")) var gguf: String?
        @Option(help: ArgumentHelp("Write a PEFT folder.", valueName: "folder")) var peft: String?

        func validate() throws {
            if (gguf == nil) == (peft == nil) { throw ValidationError("Choose one of --gguf and --peft.") }
        }

        func run() throws {
            let data = try AdapterData(contentsOf: URL(filePath: Adapter.file(named: adapter)))
            if let gguf { try data.writeGGUF(to: URL(filePath: gguf)) }
            if let peft { try data.writePEFT(to: URL(filePath: peft)) }
            print(gguf ?? peft ?? "")
        }
    }

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
