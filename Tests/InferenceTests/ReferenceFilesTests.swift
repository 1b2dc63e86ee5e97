import Foundation
import JSON
import Testing

@testable import Inference

/// Vocabularies and chat templates from llama.cpp's source package, which `./test` downloads. Tests that need them are
/// skipped if they are missing.
enum ReferenceFiles {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent(".build/llama-models")

    static let areThere = FileManager.default.fileExists(
        atPath: folder.appendingPathComponent("templates/complete").path)

    static func names(_ folder: URL, suffix: String) -> [String] {
        // Without the directory there are no names: the tests are skipped or fail.
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).filter { $0.hasSuffix(suffix) }.sorted()
    }

    static func hash(_ bytes: some Sequence<UInt8>) -> String {
        var value: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
        let text = String(value, radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }
}

@Suite(.enabled(if: ReferenceFiles.areThere))
struct ReferenceVocabularyTests {
    static let names = ReferenceFiles.names(ReferenceFiles.folder, suffix: ".gguf.inp").map { String($0.dropLast(9)) }

    @Test func thereAreVectors() { #expect(Self.names.count >= 14) }

    /// Encodes every text of the published test vectors.
    @Test(arguments: names)
    func tokensEqualTheVectors(name: String) throws {
        let file = ReferenceFiles.folder.appendingPathComponent(name + ".gguf")
        let tokenizer = try Tokenizer(file: GGUFFile(path: file.path))
        let input = String(decoding: try Data(contentsOf: file.appendingPathExtension("inp")), as: UTF8.self)
        let output = String(decoding: try Data(contentsOf: file.appendingPathExtension("out")), as: UTF8.self)
        let cases = input.components(separatedBy: "\n__ggml_vocab_test__\n")
        let lines = output.split(separator: "\n", omittingEmptySubsequences: false).prefix(cases.count)
        #expect(cases.count > 30 && lines.count == cases.count)
        for (text, line) in zip(cases, lines) {
            let expected = line.split(separator: " ").compactMap { TokenID($0) }
            #expect(tokenizer.encode(text) == expected, "\(name): \(text.debugDescription)")
        }
    }

    /// Unigram, compared with tokens recorded from llama.cpp (Tests/Tools/record_unigram.py), because there are no
    /// published test vectors.
    @Test func unigramEqualsTheRecording() throws {
        struct Case: Decodable { var text: String, tokens: [TokenID] }
        struct Recorded: Decodable { var cases: [Case], marked: Case }
        let file = ReferenceFiles.folder.appendingPathComponent("ggml-vocab-nomic-bert-moe.gguf")
        let tokenizer = try Tokenizer(file: GGUFFile(path: file.path))
        let url = try #require(Bundle.module.url(forResource: "Golden/unigram", withExtension: "json"))
        let recorded = try JSONDecoder().decode(Recorded.self, from: Data(contentsOf: url))
        #expect(recorded.cases.count > 50)
        for entry in recorded.cases {
            #expect(tokenizer.encode(entry.text) == entry.tokens, "\(entry.text.debugDescription)")
        }
        #expect(tokenizer.encode([.user(recorded.marked.text)], addsBoundaryTokens: true) == recorded.marked.tokens)
    }

    /// Texts for encoder models get a beginning and an end token; tokens that are already present are not added again.
    @Test func wordPieceAddsItsMarks() throws {
        let file = ReferenceFiles.folder.appendingPathComponent("ggml-vocab-bert-bge.gguf")
        let tokenizer = try Tokenizer(file: GGUFFile(path: file.path))
        let tokens = tokenizer.encode([.user("Crème brûlée!")], addsBoundaryTokens: true)
        #expect(tokens.first == 101 && tokens.last == 102)
        #expect(String(decoding: tokenizer.decode(tokens), as: UTF8.self) == " creme brulee !")
        #expect(tokenizer.encode([.template("[CLS]"), .user("a"), .template("[SEP]")], addsBoundaryTokens: true).count == 3)
    }
}

@Suite(.enabled(if: ReferenceFiles.areThere))
struct ReferenceTemplateTests {
    struct Rendering: Decodable {
        struct Text: Decodable { var hash: String }
        var hash: String?
        var error: String?
        var permissive: Text?
    }
    struct Template: Decodable {
        var hash: String
        var renderings: [String: Rendering]
    }
    struct Recorded: Decodable { var templates: [String: Template] }

