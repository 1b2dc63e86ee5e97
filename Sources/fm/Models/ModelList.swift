import ArgumentParser
import Foundation
import FoundationModelsInstallation
import Inference
import InstalledModels

extension Model {
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the installed models; * marks the one in use.",
            discussion: "With --all, also the catalogue of models to download, and whether they fit this machine.")

        @Flag(name: .shortAndLong, help: "Also show the catalogue.") var all = false

        func run() throws {
            let installation = ModelInstallation.default
            let models = installation.models
            let (current, embedder) = (ModelStore.defaultModelPath, ModelStore.embedderPath)
            print("  name                    size      memory    file")
            for model in models where model.kind == .language {
                print(row(model.url.path == current, model.name, model.bytes, model.memory, model.url.lastPathComponent))
            }
            if !models.contains(where: { $0.url.path == current }) {
                let isThere = FileManager.default.fileExists(atPath: current)
                print("* \(current)" + (isThere ? "" : " (not installed: fm model pull)"))
            }
            for model in models where model.kind == .embedding {
                let text = model.url.lastPathComponent + ", for embeddings and search"
                print(row(model.url.path == embedder, model.name, model.bytes, model.memory, text))
            }
            guard all else {
                print("\n“fm model list --all” shows the other models that can be downloaded by name.")
                return
            }
            print("\nAvailable with fm model pull NAME:")
            let installed = Set(models.compactMap(\.catalogueEntry?.name))
            for model in installation.catalogue where !installed.contains(model.name) {
                let note =
                    switch model.kind {
                    case .embedding: ", for embeddings and search"
                    case .language: model.memory < SystemMemory.total ? "" : "  (too large for this machine)"
                    }
                print(row(false, model.name, model.bytes, model.memory, "\(model.title), \(model.license)\(note)"))
            }
        }

        private func row(_ isCurrent: Bool, _ name: String, _ bytes: Int, _ memory: Int, _ text: String) -> String {
            (isCurrent ? "* " : "  ") + name.padding(toLength: max(22, name.count), withPad: " ", startingAt: 0)
                + String(format: "%7d MB %8d MB    ", bytes / 1_000_000, memory / 1_000_000) + text
        }
    }
}
