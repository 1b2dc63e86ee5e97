import ArgumentParser
import Foundation
import FoundationModelsInstallation
import InstalledModels

struct Model: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "model",
        abstract: "List, download, choose, inspect and remove models.",
        discussion: """
            fm model pull                             the default model (Qwen2.5 Coder 1.5B, 1.1 GB)
            fm model pull small                       a much smaller model (135 million weights, 98 MB)
            fm model pull qwen3-4b                    a model of the catalogue: fm model list --all
            fm model pull Qwen/Qwen3-0.6B-GGUF:Q8_0   any GGUF file of the Hugging Face hub
            fm model recommend                        the best model for this machine
            fm model check qwen3-4b                   ask it twenty questions with known answers
            fm model use small                        make it the model in use
            fm model pull embedder                    the model for embeddings and search (all-MiniLM-L6-v2, 84 MB)
            fm model import FOLDER                    a model from a Hugging Face folder, or from OWNER/REPO
            fm model quantize model-f16.gguf Q4_K_M   a model with fewer bits
            fm model compare model-f16.gguf model-Q4_K_M.gguf   what was lost
            """,
        subcommands: [
            List.self, Pull.self, Import.self, Use.self, Path.self, Info.self, Check.self, Recommend.self, Quantize.self,
            Imatrix.self, Compare.self, Profile.self, Remove.self, Cache.self,
        ],
        defaultSubcommand: List.self)

    /// The file of a model, by its name or its path.
    ///
    /// - Parameter name: Nil for the model in use.
    static func file(named name: String?) throws -> String {
        guard let name else { return ModelStore.defaultModelPath }
        let path = ModelStore.path(of: name)
        if FileManager.default.fileExists(atPath: path) { return path }
        throw ValidationError(ModelChoice.missing(name))
    }
}

extension InstallationError {
    /// The error with what to do about it in the words of this command.
    var message: String {
        let advice: String? =
            switch self {
            case .nameTaken(let name, _, _): "Remove it with “fm model rm \(name)”, or rename it, and try again."
            case .notDownloaded: "Try again: the download continues where it stopped. Or set FM_MODEL to an existing GGUF file."
            case .unknownModel: "“fm model list --all” shows the catalogue; OWNER/REPO downloads from the Hugging Face hub."
            default: recoverySuggestion
            }
        return [errorDescription, advice].compactMap(\.self).joined(separator: self.isList ? "\n" : " ")
    }

    private var isList: Bool { if case .notDownloaded = self { true } else { false } }
}
