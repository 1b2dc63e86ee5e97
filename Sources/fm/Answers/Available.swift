import ArgumentParser
import FoundationModels

struct Available: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "available",
        abstract: "Say whether there is a model that can be used.",
        discussion: "The exit code is 0 if there is one, and 3 if not.")

    @OptionGroup var modelFlags: ModelFlags

    func run() throws {
        let model = try modelFlags.choice()
        try model.check()
        let name = model.systemModel().variant.displayName
        print("The model is available: \(name)" + (try model.usesAssistant() ? ", with its adapter “assistant”" : ""))
    }
}
