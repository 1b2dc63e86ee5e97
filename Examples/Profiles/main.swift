/// Profiles: a session whose instructions and options depend on a session property and change within one conversation.
///
///     swift run Profiles
///
/// The profile is evaluated again before each request. A small model may not follow the instructions.

import Foundation
import FoundationModels

enum Style {
    case exact, pirate
}

extension SessionPropertyValues {
    /// The style of responses.
    @SessionPropertyEntry var style = Style.exact
    /// The number of responses so far.
    @SessionPropertyEntry var responseCount = 0
}

/// One of two profiles, each with its own modifiers.
struct Speaker: LanguageModelSession.DynamicProfile {
    @SessionProperty(\.style) var style

    var body: some DynamicProfile {
        switch style {
        case .exact:
            Profile {
                Instructions("Answer in one short sentence.")
            }
            .samplingMode(.greedy)
            .onActivate { print("[exact: always the most probable token]") }
        case .pirate:
            Profile {
                Instructions("You are a pirate.")
                Instructions("Speak like one, in one short sentence.")
            }
            .samplingMode(.random(top: 20, seed: 7))
            .temperature(0.8)
            .onActivate { print("[pirate: random sampling with a fixed seed]") }
        }
    }
}

/// A custom modifier: the model receives only the last exchanges, with any profile. The transcript keeps all of them.
struct ShortMemory: LanguageModelSession.DynamicProfileModifier {
    var prompts: Int

    func body(content: Content) -> some DynamicProfile {
        content.historyTransform { [prompts] entries in
            let starts = entries.indices.filter { if case .prompt = entries[$0] { true } else { false } }
            guard starts.count > prompts else { return entries }
            return Array(entries[starts[starts.count - prompts]...])
        }
    }
}

/// The profile of the session: one of the two styles, with modifiers that both have in common.
struct Assistant: LanguageModelSession.DynamicProfile {
    @SessionProperty(\.responseCount) var responseCount

    var body: some DynamicProfile {
        Speaker()
            .modifier(ShortMemory(prompts: 2))
            .maximumResponseTokens(50)
            .onResponse { responseCount += 1 }
    }
}

func fail(_ message: String, code: Int32 = 1) -> Never {
    FileHandle.standardError.write(Data("Profiles: \(message)\n".utf8))
    exit(code)
}

guard SystemLanguageModel.default.isAvailable else {
    fail("There is no model. Download it with “fm model pull”.", code: 3)
}
let session = LanguageModelSession(profile: Assistant())
do {
    let questions: [(Style, String)] = [
        (.exact, "Where does the sun rise?"), (.pirate, "And where does it set?"), (.exact, "What is rum made of?"),
    ]
    for (style, question) in questions {
        session.properties.style = style
        print("> \(question)")
        let response = try await session.respond(to: question)
        print("\(response.content)\n")
    }
    print("\(session.properties.responseCount) responses, \(session.usage.output.totalTokenCount) output tokens")
    print("The transcript has \(session.transcript.history.count) entries in addition to the instructions.")
} catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
    fail(reason.debugDescription, code: 3)
} catch {
    fail(error.localizedDescription)
}
