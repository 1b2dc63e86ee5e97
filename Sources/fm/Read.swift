import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import Grammar
import Inference
internal import JSON
import Retrieval

struct Read: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Read texts of any length: a summary, an answer, or values.",
        discussion: """
            The texts may be much longer than the context window: they are read in parts. The last argument is what to do with \
            them if it is not a file. Without it, the texts are summarised. A question, which ends with a question mark, is \
            answered from the passages that fit it best, with their places; other tasks are done with each part, and their \
            results are combined. With --schema, values are taken from each part and merged: lists are joined, and the first \
            value of each other member stays.

              fm read book.txt                                  a summary
              fm read book.txt "Who inherits the house?"        an answer with places
              fm read minutes/*.md "List the decisions."
              fm read letters.pdf --schema people.json "Take out all people."
              cat book.txt | fm read - "Who inherits the house?"

            Work that was interrupted goes on where it stopped, with the same command. If a question is not answered by the \
            texts, the exit code is \(Ask.notInDocuments.rawValue).
            """)

    @Argument(help: ArgumentHelp("Files, or - for standard input; then a question or a task.", valueName: "file"))
    var arguments: [String] = []

    @OptionGroup var flags: GenerationFlags

    @Option(help: ArgumentHelp("Take values of this JSON Schema from the texts.", valueName: "file"))
    var schema: String?

    @Option(help: "The maximum number of tokens of a summary or a result.")
    var length = 300

    @Flag(help: "Write one JSON object.")
    var json = false

    func validate() throws {
        if length < 16 { throw ValidationError("--length must be at least 16.") }
    }

    func run() async throws {
        try flags.selectModel()
        let (files, task) = try parts()
        let work = Task { try await read(files, task) }
        let interrupt = Interrupt { work.cancel() }
        defer { interrupt.stop() }
        do { try await work.value } catch let error as ExitCode { throw error } catch let error as ValidationError {
            throw error
        } catch {
            if interrupt.happened {
                Message.say("Stopped. The same command continues.")
                throw ExitCode(130)
            }
            throw ExitMessage.exit(for: error)
        }
    }

    /// The files, and what to do with their texts.
    private func parts() throws -> (files: [String], task: String?) {
        var files = arguments
        var task: String?
        if let last = files.last, last != "-", !FileManager.default.fileExists(atPath: last) { task = files.popLast() }
        for file in files where file != "-" && !FileManager.default.fileExists(atPath: file) {
            throw ValidationError("There is no file “\(file)”.")
        }
        if files.isEmpty {
            // A single argument that looks like a path is rather a file that does not exist.
            if let task, !task.contains(" ") { throw ValidationError("There is no file “\(task)”.") }
            guard isatty(STDIN_FILENO) != 1 else { throw ValidationError("Give a file, or a text on standard input.") }
            files = ["-"]
        }
        return (files, task)
    }

    private func read(_ files: [String], _ task: String?) async throws {
        let model = SystemLanguageModel.default
        let texts = try files.map { ($0, try Self.text(of: $0)) }
        if schema == nil, let task, task.hasSuffix("?") || task.hasSuffix("？") {
            return try await answer(task, texts, model)
        }
        let whole = texts.map { $0.1.blocks.map(\.text).joined(separator: "\n\n") }.joined(separator: "\n\n")
        guard whole.contains(where: { !$0.isWhitespace }) else { throw ValidationError("There is no text to read.") }
        let document = LongDocument(text: whole)
        let checkpoint = try Self.checkpoint(whole, task ?? "", schema ?? "", "\(length) \(flags.instructions ?? "")")
        // The model reads about a token for four bytes of English text.
        let line = ProgressLine("Reading", total: max(1, whole.utf8.count / 4))
        if let schema {
            let json = try SchemaFile.read(schema)
            let generated: GenerationSchema
            do throws(JSONSchemaError) { generated = try GenerationSchema(jsonSchema: json) } catch {
                throw SchemaFile.fail(error.sentence)
            }
            let found = try await document.extract(
                schema: generated, instructions: Self.extraction(task, json), model: model, responseTokens: max(400, length),
                checkpoint: checkpoint, progress: { line.show(0, text: "\($0) parts") }, merging: Self.merged)
            line.end()
            let value = try JSONParser.parse(found?.jsonString ?? "null")
            // Each part conforms; lists that are joined may be too long.
            if try !Self.conforms(value, to: json) {
                Message.say(
                    "(Together, the values of the parts do not conform to the schema. A list may be longer than it allows.)")
            }
            return try Output().write(value.prettyText + "\n")
        }
        let told: @Sendable (LongDocument.Progress) -> Void = { line.show($0.tokens, text: "\($0.chunks) parts") }
        let result =
            if let task {
                try await document.result(
                    of: task, in: length, model: model, instructions: flags.instructions, checkpoint: checkpoint, progress: told)
            } else {
                try await document.summary(
                    in: length, model: model, instructions: flags.instructions, checkpoint: checkpoint, progress: told)
            }
        line.end()
        if json {
            try Output().write(JSONValue.object([.init("result", .string(result))]).text + "\n")
        } else {
            try Output().write(result + "\n")
        }
    }

    // MARK: - Texts

    private static func text(of file: String) throws -> ExtractedText {
        if file != "-" {
            // Files of an unknown kind are read as plain text; what is none is an error.
            guard ExtractedText.Format(fileName: file) == nil else { return try ExtractedText(contentsOf: URL(filePath: file)) }
        }
        let handle = file == "-" ? FileHandle.standardInput : try FileHandle(forReadingFrom: URL(filePath: file))
        let data = try handle.readToEnd() ?? Data()
        guard !data.contains(0), let text = String(validating: data, as: UTF8.self) else {
            throw RetrievalError.unreadable(file: file == "-" ? "Standard input" : file, reason: "it is not UTF-8 text")
        }
        return ExtractedText(text, format: .plain)
    }

    /// The file for what is done so far. It is named by all that the result depends on.
    private static func checkpoint(_ parts: String...) throws -> URL {
        let hash = GGUFFile.hash(parts.joined(separator: "\u{0}").utf8)
        let folder = ModelStore.userDirectory("XDG_CACHE_HOME", default: ".cache")
            .appendingPathComponent("foundation-models/reading")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return folder.appendingPathComponent(String(hash, radix: 16) + ".json")
    }

    // MARK: - Questions

    private func answer(_ question: String, _ texts: [(String, ExtractedText)], _ model: SystemLanguageModel) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
        let index = try await SearchIndex(url: folder.appendingPathComponent("index"), model: try Embedder.model(nil))
        let line = ProgressLine("Reading", total: texts.count)
        for (number, (file, text)) in texts.enumerated() {
            line.show(number, text: "\(number) of \(texts.count) texts")
            try await index.add(text, path: file == "-" ? "standard input" : file)
        }
        line.end()
        var options = SearchOptions()
        (options.limit, options.diversity) = (24, 0.3)
        try await CitedAnswerWriter(model: model, flags: flags, json: json).answer(question, from: index, options)
    }

    // MARK: - Values

    static func conforms(_ value: JSONValue, to schema: JSONValue) throws -> Bool {
        let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] }, endTokens: [])
        var matcher = try Grammar(
            .schema(schema), vocabulary: bytes, options: GrammarOptions(membersInAnyOrder: true)
        ).matcher()
        return matcher.advance(value.bytes) && matcher.isComplete
    }

    private static func extraction(_ task: String?, _ schema: JSONValue) -> String {
        "\(task ?? "Take the values from the text.") \(SchemaDescription.request(for: schema))"
    }

    /// The values of two parts of a text: lists are joined without what is in both, members are merged, and of other values the first
    /// one stays unless it is null or empty.
    private static func merged(_ first: GeneratedContent, _ second: GeneratedContent) throws -> GeneratedContent {
        let value = merged(try JSONParser.parse(first.jsonString), try JSONParser.parse(second.jsonString))
        return try GeneratedContent(json: value.text)
    }

    static func merged(_ first: JSONValue, _ second: JSONValue) -> JSONValue {
        switch (first, second) {
        case (.array(let some), .array(let others)): return .array(some + others.filter { !some.contains($0) })
        case (.object(let members), .object(let others)):
            var result = members
            for member in others {
                if let index = result.firstIndex(where: { $0.name == member.name }) {
                    result[index] = .init(member.name, merged(result[index].value, member.value))
                } else {
                    result.append(member)
                }
            }
            return .object(result)
        case (.null, _), (.string(""), _): return second
        default: return first
        }
    }
}
