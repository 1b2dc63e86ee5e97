import ArgumentParser
import Foundation
import FoundationModelsInstallation
import InstalledModels
import Reports

extension Adapter {
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the adapters that can be used by name; * marks the one in use.")

        func run() throws {
            let installation = ModelInstallation.default
            let (adapters, chosen) = (installation.adapters, installation.chosenAdapter)
            if adapters.isEmpty { return print("There are no adapters in \(ModelStore.folder.adapters.path).") }
            let rows = adapters.map { adapter in
                let model = adapter.problem == nil ? adapter.modelName ?? "any model of its shape" : "damaged"
                return [(adapter == chosen ? "* " : "  ") + adapter.name, model]
            }
            print(TerminalText.safe(TextTable([.left(), .left()], rows: rows).text()), terminator: "")
        }
    }
}
