/// SafeChat: prompts and answers that are checked, and a text of somebody else that is only data.
///
///     swift run SafeChat "Write a line about falcons."
///     swift run SafeChat "What do you think of Acme's rockets?"                  a term of the deny list
///     swift run SafeChat --document letter.txt "Summarise this letter."          instructions in the letter are text
///
/// A deny list has terms of the app: other spellings are found too, and streamed text is held back while it may be a part of one. The
/// classifier is an additional check of this package; an app can have its own. Checks lower a risk, they do not remove it.

import ArgumentParser
import Foundation
import FoundationModels
import Safety

@main
struct SafeChat: AsyncParsableCommand {
    @Option(help: "A file with a denied term in each line.") var terms: String?
    @Option(help: "A file that the prompt is about.") var document: String?
    @Argument(help: "The prompt.") var prompt: String

    func run() async throws {
        let lists = DenyListStore([try DenyList(name: "competitors", terms: ["Acme", "Acme Corporation"])])
        if let terms { try await lists.load(from: URL(filePath: terms)) }
        let model = GuardedLanguageModel(
            SystemLanguageModel.default, denyLists: lists, classifier: BuiltInGuardrailClassifier())

        // The marks are different in each session, so that a text cannot end its part.
        let spotlighting = Spotlighting()
        var text = prompt
        if let document {
            text = spotlighting.prompt(prompt, about: try String(contentsOf: URL(filePath: document), encoding: .utf8))
        }
        let session = LanguageModelSession(model: model) {
            "Answer in one paragraph."
            spotlighting.instructions
        }
        do {
            print(try await session.respond(to: text).content)
        } catch LanguageModelError.guardrailViolation(let violation) {
            print("Not answered: \(violation.debugDescription)")
        } catch LanguageModelError.refusal(let refusal) {
            print("The model declined: \(refusal.debugDescription)")
        }
    }
}
