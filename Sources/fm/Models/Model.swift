import ArgumentParser
import Foundation
import Inference
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

    static func file(named name: String?) throws -> String {
        guard let name else { return ModelStore.defaultModelPath }
        let path = ModelStore.path(of: name)
        if FileManager.default.fileExists(atPath: path) { return path }
        throw ValidationError(ModelChoice.missing(name))
    }

    /// Memory in bytes that a model of this size needs, including its KV cache.
    static func memory(forBytes bytes: Int) -> Int { bytes + bytes / 10 + 300_000_000 }

    /// With what a command ends after an error: wrong arguments are said as everywhere; of others, the message is said here.
    static func fail(_ error: any Error) -> any Error {
        switch error {
        case is ValidationError, is ExitCode: return error
        case let error as ModelError:
            Message.say("fm: \(error)")
            return ExitCode(3)
        default: return ExitMessage.exit(for: error)
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the installed models; * marks the one in use.",
            discussion: "With --all, also the catalogue of models to download, and whether they fit this machine.")

        @Flag(name: .shortAndLong, help: "Also show the catalogue.") var all = false

        func run() throws {
            let current = ModelStore.defaultModelPath
            let installed = ModelStore.installed
            print("  name                    size      memory    file")
            for model in installed {
                print(row(model.file.path == current, model.name, model.bytes, model.file.lastPathComponent))
            }
            if !installed.contains(where: { $0.file.path == current }) {
                let isThere = FileManager.default.fileExists(atPath: current)
                print("* \(current)" + (isThere ? "" : " (not installed: fm model pull)"))
            }
            for file in ModelStore.embedders {
                let isCurrent = file.path == ModelStore.embedderPath
                // A file that was removed meanwhile has no size.
                let bytes = (try? file.resourceValues(forKeys: [.fileSizeKey]))?.fileSize ?? 0
                let name = file.deletingPathExtension().lastPathComponent
                print(row(isCurrent, name, bytes, file.lastPathComponent + ", for embeddings and search"))
            }
            guard all else {
                print("\n“fm model list --all” shows the other models that can be downloaded by name.")
                return
            }
            print("\nAvailable with fm model pull NAME:")
            for model in ModelCatalogue.models where !installed.contains(where: { $0.name == model.name }) {
                let needs = Model.memory(forBytes: model.size)
                let fits = needs < SystemMemory.total ? "" : "  (too large for this machine)"
                print(row(false, model.name, model.size, "\(model.title), \(model.license)\(fits)"))
            }
            for model in EmbedderCatalogue.models
            where !FileManager.default.fileExists(atPath: ModelStore.embedderPath(of: model.name)) {
                print(row(false, model.name, model.size, "\(model.title), \(model.license), for embeddings and search"))
            }
        }

        private func row(_ isCurrent: Bool, _ name: String, _ bytes: Int, _ text: String) -> String {
            (isCurrent ? "* " : "  ") + name.padding(toLength: max(22, name.count), withPad: " ", startingAt: 0)
                + String(format: "%7d MB %8d MB    ", bytes / 1_000_000, Model.memory(forBytes: bytes) / 1_000_000) + text
        }
    }

    struct Pull: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "pull",
            abstract: "Download a model, verify it and install it.",
            discussion: """
                NAME is a model of the catalogue, OWNER/REPO or OWNER/REPO:QUANTISATION of the Hugging Face hub, or the web \
                address of a GGUF file. Without a name, or with the name default, the model that FM_MODEL names is downloaded, \
                else the default model, or the small one if the machine has little memory or disk space is low. An interrupted \
                download is continued. Does nothing if the model is installed and intact.
                """)

        @Argument(help: ArgumentHelp("The model to download.", valueName: "name")) var model: String?

        @Flag(name: .shortAndLong, help: "Print nothing if the model is already installed.") var quiet = false

        /// The model that is named; nil for the default one.
        private var name: String? { model == ModelStore.defaultName ? nil : model }

        func run() async throws {
            do {
                let lock = try InstallLock()
                defer { withExtendedLifetime(lock) {} }
                if let name, let embedder = EmbedderCatalogue.entry(named: name) {
                    try EmbedderInstaller(embedder).install(isQuiet: quiet)
                    return
                }
                let installer = ModelInstaller(directory: ModelStore.directory)
                let (title, files) = try request()
                guard let first = files.first else { return }
                if try files.allSatisfy({ try installer.isInstalled($0) }) {
                    if !quiet { print("\(title) is installed and intact: \(installer.destination(of: first).path)") }
                    return
                }
                try installer.install(files, title: title)
                if name == nil { Self.installEmbedder() }
                print("Installed \(title): \(installer.destination(of: first).path)")
                await Self.check(installer.destination(of: first).path)
                if name != nil, ModelStore.defaultModelPath != installer.destination(of: first).path {
                    let short = ModelStore.installed.first { $0.file == installer.destination(of: first) }?.name ?? first.fileName
                    print("“fm model use \(short)” makes it the model in use; “fm --model \(short) …” uses it once.")
                }
            } catch {
                throw Model.fail(error)
            }
        }

        /// Asks a new model some questions, so that a file that does not work here is seen at once.
        static func check(_ path: String) async {
            // An encoder answers nothing, and errors are shown when the model is used.
            guard let answers = try? await ModelQuestions.ask(path, Array(ModelQuestions.all.prefix(5))) else { return }
            if !answers.contains(where: \.isRight) {
                Message.say("It answered none of five easy questions. “fm model check” asks more, and shows the answers.")
            }
        }

        /// The default model comes with the embedder, for searches and recall by meaning.
        private static func installEmbedder() {
            do { try EmbedderInstaller(EmbedderCatalogue.standard).install(isQuiet: true) } catch {
                // Everything else works without it.
                Message.say("fm: \(error)")
            }
        }

        private func request() throws -> (title: String, files: [RemoteFile]) {
            let setting = ProcessInfo.processInfo.environment["FM_MODEL"] ?? ""
            guard let name = name ?? (ModelCatalogue.entry(named: setting) == nil ? nil : setting) else {
                let model = Self.standardForThisMachine()
                return ("\(model.title), \(model.license)", [RemoteFile(model)])
            }
            if let known = ModelCatalogue.entry(named: name) {
                return ("\(known.title), \(known.license)", [RemoteFile(known)])
            }
            if name.hasPrefix("https://") || name.hasPrefix("http://") {
                if let files = try Hub.files(at: name) { return (files.first?.fileName ?? name, files) }
                let path = URL(string: name)?.lastPathComponent ?? ""
                guard path.hasSuffix(".gguf") else { throw ValidationError("\(name) is not the address of a GGUF file.") }
                return (path, [RemoteFile(fileName: path, size: nil, sha256: nil, sources: [.web(name, token: nil)])])
            }
            let parts = name.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts[0].wholeMatch(of: /[\w.-]+\/[\w.-]+/) != nil else {
                throw ValidationError(
                    "There is no model “\(name)” in the catalogue. “fm model list --all” shows the catalogue; OWNER/REPO downloads from the Hugging Face hub."
                )
            }
            return (name, try Hub.files(in: parts[0], quantisation: parts.count > 1 ? parts[1] : nil))
        }

        /// The default model, or the small one if the machine has little memory or disk space is low.
        private static func standardForThisMachine() -> PublishedModel {
            let standard = ModelCatalogue.standard
            if SystemMemory.total < 3_000_000_000 {
                Message.say(
                    "This machine has only \(SystemMemory.total / 1_000_000) MB of memory: the small model is used. “fm model pull \(standard.name)” downloads the better one."
                )
                return ModelCatalogue.small
            }
            // The packed weights, which are created at the first use, are as large as the model.
            if let free = ModelInstaller.freeSpace(ModelStore.directory), free < standard.size * 2 + 500_000_000 {
                Message.say(
                    "Only \(free / 1_000_000) MB of disk space are free: the small model is used. “fm model pull \(standard.name)” downloads the better one."
                )
                return ModelCatalogue.small
            }
            return standard
        }
    }

    struct Use: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "use", abstract: "Choose the model that is used by default.")

        @Argument(
            help: "The name of an installed model; “default” or “best” for the default model, or the largest one without it.")
        var name: String

        func run() throws {
            if name == ModelStore.defaultName || name == "best" {
                try ModelStore.choose(nil)
                print("In use: \(ModelStore.defaultModelPath)")
                return
            }
            let path = ModelStore.path(of: name)
            guard FileManager.default.fileExists(atPath: path) else { throw ValidationError(ModelChoice.missing(name)) }
            try ModelStore.choose(name.contains("/") ? URL(fileURLWithPath: name).path : name)
            print("In use: \(path)")
        }
    }

    struct Path: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "path", abstract: "Print the path of a model file.")

        @Argument(help: "A model's name (default: the model in use).")
        var name: String?

        func run() throws { print(try Model.file(named: name)) }
    }

    struct Info: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "info",
            abstract: "Show a model's architecture, size, memory, quantisation, context, tokenizer and template.")

        @Argument(
            help: ArgumentHelp("A GGUF file or an installed model's name (default: the model in use).", valueName: "file"))
        var name: String?

        func run() throws {
            do {
                print(try ModelDescription(file: GGUFFile(path: try Model.file(named: name))).text, terminator: "")
            } catch let error as ModelError {
                throw Model.fail(error)
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "rm", abstract: "Remove an installed model.")

        @Argument(help: "The model's name, as “fm model list” shows it.")
        var name: String

        func run() throws {
            let path = name == ModelStore.defaultName ? ModelStore.defaultModelPath : nil
            let model = ModelStore.installed.first {
                $0.name == name || $0.file.lastPathComponent == name || $0.file.path == path
            }
            let files = model?.files ?? [embedder].compactMap(\.self)
            if files.isEmpty {
                throw ValidationError("There is no installed model “\(name)”. “fm model list” shows those that are.")
            }
            for file in files where FileManager.default.fileExists(atPath: file.path) {
                try FileManager.default.removeItem(at: file)
                InstalledSource.remove(for: file.lastPathComponent)
                print("Removed \(file.path)")
            }
        }

        /// The file of a model for embeddings: a name of the catalogue, or that of the file with or without its ending.
        private var embedder: URL? {
            let known = EmbedderCatalogue.entry(named: name)?.fileName
            return ModelStore.embedders.first {
                [known, name, name + ".gguf"].contains($0.lastPathComponent)
            }
        }
    }

    struct Cache: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cache",
            abstract: "Show or clear the packed weights.",
            discussion: """
                The first use of a model packs its weights for this engine and keeps them, so that later starts copy nothing. \
                They are created again if they are missing.
                """)

        @Flag(help: "Remove the packed weights.") var clear = false

        func run() {
            let cache = PackedCache.standard
            if clear { cache.clear() }
            let files = cache.files
            print(files.isEmpty ? "There are no packed weights." : "Packed weights in \(cache.directory.path):")
            for entry in files {
                print(String(format: "%7d MB  ", entry.bytes / 1_000_000) + entry.file.deletingPathExtension().lastPathComponent)
            }
        }
    }
}
