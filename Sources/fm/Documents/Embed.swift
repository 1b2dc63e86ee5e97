import ArgumentParser
import Embeddings
import Foundation
import FoundationModelsInstallation
import Inference
import InstalledModels

struct Embed: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "embed",
        abstract: "Compute vectors of texts, or find the lines of a file that mean something similar.",
        discussion: """
            Each line of standard input, or each argument, is a text. A vector has the length 1: the dot product of two vectors \
            is the cosine of their angle. A text that is longer than the model reads at once is embedded in parts, so that all of it \
            counts: its vector is the mean of theirs, weighted by their numbers of tokens.

              fm embed "The cat sleeps."                     a line of JSON for each text
              fm embed --binary < lines.txt > vectors.f32    binary32, little-endian, one row for each line
              fm embed --similar "felines" notes.txt         the ten most similar lines, best first
              fm embed --similar "felines" notes.txt --json --top 3
            """)

    @Argument(help: "The texts; with --similar, the file to search (default: standard input).") var texts: [String] = []

    @Option(help: ArgumentHelp("Find the lines of a file that are similar to this text.", valueName: "query"))
    var similar: String?
    @Option(help: "With --similar, the maximum number of lines.") var top = 10
    @Flag(help: "The texts are queries, not documents; some models distinguish them.") var query = false
    @Flag(help: "Write vectors as binary32, little-endian, without anything else.") var binary = false
    @Flag(help: "With --similar, a line of JSON for each result.") var json = false
    @Option(
        name: [.short, .long], help: ArgumentHelp("An embedding model to use this time, by name or file.", valueName: "name"))
    var model: String?

    func validate() throws {
        if binary, similar != nil { throw ValidationError("--binary cannot be combined with --similar.") }
        if top < 1 { throw ValidationError("--top must be at least 1.") }
        if similar != nil, texts.count > 1 { throw ValidationError("--similar searches one file.") }
        // A line of a file may be empty: there is a vector for each.
        if ([similar] + (similar == nil ? texts : [])).contains(where: { $0?.allSatisfy(\.isWhitespace) == true }) {
            throw ValidationError("A text is empty.")
        }
    }

    func run() async throws {
        let input = similar != nil || texts.isEmpty ? try lines(of: texts.first) : texts
        let model = try await Embedder.installedModel(self.model)
        if let similar { try await search(similar, in: input, model) } else { try await write(input, model) }
    }

    /// Vectors that are computed before any of them is written.
    private static let part = 1024

    private func write(_ texts: [String], _ model: GGUFEmbeddingModel) async throws {
        struct Line: Encodable {
            var text: String
            var tokens: Int
            var embedding: [Float]
        }
        let role = query ? EmbeddingRole.query : .document
        for start in stride(from: 0, to: texts.count, by: Self.part) {
            let part = Array(texts[start..<min(start + Self.part, texts.count)])
            let vectors = try await WholeTexts(model, role).embed(part)
            if binary {
                var bytes = Data()
                for (vector, _) in vectors { vector.withUnsafeBytes { bytes.append(contentsOf: $0) } }
                try FileHandle.standardOutput.write(contentsOf: bytes)
                continue
            }
            for (text, (vector, tokens)) in zip(part, vectors) {
                let line = Line(text: text, tokens: tokens, embedding: vector)
                try Output().writeJSON(line)
            }
        }
    }

    private func search(_ query: String, in lines: [String], _ model: GGUFEmbeddingModel) async throws {
        struct Result: Encodable {
            var score: Float
            var line: Int
            var text: String
        }
        let wanted = try await WholeTexts(model, .query).embed([query])[0].vector
        let numbers = lines.indices.filter { lines[$0].contains { !$0.isWhitespace } }
        let vectors = try await WholeTexts(model, .document).embed(numbers.map { lines[$0] }).map(\.vector)
        // With types: one expression of closures without them took the compiler eight seconds.
        var results: [Result] = []
        for (number, vector) in zip(numbers, vectors) {
            results.append(Result(score: dotProduct(wanted, vector), line: number + 1, text: lines[number]))
        }
        results.sort { (a: Result, b: Result) -> Bool in a.score == b.score ? a.line < b.line : a.score > b.score }
        for result in results.prefix(top) {
            if json {
                try Output().writeJSON(result)
            } else {
                try Output().write(String(format: "%.3f  %5d  ", result.score, result.line) + result.text + "\n")
            }
        }
    }

    /// The lines of a file, or of standard input.
    private func lines(of path: String?) throws -> [String] {
        if path == nil, isatty(STDIN_FILENO) == 1 {
            throw ValidationError("There is no text. Pass it as an argument or on standard input.")
        }
        let text = try TextFile.read(path ?? "-")
        if text.allSatisfy(\.isWhitespace) {
            throw ValidationError("\(path.map { "“\($0)”" } ?? "Standard input") has no text.")
        }
        // By bytes: “\r\n” is one character.
        var lines = text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        }
        if lines.last == "" { lines.removeLast() }
        return lines
    }
}

