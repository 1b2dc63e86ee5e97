/// Streaming: shows a structure while it is generated. Each snapshot is the whole value so far; missing parts are nil.
///
///     swift run Streaming
///     swift run Streaming "pancakes"
///
/// The recipe is always well-formed and complete, but may be nonsense, because the default model is small.

import Foundation
import FoundationModels

@Generable
struct Recipe {
    @Guide(description: "What the dish is called")
    var title: String
    @Guide(description: "Minutes it takes", .range(1...240))
    var minutes: Int
    @Guide(.count(3...5))
    var ingredients: [Ingredient]
    @Guide(description: "What to do, one sentence each", .count(3...4))
    var steps: [String]

    @Generable
    struct Ingredient {
        @Guide(description: "How much of it, such as 200 g")
        var amount: String
        var name: String
    }
}

func fail(_ message: String, code: Int32 = 1) -> Never {
    FileHandle.standardError.write(Data("Streaming: \(message)\n".utf8))
    exit(code)
}

/// A recipe, possibly incomplete, as text.
func card(_ recipe: Recipe.PartiallyGenerated) -> String {
    var lines = [recipe.title ?? "…"]
    if let minutes = recipe.minutes { lines.append("\(minutes) minutes") }
    for ingredient in recipe.ingredients ?? [] {
        lines.append("  - \(ingredient.amount ?? "…") \(ingredient.name ?? "…")")
    }
    for (number, step) in (recipe.steps ?? []).enumerated() { lines.append("  \(number + 1). \(step)") }
    return lines.joined(separator: "\n")
}

guard SystemLanguageModel.default.isAvailable else {
    fail("There is no model. Download it with “fm model pull”.", code: 3)
}
let dish = CommandLine.arguments.dropFirst().first ?? "vegetable soup"
let isTerminal = isatty(STDOUT_FILENO) == 1
let session = LanguageModelSession(instructions: "You write short recipes for beginners.")
do {
    let stream = session.streamResponse(
        to: "A recipe for \(dish).", generating: Recipe.self,
        options: GenerationOptions(temperature: 0.6, maximumResponseTokens: 400))
    var last = ""
    for try await snapshot in stream {
        last = card(snapshot.content)
        // Clears the screen and starts at its top. To a file or a pipe, only the complete recipe is written.
        if isTerminal { print("\u{1B}[2J\u{1B}[H" + last) }
    }
    if !isTerminal { print(last) }
    // The stream has been read to its end, so this returns the response without waiting.
    let response = try await stream.collect()
    let needed = response.content.ingredients.count
    print("\n\(needed) ingredients, \(response.usage.output.totalTokenCount) tokens")
} catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
    fail(reason.debugDescription, code: 3)
} catch {
    fail(error.localizedDescription)
}
