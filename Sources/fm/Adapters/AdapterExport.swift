import ArgumentParser
import Foundation
import FoundationModelsTraining

extension Adapter {
    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export", abstract: "Write an adapter as GGUF, for llama.cpp, as a PEFT folder, or smaller.")

        @Argument(help: "A file, or the name of an adapter.") var adapter: String
        @Option(help: ArgumentHelp("Write a GGUF adapter.", valueName: "file")) var gguf: String?
        @Option(help: ArgumentHelp("Write a PEFT folder.", valueName: "folder")) var peft: String?
        @Option(help: ArgumentHelp("Write an adapter with numbers of 8 bits, half the size.", valueName: "file"))
        var small: String?

        func validate() throws {
            if [gguf, peft, small].count(where: { $0 != nil }) != 1 {
                throw ValidationError("Choose one of --gguf, --peft and --small.")
            }
        }

        func run() throws {
            let data = try AdapterData(contentsOf: URL(filePath: Adapter.file(named: adapter)))
            if let gguf { try data.writeGGUF(to: URL(filePath: gguf)) }
            if let peft { try data.writePEFT(to: URL(filePath: peft)) }
            if let small { try data.write(to: URL(filePath: small), isSmall: true) }
            print(gguf ?? peft ?? small ?? "")
        }
    }
}
