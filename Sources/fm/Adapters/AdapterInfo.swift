import ArgumentParser
import Foundation
import Inference
import Reports

extension Adapter {
    struct Info: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "info", abstract: "Show what an adapter changes and how it was trained.")

        @Argument(help: "A file, or the name of an adapter.") var adapter: String
        @Flag(help: "Write one JSON object.") var json = false

        func run() throws {
            let path = try Adapter.file(named: adapter)
            let file = try AdapterFile(path: path)
            var texts = file.texts
            let sizes = file.targets.compactMap { file.sizes(of: $0) }
            let parameters = sizes.reduce(0) { $0 + $1.rank * ($1.rows + $1.columns) }
            let ranks = Set(sizes.map(\.rank)).sorted().map(String.init).joined(separator: ", ")
            if json {
                texts["path"] = path
                texts["matrices"] = "\(file.targets.count)"
                texts["parameters"] = "\(parameters)"
                texts["rank"] = ranks
                return try Output().writeJSON(texts, isPretty: true)
            }
            var facts: [(name: String, value: String)] = []
            func line(_ title: String, _ value: String?) {
                if let value, !value.isEmpty { facts.append((title, value)) }
            }
            line("name", file.name)
            line("file", path)
            line("model", file.baseName.map { name in name + (file.baseFingerprint.map { " (\($0))" } ?? "") })
            line("used with", texts["base_adapter"].map { _ in "the adapter that was installed with the model" })
            line("architecture", file.architecture)
            line("changes", "\(file.targets.count) matrices with rank \(ranks), \(parameters) parameters")
            line("alpha", String(format: "%g", file.alpha))
            for key in ["author", "license", "description", "created", "data_hash", "options", "training"] {
                line(key, texts[key])
            }
            for key in texts.keys.sorted() where key.hasPrefix("creator.") { line(String(key.dropFirst(8)), texts[key]) }
            print(TerminalText.safe(TextTable(facts: facts).text()), terminator: "")
        }
    }
}
