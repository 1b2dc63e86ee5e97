import FoundationModels
import Playgrounds

#Playground {
    let session = LanguageModelSession(instructions: "Be brief.")
    let response = try await session.respond(to: "Suggest three names for a café.")
    print(response.content)
}

#Playground("Named") {
    _ = SystemLanguageModel.default.availability
}
