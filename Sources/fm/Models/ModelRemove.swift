import ArgumentParser
import Foundation
import FoundationModelsInstallation
import InstalledModels

extension Model {
    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "rm", abstract: "Remove an installed model.")

        @Argument(help: "The model's name, as “fm model list” shows it.")
        var name: String

        func run() throws {
            let installation = ModelInstallation.default
            guard let model = name == ModelStore.defaultName ? installation.current : installation.model(named: name) else {
                throw ValidationError("There is no installed model “\(name)”. “fm model list” shows those that are.")
            }
            try installation.remove(model)
            for file in model.files { print("Removed \(file.path)") }
        }
    }
}
