import ArgumentParser
import Foundation
import FoundationModelsInstallation
import InstalledModels

extension Adapter {
    struct Use: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "use", abstract: "Use an adapter in all commands that answer; “none” for no other than the model's own.",
            discussion:
                "Commands with another model than the adapter's do not use it, nor do programs, which name adapters themselves.")

        @Argument(help: "The name of an adapter, or none.") var adapter: String

        func run() throws {
            let installation = ModelInstallation.default
            if adapter == "none" {
                try installation.choose(adapter: nil)
                return print("The model is used without an adapter of yours.")
            }
            let url = URL(filePath: try Adapter.file(named: adapter)).standardizedFileURL
            guard let installed = installation.adapters.first(where: { $0.url.standardizedFileURL == url }) else {
                throw ValidationError("Copy \(url.path) to \(ModelStore.folder.adapters.path) first: then it has a name.")
            }
            try installation.choose(adapter: installed)
            print("Adapter in use: \(installed.name)")
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "rm", abstract: "Remove an adapter.")

        @Argument(help: "The adapter's name, as “fm adapter list” shows it.") var adapter: String

        func run() throws {
            let installation = ModelInstallation.default
            guard let installed = installation.adapters.first(where: { $0.name == adapter }) else {
                throw ValidationError("There is no adapter “\(adapter)”. “fm adapter list” shows those that are installed.")
            }
            try installation.remove(installed)
            print("Removed \(installed.url.path)")
        }
    }
}
