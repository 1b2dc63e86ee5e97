import ArgumentParser
import ContextKit
import Files
import Foundation
import FoundationModels
import Grammar
import Inference
internal import JSON
import ModelPrompts
import Retrieval
import Synchronization
import Reports
import ProcessSettings

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

            Work that was interrupted goes on where it stopped, with the same command. A part that the model may not or does not \
            answer is left out, and named on standard error; see --guardrails. If a question is not answered by the texts, the \
            exit code is \(CommandFailure.Code.notInDocuments.rawValue).
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
        let model = try flags.modelFlags.choice()
        let (files, task) = try parts()
        try await LongWork.untilInterrupted("Stopped. The same command continues.") { try await read(files, task, model) }
    }

    /// The files, and what to do with their texts.
    private func parts() throws -> (files: [String], task: String?) {
        var files = arguments
        var task: String?
        if let last = files.last, last != "-", !FileManager.default.fileExists(atPath: last) { task = files.popLast() }
        if let task { try requireText(task, "task") }
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

    private func read(_ files: [String], _ task: String?, _ choice: ModelChoice) async throws {
        let model = choice.systemModel(guardrails: flags.guardrails.value)
        var texts: [(String, ExtractedText)] = []
        for file in files { texts.append((file, try await Self.text(of: file))) }
        let empty = texts.filter(\.1.isEmpty).map { file, _ in
            "\(RetrievalError.noText(file: file == "-" ? "standard input" : file, format: ExtractedText.Format(fileName: file) ?? .plain))"
        }
        if empty.count == texts.count { throw ValidationError(empty.joined(separator: "\n")) }
        for message in empty { Message.say(message) }
        if schema == nil, let task, task.hasSuffix("?") || task.hasSuffix("？") {
            return try await answer(task, texts, model)
        }
        let whole = texts.map(\.1.text).joined(separator: "\n\n")
        let document = LongDocument(text: whole)
        let shape = try schema.map { try SchemaFile.read($0) }
        let checkpoint = try Self.checkpoint(
            whole, task ?? "", shape?.text ?? "", "\(length) \(flags.guardrails.rawValue) \(flags.instructions ?? "")",
            try choice.identity().joined(separator: " "))
        // The model reads about a token for four bytes of English text.
        let line = ProgressLine("Reading", total: max(1, whole.utf8.count / 4))
        let usages = Mutex<[LanguageModelSession.Usage]>([])
        let notice: @Sendable (LongDocument.Notice) -> Void = { notice in
            switch notice {
            case .answered(let usage): usages.withLock { $0.append(usage) }
            case .rejected(let rejection):
                line.end()
                Message.say(Self.sentence(rejection))
            }
        }
        let result = try await result(of: document, task, shape, model, checkpoint, line, notice)
        line.end()
        try Output().write(result + "\n")
        // One sentence is enough.
        for usage in usages.withLock({ $0 }) { if let failure = CommandFailure.ofEnd(usage) { throw failure } }
    }

    /// What the command writes: a text, or JSON.
    private func result(
        of document: LongDocument, _ task: String?, _ schema: JSONValue?, _ model: SystemLanguageModel, _ checkpoint: URL,
        _ line: ProgressLine, _ notice: @escaping @Sendable (LongDocument.Notice) -> Void
    ) async throws -> String {
        if let schema {
            let generated = try GenerationSchema(jsonSchema: schema)
            let found = try await document.extract(
                schema: generated, instructions: Self.extraction(task, schema), model: model, responseTokens: max(400, length),
                checkpoint: checkpoint, progress: { line.show(0, text: "\($0) parts") }, notice: notice, merging: Self.merged)
            guard let found else { return "null" }
            let value = try JSONParser.parse(found.jsonString)
            line.end()
            // Each part conforms; lists that are joined may be too long. Whatever is said of them, the values are written.
            do {
                if try !Self.conforms(value, to: schema) {
                    Message.say(
                        "(Together, the values of the parts do not conform to the schema. A list may be longer than it allows.)")
                }
            } catch { Message.say("(Whether the values of the parts conform to the schema together is not known: \(error))") }
            return value.prettyText
        }
        let told: @Sendable (LongDocument.Progress) -> Void = { line.show($0.tokens, text: "\($0.chunks) parts") }
        let result =
            if let task {
                try await document.result(
                    of: task, in: length, model: model, instructions: flags.instructions, checkpoint: checkpoint, progress: told,
                    notice: notice)
            } else {
                try await document.summary(
                    in: length, model: model, instructions: flags.instructions, checkpoint: checkpoint, progress: told,
                    notice: notice)
            }
        return json ? JSONValue.object([.init("result", .string(result))]).text : result
    }

    /// Which part was not read, and why.
    static func sentence(_ rejection: LongDocument.Rejection) -> String {
        let place = rejection.chunk.map { "Part \($0)" } ?? "A part of the results"
        let beginning = TerminalText.line(rejection.text.trimmingCharacters(in: .whitespacesAndNewlines).prefix(60))
        return "\(place), “\(beginning)…”, was left out: \(CommandFailure(rejection.error))"
    }

    // MARK: - Texts

    private static func text(of file: String) async throws -> ExtractedText {
        // Files of an unknown kind are read as plain text; what is none is an error.
        if file != "-", ExtractedText.Format(fileName: file) != nil {
            return try await ExtractedText(contentsOf: URL(filePath: file))
        }
        let text = try TextFile.read(file)
        if text.utf8.contains(0) { throw CommandFailure("\(file == "-" ? "Standard input" : "“\(file)”") is not text.") }
        return ExtractedText(text, format: .plain)
    }

    /// The file for what is done so far. It is named by all that the result depends on.
    private static func checkpoint(_ parts: String...) throws -> URL {
        let hash = FNV.hash(parts.joined(separator: "\u{0}").utf8)
        let folder = UserFolder.url(.cacheFolder, default: ".cache")
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
        let index = try await SearchIndex(url: folder.appendingPathComponent("index"), model: Embedder.installedModel(nil))
        let line = ProgressLine("Reading", total: texts.count)
        for (number, (file, text)) in texts.enumerated() {
            line.show(number, text: "\(number) of \(texts.count) texts")
            try await index.add(text, path: file == "-" ? "standard input" : file)
        }
        line.end()
        try await CitedAnswerWriter(model: model, flags: flags, json: json).answer(question, from: index)
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
    static func merged(_ first: GeneratedContent, _ second: GeneratedContent) throws -> GeneratedContent {
        let value = merged(try JSONParser.parse(first.jsonString), try JSONParser.parse(second.jsonString))
        return try GeneratedContent(json: value.text)
    }

    static func merged(_ first: JSONValue, _ second: JSONValue) -> JSONValue {
        switch (first, second) {
        case (.array(let some), .array(let others)):
            let known = Set(some)
            return .array(some + others.filter { !known.contains($0) })
        case (.object(let members), .object(let others)):
            var result = members
            var places = Dictionary(
                members.enumerated().map { ($0.element.name, $0.offset) }, uniquingKeysWith: { first, _ in first })
            for member in others {
                if let index = places[member.name] {
                    result[index] = .init(member.name, merged(result[index].value, member.value))
                } else {
                    places[member.name] = result.count
                    result.append(member)
                }
            }
            return .object(result)
        case (.null, _), (.string(""), _): return second
        default: return first
        }
    }
}
