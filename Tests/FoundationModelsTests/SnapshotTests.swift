import Foundation
import JSON
import TestSupport
import Testing

@testable import FoundationModels

/// What a snapshot of a streamed value contains is in all later ones: text and lists only grow, and nothing that is complete
/// changes.
struct SnapshotTests {
    /// Whether the first content can become the second one without anything being taken back.
    private static func grows(_ before: GeneratedContent, _ after: GeneratedContent) -> Bool {
        guard before.id == after.id else { return false }
        switch (before.storage, after.storage) {
        case (.string(let some), .string(let more)):
            return before.isComplete ? some.utf8.elementsEqual(more.utf8) : more.utf8.starts(with: some.utf8)
        case (.array(let some), .array(let more)):
            guard before.isComplete ? some.count == more.count : some.count <= more.count else { return false }
            return zip(some, more).allSatisfy { grows($0, $1) }
        case (.structure(let some, let names), .structure(let more, let moreNames)):
            guard before.isComplete ? names == moreNames : moreNames.starts(with: names) else { return false }
            return names.allSatisfy { name in
                guard let first = some[name], let second = more[name] else { return false }
                return grows(first, second)
            }
        default: return before.storage == after.storage
        }
    }

    private static func document(_ random: inout SeededGenerator, depth: Int = 0) -> String {
        let count = Int.random(in: 0...4, using: &random)
        switch Int.random(in: 0...(depth > 3 ? 4 : 7), using: &random) {
        case 0: return ["null", "true", "false"].randomElement(using: &random) ?? ""
        case 1: return ["0", "-1", "12.50", "1e3", "9223372036854775807"].randomElement(using: &random) ?? ""
        case 2, 3, 4:
            let parts = ["a", "é", "e\u{301}", "日本", "\\n", "\\u00e9", "\\ud83e\\udd8a", "\\\"", "\\\\", "{", "🦊", "👩‍👩‍👧"]
            return "\"" + (0..<count).map { _ in parts.randomElement(using: &random) ?? "" }.joined() + "\""
        case 5: return "[" + (0..<count).map { _ in document(&random, depth: depth + 1) }.joined(separator: ", ") + "]"
        default:
            return "{" + (0..<count).map { "\"k\($0)\": " + document(&random, depth: depth + 1) }.joined(separator: ",") + "}"
        }
    }

    @Test("[B4] a value that is streamed character by character never shrinks") func values() throws {
        var random = SeededGenerator(11)
        for _ in 0..<400 {
            let text = Self.document(&random)
            var output = ResponseOutput(schemaName: "Value")
            output.beginRound(usedIDs: [], replaceableIDs: [])
            var last: GeneratedContent?
            for scalar in text.unicodeScalars {
                _ = output.apply(.response(action: .appendText(String(scalar), tokenCount: 1)))
                let now = output.current.content
                if let last {
                    let now = try #require(now)
                    #expect(Self.grows(last, now), "\(text): \(last) and \(now)")
                }
                last = now
            }
            _ = try output.endRound()
            let finished = output.finished.content
            // The response becomes complete only with its end.
            if let last {
                #expect(Self.grows(GeneratedContent(storage: last.storage, id: last.id, isComplete: false), finished), "\(text)")
            }
            let whole = try JSONParser.parse(text)
            #expect(finished.isComplete && finished.json == whole, "\(text)")
        }
    }

    @Test("an open string has only whole characters, wherever its bytes are divided") func bytes() throws {
        let text = "\"éa日本🦊\\ud83e\\udd8a\\né\""
        let whole = "éa日本🦊\u{1F98A}\né"
        var reader = JSONReader()
        var seen = ""
        for byte in text.utf8 {
            try reader.append([byte]) { _ in }
            guard let open = reader.openString else { continue }
            #expect(whole.utf8.starts(with: open.utf8) && open.utf8.starts(with: seen.utf8), "\(open) after \(seen)")
            seen = open
        }
        #expect(seen == whole)
    }

    @Generable enum Mood { case calm, calmer }
    @Generable enum Shape {
        case circle(radius: Int)
        case label(text: String, marks: [String])
    }
    @Generable struct Scene {
        var title: String
        var moods: [Mood]
        var shapes: [Shape]
        var sizes: [Int]?
        var nested: [[String]]
    }

