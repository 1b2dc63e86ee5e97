import ArgumentParser
import Foundation
import FoundationModelsInstallation
import Inference
import InstalledModels
import ModelTools

extension Model {
    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "import",
            abstract: "Convert a Hugging Face folder or repository to a GGUF file and install it.",
            discussion: """
                SOURCE is a folder, or OWNER/REPO on the hub, which is downloaded first; what was interrupted continues with the next \
                call. The folder has config.json, tokenizer.json and safetensors files, as models are published on the hub. Language models of \
                these kinds can be imported: \(HuggingFaceFolder.decoders.joined(separator: ", ")). They keep their 16 bits, and the \
                4-bit blocks of gpt-oss; 8-bit weights with scales become 16 bits: “fm model quantize” makes models small. Models for \
                embeddings: \(HuggingFaceFolder.encoders.joined(separator: ", ")), and language models with a folder 1_Pooling \
                (EmbeddingGemma, Qwen3-Embedding).
                """)

        @Argument(help: "A folder, or OWNER/REPO on the Hugging Face hub.") var source: String
        @Flag(help: "Keep the files that were downloaded.") var keepDownload = false
        @Option(help: "The name of the model (default: the folder's).") var name: String?
        private static let types = HuggingFaceFolder.types.map { $0.name.lowercased() }.joined(separator: ", ")
        @Option(help: "The type of the matrices, one of \(types) (default: q8_0 for embeddings, else as in the folder).")
        var type: String?
        @Option(help: "The pre-tokenizer's name, if it is not recognised.") var pre: String?
        @Option(name: .shortAndLong, help: "The file to write (default: among the installed models).")
        var out: String?

        func run() async throws {
            let type = try type.map { name in
                guard let type = HuggingFaceFolder.types.first(where: { $0.name.lowercased() == name.lowercased() }) else {
                    throw ValidationError("“\(name)” is not a type that can be written: use one of \(Self.types).")
                }
                return type
            }
            let name = name ?? URL(filePath: source).standardizedFileURL.lastPathComponent
            var download: HubFolder?
            if HubFolder.isRepository(source), !FileManager.default.fileExists(atPath: source) {
                let folder = try await HubFolder(repository: source, in: .default)
                _ = try await InstallationDisplay.run { try await folder.download(progress: $0) }
                download = folder
            }
            let source = download?.url ?? URL(filePath: source)
            let model = try HuggingFaceFolder(source)
            let target =
                out.map { URL(filePath: $0) }
                ?? (model.isEncoder
                    ? ModelStore.folder.embedders.appendingPathComponent("\(name)-\((type ?? .q8_0).name.lowercased()).gguf")
                    : ModelStore.directory.appendingPathComponent("\(name).gguf"))
            try FileManager.default.createDirectory(
                at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            try OutputFile.check(target.path, inputs: model.paths)
            let line = ProgressLine("Importing", total: 1_000)
            let pre = pre
            let notes = try await LongWork.run(showing: line) { check in
                try model.write(to: target, name: name, type: type, pre: pre) {
                    try check()
                    line.show(Int($0 * 1_000), text: "\(Int($0 * 100)) %")
                }
            }
            print("Imported \(name): \(target.path)")
            if let download, !keepDownload {
                do { try download.remove() } catch {
                    Message.say("The files that were downloaded could not be removed from \(download.url.path): \(error)")
                }
            }
            if !notes.isEmpty { Message.say("Changed: \(notes.joined(separator: "; ")).") }
            guard !model.isEncoder else { return }
            let file = try GGUFFile(path: target.path)
            let types = Dictionary(grouping: file.tensors.values, by: \.type.name).map { "\($0.value.count) × \($0.key)" }
                .sorted()
            Message.say(
                "\(try file.metadata.string("general.architecture") ?? ""): \(file.tensors.count) tensors (\(types.joined(separator: ", "))), \(try file.metadata.string("tokenizer.ggml.pre") ?? "") tokenizer"
            )
            if try file.metadata.string("tokenizer.chat_template") == nil {
                Message.say(
                    "The folder has no chat template: the model can be quantised and measured, but not used in conversations."
                )
            } else {
                await Pull.check(target)
            }
        }
    }
}
