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
            named on standard error; if a file could not be read, the exit code is 1.

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
        do {
            let start = ContinuousClock.now
            for folder in folders where !FileManager.default.fileExists(atPath: folder) {
                throw RetrievalError.unreadable(file: folder, reason: "it does not exist")
            }
            var configuration = SearchIndex.Configuration()
            if let passageTokens { configuration.passageTokens = passageTokens }
            let index = try await SearchIndex(
                url: URL(filePath: out), model: try Embedder.installedModel(model), configuration: configuration)
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
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                try Output().write(String(decoding: try encoder.encode(total), as: UTF8.self) + "\n")
            } else if !quiet {
                let seconds = Double((ContinuousClock.now - start).components.seconds)
                print(
                    "\(total.added) added, \(total.changed) changed, \(total.removed) removed, \(total.unchanged) unchanged"
                        + String(format: " in %d:%02d.", Int(seconds) / 60, Int(seconds) % 60)
                        + " \(out) has \(counts.documents) documents in \(counts.passages) passages.")
            }
            if !total.problems.isEmpty {
                Message.say("fm: \(total.problems.count) not read; the other documents are in the index.")
                throw ExitCode(1)
            }
        } catch let code as ExitCode { throw code } catch {
            throw ExitMessage.exit(for: error)
        }
    }

    /// Folders of source code have many empty files: only the first documents are named.
    private static func name(_ documentsWithoutText: [String]) {
        for document in documentsWithoutText.prefix(20) { Message.say("fm: \(document)") }
        let others = documentsWithoutText.count - 20
        if others > 0 { Message.say("fm: \(others) other documents have no text; --json names all.") }
    }
}

struct Search: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "search",
        abstract: "Search an index by words and by meaning.",
        discussion: """
            The best passages come first, with a score from 0 to 1 and their place.

              fm search --in docs.index "renewing a passport"
              fm search --in docs.index "renewing a passport" --json --top 3 | jq -r .file
              fm search --in docs.index --path guides/ "opening hours"
            """)

    @OptionGroup var flags: SearchFlags
    @Argument(help: "What to search for.") var query: String
    @Option(help: "The maximum number of results.") var top = 5
    @Flag(help: "A line of JSON for each result.") var json = false

    func validate() throws { if top < 1 { throw ValidationError("--top must be at least 1.") } }

    private struct Line: Encodable {
        var rank: Int
        var score: Double
        var cosine: Double
        var file: String
        var folder: String
        var place: String
        var lines: [Int]
        var page: Int?
        var title: String?
        var headings: [String]
        var text: String
    }

    func run() async throws {
        do {
            let index = try await flags.index()
            var options = SearchOptions()
            options.limit = top
            let results = try await index.search(query, options: flags.options(options))
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let isColored = Terminal.hasColors(STDOUT_FILENO)
            for (number, result) in results.enumerated() {
                let passage = result.passage
                if json {
                    let line = Line(
                        rank: number + 1, score: result.score, cosine: result.cosine, file: passage.path, folder: passage.source,
                        place: passage.place,
                        lines: [passage.lines.lowerBound, passage.lines.upperBound], page: passage.page, title: passage.title,
                        headings: passage.headings, text: passage.text)
                    try Output().write(String(decoding: try encoder.encode(line), as: UTF8.self) + "\n")
                    continue
                }
                let headings = passage.headings.isEmpty ? "" : "  " + passage.headings.joined(separator: " › ")
                let head = String(format: "%d  %.2f  ", number + 1, result.score)
                let text = passage.text.split(separator: "\n").map { "    \($0)\n" }.joined()
                if isColored {
                    let (place, rest) = (TerminalText.safe(passage.place), TerminalText.safe(headings + "\n" + text + "\n"))
                    try Output().writeStyled(head + "\u{1B}[1m\(place)\u{1B}[0m" + rest)
                } else {
                    try Output().write(head + passage.place + headings + "\n" + text + "\n")
                }
            }
            if results.isEmpty, !json { Message.say("Nothing was found.") }
        } catch {
            throw ExitMessage.exit(for: error)
        }
    }
}

/// The options of searches in an index.
struct SearchFlags: ParsableArguments {
    @Option(name: .customLong("in"), help: ArgumentHelp("The index.", valueName: "index")) var path: String
    @Option(name: .customLong("path"), help: ArgumentHelp("Only documents whose paths begin so.", valueName: "prefix"))
    var prefix: String?
    @Option(help: "How to search: hybrid, words or meaning.") var mode = "hybrid"
    @Option(help: ArgumentHelp("An embedding model to use this time, by name or file.", valueName: "name"))
    var embedder: String?

    func validate() throws {
        if SearchOptions.Mode(rawValue: mode) == nil { throw ValidationError("--mode is hybrid, words or meaning.") }
    }

    func index() async throws -> SearchIndex {
        try await SearchIndex(readingFrom: URL(filePath: path), model: try Embedder.installedModel(embedder))
    }

    /// Options, with the documents and the mode of the flags.
    func options(_ options: SearchOptions) -> SearchOptions {
        var options = options
        options.filter.pathPrefix = prefix
        options.mode = SearchOptions.Mode(rawValue: mode) ?? .hybrid
        return options
    }
}
