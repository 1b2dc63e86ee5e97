/// ServerClient: a model on a server with OpenAI's API (llama-server, vLLM, Ollama, a commercial service), used like the system model.
///
///     llama-server -m model.gguf --port 8080
///     swift run ServerClient --url http://127.0.0.1:8080/v1 "Invent the hero of a story."
///
/// The session, the types and the errors are the same as with a model on this machine; only the model is another value.

import ArgumentParser
import Foundation
import FoundationModels
import FoundationModelsOpenAI

@Generable
struct Hero {
    @Guide(description: "A first name and a surname") var name: String
    @Guide(.range(10...90)) var age: Int
    @Guide(description: "What the person wants most, in one sentence") var goal: String
}

@main
struct ServerClient: AsyncParsableCommand {
    @Option(help: "The address of the API.") var url = "http://127.0.0.1:8080/v1"
    @Option(help: "The name of the model on the server.") var model = "default"
    @Option(help: "The API key.") var key: String?
    @Argument(help: "The prompt.") var prompt: String

    func run() async throws {
        let model = OpenAILanguageModel(name: model, url: url, apiKey: key)
        let session = LanguageModelSession(model: model, instructions: "You write short stories.")
        let hero = try await session.respond(to: prompt, generating: Hero.self).content
        print("\(hero.name), \(hero.age): \(hero.goal)\n")

        var written = 0
        for try await snapshot in session.streamResponse(to: "Write the first sentences of a story about this person.") {
            print(Substring(snapshot.content.utf8.dropFirst(written)), terminator: "")
            fflush(nil)
            written = snapshot.content.utf8.count
        }
        print()
    }
}
