import FoundationModels
import FoundationModelsTesting
import Testing

/// The state of an app, which its main actor protects.
@MainActor private final class Desk {
    var mode = "first"
    var evaluations = 0
}

private struct Step: Tool {
    let description = "Goes on."
    let desk: Desk
    @Generable struct Arguments { var number: Int }

    func call(arguments: Arguments) async throws -> String {
        await MainActor.run { desk.mode = "second" }
        return "done"
    }
}

/// A profile of an app whose default isolation is the main actor.
@MainActor private struct DeskProfile: @MainActor LanguageModelSession.DynamicProfile {
    let desk: Desk
    let scripted: ScriptedLanguageModel

    var body: some LanguageModelSession.DynamicProfile {
        // Ends the program if the body is evaluated anywhere else.
        let mode = MainActor.assumeIsolated {
            desk.evaluations += 1
            return desk.mode
        }
        Profile {
            Instructions("Mode: \(mode).")
            Step(desk: desk)
        }.model(scripted)
    }
}

struct ProfileTests {
    @Test("[A2] the body of a profile is evaluated on the actor of the request, in each round", arguments: [false, true])
    @MainActor func mainActor(streams: Bool) async throws {
        let desk = Desk()
        let call = ScriptedLanguageModel.Call(name: "Step", arguments: try GeneratedContent(json: #"{"number": 1}"#))
        let model = ScriptedLanguageModel([.toolCalls([call]), .text("Ready.")])
        let session = LanguageModelSession(profile: DeskProfile(desk: desk, scripted: model))
        if streams {
            #expect(try await session.streamResponse(to: "Go.").collect().content == "Ready.")
        } else {
            #expect(try await session.respond(to: "Go.").content == "Ready.")
        }
        #expect(session.transcript.first?.description.contains("Mode: second") == true)
        #expect(desk.evaluations >= 2)
    }
}
