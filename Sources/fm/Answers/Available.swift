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
        print("The model is available: \(model.systemModel().variant.displayName)")
    }
}
