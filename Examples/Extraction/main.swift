/// Extraction: typed facts from a text. Guides constrain each fact, so that the result always has the right format.
///
///     swift run Extraction
///     swift run Extraction "Your own text."
///
/// The format is guaranteed, the facts are not: a model of 135 million weights misreads and invents. Therefore the
/// program searches the text for each fact and marks those it does not find.

import Foundation
import FoundationModels

@Generable(description: "An event that a message announces")
struct Event {
    @Guide(description: "What happens, in a few words of the message")
    var title: String
    var kind: Kind
    @Guide(description: "The day, as year-month-day", /20\d\d-[01]\d-[0-3]\d/)
    var day: String
    @Guide(description: "When it begins, as hours:minutes", /[0-2]\d:[0-5]\d/)
    var time: String?
    @Guide(description: "The place or the room")
    var place: String?
    @Guide(description: "Names of people, as in the message", .count(1...3))
    var people: [String]
    @Guide(description: "What it costs", .range(0...1000))
    var price: Decimal?

    @Generable
    enum Kind: String { case concert, meeting, party, talk, other }
}

func fail(_ message: String, code: Int32 = 1) -> Never {
    FileHandle.standardError.write(Data("Extraction: \(message)\n".utf8))
    exit(code)
}

let sample = """
    Dear all, on 2026-05-14 at 18:30 Ada Lovelace and Charles Babbage will speak about engines that compute. \
    The talk is in the Blue Room; a seat costs 7.50 euros.
    """
let text = CommandLine.arguments.dropFirst().first ?? sample

/// Prints one fact, with a mark if the text does not contain it literally.
func show(_ name: String, _ fact: String?) {
    guard let fact else { return print("  \(name): none") }
    let mark = text.localizedCaseInsensitiveContains(fact) ? "" : "   (not in the text)"
    print("  \(name): \(fact)\(mark)")
}

guard SystemLanguageModel.default.isAvailable else {
    fail("There is no model. Download it with “fm model pull”.", code: 3)
}
let session = LanguageModelSession(instructions: "You copy facts from messages. Leave out what a message does not say.")
do {
    let response = try await session.respond(
        generating: Event.self, options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 250)
    ) {
        "The message:"
        text
    }
    let event = response.content
    print(text, "\n")
    show("title", event.title)
    print("  kind: \(event.kind)")
    show("day", event.day)
    show("time", event.time)
    show("place", event.place)
    for person in event.people { show("person", person) }
    show("price", event.price.map { "\($0)" })
    print("\n\(response.usage.totalTokenCount) tokens")
} catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
    fail(reason.debugDescription, code: 3)
} catch LanguageModelError.contextSizeExceeded {
    fail("The text is too long for the model. Pass a shorter one.", code: 4)
} catch {
    fail(error.localizedDescription)
}
