import ArgumentParser
import Foundation
import Retrieval
import Reports

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
        var relevance: Double?
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
        let index = try await flags.index()
        var options = SearchOptions()
        options.limit = top
        let results = try await index.search(query, options: flags.options(options))
        let isColored = Terminal.hasColors(STDOUT_FILENO)
        for (number, result) in results.enumerated() {
            let passage = result.passage
            if json {
                let line = Line(
                    rank: number + 1, score: result.score, cosine: result.cosine, relevance: result.relevance, file: passage.path,
                    folder: passage.source,
                    place: passage.place,
                    lines: [passage.lines.lowerBound, passage.lines.upperBound], page: passage.page, title: passage.title,
                    headings: passage.headings, text: passage.text)
                try Output().writeJSON(line)
                continue
            }
            let headings = passage.headings.isEmpty ? "" : "  " + passage.headings.joined(separator: " › ")
            let head = String(format: "%d  %.2f  ", number + 1, result.score)
            let text = passage.text.split(separator: "\n").map { "    \($0)\n" }.joined()
            if isColored {
                let (place, rest) = (TerminalText.safe(passage.place), TerminalText.safe(headings + "\n" + text + "\n"))
                try Output().writeStyled(head + Terminal.styled(place, .bold, on: STDOUT_FILENO) + rest)
            } else {
                try Output().write(head + passage.place + headings + "\n" + text + "\n")
            }
        }
        if results.isEmpty, !json { Message.say("Nothing was found.") }
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
        try await SearchIndex(readingFrom: URL(filePath: path), model: Embedder.installedModel(embedder))
    }

    /// Options, with the documents and the mode of the flags.
    func options(_ options: SearchOptions) -> SearchOptions {
        var options = options
        options.filter.pathPrefix = prefix
        options.mode = SearchOptions.Mode(rawValue: mode) ?? .hybrid
        return options
    }
}
