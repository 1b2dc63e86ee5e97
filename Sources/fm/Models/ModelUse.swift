import ArgumentParser
import Foundation
import InstalledModels

extension Model {
    struct Use: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "use", abstract: "Choose the model that is used by default.")

        @Argument(
            help: "The name of an installed model; “default” or “best” for the default model, or the largest one without it.")
        var name: String

        func run() throws {
            if name == ModelStore.defaultName || name == "best" {
                try ModelStore.folder.choose(nil)
                print("In use: \(ModelStore.defaultModelPath)")
                return
            }
            let path = try Model.file(named: name)
            // A file need not be in the folder.
            try ModelStore.folder.choose(name.contains("/") ? URL(fileURLWithPath: name).path : name)
            print("In use: \(path)")
        }
    }

    struct Path: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "path", abstract: "Print the path of a model file.")

        @Argument(help: "A model's name (default: the model in use).")
        var name: String?

        func run() throws { print(try Model.file(named: name)) }
    }
}