/// Vectors of texts of any length. A model cuts texts off; here, a longer one is embedded in parts.
struct WholeTexts<Model: EmbeddingModel> {
    private let model: Model
    private let role: EmbeddingRole

    init(_ model: Model, _ role: EmbeddingRole) { (self.model, self.role) = (model, role) }

    private struct Part {
        /// The index of the text.
        var text: Int
        var content: String
        /// Whether it is all of the text.
        var isWhole: Bool
        var tokens = 0
    }

    /// Parts that are embedded together.
    private static var batch: Int { 1024 }

    /// The vector and the number of tokens of each text. The vector of a text in parts is the mean of those of its parts, weighted by their
    /// tokens, with the length 1.
    func embed(_ texts: [String]) async throws -> [(vector: [Float], tokens: Int)] {
        let parts = try await parts(of: texts)
        var results = [(vector: [Float], tokens: Int)](repeating: ([], 0), count: texts.count)
        var divided: Set<Int> = []
        for start in stride(from: 0, to: parts.count, by: Self.batch) {
            let batch = parts[start..<min(start + Self.batch, parts.count)]
            for (part, vector) in zip(batch, try await model.embed(batch.map(\.content), as: role)) {
                let text = part.text
                results[text].tokens += part.tokens
                if part.isWhole {
                    results[text].vector = vector
                } else {
                    if divided.insert(text).inserted { results[text].vector = [Float](repeating: 0, count: vector.count) }
                    for index in vector.indices { results[text].vector[index] += Float(part.tokens) * vector[index] }
                }
            }
        }
        for text in divided {
            let length = dotProduct(results[text].vector, results[text].vector).squareRoot()
            if length > 0 { results[text].vector = results[text].vector.map { $0 / length } }
        }
        return results
    }

    /// The parts of texts, in order. Those of a text are halves of it, or halves of these, that are shorter than what the model reads; a text
    /// of just that length may have been cut off.
    private func parts(of texts: [String]) async throws -> [Part] {
        let limit = try await model.info().maximumTokenCount
        var parts: [Part] = []
        var open = texts.enumerated().map { Part(text: $0.offset, content: $0.element, isWhole: true) }
        while !open.isEmpty {
            let counts = try await model.tokenCounts(of: open.map(\.content), as: role)
            var longer: [Part] = []
            for (var part, count) in zip(open, counts) {
                part.tokens = count
                if count >= limit, let halves = Self.halves(of: part.content) {
                    longer += halves.map { Part(text: part.text, content: $0, isWhole: false) }
                } else {
                    parts.append(part)
                }
            }
            open = longer
        }
        return parts
    }

    /// A text, divided in the middle, between words if it has any; nil if it has no words, or is a single character.
    private static func halves(of text: String) -> [String]? {
        let middle = text.index(text.startIndex, offsetBy: text.count / 2)
        guard middle > text.startIndex else { return nil }
        let end = text[..<middle].lastIndex(where: \.isWhitespace).map { text.index(after: $0) } ?? middle
        let halves = [text[..<end], text[end...]].filter { !$0.allSatisfy(\.isWhitespace) }
        return halves.isEmpty ? nil : halves.map(String.init)
    }
}

/// The embedding model of a command.
enum Embedder {
    /// The file of a model, which may be missing.
    ///
    /// - Parameter name: A name or a file; nil for the default one.
    static func path(_ name: String?) -> String { name.map { ModelStore.embedderPath(of: $0) } ?? ModelStore.embedderPath }

    /// The model, which is installed first if it is one of the catalogue and needed for the first time.
    static func installedModel(_ name: String?) async throws -> GGUFEmbeddingModel {
        let path = path(name)
        if !FileManager.default.fileExists(atPath: path) { try await install(name, at: path) }
        return GGUFEmbeddingModel(url: URL(filePath: path))
    }

    private static func install(_ name: String?, at path: String) async throws {
        guard let known = EmbedderCatalogue.models.first(where: { ModelStore.embedderPath(of: $0.name) == path }) else {
            throw EmbeddingError(
                "There is no embedding model “\(name ?? path)”. “fm model list” shows those that are installed; "
                    + "“fm model pull embedder” installs the default one.")
        }
        let (installed, isNew) = try await InstallationDisplay.run {
            try await ModelInstallation.default.install(.named(known.name), progress: $0)
        }
        if isNew { Message.say("Installed \(installed.title).") }
    }
}
