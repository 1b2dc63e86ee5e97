import Foundation
import FoundationModels

/// A news article with property names that also occur in the generated code and in the framework.
@Generable
struct NewsArticle: Equatable {
    var content: String
    var description: String
    var type: Kind
    var value: Int
    var properties: [String]
    var schema: String?
    var `self`: String?
    var json: Double
    var error: Bool
    var response: Response

    @Generable
    struct Response: Equatable {
        var id: Int
        var prompt: String
    }

    @Generable
    enum Kind: String, CaseIterable, Identifiable {
        case report, opinion, letter
        var id: Self { self }
    }
}

@Generable
private struct Draft: Equatable {
    fileprivate var text: String
    var pages: Pages

    @Generable
    fileprivate enum Pages: Equatable { case one, many(count: Int, content: String) }
}

/// The values of a picker.
@Generable
enum Edition: Int, CaseIterable, Identifiable, Codable, Sendable {
    case first = 1
    case second
    case special = 100

    var id: Int { rawValue }
    static let latest = Edition.second
    var title: String { "Edition \(rawValue)" }
    func isBefore(_ other: Edition) -> Bool { rawValue < other.rawValue }
}

/// Unlabelled, multiple and optional payloads.
@Generable
enum NewsEvent: Equatable {
    case published(Edition)
    case corrected(NewsArticle.Kind, String)
    case moved(from: Int, to: Int)
    case marked(colour: String, isUrgent: Bool?)
    case quoted([String])

    enum Level { case low, high }
    var level: Level {
        if case .corrected = self { .high } else { .low }
    }
}

/// A type of the app with the same name as a type of the framework.
struct Newsroom {
    typealias Tool = String
    enum Segment { case front, back }

    var tools: [Tool] = []
    var transcript: FoundationModels.Transcript = FoundationModels.Transcript()

    func prompt() -> FoundationModels.Prompt {
        FoundationModels.Prompt(tools.joined(separator: ", "))
    }

    func draft(_ text: String, in session: LanguageModelSession) async throws -> Int {
        switch try await session.respond(to: text, generating: Draft.self).content.pages {
        case .one: 1
        case .many(let count, _): count
        }
    }

    static let example = NewsArticle(
        content: "It rained.", description: "Weather", type: .report, value: 3, properties: ["wet"], schema: nil,
        self: "me", json: 1.5, error: false, response: .init(id: 4, prompt: "More?"))

    static let events: [NewsEvent] = [
        .published(.special), .corrected(.letter, "typo"), .moved(from: 1, to: 4),
        .marked(colour: "red", isUrgent: nil), .quoted(["so"]),
    ]
}
