import Foundation
import FoundationModels

/// Plain choices.
@Generable
enum Mood: Equatable, CaseIterable {
    case calm
    case cheerful
    case tired
}

/// Choices with raw values.
@Generable(description: "The part of the day")
enum DayPart: String, CaseIterable {
    case morning = "early in the day"
    case noon = "around noon"
    case evening = "after work"
}

@Generable
enum Weekday: String, Codable {
    case monday, tuesday, wednesday, thursday, friday, saturday, sunday

    var isWeekend: Bool { self == .saturday || self == .sunday }
}

/// Choices with payloads: labelled, unlabelled, several, none.
@Generable(description: "Something that was done")
enum Activity: Equatable {
    case rest
    case walk(minutes: Int)
    case reading(String)
    case meal(Meal)
    case call(person: String, minutes: Int)

    @Generable
    struct Meal: Equatable {
        var dish: String
        var isHomemade: Bool
    }

    var line: String {
        switch self {
        case .rest: "Rested"
        case .walk(let minutes): "Walked for \(minutes) minutes"
        case .reading(let title): "Read \(title)"
        case .meal(let meal): "Ate \(meal.dish)"
        case .call(let person, minutes: _): "Called \(person)"
        }
    }
}

/// A union of generable types.
@Generable
enum Attachable {
    case mood(Mood)
    case activities([Activity])
    case remark(text: String?)
}

/// An entry that uses all these types.
@Generable
struct JournalEntry: Equatable {
    var day: Weekday
    var part: DayPart?

    @Guide(description: "How the person felt")
    var mood: Mood

    @Guide(description: "What the person did", .maximumCount(3))
    var activities: [Activity]

    var otherMoods: [Mood]
}

/// Analyses diary entries.
struct Journal {
    let session: LanguageModelSession

    func mood(of text: String) async throws -> Mood {
        try await session.respond(to: "How does the writer feel? \(text)", generating: Mood.self).content
    }

    func activity(in text: String) async throws -> Activity {
        try await session.respond(generating: Activity.self) {
            "What did the writer do?"
            text
        }.content
    }

    /// Choices are available before the response is complete.
    func watchActivity(in text: String) async throws -> [String] {
        var seen: [String] = []
        for try await snapshot in session.streamResponse(to: text, generating: Activity.self) {
            let line = Self.label(of: snapshot.content)
            if line != seen.last { seen.append(line) }
        }
        return seen
    }

    static func label(of partial: Activity.PartiallyGenerated) -> String {
        switch partial {
        case .rest: "rest"
        case .walk(let minutes): "walk \(minutes.map(String.init) ?? "…")"
        case .reading(let title): "reading \(title ?? "…")"
        case .meal(let meal): "meal \(meal?.dish ?? "…")"
        case .call(let person, let minutes): "call \(person ?? "…") \(minutes.map(String.init) ?? "…")"
        }
    }

    /// The example for the model is a Swift value that is sent as content.
    static let example = JournalEntry(
        day: .saturday, part: .evening, mood: .cheerful,
        activities: [.walk(minutes: 40), .meal(.init(dish: "Soup", isHomemade: true)), .rest],
        otherMoods: [.calm])
}
