import ArgumentParser
import Embeddings
import Foundation
import Inference

struct Embed: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "embed",
        abstract: "Compute vectors of texts, or find the lines of a file that mean something similar.",
        discussion: """
            Each line of standard input, or each argument, is a text. A vector has the length 1: the dot product of two vectors \
            is the cosine of their angle.

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
    }

    func run() async throws {
        do {
            let model = try Embedder.model(self.model)
            if let similar {
                try await search(similar, in: try lines(of: texts.first), model)
            } else {
                try await write(texts.isEmpty ? try lines(of: nil) : texts, model)
            }
        } catch let error as ValidationError {
            throw error
        } catch {
            throw ExitMessage.exit(for: error)
        }
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
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        for start in stride(from: 0, to: texts.count, by: Self.part) {
            let part = Array(texts[start..<min(start + Self.part, texts.count)])
            let vectors = try await model.embed(part, as: role)
            if binary {
                var bytes = Data()
                for vector in vectors { vector.withUnsafeBytes { bytes.append(contentsOf: $0) } }
                try FileHandle.standardOutput.write(contentsOf: bytes)
                continue
            }
            let counts = try await model.tokenCounts(of: part, as: role)
            for index in part.indices {
                let line = Line(text: part[index], tokens: counts[index], embedding: vectors[index])
                try Output().write(String(decoding: try encoder.encode(line), as: UTF8.self) + "\n")
            }
        }
    }

    private func search(_ query: String, in lines: [String], _ model: GGUFEmbeddingModel) async throws {
        struct Result: Encodable {
            var score: Float
            var line: Int
            var text: String
        }
        let wanted = try await model.embed(query, as: .query)
        let numbers = lines.indices.filter { lines[$0].contains { !$0.isWhitespace } }
        let vectors = try await model.embed(numbers.map { lines[$0] }, as: .document)
        let results = zip(numbers, vectors).map { Result(score: dotProduct(wanted, $1), line: $0 + 1, text: lines[$0]) }
            .sorted { $0.score == $1.score ? $0.line < $1.line : $0.score > $1.score }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        for result in results.prefix(top) {
            if json {
                try Output().write(String(decoding: try encoder.encode(result), as: UTF8.self) + "\n")
            } else {
                try Output().write(String(format: "%.3f  %5d  ", result.score, result.line) + result.text + "\n")
            }
        }
    }

    /// The lines of a file, or of standard input.
    private func lines(of path: String?) throws -> [String] {
        let data: Data
        if let path {
            do { data = try Data(contentsOf: URL(filePath: path)) } catch {
                throw ValidationError("“\(path)” cannot be read: \(error.localizedDescription)")
            }
        } else {
            if isatty(STDIN_FILENO) == 1 {
                throw ValidationError("There is no text. Pass it as an argument or on standard input.")
            }
            data = try FileHandle.standardInput.readToEnd() ?? Data()
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            throw ValidationError("\(path.map { "“\($0)”" } ?? "Standard input") is not valid UTF-8 text.")
        }
        // By bytes: “\r\n” is one character.
        var lines = text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        }
        if lines.last == "" { lines.removeLast() }
        return lines
    }
}

/// The embedding model of a command. The default one is installed when it is needed for the first time.
enum Embedder {
    static func model(_ name: String?) throws -> GGUFEmbeddingModel {
        let path = name.map { ModelStore.embedderPath(of: $0) } ?? ModelStore.embedderPath
        if !FileManager.default.fileExists(atPath: path), !path.contains("/") || name == nil {
            guard let known = EmbedderCatalogue.entry(named: URL(filePath: path).lastPathComponent) else {
                throw EmbeddingError("There is no embedding model “\(name ?? path)”.")
            }
            let lock = try InstallLock()
            try EmbedderInstaller(known).install(isQuiet: true)
            withExtendedLifetime(lock) {}
        }
        return GGUFEmbeddingModel(url: URL(filePath: path))
    }
}
