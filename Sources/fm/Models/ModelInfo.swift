import ArgumentParser
import Inference

extension Model {
    struct Info: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "info",
            abstract: "Show a model's architecture, size, memory, quantisation, context, tokenizer and template.")

        @Argument(
            help: ArgumentHelp("A GGUF file or an installed model's name (default: the model in use).", valueName: "file"))
        var name: String?

        func run() throws {
            print(try ModelDescription(file: GGUFFile(path: try Model.file(named: name))).text, terminator: "")
        }
    }
}
