import ArgumentParser
import Foundation
import Inference
import InstalledModels
import Reports

struct Adapter: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "adapter",
        abstract: "Train, inspect, convert and use adapters: small files that teach a model one task.",
        discussion: """
            An adapter changes how a model answers, without changing the model's file: a format, a classification, a tone. It is \
            trained here, on the CPU, from examples.

              fm adapter train rows.jsonl --preview   what is learned
              fm adapter train rows.jsonl --out my.fmadapter
              fm --adapter my.fmadapter "…"           use it once
              fm adapter use my                       use it from now on
              fm adapter info my                      how it was trained
              fm adapter export my --gguf my.gguf     for llama.cpp
              fm adapter export my --peft FOLDER      for PEFT
              fm adapter import FOLDER --out my.fmadapter   from PEFT or GGUF
              fm adapter merge my --out model.gguf    a model without adapter
              fm adapter distill prompts.txt --out rows.jsonl
                                                      answers of a larger model
            """,
        subcommands: [
            Train.self, Info.self, List.self, Use.self, Export.self, Import.self, Merge.self, Distill.self,
        ])

    /// The path of an adapter: a file, or the name of one in the directory of adapters.
    static func file(named name: String) throws -> String {
        if let path = ModelStore.adapterPath(of: name) { return path }
        throw ValidationError(
            "There is no adapter “\(name)”. “fm adapter list” shows those in \(ModelStore.adapterDirectory.path).")
    }

    static func fail(_ error: any Error) -> ExitCode {
        Message.say("fm: \((error as? any LocalizedError)?.errorDescription ?? "\(error)")")
        return ExitCode(1)
    }

    struct Info: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "info", abstract: "Show what an adapter changes and how it was trained.")

        @Argument(help: "A file, or the name of an adapter.") var adapter: String
        @Flag(help: "Write one JSON object.") var json = false

        func run() throws {
            let path = try Adapter.file(named: adapter)
            let file: AdapterFile
            do { file = try AdapterFile(path: path) } catch { throw Adapter.fail(error) }
            var texts = file.texts
            let sizes = file.targets.compactMap { file.sizes(of: $0) }
            let parameters = sizes.reduce(0) { $0 + $1.rank * ($1.rows + $1.columns) }
            let ranks = Set(sizes.map(\.rank)).sorted().map(String.init).joined(separator: ", ")
            if json {
                texts["path"] = path
                texts["matrices"] = "\(file.targets.count)"
                texts["parameters"] = "\(parameters)"
                texts["rank"] = ranks
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
                print(String(decoding: try encoder.encode(texts), as: UTF8.self))
                return
            }
            func line(_ title: String, _ value: String?) {
                guard let value, !value.isEmpty else { return }
                print(TerminalText.line(title.padding(toLength: 16, withPad: " ", startingAt: 0) + value))
            }
            line("name", file.name)
            line("file", path)
            line("model", file.baseName.map { name in name + (file.baseFingerprint.map { " (\($0))" } ?? "") })
            line("architecture", file.architecture)
            line("changes", "\(file.targets.count) matrices with rank \(ranks), \(parameters) parameters")
            line("alpha", String(format: "%g", file.alpha))
            for key in ["author", "license", "description", "created", "data_hash", "options", "training"] {
                line(key, texts[key])
            }
            for key in texts.keys.sorted() where key.hasPrefix("creator.") { line(String(key.dropFirst(8)), texts[key]) }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the adapters that can be used by name; * marks the one in use.")

        func run() throws {
            let names = ModelStore.installedAdapters
            if names.isEmpty { return print("There are no adapters in \(ModelStore.adapterDirectory.path).") }
            for url in names {
                let name = url.deletingPathExtension().lastPathComponent
                let isChosen = ModelStore.chosenAdapter == name
                let model: String
                do { model = try AdapterFile(path: url.path).baseName ?? "any model of its shape" } catch { model = "damaged" }
                print(
                    TerminalText.line(
                        (isChosen ? "* " : "  ") + name.padding(toLength: max(24, name.count + 1), withPad: " ", startingAt: 0)
                            + model))
            }
        }
    }

    struct Use: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "use", abstract: "Use an adapter in all commands that answer; “none” for the model alone.",
            discussion:
                "Commands with another model than the adapter's do not use it, nor do programs, which name adapters themselves.")

        @Argument(help: "The name of an adapter, or none.") var adapter: String

        func run() throws {
            if adapter == "none" {
                try ModelStore.chooseAdapter(nil)
                return print("The model is used without an adapter.")
            }
            let path = try Adapter.file(named: adapter)
            do { try AdapterFile(path: path).check(GGUFFile(path: ModelStore.defaultModelPath)) } catch {
                throw Adapter.fail(error)
            }
            let url = URL(filePath: path)
            if url.deletingLastPathComponent().standardizedFileURL != ModelStore.adapterDirectory.standardizedFileURL {
                throw ValidationError("Copy \(path) to \(ModelStore.adapterDirectory.path) first: then it has a name.")
            }
            try ModelStore.chooseAdapter(url.deletingPathExtension().lastPathComponent)
            print("Adapter in use: \(url.deletingPathExtension().lastPathComponent)")
        }
    }
}
