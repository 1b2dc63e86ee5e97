import Embeddings
import Foundation
import Inference
import InstalledModels
import TestSupport
import Testing

@testable import fm

/// `fm embed`, `fm index`, `fm search` and `fm ask` with the default embedding model, which `./test` installs.
struct SearchCommandTests {
    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(at: url) }  // the system removes what is left

        func write(_ name: String, _ text: String) throws {
            try Data(text.utf8).write(to: url.appendingPathComponent(name))
        }
    }

    private func fm(_ arguments: [String]) throws -> CommandTests.Run {
        try CommandTests().fm(arguments, environment: ["FM_EMBEDDER": "embedder"])
    }

    private static let isInstalled = FileManager.default.fileExists(atPath: ModelStore.embedderPath(of: "embedder"))

    @Test("“default” is a name of the embedder that is used where none is named") func defaultName() throws {
        #expect(ModelStore.embedderPath(of: "default") == ModelStore.embedderPath)
        let run = try CommandTests().fm(["embed", "-m", "default", "The cat sleeps."], environment: ["FM_EMBEDDER": "default"])
        #expect(run.status == 0 && run.output.contains("embedding"), "\(run.error)")
    }

    @Test func theEmbedderIsInstalled() { #expect(Self.isInstalled) }

    @Test("files that cannot be read end with exit code 1, others without text or too large are named") func problems() throws {
        let (docs, out) = (try Folder(), try Folder())
        let index = out.url.appendingPathComponent("docs.index").path
        try docs.write("food.txt", "Bread is baked in the morning.")
        try docs.write("empty.md", "")
        try docs.write("app.html", "<div id=root></div><script>document.write('bread')</script>")
        try docs.write("large.txt", "")
        let large = try FileHandle(forWritingTo: docs.url.appendingPathComponent("large.txt"))
        try large.truncate(atOffset: 65 << 20)
        try large.close()
        let built = try fm(["index", docs.url.path, "--out", index])
        #expect(built.status == 0 && built.output.contains("3 added"))
        #expect(
            built.error.contains("“large.txt” is left out: it has 65 MB, and documents have at most 64 MB."), "\(built.error)")
        #expect(built.error.contains("“empty.md” has no text") && built.error.contains("“app.html” has no text"))
        try docs.write("data.txt", "a\0b")
        let unreadable = try fm(["index", docs.url.path, "--out", index, "--json"])
        #expect(unreadable.status == 1 && unreadable.output.contains("\"unchanged\":3"))
        #expect(unreadable.error.contains("“data.txt” cannot be read") && unreadable.error.contains("“empty.md” has no text"))
        #expect(try fm(["search", "--in", index, "bread"]).output.contains("food.txt:1"))
    }

    @Test("an index of nothing is a failure") func nothingToIndex() throws {
        let (docs, out) = (try Folder(), try Folder())
        try docs.write("empty.md", "")
        let run = try fm(["index", docs.url.path, "--out", out.url.appendingPathComponent("docs.index").path])
        #expect(run.status == 1 && run.output.contains("1 added") && run.error.contains("The index is empty"), "\(run)")
    }

    @Test("[D8] vectors of texts, as JSON and binary, and similar lines") func embed() throws {
        struct Line: Decodable { var text: String, tokens: Int, embedding: [Float] }
        let json = try fm(["embed", "The cat sleeps.", "Wieviel?"])
        let lines = try json.output.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
        #expect(lines.map(\.text) == ["The cat sleeps.", "Wieviel?"] && lines[0].embedding.count == 384)
        #expect(lines[0].tokens == 6)
        let folder = try Folder()
        try folder.write("lines.txt", "Stocks fell today.\r\nA feline is resting.\n\nIt rains.\n")
        let similar = try fm(
            [
                "embed", "--similar", "The cat sleeps.", folder.url.appendingPathComponent("lines.txt").path, "--json", "--top",
                "1",
            ])
        #expect(similar.output.contains("\"line\":2") && similar.output.contains("A feline is resting."))
        try folder.write("windows.txt", "cats sleep\r\ndogs bark\r\n")
        let windows = try fm(["embed", "--similar", "felines", folder.url.appendingPathComponent("windows.txt").path, "--json"])
        #expect(windows.output.split(separator: "\n").count == 2)
        // All of a long text counts.
        let long = String(repeating: "The cat sleeps on the warm stones. ", count: 60)
        let ends = try fm(["embed", long + "It dreams of fish.", long + "Passports are renewed at the town hall."])
        let vectors = try ends.output.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
        #expect(vectors.count == 2 && vectors[0].embedding != vectors[1].embedding && vectors[0].tokens > 400)
        for arguments in [[""], [" "], ["--similar", "", "/dev/null"], ["--similar", "x", "/dev/null"]] {
            let empty = try fm(["embed"] + arguments)
            #expect(empty.status == 64 && empty.output.isEmpty, "\(arguments)")
        }
        #expect(try fm(["embed", "--similar", "x", "/nowhere"]).status == 64)
        #expect(try fm(["embed", "-m", "./missing.gguf", "x"]).status == 3)
    }

    /// Eight tokens at most, a word each and two marks; a vector says which share of the words has which first letter.
    private struct WordModel: EmbeddingModel {
        func info() async throws -> EmbeddingModelInfo {
            EmbeddingModelInfo(name: "words", identifier: "w", dimension: 2, maximumTokenCount: 8)
        }
        func embed(_ texts: [String], as role: EmbeddingRole) async throws -> [[Float]] {
            texts.map { text in
                let words = text.split(separator: " ").prefix(6)
                let counts = ["a", "b"].map { letter in Float(words.count { $0.hasPrefix(letter) }) }
                let length = max(1, dotProduct(counts, counts).squareRoot())
                return counts.map { $0 / length }
            }
        }
        func tokenCounts(of texts: [String], as role: EmbeddingRole) async throws -> [Int] {
            texts.map { min(8, $0.split(separator: " ").count + 2) }
        }
    }

    @Test("a text that is longer than the model reads is embedded in parts, all of which count") func longTexts() async throws {
        func words(_ letter: String, _ count: Int) -> String { Array(repeating: letter, count: count).joined(separator: " ") }
        let texts = [
            words("a", 5), words("a", 24), words("a", 12) + " " + words("b", 12), words("a", 20) + " " + words("b", 4), "",
            String(repeating: "a", count: 50), words("a", 3) + String(repeating: " ", count: 50),
        ]
        let results = try await WholeTexts(WordModel(), .document).embed(texts)
        #expect(results.count == texts.count)
        #expect(results[0].vector == [1, 0] && results[0].tokens == 7)
        #expect(results[1].vector == [1, 0] && results[1].tokens > 24)
        for (result, expected) in [(results[2], [Float(0.7071), 0.7071]), (results[3], [0.98, 0.2])] {
            for (value, wanted) in zip(result.vector, expected) { #expect(abs(value - wanted) < 0.03, "\(result)") }
            #expect(abs(dotProduct(result.vector, result.vector) - 1) < 1e-5)
        }
        #expect(results[4].vector == [0, 0] && results[5].vector == [1, 0] && results[6].vector == [1, 0])
    }

    @Test("a model of the catalogue that is named is installed when it is needed, as the default one is") func installed() throws
    {
        let folder = try Folder()
        let run = try CommandTests().fm(
            ["embed", "-m", "embedder", "x"],
            environment: ["XDG_DATA_HOME": folder.url.path, "HF_ENDPOINT": "http://127.0.0.1:1", "PIP_NO_INDEX": "1"])
        #expect(run.status == 3 && run.error.contains("could not be downloaded"), "\(run.error)")
        let unknown = try CommandTests().fm(["embed", "-m", "nonsense", "x"], environment: ["XDG_DATA_HOME": folder.url.path])
        #expect(unknown.status == 3 && unknown.error.contains("“nonsense”"), "\(unknown.error)")
    }

    @Test("[D8] an index is built, brought up to date and searched") func search() throws {
        let (docs, out) = (try Folder(), try Folder())
        let index = out.url.appendingPathComponent("docs.index").path
        try docs.write("pets.md", "# Pets\n\nThe dog barks at night.\n\n# Travel\n\nPassports are renewed at the town hall.")
        try docs.write("food.txt", "Bread is baked in the morning.")
        let built = try fm(["index", docs.url.path, "--out", index])
        #expect(built.status == 0 && built.output.contains("2 added") && built.output.contains("2 documents in 3 passages"))
        let found = try fm(["search", "--in", index, "extend the validity of a travel document", "--json", "--top", "1"])
        struct Result: Decodable { var file: String, score: Double, place: String, text: String, headings: [String] }
        let result = try JSONDecoder().decode(Result.self, from: Data(found.output.utf8))
        #expect(result.file == "pets.md" && result.place == "pets.md:7" && result.headings == ["Travel"])
        #expect(result.text == "Passports are renewed at the town hall." && result.score > 0)
        #expect(try fm(["search", "--in", index, "bread"]).output.contains("food.txt:1"))
        let again = try fm(["index", docs.url.path, "--out", index, "--json"])
        #expect(again.output.contains("\"unchanged\":2"))
        let missing = try fm(["search", "--in", "/nowhere/x", "bread"])
        #expect(missing.status == 1 && missing.error.contains("fm index"))
        #expect(try fm(["index", "/nowhere", "--out", index]).status == 1)
        #expect(try fm(["search", "--in", index, "x", "--mode", "psychic"]).status == 64)
    }

    @Test("[D8] an index whose program was killed is completed by the next run") func killed() async throws {
        let (docs, out) = (try Folder(), try Folder())
        var random = SeededGenerator(9)
        let words = ["river", "stone", "bridge", "violin", "lantern", "harbour", "meadow", "clock", "winter", "letter"]
        for number in 0..<150 {
            let text = (0..<40).map { _ in words[Int(random.next() % 10)] }.joined(separator: " ")
            try docs.write("\(number).txt", "Document \(number). \(text).")
        }
        let index = out.url.appendingPathComponent("killed.index").path
        func bytes(_ paths: [String]) -> Int {
            paths.reduce(0) { sum, path in
                var status = stat()
                return sum + (stat(path, &status) == 0 ? Int(status.st_size) : 0)
            }
        }
        let whole = out.url.appendingPathComponent("whole.index").path
        _ = try fm(["index", docs.url.path, "--out", whole, "--quiet"])
        var kills = 0
        for round in 0..<4 {
            let process = Process()
            process.executableURL = CommandTests.binary
            process.environment = ProcessInfo.processInfo.environment.merging(["FM_EMBEDDER": "embedder"]) { $1 }
            process.arguments = ["index", docs.url.path, "--out", index]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            // Kills it after it has written a random part of what the whole index has, at first at most a half.
            let enough = bytes([whole]) * (Int(random.next() % 40) + 10 + 10 * round) / 100
            await eventually { !process.isRunning || bytes([index, index + "-wal"]) >= enough }
            if process.isRunning { kills += 1 }
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
        #expect(kills > 0)
        let last = try fm(["index", docs.url.path, "--out", index])
        #expect(last.status == 0 && last.output.contains("150 documents in 150 passages"))
        for query in ["Document 77", "a violin near the harbour", "winter"] {
            // By meaning only: without ties, the order does not depend on the order of writing.
            let arguments = [query, "--json", "--top", "50", "--mode", "meaning"]
            let texts = try [index, whole].map { try fm(["search", "--in", $0] + arguments).output }
            #expect(texts[0] == texts[1] && texts[0].split(separator: "\n").count == 50)
        }
    }
}