    static let names = ReferenceFiles.names(ReferenceFiles.folder.appendingPathComponent("templates"), suffix: ".jinja")

    /// The variables of the recorded conversations, with object members in order.
    private static func conversations() throws -> [(name: String, variables: [String: TemplateValue])] {
        let url = try #require(Bundle.module.url(forResource: "Golden/templates", withExtension: "json"))
        let json = try JSONParser.parse(try Data(contentsOf: url))
        guard case .object(let members)? = json["conversations"] else { return [] }
        return members.map { member in
            guard case .object(let variables) = member.value else { return (member.name, [:]) }
            return (member.name, Dictionary(uniqueKeysWithValues: variables.map { ($0.name, TemplateValue($0.value)) }))
        }
    }

    @Test func thereAreTemplates() { #expect(Self.names.count == 70) }

    /// Each template renders each conversation exactly as jinja2 does, or rejects it if the template raises an
    /// exception.
    @Test(arguments: names)
    func templatesRenderAsJinja2Does(name: String) throws {
        let recorded = try GoldenFile.load("templates", as: Recorded.self)
        let expected = try #require(recorded.templates[name])
        let source = try String(
            contentsOf: ReferenceFiles.folder.appendingPathComponent("templates/\(name)"), encoding: .utf8)
        try #require(ReferenceFiles.hash(source.utf8) == expected.hash)
        let template = try ChatTemplate(source: source, beginningText: "<BOS>", endText: "<EOS>")
        for conversation in try Self.conversations() {
            let rendering = try #require(expected.renderings[conversation.name])
            do {
                let pieces = try template.render(variables: conversation.variables, date: Self.date)
                let text = pieces.map { piece in
                    switch piece {
                    case .template(let text), .user(let text): text
                    }
                }.joined()
                guard let hash = rendering.hash ?? rendering.permissive?.hash else { continue }
                #expect(ReferenceFiles.hash(text.utf8) == hash, "\(name), \(conversation.name)")
                if ReferenceFiles.hash(text.utf8) != hash, let folder = ProcessInfo.processInfo.environment["FM_RENDERED"] {
                    let file = "\(folder)/\(name)--\(conversation.name).txt"
                    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
                }
            } catch let error as TemplateError {
                if rendering.hash != nil { Issue.record("\(name), \(conversation.name): \(error)") }
                if rendering.error == "raised" {
                    guard case .raised = error else {
                        Issue.record("\(name), \(conversation.name): \(error)")
                        continue
                    }
                }
            }
        }
    }

    /// 12:00 on 21 November 2026.
    private static let date = DateComponents(
        calendar: Calendar(identifier: .gregorian), timeZone: TimeZone(identifier: "UTC"), year: 2026, month: 11, day: 21,
        hour: 12
    ).date
}

struct HostileTemplateTests {
    struct Hostile: Decodable, Sendable {
        var name: String
        var prefix: String
        var `repeat`: String
        var count: Int
        var suffix: String
    }

    /// Every template gives a result or a typed error, with limited work and memory, and never traps.
    @Test func maliciousTemplatesAreHandled() throws {
        for hostile in try GoldenFile.load("hostile_templates", as: [Hostile].self) {
            let source = hostile.prefix + String(repeating: hostile.repeat, count: hostile.count) + hostile.suffix
            do {
                let template = try ChatTemplate(source: source, beginningText: "<s>", endText: "</s>")
                // A lower limit than the default, because most of these templates run until they reach it.
                _ = try template.render(
                    variables: [
                        "messages": .list([
                            .dictionary(TemplateDictionary([("role", .text("user")), ("content", .text("Hello"))]))
                        ])
                    ], maximumSteps: 20_000)
            } catch {
                // With typed throws, the error is a `TemplateError`.
                #expect(!error.description.isEmpty, "\(hostile.name)")
            }
        }
    }
}
