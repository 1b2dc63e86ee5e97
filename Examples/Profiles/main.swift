/// Profiles: a session whose instructions and options change with a session property, within one conversation.
///
///     swift run Profiles
///
/// The profile is asked anew before each request. The instructions change what a small model is told; how far it
/// follows them is its own affair.

import Foundation
import FoundationModels

enum Style {
    case exact, pirate
}

extension SessionPropertyValues {
    /// How the session speaks.
    @SessionPropertyEntry var style = Style.exact
    /// Responses so far.
    @SessionPropertyEntry var responseCount = 0
}

/// One of two profiles: modifiers inside belong to one of them.
struct Speaker: LanguageModelSession.DynamicProfile {
    @SessionProperty(\.style) var style

    var body: some DynamicProfile {
        switch style {
        case .exact:
            Profile {
                Instructions("Answer in one short sentence.")
            }
            .samplingMode(.greedy)
            .onActivate { print("[exact: always the most probable words]") }
        case .pirate:
            Profile {
                Instructions("You are a pirate.")
                Instructions("Speak like one, in one short sentence.")
            }
            .samplingMode(.random(top: 20, seed: 7))
            .temperature(0.8)
            .onActivate { print("[pirate: freer words, the same ones each time]") }
        }
    }
}

/// A modifier of one's own: the model sees the last exchanges only, whatever the profile. The transcript keeps all.
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

/// What both styles have in common.
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
    fail("There is no model. Fetch it with “fm model pull”.", code: 3)
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
    print("\(session.properties.responseCount) responses, \(session.usage.output.totalTokenCount) tokens written")
    print("The transcript has \(session.transcript.history.count) entries besides the instructions.")
} catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
    fail(reason.debugDescription, code: 3)
} catch {
    fail(error.localizedDescription)
}
