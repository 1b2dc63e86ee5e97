import ArgumentParser
import Foundation
import Inference

struct Model: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "model",
        abstract: "List, fetch, inspect and remove models.",
        subcommands: [List.self, Pull.self, Path.self, Info.self, Remove.self],
        defaultSubcommand: List.self)

    /// The installed models: name and file.
    static func installed() -> [(name: String, file: URL)] {
        // No directory yet: nothing is installed.
        let files =
            (try? FileManager.default.contentsOfDirectory(at: ModelStore.directory, includingPropertiesForKeys: nil)) ?? []
        return files.filter { $0.pathExtension == "gguf" }.sorted { $0.path < $1.path }
            .map { ($0.deletingPathExtension().lastPathComponent, $0) }
    }

    static func file(named name: String?) throws -> String {
        guard let name else { return ModelStore.systemModelPath }
        if let model = installed().first(where: { $0.name == name || $0.file.lastPathComponent == name }) {
            return model.file.path
        }
        if name == ModelStore.defaultModel.name {
            return ModelStore.directory.appendingPathComponent(ModelStore.defaultModel.fileName).path
        }
        if FileManager.default.fileExists(atPath: name) { return name }
        throw ValidationError("There is no model “\(name)”. “fm model list” shows those that are installed.")
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "The installed models; * marks the one in use.")

        func run() throws {
            let current = ModelStore.systemModelPath
            var rows = Model.installed().map { ($0.name, $0.file.path) }
            if !rows.contains(where: { $0.1 == current }) {
                let missing = FileManager.default.fileExists(atPath: current) ? "" : " (not installed: fm model pull)"
                rows.append((URL(fileURLWithPath: current).deletingPathExtension().lastPathComponent + missing, current))
            }
            for (name, path) in rows {
                let size = (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? nil  // absent: no size
                let megabytes = size.map { String(format: "%6d MB", $0 / 1_000_000) } ?? "        -"
                print("\(path == current ? "*" : " ") \(megabytes)  \(name)")
            }
        }
    }

    struct Pull: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Fetch the default model, check it and install it.",
            discussion: "Does nothing if the model is installed and intact.")

        @Flag(name: .shortAndLong, help: "Say nothing if the model is there already.")
        var quiet = false

        func run() async throws {
            do {
                let installer = ModelInstaller(model: ModelStore.defaultModel, directory: ModelStore.directory)
                if try installer.isInstalled() {
                    if !quiet { print("\(ModelStore.defaultModel.name) is installed and intact: \(installer.destination.path)") }
                    return
                }
                try installer.install()
                print("Installed \(ModelStore.defaultModel.name): \(installer.destination.path)")
            } catch {
                FileHandle.standardError.write(Data("fm: \(error)\n".utf8))
                throw ExitCode(3)
            }
        }
    }

    struct Path: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "The file of a model.")

        @Argument(help: "A model's name; without it, the model in use.")
        var name: String?

        func run() throws { print(try Model.file(named: name)) }
    }

    struct Info: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "What a model file holds: architecture, size, quantisation, context, tokenizer, template.")

        @Argument(
            help: ArgumentHelp("A GGUF file or an installed model's name; without it, the model in use.", valueName: "file"))
        var name: String?

        func run() throws {
            do {
                print(try ModelDescription(file: GGUFFile(path: try Model.file(named: name))).text, terminator: "")
            } catch let error as ModelError {
                FileHandle.standardError.write(Data("fm: \(error)\n".utf8))
                throw ExitCode(3)
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "rm", abstract: "Remove an installed model.")

        @Argument(help: "The model's name, as “fm model list” shows it.")
        var name: String

        func run() throws {
            guard let model = Model.installed().first(where: { $0.name == name || $0.file.lastPathComponent == name }) else {
                throw ValidationError("There is no installed model “\(name)”.")
            }
            try FileManager.default.removeItem(at: model.file)
            print("Removed \(model.file.path)")
        }
    }
}
