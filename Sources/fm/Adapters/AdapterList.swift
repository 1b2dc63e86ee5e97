import ArgumentParser
import Foundation
import FoundationModelsInstallation
import InstalledModels

extension Adapter {
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the adapters that can be used by name; * marks the one in use.")

        func run() throws {
            let installation = ModelInstallation.default
            let (adapters, chosen) = (installation.adapters, installation.chosenAdapter)
            if adapters.isEmpty { return print("There are no adapters in \(ModelStore.folder.adapters.path).") }
            for adapter in adapters {
                let model = adapter.problem == nil ? adapter.modelName ?? "any model of its shape" : "damaged"
                let name = adapter.name.padding(toLength: max(24, adapter.name.count + 1), withPad: " ", startingAt: 0)
                print(TerminalText.line((adapter == chosen ? "* " : "  ") + name + model))
            }
        }
    }
}
