import ArgumentParser
import Foundation
import Inference
import Reports

extension Model {
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
            let rows = files.map { ["\($0.bytes / 1_000_000) MB", $0.file.deletingPathExtension().lastPathComponent] }
            print(TerminalText.safe(TextTable([.right(), .left()], rows: rows).text()), terminator: "")
        }
    }
}