    @Test("[B4] the values of a partially generated type never shrink") func types() throws {
        let text = """
            {"title": "Dusk é 🦊", "moods": ["calm", "calmer"], "shapes": [{"type": "label", "text": "a\\nb", "marks": ["x", "yz"]}, \
            {"type": "circle", "radius": 12}], "sizes": [1, 23], "nested": [[], ["a", "bc"]]}
            """
        var reader = ContentReader(assignsIDs: true)
        var last: Scene.PartiallyGenerated?
        for scalar in text.unicodeScalars {
            try reader.append(String(scalar))
            guard let content = reader.content else { continue }
            let scene = try Scene.PartiallyGenerated(content)
            if let last {
                func longer<Element>(_ some: [Element]?, _ more: [Element]?) -> Bool {
                    some.map { $0.count <= more?.count ?? -1 } ?? true
                }
                #expect(last.id == scene.id)
                #expect(last.title.map { (scene.title ?? "").utf8.starts(with: $0.utf8) } ?? true)
                #expect(longer(last.shapes, scene.shapes))
                // What is written in full has one form only.
                #expect((scene.moods ?? []).starts(with: last.moods ?? []) && longer(last.moods, scene.moods))
                #expect((scene.sizes ?? []).starts(with: last.sizes ?? []) && longer(last.sizes, scene.sizes))
                #expect(longer(last.nested, scene.nested))
                for (some, more) in zip(last.nested ?? [], scene.nested ?? []) { #expect(some.count <= more.count) }
                for case (.label(let some, let marks), .label(let more, let moreMarks)) in zip(
                    last.shapes ?? [], scene.shapes ?? [])
                {
                    #expect((more ?? "").utf8.starts(with: (some ?? "").utf8) && longer(marks, moreMarks))
                }
            }
            last = scene
        }
        #expect(last?.moods == [.calm, .calmer] && last?.sizes == [1, 23] && last?.nested?.last == ["a", "bc"])
    }

    // MARK: - Values that are cut

    /// Sends the beginning of a value, and then ends or fails.
    private struct CutModel: LanguageModel {
        var capabilities: LanguageModelCapabilities { LanguageModelCapabilities([.guidedGeneration]) }
        var executorConfiguration: Executor.Configuration { .init() }
        var error: LanguageModelError?

        struct Executor: LanguageModelExecutor {
            typealias Model = CutModel
            struct Configuration: Hashable, Sendable {}
            init(configuration: Configuration) {}

            nonisolated(nonsending) func respond(
                to request: LanguageModelExecutorGenerationRequest, model: CutModel,
                streamingInto channel: LanguageModelExecutorGenerationChannel
            ) async throws {
                await channel.send(.response(action: .appendText("{\"title\": \"Du", tokenCount: 4)))
                if let error = model.error { throw error }
            }
        }
    }

    private struct NoError: Error {}

    private static func error(of model: CutModel, isStreamed: Bool) async -> any Error {
        let session = LanguageModelSession(model: model)
        do {
            if isStreamed {
                for try await _ in session.streamResponse(to: "Go", generating: Scene.self) {}
            } else {
                _ = try await session.respond(to: "Go", generating: Scene.self)
            }
            return NoError()
        } catch { return error }
    }

    @Test(
        "[B9] a value that is cut by a limit is a decoding failure; one that the window cuts is that error",
        arguments: [false, true])
    func cut(isStreamed: Bool) async {
        let limit = await Self.error(of: CutModel(), isStreamed: isStreamed)
        #expect((limit as? GeneratedContent.ParsingError)?.rawContent == "{\"title\": \"Du")
        if case .decodingFailure? = limit as? LanguageModelSession.GenerationError {} else { Issue.record(limit) }
        let full = LanguageModelError.contextSizeExceeded(.init(contextSize: 10, tokenCount: 11, debugDescription: "Full."))
        let window = await Self.error(of: CutModel(error: full), isStreamed: isStreamed)
        if case .contextSizeExceeded(let context)? = window as? LanguageModelError {
            #expect(context.contextSize == 10)
        } else {
            Issue.record(window)
        }
        if case .exceededContextWindowSize? = window as? LanguageModelSession.GenerationError {} else { Issue.record(window) }
    }
}
