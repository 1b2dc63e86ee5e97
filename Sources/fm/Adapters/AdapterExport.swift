import ArgumentParser
import Foundation
import FoundationModelsTraining

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
}
