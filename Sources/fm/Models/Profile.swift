import ArgumentParser
import Foundation
import ModelTools

extension Model {
    struct Profile: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "profile",
            abstract: "Show where the time of a model goes, and how it is built.",
            discussion: """
                For each layer and operation: time, weights that are read, and arithmetic, for a prompt of \(ModelProfile.promptTokens) \
                tokens and for generated ones. The HTML page shows it as a picture, with the structure of the model, its tensors, \
                shapes and types. Close other programs first.
                """)

        @Argument(help: "The model (default: the one in use).") var name: String?
        @Flag(help: "Show every layer.") var layers = false
        @Flag(help: "Write one JSON object.") var json = false
        @Option(help: ArgumentHelp("Write an HTML page.", valueName: "file")) var html: String?

        func run() async throws {
            let path = try Model.file(named: name)
            if let html { try OutputFile.check(html, inputs: [path]) }
            let profile = try await LongWork.run { check in
                try ModelProfile(path: path, isCancelled: { LongWork.isCancelled(check) })
            }
            let page = ProfilePage(profile)
            if let html { try OutputFile.write(Data(page.html.utf8), to: html) }
            if json {
                try Output().writeJSON(profile)
            } else {
                print(page.text(allLayers: layers))
            }
        }
    }
}
