import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import Inference
import InstalledModels

struct Available: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "available",
        abstract: "Say whether there is a model that can be used.",
        discussion: "The exit code is 0 if there is one, and 3 if not.")

    @Option(name: [.short, .long], help: ArgumentHelp("An installed model or a GGUF file.", valueName: "name"))
    var model: String?

    func run() throws {
        if let model { ModelStore.selectedModel = try ModelChoice.path(of: model) }
        try ModelChoice.check()
        print("The model is available: \(SystemLanguageModel.default.variant.displayName)")
    }
}
