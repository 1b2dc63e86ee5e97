/// TicketRouting: sorts messages with probabilities instead of text, and asks a person where the model is not sure.
///
///     swift run TicketRouting
///
/// All questions on a message are answered in one pass: the message is processed once, and nothing is generated.

import Decisions
import FoundationModels

enum Team: String, Choosable {
    case billing, support, sales

    var optionDescription: String? {
        switch self {
        case .billing: "invoices, payments, refunds"
        case .support: "something does not work"
        case .sales: "prices, offers, new orders"
        }
    }
}

let messages = [
    "I was charged twice in May. Please send me the money back.",
    "The app closes as soon as I open the calendar.",
    "What would forty licences cost?",
    "Hello?",
]

for message in messages {
    // A session of its own for each message: what others have written is no part of the question.
    let session = LanguageModelSession()
    let team = try await session.choice("Which team should answer?", about: message, from: Team.self)
    let anger = try await session.probability(of: "The writer is angry.", about: message)
    let isSure = team.confidence > 0.6
    print(message)
    print("  → \(isSure ? team.value.rawValue : "a person decides"), angry: \(Int(100 * anger)) %")
    for (value, probability) in team.distribution { print("    \(value.rawValue) \(Int(100 * probability)) %") }
}
