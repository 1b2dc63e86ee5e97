import ArgumentParser
import Embeddings
import Foundation
import Retrieval

struct Index: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "index",
        abstract: "Build or update a search index of documents.",
        discussion: """
            Text, Markdown, HTML, source code and PDF (with pdftotext installed) are cut into passages and stored in one file, \
            with their words and vectors. Running the command again reads only what has changed. It can be interrupted at any \
            time; the next run continues. Files that cannot be read or are too large and documents without text, such as scans, are \
            named on standard error; if a file could not be read, or there is no text at all, the exit code is 1.

              fm index docs --out docs.index
              fm search --in docs.index "renewing a passport"
              fm ask --in docs.index "How do I renew a passport?"
            """)

    @Argument(help: ArgumentHelp("A folder with documents, or a single document.", valueName: "dir")) var folders: [String]
    @Option(help: ArgumentHelp("The index; created if it does not exist.", valueName: "index")) var out: String
    @Option(help: "In a new index, the maximum number of tokens of a passage.") var passageTokens: Int?
    @Option(
        name: [.short, .long], help: ArgumentHelp("An embedding model to use this time, by name or file.", valueName: "name"))
    var model: String?
    @Flag(help: "Print the changes as JSON.") var json = false
    @Flag(name: .shortAndLong, help: "Print nothing unless there is a problem.") var quiet = false

    func validate() throws {
        if let passageTokens, passageTokens < 16 { throw ValidationError("--passage-tokens must be at least 16.") }
    }

    func run() async throws {
        let start = ContinuousClock.now
        for folder in folders where !FileManager.default.fileExists(atPath: folder) {
            throw RetrievalError.unreadable(file: folder, reason: "it does not exist")
        }
        var configuration = SearchIndex.Configuration()
        if let passageTokens { configuration.passageTokens = passageTokens }
        let index = try await SearchIndex(
            url: URL(filePath: out), model: Embedder.installedModel(model), configuration: configuration)
        var total = SearchIndex.Changes()
        for folder in folders {
            var line: ProgressLine?
            let changes = try await index.update(folder: URL(filePath: folder)) { progress in
                if quiet { return }
                if line == nil { line = ProgressLine("Indexing", total: progress.totalBytes) }
                line?.show(
                    progress.bytes,
                    text: "\(progress.documents) of \(progress.totalDocuments) documents, \(progress.passages) passages")
            }
            line?.end()
            total.added += changes.added
            total.changed += changes.changed
            total.unchanged += changes.unchanged
            total.removed += changes.removed
            total.passages += changes.passages
            total.problems += changes.problems
            total.withoutText += changes.withoutText
            total.tooLarge += changes.tooLarge
        }
        let counts = try await index.counts()
        try await index.close()
        for problem in total.problems + total.tooLarge { Message.say("fm: \(problem)") }
        Self.name(total.withoutText)
        if json {
            try Output().writeJSON(total)
        } else if !quiet {
            let seconds = Double((ContinuousClock.now - start).components.seconds)
            print(
                "\(total.added) added, \(total.changed) changed, \(total.removed) removed, \(total.unchanged) unchanged"
                    + String(format: " in %d:%02d.", Int(seconds) / 60, Int(seconds) % 60)
                    + " \(out) has \(counts.documents) documents in \(counts.passages) passages.")
        }
        if counts.passages == 0, total.removed == 0 {
            throw CommandFailure("The index is empty: there is no document with text in \(folders.joined(separator: ", ")).")
        }
        if !total.problems.isEmpty {
            throw CommandFailure("\(total.problems.count) not read; the other documents are in the index.")
        }
    }

    /// Folders of source code have many empty files: only the first documents are named.
    private static func name(_ documentsWithoutText: [String]) {
        for document in documentsWithoutText.prefix(20) { Message.say("fm: \(document)") }
        let others = documentsWithoutText.count - 20
        if others > 0 { Message.say("fm: \(others) other documents have no text; --json names all.") }
    }
}
