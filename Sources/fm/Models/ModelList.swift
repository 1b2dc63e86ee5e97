import ArgumentParser
import Foundation
import FoundationModelsInstallation
import Inference
import InstalledModels
import Reports

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
            var table = TextTable([.left("  name"), .right("size"), .right("memory"), .left("file")])
            for model in models where model.kind == .language {
                table.add(row(model.url.path == current, model.name, model.bytes, model.memory, model.url.lastPathComponent))
            }
            for model in models where model.kind == .embedding {
                let text = model.url.lastPathComponent + ", for embeddings and search"
                table.add(row(model.url.path == embedder, model.name, model.bytes, model.memory, text))
            }
            print(TerminalText.safe(table.text()), terminator: "")
            if !models.contains(where: { $0.url.path == current }) {
                let isThere = FileManager.default.fileExists(atPath: current)
                print("* \(TerminalText.safe(current))" + (isThere ? "" : " (not installed: fm model pull)"))
            }
            guard all else {
                print("\n“fm model list --all” shows the other models that can be downloaded by name.")
                return
            }
            print("\nAvailable with fm model pull NAME:")
            var others = TextTable([.left("  name"), .right("size"), .right("memory"), .left()])
            let installed = Set(models.compactMap(\.catalogueEntry?.name))
            for model in installation.catalogue where !installed.contains(model.name) {
                let note =
                    switch model.kind {
                    case .embedding: ", for embeddings and search"
                    case .language: model.memory < SystemMemory.total ? "" : "  (too large for this machine)"
                    }
                others.add(row(false, model.name, model.bytes, model.memory, "\(model.title), \(model.license)\(note)"))
            }
            print(others.text(), terminator: "")
        }

        private func row(_ isCurrent: Bool, _ name: String, _ bytes: Int, _ memory: Int, _ text: String) -> [String] {
            [(isCurrent ? "* " : "  ") + name, "\(bytes / 1_000_000) MB", "\(memory / 1_000_000) MB", text]
        }
    }
}
